//! `disk`: a real block device, protected by the guard.
//!
//! The signature of a filesystem on the device belongs to that layer, which lists it in the ledger and wipes it. With
//! `overwrite`, the device's previous contents are wiped here, once, permanently. After a run a disk is full of that
//! run's bytes, which nobody needs as long as they are unchanged. This machine keeps a checksum of them, so the next
//! trial treats the disk as blank.

mod found;

pub use found::{FoundDisk, found};

use super::identity::{BlockDevice, Identity};
use super::ledger::Thing;
use super::{Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, guard, knobs, needs, precondition};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::{Host, paths, processes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::Path;

pub struct RealDisk;

/// Its name in plans.
pub(super) const NAME: &str = "disk";

/// Identity and contents of a disk in a plan, for the user to check before it is overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskContents {
    /// Path without symlinks.
    pub path: String,
    /// Model reported by the device.
    pub model: Option<String>,
    /// Serial reported by the device.
    pub serial: Option<String>,
    pub size: Option<Bytes>,
    /// Signatures and partitions, as text; empty for a blank device.
    pub signatures: Vec<String>,
}

/// Reads the identity and contents of the disk in these options, so that the user can confirm before `overwrite` takes
/// effect. `None` unless the options say `overwrite = true`.
///
/// # Errors
/// When the device is not there or cannot be read.
pub fn contents(host: &Host, options: &Options) -> Result<Option<DiskContents>> {
    if options.boolean("overwrite") != Some(true) {
        return Ok(None);
    }
    let device = find(options)?;
    let Identity { model, serial, size_bytes, .. } = Identity::of(host, device.node);
    let signatures = guard::contents(host, &device)?;
    let path = device.path.display().to_string();
    Ok(Some(DiskContents { path, model, serial, size: size_bytes.map(Bytes), signatures }))
}

pub(super) const INFO: LayerInfo = LayerInfo::device(NAME, "A real disk or partition, identified by path and serial; it is formatted.", &[
    OptionSpec::required("disk", OptionKind::Path)
        .doc("Full path of the device: /dev/disk/by-id/nvme-... ALL DATA ON IT IS LOST."),
    OptionSpec::optional("serial", OptionKind::Text)
        .doc("Serial number, as printed by `lsblk --output NAME,SERIAL`; either this or `wwn` must be given and match."),
    OptionSpec::optional("wwn", OptionKind::Text).doc("World Wide Name, as printed by `lsblk --output NAME,WWN`."),
    OptionSpec::with_default("overwrite", OptionKind::Boolean, "false").doc(
        "Use the device even if it holds data; the run shows the data and asks first. A device in use is never used.",
    ),
    precondition::PRECONDITION,
    precondition::PRECONDITION_ROUND,
    knobs::QUEUE,
])
.undone_by(&[(USED, mark_used)]);

impl Layer for RealDisk {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        let path = options.text("disk").unwrap_or_default();
        if !path.starts_with("/dev/") || Path::new(path).components().any(|part| part.as_os_str() == "..") {
            return Err(OptionProblem::at("disk", format!("`{path}` is not the full path of a device"))
                .help("write it as /dev/disk/by-id/..., as shown by `ls -l /dev/disk/by-id`"));
        }
        precondition::check(options)?;
        if ["serial", "wwn"].iter().any(|key| options.text(key).is_some_and(|text| !text.trim().is_empty())) {
            Ok(())
        } else {
            Err(OptionProblem::at("disk", format!("the plan gives no `serial` or `wwn` of `{path}`"))
                .help("`pgstrata doctor` prints the line for each disk"))
        }
    }

    fn unmet(&self, host: &Host, options: &Options) -> Vec<Unmet> {
        let mut unmet: Vec<Unmet> =
            needs::root().into_iter().chain(needs::program(host, "wipefs", "util-linux")).collect();
        if unmet.is_empty() && options.text("disk").is_some() {
            let refused = find(options).and_then(|device| admit(host, &device, options)).err();
            unmet.extend(refused.map(|e| Unmet {
                what: e.to_string(),
                hint: e.hint_text().unwrap_or("check `lsblk --output NAME,SERIAL,WWN,FSTYPE,MOUNTPOINTS`").to_owned(),
            }));
        }
        unmet
    }

    fn claims(&self, options: &Options) -> Option<String> {
        options.text("disk").map(|path| paths::resolved(Path::new(path)).display().to_string())
    }

    /// The kernel's name may belong to another disk after a boot.
    fn lasting(&self, options: &Options, _below: &[String]) -> Option<String> {
        let others: Vec<String> =
            options.given(&["serial", "wwn"]).map(|(key, value)| format!(", {key} {value}")).collect();
        options.text("disk").map(|path| format!("{path}{}", others.concat()))
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let device = find(options)?;
        admit(site.host, &device, options)?;
        let thing = Thing::new(self.name(), USED).with_path("device", &device.path)?;
        let Identity { serial, wwn, .. } = Identity::of(site.host, device.node);
        let thing = thing.with("serial", serial.unwrap_or_default()).with("wwn", wwn.unwrap_or_default());
        site.ledger.enter(thing.with("process", this_process(site.host)).with("run", site.ledger.run_id()))?;
        if options.boolean("overwrite") == Some(true) {
            wipe(site.host, &device)?;
        }
        let details = facts(site.host, &device);
        Ok(Built::one(Base::Device(device.path), details))
    }
}

