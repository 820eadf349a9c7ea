//! `bcache`: a slow device behind a fast one.
//!
//! Ledger entries: each `member`, by the UUID of the cache set, which we choose and which is in the superblock of both;
//! then the running `set`. Undoing stops whatever runs on members with that UUID and wipes their superblocks.

#[cfg(test)]
mod tests;

use super::identity::BlockDevice;
use super::ledger::Thing;
use super::sysfs::{self, DeviceNumber};
use super::{
    Base, Built, Details, Layer, LayerInfo, LayerInput, Site, Unmet, devices_for, filesystem, guard, kernel_module,
    knobs, mapper, mount_table, must_show, needs, size,
};
use crate::error::{Error, Result};
use crate::host::command::Command;
use crate::host::time::sleep;
use crate::host::{Host, files};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stack::{Role, Take};
use crate::units::Bytes;
use std::path::{Path, PathBuf};

pub struct Bcache;

const MODES: &[&str] = &["writethrough", "writeback", "writearound", "none"];

pub(super) const INFO: LayerInfo = LayerInfo::device(
    "bcache",
    "bcache: a slow device with a fast one as its cache.",
    &[
        OptionSpec::with_default("mode", OptionKind::OneOf(MODES), "writethrough")
            .doc("Cache mode; with writeback, a write is acknowledged once it is in the cache."),
        OptionSpec::with_default("bucket", OptionKind::Size, "512KiB")
            .doc("Bucket size of the cache, a power of two; on a cache below 512 MiB the default is smaller."),
        OptionSpec::with_default("sequential_cutoff", OptionKind::Size, "4MiB")
            .doc("Sequential requests of this size bypass the cache, rounded down to 512 bytes; 0B = none do."),
        knobs::QUEUE,
    ],
)
.on(&[
    Take::ONE_DEVICE,
    Take { role: Role::Cache, key: "cache", doc: "The device to cache it on.", ..Take::ONE_DEVICE },
])
.keeping_pages()
.undone_by(&[
    (SET, |host, thing| {
        stop(host, Path::new(thing.mark("backing")?), thing.mark("uuid")?)?;
        stop(host, Path::new(thing.mark("cache")?), thing.mark("uuid")?)
    }),
    (MEMBER, |host, thing| {
        let (device, uuid) = (Path::new(thing.mark("device")?), thing.mark("uuid")?);
        // udev may have registered it again.
        stop(host, device, uuid)?;
        wipe(host, device, uuid)
    }),
]);

impl Layer for Bcache {
    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        size::check(options, "bucket", size::is_power, "a bucket must be a power of two, at least 4 KiB")
    }

    fn unmet(&self, host: &Host, _options: &Options) -> Vec<Unmet> {
        let programs = needs::programs(host, &[("make-bcache", "bcache-tools"), ("wipefs", "util-linux")]);
        let driver = kernel_module::unmet(host, "bcache", "bcache", |host| host.exists(SETS));
        needs::root().into_iter().chain(programs).chain(driver).collect()
    }

    fn build(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let (backing, cache) = pair(inputs)?;
        let sectors: u64 = mapper::sectors(site.host, BlockDevice::find(cache)?.node)?;
        let bucket = bucket_of(options.size("bucket"), Bytes(sectors.saturating_mul(512)))?;
        kernel_module::load(site.host, "bcache", &[])?;
        let uuid = filesystem::new_uuid(site.host)?;
        for device in [backing, cache] {
            site.ledger.enter(Thing::new("bcache", MEMBER).with_path("device", device)?.with("uuid", &uuid))?;
        }
        enter_set(site, &uuid, backing, cache)?;
        let make =
            Command::new("make-bcache").args(["--cset-uuid", &uuid, "--bucket", &format!("{}k", bucket.0 >> 10)]);
        site.host.run(&make.arg("-B").arg(backing).arg("-C").arg(cache))?;
        open(site, &uuid, backing, cache, options)
    }

    fn reopen(&self, site: &Site<'_>, inputs: &[LayerInput], options: &Options) -> Result<Built> {
        let (backing, cache) = pair(inputs)?;
        kernel_module::load(site.host, "bcache", &[])?;
        let uuid = set_of(backing)?.ok_or_else(|| Error::host(format!("{} has no bcache", backing.display())))?;
        enter_set(site, &uuid, backing, cache)?;
        open(site, &uuid, backing, cache, options)
    }
}

