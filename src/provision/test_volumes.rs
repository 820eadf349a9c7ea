//! Stand-ins for md, LVM, LUKS and dm-delay, made of loop devices on slices of their first member, so that graphs can
//! be built if the kernel lacks these. Writes go only to the first member.

use super::identity::BlockDevice;
use super::ledger::Thing;
use super::{Base, Built, Described, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::command::Command;
use crate::record::claim::{Claim, Promise};
use crate::record::options::{OptionKind, OptionSpec, Options};
use crate::record::stack::{Role, Take};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A volume with members and bases.
pub struct Volume {
    info: LayerInfo,
    bases: fn(&Options) -> Vec<String>,
}

/// A volume with one base, or several if `bases`.
pub(super) const fn volume(
    name: &'static str,
    takes: &'static [Take],
    options: &'static [OptionSpec],
    bases: fn(&Options) -> Vec<String>,
) -> Volume {
    Volume { info: LayerInfo::device(name, "A volume for tests.", options).on(takes), bases }
}

const fn option(key: &'static str, kind: OptionKind) -> OptionSpec {
    OptionSpec::optional(key, kind).doc("For tests.")
}

const fn members(least: usize, most: usize) -> Take {
    Take { least, most, ..Take::ONE_DEVICE }
}

fn one(_options: &Options) -> Vec<String> {
    vec![String::new()]
}

/// Stand-in for md.
pub static MD_STAND_IN: Volume = volume(
    "md-stand-in",
    &[members(2, 64)],
    &[option("level", OptionKind::Integer { min: 0 }), option("chunk", OptionKind::Size)],
    one,
);

/// Stand-in for LVM: one volume, or several by name.
pub static LVM_STAND_IN: Volume = volume(
    "lvm-stand-in",
    &[members(1, 64)],
    &[option("size", OptionKind::Text), option("volumes", OptionKind::Properties)],
    |options| match options.table("volumes").0.into_keys().collect::<Vec<_>>() {
        none if none.is_empty() => vec![String::new()],
        names => names,
    },
);

/// Stand-in for dm-crypt.
pub static LUKS_STAND_IN: Volume = volume(
    "luks-stand-in",
    &[Take::ONE_DEVICE],
    &[option("sector_size", OptionKind::Integer { min: 512 }), option("perf", OptionKind::TextList)],
    one,
);

/// Inserted between a device and what is built on it.
pub static DELAY_STAND_IN: Volume =
    volume("delay-stand-in", &[Take::ONE_DEVICE], &[option("delay", OptionKind::Span)], one);

impl Described for Volume {
    fn info(&self) -> &LayerInfo {
        &self.info
    }
}

impl Layer for Volume {
    fn bases(&self, options: &Options) -> Vec<String> {
        (self.bases)(options)
    }

    fn unmet(&self, _host: &Host, _options: &Options) -> Vec<Unmet> {
        Vec::new()
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let first = devices_for(inputs, Role::Data)[0];
        let sectors: u64 = BlockDevice::find(first)?.node.number(site.host, "size").unwrap_or(0);
        let names = self.bases(options);
        let slice = sectors / names.len() as u64 * 512 / 4096 * 4096;
        let mut bases = Vec::new();
        for number in 0..names.len() as u64 {
            site.ledger.enter(Thing::new(self.name(), "slice").with_path("device", first)?)?;
            let (offset, size) = ((number * slice).to_string(), slice.to_string());
            let arguments = ["--show", "-f", "--direct-io=on", "-o", &offset, "--sizelimit", &size];
            let made = site.host.run(&Command::new("losetup").args(arguments).arg(first))?;
            bases.push(Base::Device(PathBuf::from(made.stdout.trim())));
        }
        let details = BTreeMap::from([("members".to_owned(), inputs.len().to_string())]);
        let promises = vec![Promise::new(Claim::FlushesUncounted, format!("{}: for tests", self.name()))];
        Ok(Built { bases, details, promises })
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        let device = thing.mark("device")?;
        let listed = host.run(&Command::new("losetup").args(["-j", device, "--noheadings", "-O", "NAME"]))?;
        for slice in listed.stdout.split_whitespace() {
            host.run(&Command::new("losetup").args(["-d", slice]))?;
        }
        let left = host.run(&Command::new("losetup").args(["-j", device]))?.stdout;
        if left.trim().is_empty() || !Path::new(device).exists() {
            return Ok(());
        }
        Err(Error::host(format!("slices of {device} are left: {left}")))
    }
}
