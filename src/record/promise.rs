//! What a node says of flushes and caches, read back with its source. The class of durability is judged by these and by
//! flushes that were counted, by nothing else.

use super::facts::{DeviceFacts, MountFacts, WriteCache};
use serde::{Deserialize, Serialize};

/// What a promise says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// It keeps what is written in memory only.
    Volatile,
    /// It acknowledges a sync without sending what was written, or a flush, down.
    HoldsFlushesBack,
    /// It declares what it acknowledged stable, so that the kernel sends it no flushes.
    DeclaredStable,
    /// Flushes pass it without being counted.
    FlushesUncounted,
    /// What it stands on cannot be seen from here.
    HiddenBelow,
}

/// One of them, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// What it says.
    pub claim: Claim,
    /// What was read and where, for the report: `mount option barrier=0`.
    pub source: String,
}

impl Promise {
    /// A promise with its source.
    pub fn new(claim: Claim, source: impl Into<String>) -> Promise {
        Promise { claim, source: source.into() }
    }
}

/// Filesystems that live in memory.
pub const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// Block devices that live in memory, by the kernel's name for them.
const MEMORY_DEVICES: [&str; 3] = ["ram", "zram", "nullb"];

/// Mount options that keep a filesystem from flushing: ext3, ext4, btrfs, old XFS, ReiserFS, f2fs, overlayfs.
const HOLD_BACK: [&str; 6] =
    ["nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier", "volatile", "fsync=volatile"];

/// What a mount promises by its type and options.
#[must_use]
pub fn of_mount(mount: &MountFacts) -> Vec<Promise> {
    let mut promises = Vec::new();
    if IN_MEMORY.contains(&mount.fstype.as_str()) {
        promises.push(Promise::new(Claim::Volatile, format!("filesystem {}", mount.fstype)));
    }
    let options = mount.super_options.iter().chain(&mount.options);
    for option in options.filter(|option| holds_back(option, &mount.fstype)) {
        let promise = Promise::new(Claim::HoldsFlushesBack, format!("mount option {option}"));
        if !promises.contains(&promise) {
            promises.push(promise);
        }
    }
    promises
}

/// Whether a mount option holds flushes back; `volatile` is one of overlayfs alone.
#[must_use]
pub fn holds_back(option: &str, filesystem: &str) -> bool {
    HOLD_BACK.contains(&option) && (!option.ends_with("volatile") || filesystem == "overlay")
}

/// What a device promises by what it is and how it says that it caches writes.
#[must_use]
pub fn of_device(device: &DeviceFacts) -> Vec<Promise> {
    let mut promises = Vec::new();
    if is_in_memory(device) {
        let name = if is_scsi_debug(device) { "scsi_debug" } else { &device.name };
        promises.push(Promise::new(Claim::Volatile, format!("block device {name}")));
    }
    if device.write_cache == Some(WriteCache::WriteThrough) {
        promises.push(Promise::new(Claim::DeclaredStable, "queue/write_cache: write through"));
    }
    promises
}

/// Whether a block device keeps what is written in memory.
#[must_use]
pub fn is_in_memory(device: &DeviceFacts) -> bool {
    MEMORY_DEVICES.iter().any(|kind| {
        let number = device.name.strip_prefix(kind);
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
    }) || is_scsi_debug(device)
}

fn is_scsi_debug(device: &DeviceFacts) -> bool {
    device.model.as_deref().map(str::trim) == Some("scsi_debug")
}