/// The kernel reserves one bucket in 1024, rounded up to a power of two, and rejects a cache too small to have one
/// (`cache_alloc` in drivers/md/bcache/super.c).
const TOO_FEW_BUCKETS: u64 = 512;

/// Bucket size for a cache of this size.
fn bucket_of(asked: Option<Bytes>, cache: Bytes) -> Result<Bytes> {
    let mut sizes = (12..=19).rev().map(|power| 1_u64 << power);
    let fitting = sizes.find(|size| cache.0 / size >= 2 * TOO_FEW_BUCKETS).unwrap_or(1 << 12);
    let bucket = asked.unwrap_or(Bytes(fitting));
    let count = cache.0 / bucket.0;
    if count <= TOO_FEW_BUCKETS {
        let message = format!(
            "the cache of {cache} has {count} buckets of {bucket}, and bcache needs more than {TOO_FEW_BUCKETS}"
        );
        return Err(Error::host(message).hint("take a larger device for the cache, or set a smaller `bucket`"));
    }
    Ok(bucket)
}

const MEMBER: &str = "member";
const SET: &str = "set";

const SETS: &str = "/sys/fs/bcache";

fn pair(inputs: &[LayerInput]) -> Result<(&Path, &Path)> {
    match (devices_for(inputs, Role::Data).as_slice(), devices_for(inputs, Role::Cache).as_slice()) {
        ([backing, ..], [cache, ..]) => Ok((backing, cache)),
        _ => Err(Error::bug("bcache without its two devices")),
    }
}

fn enter_set(site: &Site<'_>, uuid: &str, backing: &Path, cache: &Path) -> Result<()> {
    let thing = Thing::new("bcache", SET).with("uuid", uuid).with_path("backing", backing)?;
    site.ledger.enter(thing.with_path("cache", cache)?).map(drop)
}

/// Offset of the cache set's UUID in the superblock, and the magic at its start (include/uapi/linux/bcache.h of Linux
/// 5.15, `struct cache_sb`).
const SUPERBLOCK: u64 = 4096;
const MAGIC_AT: usize = 24;
const MAGIC: [u8; 16] =
    [0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81];
const SET_UUID_AT: usize = 56;

/// UUID of the cache set that a device belongs to, in hexadecimal digits with hyphens.
fn set_of(path: &Path) -> Result<Option<String>> {
    let bytes = files::read_at(path, SUPERBLOCK, SET_UUID_AT + 16)?;
    if bytes.len() < SET_UUID_AT + 16 || bytes[MAGIC_AT..MAGIC_AT + 16] != MAGIC {
        return Ok(None);
    }
    let hex: String = bytes[SET_UUID_AT..].iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
}

