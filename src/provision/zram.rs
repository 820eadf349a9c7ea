//! `zram`: a block device of compressed memory.
//!
//! Ledger entries: the `number` that the device is expected to get, since the kernel assigns the lowest free one; then,
//! before the device gets its size, the `device` with the kernel's sequence number of this attachment (`diskseq`). An
//! unused device has no size and is removed by its number alone; one with a size only if `diskseq` matches.

use super::identity::BlockDevice;
use super::ledger::Thing;
use super::sysfs::{self, DeviceNumber};
use super::{
    Base, Built, Layer, LayerInfo, LayerInput, Site, Unmet, guard, kernel_module, knobs, mount_table, must_show, needs,
    size,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::units::Bytes;
use std::path::PathBuf;

pub struct Zram;

const CONTROL: &str = "/sys/class/zram-control";

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "zram",
    "zram: a device of compressed memory; nothing survives a power loss.",
    &[
        OptionSpec::required("zram", OptionKind::Size)
            .doc("Size of the device; it takes less memory, by how well the data compress."),
        OptionSpec::with_default("algorithm", OptionKind::Text, "the kernel's")
            .doc("Compression: lzo-rle, lz4, zstd, as /sys/block/zram0/comp_algorithm lists them."),
        knobs::QUEUE,
    ],
)
.in_memory()
.undone_by(&[(NUMBER, remove), (DEVICE, reset)]);

impl Layer for Zram {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        size::check(options, "zram", |bytes| bytes > 0 && bytes % 4096 == 0, "the size must be a multiple of 4 KiB")
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let driver = kernel_module::unmet(host, "zram", "zram", |host| host.exists(CONTROL));
        needs::root().into_iter().chain(driver).collect()
    }

    fn build(&self, site: &Site<'_>, _inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let size = options.size("zram").ok_or_else(|| Error::bug("a zram without a size"))?;
        // The device that it creates by default would not be ours.
        kernel_module::load(site.host, "zram", &["num_devices=0".to_owned()])?;
        let number = add(site)?;
        let node = DeviceNumber::named(site.host, &format!("zram{number}"));
        let node =
            node.ok_or_else(|| Error::host(format!("the kernel does not show zram{number} after creating it")))?;
        let sequence = node.attribute(site.host, "diskseq").unwrap_or_default();
        let thing = Thing::new("zram", DEVICE).with("number", number.to_string()).with("sequence", sequence);
        site.ledger.enter(thing.with("boot", knobs::boot(site.host)))?;
        if let Some(algorithm) = options.text("algorithm") {
            site.host.write(node.path_of("comp_algorithm"), algorithm)?;
        }
        site.host.write(node.path_of("disksize"), &size.0.to_string())?;
        let details = read_back(site.host, node, size, options)?;
        Ok(Built::one(Base::Device(PathBuf::from(format!("/dev/zram{number}"))), details))
    }
}

/// Kinds of ledger entries.
const NUMBER: &str = "number";
const DEVICE: &str = "device";

/// Maximum number of retries if others take the expected number.
const MOST_TRIES: u32 = 16;

/// Creates a device, entering its expected number into the ledger first.
fn add(site: &Site<'_>) -> Result<u32> {
    for _ in 0..MOST_TRIES {
        let number = (0u32..).find(|it| !site.host.exists(format!("/sys/block/zram{it}"))).unwrap_or(0);
        let thing = Thing::new("zram", NUMBER).with("number", number.to_string());
        let entry = site.ledger.enter(thing.with("boot", knobs::boot(site.host)))?;
        // Reading it creates one (Documentation/admin-guide/blockdev/zram.rst).
        let made = site.host.read(format!("{CONTROL}/hot_add"))?;
        if made.trim() == number.to_string() {
            return Ok(number);
        }
        site.host.write(format!("{CONTROL}/hot_remove"), made.trim())?;
        site.ledger.undone(entry)?;
    }
    Err(Error::host("other programs keep creating zram devices"))
}

fn read_back(host: &Host, node: DeviceNumber, size: Bytes, options: &Options) -> Result<[(&'static str, String); 2]> {
    let shown = node.attribute(host, "disksize").unwrap_or_default();
    must_show("size of the zram", &size.0.to_string(), &shown)?;
    let algorithm = node.attribute(host, "comp_algorithm").unwrap_or_default();
    let algorithm = sysfs::chosen(&algorithm).to_owned();
    must_show("compression of the zram", options.text("algorithm").unwrap_or(&algorithm), &algorithm)?;
    Ok([("size", size.to_string()), ("algorithm", algorithm)])
}

/// The device of a ledger entry, if it is still there.
fn standing(host: &Host, thing: &Thing) -> Result<Option<(u32, DeviceNumber)>> {
    let number: u32 = thing.mark("number")?.parse().map_err(|_| Error::bug("a zram without a number"))?;
    let same_boot = thing.mark("boot")? == knobs::boot(host);
    Ok(DeviceNumber::named(host, &format!("zram{number}")).filter(|_| same_boot).map(|node| (number, node)))
}

/// Frees the memory of the device.
fn reset(host: &Host, thing: &Thing) -> Result<()> {
    let Some((number, node)) = standing(host, thing)? else { return Ok(()) };
    if node.attribute(host, "diskseq").unwrap_or_default() != thing.mark("sequence")? {
        return Ok(());
    }
    let device = BlockDevice::find(&PathBuf::from(format!("/dev/zram{number}")))?;
    guard::refuse_mounted(host, &device)?;
    mount_table::again(|| host.write(node.path_of("reset"), "1"))
}

/// Removes a device that has no size.
fn remove(host: &Host, thing: &Thing) -> Result<()> {
    let Some((number, node)) = standing(host, thing)? else { return Ok(()) };
    if node.attribute(host, "disksize").as_deref() != Some("0") {
        return Ok(());
    }
    mount_table::again(|| host.write(format!("{CONTROL}/hot_remove"), &number.to_string()))
}

#[cfg(test)]
mod tests;
