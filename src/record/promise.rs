//! What a node says of flushes and caches, read back with its source. The class of durability is judged by these and by
//! flushes that were counted, by nothing else. Which fact means what stands in [`super::durability`].

use crate::record::claim::{Claim, Promise};
use crate::record::durability;
use crate::record::durability::DurabilityRow;
use crate::record::facts::{DeviceFacts, MountFacts};

/// What a mount promises by its type and options.
#[must_use]
pub fn of_mount(mount: &MountFacts) -> Vec<Promise> {
    let memory = durability::memory_filesystem(&mount.fstype);
    let memory = memory.map(|row| row.promise(format!("filesystem {}", mount.fstype)));
    let options = durability::mount_options(mount).into_iter();
    let options = options.map(|(row, option)| row.promise(format!("mount option {option}")));
    let silent =
        durability::never_flushes(&mount.fstype).map(|row| row.promise(format!("filesystem {}", mount.fstype)));
    memory.into_iter().chain(options).chain(silent).chain(unjournaled(mount)).chain(durability::zfs(mount)).collect()
}

/// What a filesystem without a journal promises.
#[must_use]
pub(crate) fn unjournaled(mount: &MountFacts) -> Option<Promise> {
    let row = durability::unjournaled(mount)?;
    let without = if matches!(row.fact, durability::Fact::WithoutJournal(_)) { " without a journal" } else { "" };
    Some(row.promise(format!("filesystem {}{without}", mount.fstype)))
}

/// What a device promises by what it is and how it says that it caches writes.
#[must_use]
pub fn of_device(device: &DeviceFacts) -> Vec<Promise> {
    of_device_among(device, [])
}

/// The same of one of several, of which another may be the disk that it is a part of.
#[must_use]
pub(crate) fn of_device_among<'a>(
    device: &'a DeviceFacts,
    all: impl IntoIterator<Item = &'a DeviceFacts>,
) -> Vec<Promise> {
    durability::device(device, all).map(|row| row.promise(source(row, device))).collect()
}

/// What the end of the way down from a mount without a block device promises.
#[must_use]
pub(crate) fn of_end(mount_point: &str, fstype: &str) -> Promise {
    let source = format!("nothing below {mount_point} ({fstype})");
    match durability::filesystem(fstype) {
        Some(row) => row.promise(source),
        None => Promise { claim: Claim::HiddenBelow, source, why: "it has no block device".to_owned() },
    }
}

pub(crate) fn source(row: &DurabilityRow, device: &DeviceFacts) -> String {
    use durability::Fact;
    match row.fact {
        Fact::Model(model) => format!("block device {model}"),
        Fact::WriteCache(cache) => format!("/sys/block/{}/queue/write_cache: {}", device.name, cache.word()),
        Fact::NoFlushCounter => "/proc/diskstats".to_owned(),
        Fact::NoQueue => format!("/sys/block/{} without mq", device.name),
        Fact::Partition => format!("partition {}", device.name),
        _ => format!("block device {}", device.name),
    }
}