/// Registers both devices, unless udev has done so, and sets the options.
fn open(site: &Site<'_>, uuid: &str, backing: &Path, cache: &Path, options: &Options) -> Result<Built> {
    let host = site.host;
    let node = BlockDevice::find(backing)?.node;
    for attempt in 0.. {
        site.interrupt.check()?;
        for device in [cache, backing] {
            if !host.exists(BlockDevice::find(device)?.node.path_of("bcache")) {
                // udev may register it first, which is just as good.
                drop(host.write(format!("{SETS}/register_quiet"), &device.display().to_string()));
            }
        }
        let attached = node.attribute(host, "bcache/state").is_some_and(|state| state == "clean" || state == "dirty");
        if attached && host.exists(format!("{SETS}/{uuid}")) {
            break;
        }
        if attempt >= mount_table::BUSY_TRIES {
            return Err(Error::host(format!("{} and {} do not come up as bcache", backing.display(), cache.display())));
        }
        sleep(mount_table::BUSY_PAUSE);
    }
    let device = device_on(host, node)?;
    let mode = options.text("mode").unwrap_or(MODES[0]);
    host.write(node.path_of("bcache/cache_mode"), mode)?;
    let mut details = Details::from([("cache set".to_owned(), uuid.to_owned())]);
    let shown = node.attribute(host, "bcache/cache_mode").unwrap_or_default();
    let shown = sysfs::chosen(&shown);
    must_show("mode of bcache", mode, shown)?;
    details.insert("mode".to_owned(), shown.to_owned());
    if let Some(Bytes(cutoff)) = options.size("sequential_cutoff") {
        host.write(node.path_of("bcache/sequential_cutoff"), &cutoff.to_string())?;
    }
    for (file, name) in [("sequential_cutoff", "sequential cutoff"), ("state", "state")] {
        details.extend(node.attribute(host, &format!("bcache/{file}")).map(|value| (name.to_owned(), value)));
    }
    let bucket = host.read_optional(format!("{SETS}/{uuid}/bucket_size"));
    details.extend(bucket.map(|size| ("bucket size".to_owned(), size)));
    Ok(Built::one(Base::Device(device), details))
}

/// The bcache device on a backing device.
fn device_on(host: &Host, backing: DeviceNumber) -> Result<PathBuf> {
    let holder = backing.holders(host).into_iter().find(|name| name.starts_with("bcache"));
    let holder = holder.ok_or_else(|| Error::tool("the kernel shows no bcache on the backing device"))?;
    Ok(Path::new("/dev").join(holder))
}

/// Stops whatever bcache runs on a device that belongs to the set with this UUID.
fn stop(host: &Host, path: &Path, uuid: &str) -> Result<()> {
    let Ok(device) = BlockDevice::find(path) else { return Ok(()) };
    for attempt in 0.. {
        let registered = host.exists(device.node.path_of("bcache"));
        if !registered || set_of(path)?.as_deref() != Some(uuid) {
            return Ok(());
        }
        if let Ok(top) = device_on(host, device.node).and_then(|top| BlockDevice::find(&top)) {
            guard::refuse_mounted(host, &top)?;
        }
        // A backing device stops by itself; a cache stops with its set.
        for file in [device.node.path_of("bcache/stop"), format!("{SETS}/{uuid}/stop")] {
            if host.exists(&file) {
                drop(host.write(&file, "1"));
            }
        }
        if attempt >= mount_table::BUSY_TRIES {
            return Err(Error::host(format!("the bcache on {} does not stop", path.display())));
        }
        sleep(mount_table::BUSY_PAUSE);
    }
    Ok(())
}

/// Wipes the superblock of this set, and nothing else. The kernel releases a device some time after it was stopped, and
/// udev may have registered it again, so each attempt checks the device anew.
fn wipe(host: &Host, path: &Path, uuid: &str) -> Result<()> {
    let Ok(device) = BlockDevice::find(path) else { return Ok(()) };
    for attempt in 0.. {
        if device.node.number::<u64>(host, "size").unwrap_or(0) == 0 || set_of(path)?.as_deref() != Some(uuid) {
            break;
        }
        if guard::signatures(host, &device)?.iter().any(|signature| signature.kind != "bcache") {
            return Err(filesystem::holds_other(path, "the bcache of pgstrata"));
        }
        match filesystem::wipe_once(host, path) {
            Err(_) if attempt < mount_table::BUSY_TRIES => {
                sleep(mount_table::BUSY_PAUSE);
                stop(host, path, uuid)?;
            }
            wiped => return wiped,
        }
    }
    Ok(())
}
