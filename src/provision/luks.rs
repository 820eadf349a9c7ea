//! `luks`: dm-crypt with a LUKS2 header.
//!
//! Ledger entries: the `header`, by its UUID, which we choose; then the `mapping`, by its name. The passphrase is
//! derived from the UUID and reaches cryptsetup by standard input. It protects nothing, on purpose: the cost of
//! encryption is measured, and anybody with the devices can reopen them.

#[cfg(test)]
mod tests;

use super::ledger::Thing;
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, filesystem, guard, kernel_module,
    knobs, mapper, must_show, needs, size,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use std::path::Path;

pub struct Luks;

const PERF: [&str; 4] = ["no_read_workqueue", "no_write_workqueue", "same_cpu_crypt", "submit_from_crypt_cpus"];
const CIPHER: &str = "aes-xts-plain64";
/// Space that a LUKS2 header takes on the device (cryptsetup(8), `--offset`).
const HEADER: u64 = 16 << 20;

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "luks",
    "LUKS2 (dm-crypt): encryption with a throw-away key, to measure what it costs.",
    &[
        OptionSpec::with_default("sector_size", OptionKind::Integer { min: 512 }, "cryptsetup's choice by the device")
            .doc("Encryption sector in bytes: 512, 1024, 2048 or 4096."),
        OptionSpec::with_default("perf", OptionKind::TextList, "none")
            .doc("Flags of dm-crypt: no_read_workqueue, no_write_workqueue, same_cpu_crypt, submit_from_crypt_cpus."),
        OptionSpec::with_default("cipher", OptionKind::Text, "aes-xts-plain64").doc("Cipher as dm-crypt names it."),
        OptionSpec::with_default("key_bits", OptionKind::Integer { min: 64 }, "512")
            .doc("Length of the volume key in bits; XTS splits it in two."),
        OptionSpec::with_default("discards", OptionKind::Boolean, "false").doc("Pass discards on."),
        knobs::QUEUE,
    ],
)
.on(&[Take::ONE_DEVICE])
.undone_by(&[
    (MAPPING, |host, thing| mapper::remove(host, thing.mark("name")?, &mapped_uuid(thing.mark("uuid")?))),
    (HEADER_KIND, filesystem::wipe),
]);

impl Layer for Luks {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        size::check(options, "sector_size", size::is_sector, "the sector must have 512, 1024, 2048 or 4096 bytes")?;
        if let Some(unknown) = options.texts("perf").into_iter().find(|flag| !PERF.contains(&flag.as_str())) {
            let help = format!("known: {}", PERF.join(", "));
            return Err(OptionProblem::at("perf", format!("dm-crypt has no flag `{unknown}`")).help(help));
        }
        size::check(options, "key_bits", |bits| bits % 8 == 0, "the length of the key must be a multiple of 8 bits")?;
        match options.text("cipher") {
            Some(cipher)
                if !cipher.starts_with(|c: char| c.is_ascii_alphanumeric())
                    || !cipher.chars().all(|c| c.is_ascii_alphanumeric() || "-_:()".contains(c)) =>
            {
                Err(OptionProblem::at("cipher", format!("`{cipher}` is not the name of a cipher")))
            }
            _ => Ok(()),
        }
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let programs = needs::programs(host, &[("cryptsetup", "cryptsetup-bin"), ("wipefs", "util-linux")]);
        let kernel = kernel_module::unmet_target(host, "crypt", "dm-crypt");
        mapper::unmet(host).chain(programs).chain(kernel).collect()
    }

    fn capacity(&self, _options: &Options, data: &[Bytes]) -> Option<Bytes> {
        data.first().map(|bytes| Bytes(bytes.0.saturating_sub(HEADER)))
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let device = devices_for(inputs, Role::Data)[0];
        kernel_module::load(site.host, "dm-crypt", &[])?;
        let uuid = filesystem::new_uuid(site.host)?;
        site.ledger.enter(Thing::new("luks", HEADER_KIND).with_path("device", device)?.with("uuid", &uuid))?;
        let format = Command::new("cryptsetup")
            .args(["luksFormat", "--batch-mode", "--type=luks2", "--key-file=-", &format!("--uuid={uuid}")])
            // A key that protects nothing needs no slow derivation; 1000 is the minimum that cryptsetup accepts.
            .args(["--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000"])
            .arg(format!("--cipher={}", options.text("cipher").unwrap_or(CIPHER)))
            .arg(format!("--key-size={}", options.integer("key_bits").unwrap_or(512)))
            .args(options.integer("sector_size").map(|size| format!("--sector-size={size}")));
        site.host.run(&format.arg(device).stdin(passphrase(&uuid)))?;
        site.interrupt.check()?;
        open(site, device, &uuid, options)
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let device = devices_for(inputs, Role::Data)[0];
        kernel_module::load(site.host, "dm-crypt", &[])?;
        let uuid = guard::signature(site.host, device, "crypto_LUKS")?.and_then(|signature| signature.uuid);
        let uuid = uuid.ok_or_else(|| Error::host(format!("{} has no LUKS header", device.display())))?;
        open(site, device, &uuid, options)
    }
}