/// Ledger kind of a disk that a trial uses.
const USED: &str = "used";

/// This process, told from any other one by its boot, pid and start.
fn this_process(host: &Host) -> String {
    let own = processes::read(host, std::process::id()).map_or(0, |own| own.started_ticks);
    format!("{} {} {own}", knobs::boot(host), std::process::id())
}

/// Marks a disk as full of a run's bytes, which nobody needs. Skips a device that is now a different one, is in use, or
/// carries a signature, and every device of a run that was killed: bytes without a signature may be somebody's by then.
fn mark_used(host: &Host, thing: &Thing) -> Result<()> {
    let (path, serial, wwn) = (Path::new(thing.mark("device")?), thing.mark("serial")?, thing.mark("wwn")?);
    // The ledger has an empty mark for an identifier that the device does not report.
    let is_it = |device: &BlockDevice| {
        let found = Identity::of(host, device.node);
        [found.serial, found.wwn].map(Option::unwrap_or_default) == [serial, wwn]
    };
    let is_ours = thing.marks.get("process") == Some(&this_process(host));
    let Some(device) = BlockDevice::find(path).ok().filter(|device| is_ours && is_it(device)) else { return Ok(()) };
    if guard::uses(host, &device)?.is_empty() && guard::contents(host, &device)?.is_empty() {
        guard::mark_free(host, &device, thing.mark("run")?)?;
    }
    Ok(())
}

/// True if the disk of these options is unchanged since this run used it.
pub(super) fn is_left_by(host: &Host, options: &Options, run: &str) -> bool {
    find(options).and_then(|device| guard::is_left_by(host, &device, run)).unwrap_or(false)
}

/// The whole disk that the path of these options leads to; the path itself if nothing is there.
pub(super) fn whole(host: &Host, options: &Options) -> Option<String> {
    let path = options.text("disk")?;
    let name = find(options).ok().and_then(|device| device.node.whole_disk(host).unwrap_or(device.node).name(host));
    Some(name.map_or_else(|| paths::resolved(Path::new(path)).display().to_string(), |name| format!("/dev/{name}")))
}

/// Size of the disk of these options; `None` if it is absent.
pub(super) fn size(host: &Host, options: &Options) -> Option<Bytes> {
    Identity::of(host, find(options).ok()?.node).size_bytes.map(Bytes)
}

fn find(options: &Options) -> Result<BlockDevice> {
    let path = options.text("disk").ok_or_else(|| Error::bug("a disk without a path"))?;
    BlockDevice::find(Path::new(path))
}

/// Admits the device only if it is the intended one, nothing uses it, and it carries nothing (or `overwrite` is set).
fn admit(host: &Host, device: &BlockDevice, options: &Options) -> Result<()> {
    let shown = device.path.display();
    refuse_mistaken(host, device, options)?;
    guard::refuse_any(&guard::uses(host, device)?, &format!("{shown} is in use"))
        .map_err(|e| e.hint("pgstrata never uses a device that is already in use"))?;
    let mut carried = guard::contents(host, device)?;
    if options.boolean("overwrite") == Some(true) {
        return Ok(());
    }
    if carried.is_empty() {
        carried.extend(guard::unknown_bytes(host, device)?);
    }
    guard::refuse_any(&carried, &format!("{shown} holds data")).map_err(|e| {
        e.hint(format!(
            "if all of it may be lost, also what a killed run has left, set `overwrite = true` for the disk (the run then shows \
             the data and asks), or clear it: blkdiscard -f {shown}"
        ))
    })
}

/// Checks that an admitted disk is still the intended one and carries nothing.
pub(super) fn still_meant(host: &Host, options: &Options) -> Result<()> {
    let device = find(options)?;
    refuse_mistaken(host, &device, options)?;
    guard::refuse_any(&guard::contents(host, &device)?, &format!("{} holds data by now", device.path.display()))
}

fn refuse_mistaken(host: &Host, device: &BlockDevice, options: &Options) -> Result<()> {
    let identity = Identity::of(host, device.node);
    let Some(difference) = guard::mistaken(&identity, options.text("serial"), options.text("wwn")) else {
        return Ok(());
    };
    Err(Error::user(format!("{} is not the disk named in the plan: {difference}", device.path.display()))
        .hint("`lsblk --nodeps --output NAME,SERIAL,WWN,MODEL` shows what each disk reports"))
}

/// Wipes all signatures, partitions first, so that mkfs needs no force and no old signature remains at the disk's end.
fn wipe(host: &Host, device: &BlockDevice) -> Result<()> {
    let partitions = device.node.partitions(host).into_iter().filter_map(|node| node.device_file(host));
    for path in partitions.chain([device.path.clone()]) {
        host.run(&Command::new("wipefs").arg("--all").arg(path))?;
    }
    let left = guard::contents(host, device)?;
    guard::refuse_any(&left, &format!("{} still holds data after wipefs", device.path.display()))
}

fn facts(host: &Host, device: &BlockDevice) -> Details {
    let Identity { model, serial, wwn, size_bytes } = Identity::of(host, device.node);
    let size = size_bytes.map(|bytes| Bytes(bytes).to_string());
    let details = [
        ("device", Some(device.path.display().to_string())),
        ("model", model),
        ("serial", serial),
        ("wwn", wwn),
        ("size", size),
    ];
    details.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests;
