//! Promises of a node about flushes and caches, read back with their source. The durability class follows from these
//! and from counted flushes alone. [`super::durability`] maps facts to promises.

use crate::record::claim::{Claim, Promise};
use crate::record::durability::{self, DurabilityRow};
use crate::record::facts::{DeviceFacts, MountFacts};

/// Promises of a mount, from its type and options.
pub fn of_mount(mount: &MountFacts) -> Vec<Promise> {
    let memory = durability::memory_filesystem(&mount.fstype);
    let memory = memory.map(|row| row.promise(format!("filesystem {}", mount.fstype)));
    let options = durability::mount_options(mount).into_iter();
    let options = options.map(|(row, option)| row.promise(format!("mount option {option}")));
    let silent =
        durability::never_flushes(&mount.fstype).map(|row| row.promise(format!("filesystem {}", mount.fstype)));
    memory.into_iter().chain(options).chain(silent).chain(unjournaled(mount)).chain(durability::zfs(mount)).collect()
}

/// Promise of a filesystem without a journal.
pub(crate) fn unjournaled(mount: &MountFacts) -> Option<Promise> {
    let row = durability::unjournaled(mount)?;
    let without = if matches!(row.fact, durability::Fact::WithoutJournal(_)) { " without a journal" } else { "" };
    Some(row.promise(format!("filesystem {}{without}", mount.fstype)))
}

/// Promises of a device, from its identity and reported write cache.
pub fn of_device(device: &DeviceFacts) -> Vec<Promise> {
    of_device_among(device, [])
}

/// Like [`of_device`], with the visible devices `all`, which may include the disk of a partition.
pub fn of_device_among<'a>(device: &'a DeviceFacts, all: impl IntoIterator<Item = &'a DeviceFacts>) -> Vec<Promise> {
    durability::device(device, all).map(|row| row.promise(source(row, device))).collect()
}

/// Promise of a mount without a block device.
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