const HEADER_KIND: &str = "header";
const MAPPING: &str = "mapping";

fn passphrase(uuid: &str) -> String {
    format!("pgstrata throw-away {uuid}")
}

/// Prefix of the UUID that cryptsetup gives its mapping.
fn mapped_uuid(uuid: &str) -> String {
    format!("CRYPT-LUKS2-{}-", uuid.replace('-', ""))
}

fn open(site: &Site<'_>, device: &Path, uuid: &str, options: &Options) -> Result<Built> {
    let name = mapper::short_name(site);
    site.ledger.enter(Thing::new("luks", MAPPING).with("name", &name).with("uuid", uuid))?;
    let command = Command::new("cryptsetup")
        .args(["open", "--type=luks2", "--key-file=-"])
        .args(options.texts("perf").iter().map(|flag| format!("--perf-{flag}")))
        .args((options.boolean("discards") == Some(true)).then_some("--allow-discards"));
    site.host.run(&command.arg(device).arg(&name).stdin(passphrase(uuid)))?;
    let mapping = mapper::find(site.host, &name)?;
    let details = read_back(site.host, &name, options)?;
    Ok(Built::one(Base::Device(mapping.path()), details))
}

/// Reads the mapping back from the kernel's table and compares it with the options.
fn read_back(host: &Host, name: &str, options: &Options) -> Result<Details> {
    let table = mapper::table(host, name)?;
    let [target] = table.as_slice() else {
        return Err(Error::tool(format!("the mapping {name} has {} targets, not one", table.len())));
    };
    // cipher, key, offset of the IV, device, first sector, number of flags, flags
    let [cipher, key] = [0, 1].map(|number| target.arguments.get(number).map_or("", String::as_str));
    let flags = target.arguments.get(6..).unwrap_or_default();
    let sector = flags.iter().find_map(|flag| flag.strip_prefix("sector_size:")).unwrap_or("512");
    let perf: Vec<&str> = PERF.into_iter().filter(|flag| flags.iter().any(|set| set == flag)).collect();
    let mut asked: Vec<String> = options.texts("perf");
    asked.sort_unstable_by_key(|flag| PERF.iter().position(|known| known == flag));
    asked.dedup();
    let discards = flags.iter().any(|flag| flag == "allow_discards");
    let wanted = [
        ("cipher", cipher.to_owned(), Some(options.text("cipher").unwrap_or(CIPHER).to_owned())),
        ("sector size", sector.to_owned(), options.integer("sector_size").map(|size| size.to_string())),
        ("flags", perf.join(" "), Some(asked.join(" "))),
        ("discards", discards.to_string(), Some(options.boolean("discards").unwrap_or(false).to_string())),
        ("key bits", key_bits(key), Some(options.integer("key_bits").unwrap_or(512).to_string())),
    ];
    let mut details = Details::from([("mapping".to_owned(), name.to_owned())]);
    for (fact, shown, wanted) in wanted {
        must_show(&format!("{fact} of the encryption"), wanted.as_ref().unwrap_or(&shown), &shown)?;
        details.insert(fact.to_owned(), shown);
    }
    Ok(details)
}

/// Length of the key in the table: as zeroes, or as `:BYTES:TYPE:NAME` in the kernel's keyring.
fn key_bits(key: &str) -> String {
    let bytes = match key.strip_prefix(':').and_then(|rest| rest.split(':').next()) {
        Some(bytes) => bytes.parse::<usize>().unwrap_or(0),
        None => key.len() / 2,
    };
    (bytes * 8).to_string()
}
