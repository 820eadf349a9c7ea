//! Meaning of facts for flushes and caches: one table for runs, probes and imports.
//!
//! Each row has a fact, the claim it implies, the reason and the source. Absent on purpose: classes and verdicts;
//! `analyse` derives them from the claims.

use super::facts::{DeviceFacts, MountFacts, WriteCache};
use crate::record::claim::Claim::{
    AcknowledgesEarly, DeclaredStable, FlushesUncounted, HiddenBelow, HoldsFlushesBack, MayTear, Unjournaled, Volatile,
};
use crate::record::claim::{Claim, Promise};
use Fact::{
    Device, Filesystem, Model, MountOption, NeverFlushes, NeverJournaled, NoFlushCounter, NoQueue, Partition, Setting,
    WithoutJournal, ZfsParameter, ZfsProperty,
};
use std::fmt;

/// Names that a row matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// Exactly this name.
    Is(&'static str),
    /// Names with this prefix: `nfs4`.
    Begins(&'static str),
    /// Names with this prefix followed by a digit: `ram0`.
    Numbered(&'static str),
}

impl Name {
    fn holds_for(self, name: &str) -> bool {
        match self {
            Name::Is(known) => name == known,
            Name::Begins(known) => name.starts_with(known),
            Name::Numbered(known) => {
                name.strip_prefix(known).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            }
        }
    }
}

/// Kind of a fact, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// Type of the filesystem that holds a folder. [`Claim::HiddenBelow`] applies only if no block device was found
    /// below it.
    Filesystem(Name),
    /// A mount option, and the filesystems to which it applies; empty = all that have the option.
    MountOption(&'static str, &'static [&'static str]),
    /// Kernel name of a block device.
    Device(Name),
    /// Model that a block device reports.
    Model(&'static str),
    /// `queue/write_cache` of a block device.
    WriteCache(WriteCache),
    /// A partition whose disk is visible too.
    Partition,
    /// A block device whose line in `/proc/diskstats` has no flush counters.
    NoFlushCounter,
    /// A block device whose driver bypasses the block layer's queue: no `mq/` in sysfs.
    NoQueue,
    /// A filesystem whose driver never sends flushes, whatever its options.
    NeverFlushes(&'static str),
    /// A filesystem that never keeps a journal.
    NeverJournaled(&'static str),
    /// A journaling filesystem mounted without its journal.
    WithoutJournal(&'static str),
    /// A PostgreSQL setting in force, with its value.
    Setting(&'static str, &'static str),
    /// A property of a ZFS dataset, with its value.
    ZfsProperty(&'static str, &'static str),
    /// A parameter of the ZFS module, with its value.
    ZfsParameter(&'static str, &'static str),
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DurabilityRow {
    /// The fact.
    pub fact: Fact,
    /// The claim that it implies.
    pub claim: Claim,
    /// Reason, phrased to follow a colon.
    pub why: &'static str,
    /// Manual page, or source file of the kernel or PostgreSQL.
    pub source: &'static str,
}

const fn row(fact: Fact, claim: Claim, why: &'static str, source: &'static str) -> DurabilityRow {
    DurabilityRow { fact, claim, why, source }
}

const IN_MEMORY: &str = "its files are in memory";
const MEMORY_DEVICE: &str = "its blocks are in memory";
const NO_FLUSHES: &str = "the filesystem sends no flushes";
const NO_SYNC: &str = "a sync on it does nothing";
const NO_JOURNAL: &str = "a power cut may destroy the filesystem";
const REMOTE: &str = "it is on another machine";
const VOLATILE_MOUNT: &str = "Documentation/filesystems/overlayfs.rst, Volatile mount";
const WAL_SETTINGS: &str = "PostgreSQL's manual, Write Ahead Log, Settings";

/// The table. If several rows match, the first is the one to report.
pub(crate) const TABLE: &[DurabilityRow] = &[
    row(Filesystem(Name::Is("tmpfs")), Volatile, IN_MEMORY, "Documentation/filesystems/tmpfs.rst"),
    row(Filesystem(Name::Is("ramfs")), Volatile, IN_MEMORY, "fs/ramfs/inode.c"),
    row(Filesystem(Name::Is("devtmpfs")), Volatile, IN_MEMORY, "drivers/base/devtmpfs.c"),
    row(Filesystem(Name::Is("hugetlbfs")), Volatile, IN_MEMORY, "fs/hugetlbfs/inode.c"),
    row(Filesystem(Name::Is("mfs")), Volatile, IN_MEMORY, "mount_mfs(8), NetBSD and OpenBSD"),
    row(Filesystem(Name::Is("tmpmfs")), Volatile, IN_MEMORY, "rc.conf(5), FreeBSD"),
    row(Filesystem(Name::Is("ramdisk")), Volatile, IN_MEMORY, "common name in published reports"),
    row(
        Filesystem(Name::Is("overlay")),
        HiddenBelow,
        "its upper folder cannot be seen from here",
        "Documentation/filesystems/overlayfs.rst",
    ),
    row(
        Filesystem(Name::Is("zfs")),
        HiddenBelow,
        "ZFS does not show its devices to the kernel's block layer",
        "zpool(8)",
    ),
    row(Filesystem(Name::Begins("nfs")), HiddenBelow, REMOTE, "nfs(5)"),
    row(Filesystem(Name::Is("cifs")), HiddenBelow, REMOTE, "mount.cifs(8)"),
    row(Filesystem(Name::Begins("fuse")), HiddenBelow, "it is served by a user-space program", "mount.fuse(8)"),
    row(MountOption("nobarrier", &[]), HoldsFlushesBack, NO_FLUSHES, "ext4(5), btrfs(5); xfs(5) to 4.18"),
    row(MountOption("barrier=0", &[]), HoldsFlushesBack, NO_FLUSHES, "ext4(5), ext3 included"),
    row(MountOption("barrier=none", &[]), HoldsFlushesBack, NO_FLUSHES, "mount(8), reiserfs"),
    row(MountOption("fsync_mode=nobarrier", &[]), HoldsFlushesBack, NO_FLUSHES, "Documentation/filesystems/f2fs.rst"),
    row(MountOption("volatile", &["overlay"]), HoldsFlushesBack, NO_SYNC, VOLATILE_MOUNT),
    row(MountOption("fsync=volatile", &["overlay"]), HoldsFlushesBack, NO_SYNC, VOLATILE_MOUNT),
    row(
        MountOption("journal_flush_disabled", &["bcachefs"]),
        HoldsFlushesBack,
        "a sync does not write its journal",
        "bcachefs: Principles of Operation, Mount options",
    ),
    row(
        MountOption("checkpoint=disable", &["f2fs"]),
        HoldsFlushesBack,
        "after a power cut its files are as they were when it was mounted",
        "Documentation/filesystems/f2fs.rst",
    ),
    row(NeverFlushes("jfs"), HoldsFlushesBack, NO_FLUSHES, "fs/jfs/file.c, jfs_fsync"),
    row(NeverJournaled("ext2"), Unjournaled, NO_JOURNAL, "ext4(5)"),
    row(WithoutJournal("ext4"), Unjournaled, NO_JOURNAL, "ext4(5), has_journal"),
    row(Device(Name::Numbered("ram")), Volatile, MEMORY_DEVICE, "drivers/block/brd.c"),
    row(Device(Name::Numbered("zram")), Volatile, MEMORY_DEVICE, "Documentation/admin-guide/blockdev/zram.rst"),
    row(Device(Name::Numbered("nullb")), Volatile, MEMORY_DEVICE, "Documentation/block/null_blk.rst"),
    row(Model("scsi_debug"), Volatile, MEMORY_DEVICE, "drivers/scsi/scsi_debug.c"),
    row(
        Fact::WriteCache(WriteCache::WriteThrough),
        DeclaredStable,
        "the kernel sends it no flushes; whether it keeps what it acknowledged cannot be seen from here",
        "Documentation/block/writeback_cache_control.rst",
    ),
    row(
        Partition,
        FlushesUncounted,
        "the kernel counts flushes for whole disks, not for partitions",
        "block/blk-flush.c",
    ),
    row(
        NoQueue,
        FlushesUncounted,
        "its driver bypasses the request queue where the kernel counts flushes",
        "block/blk-flush.c; Documentation/block/blk-mq.rst",
    ),
    row(
        NoFlushCounter,
        FlushesUncounted,
        "this kernel does not count its flushes",
        "Documentation/admin-guide/iostats.rst: since Linux 5.5",
    ),
    row(Setting("fsync", "off"), HoldsFlushesBack, "PostgreSQL syncs nothing", WAL_SETTINGS),
    row(Setting("full_page_writes", "off"), MayTear, "a page torn by a power cut cannot be repaired", WAL_SETTINGS),
    row(
        Setting("synchronous_commit", "off"),
        AcknowledgesEarly,
        "a commit is acknowledged before it is written",
        WAL_SETTINGS,
    ),
    row(ZfsProperty("sync", "disabled"), HoldsFlushesBack, "a sync does nothing", "zfsprops(7)"),
    row(ZfsParameter("zfs_nocacheflush", "1"), HoldsFlushesBack, "the pools send no flushes", "zfs(4)"),
    row(ZfsParameter("zil_nocacheflush", "1"), HoldsFlushesBack, "the intent log is written without a flush", "zfs(4)"),
];

impl DurabilityRow {
    /// The promise of this row; `read` is the fact as found.
    pub fn promise(&self, read: impl fmt::Display) -> Promise {
        Promise { claim: self.claim, source: read.to_string(), why: self.why.to_owned() }
    }
}

/// The row of a filesystem type.
pub fn filesystem(fstype: &str) -> Option<&'static DurabilityRow> {
    TABLE.iter().find(|row| matches!(row.fact, Fact::Filesystem(name) if name.holds_for(fstype)))
}

/// The row of a filesystem that keeps its files in memory.
pub(crate) fn memory_filesystem(fstype: &str) -> Option<&'static DurabilityRow> {
    filesystem(fstype).filter(|row| row.claim == Claim::Volatile)
}

/// The row of a mount option on a filesystem; an empty name is an unknown filesystem.
pub(crate) fn mount_option(option: &str, filesystem: &str) -> Option<&'static DurabilityRow> {
    TABLE.iter().find(|row| match row.fact {
        // f2fs prints the number of blocks that it may lose after a colon: `checkpoint=disable:0`.
        Fact::MountOption(known, of) => {
            option.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
                && (of.is_empty() || of.contains(&filesystem))
        }
        _ => false,
    })
}

/// Mount options with a row, each once.
pub(crate) fn mount_options(mount: &MountFacts) -> Vec<(&'static DurabilityRow, &str)> {
    let mut found: Vec<(&'static DurabilityRow, &str)> = Vec::new();
    for option in mount.super_options.iter().chain(&mount.options) {
        let row = mount_option(option, &mount.fstype).filter(|_| found.iter().all(|(_, known)| known != option));
        found.extend(row.map(|row| (row, option.as_str())));
    }
    found
}

/// Rows of a block device by its name, model and sysfs attributes; `all` are the visible devices.
pub fn device<'a>(
    device: &'a DeviceFacts,
    all: impl IntoIterator<Item = &'a DeviceFacts>,
) -> impl Iterator<Item = &'static DurabilityRow> {
    let partition = all.into_iter().any(|disk| is_partition_of(&device.name, &disk.name));
    TABLE.iter().filter(move |row| match row.fact {
        Fact::Device(name) => name.holds_for(&device.name),
        Fact::Model(model) => device.model.as_deref().map(str::trim) == Some(model),
        Fact::WriteCache(cache) => device.write_cache == Some(cache),
        Fact::Partition => partition,
        Fact::NoFlushCounter => device.counts_flushes == Some(false) && !partition,
        // A partition uses the queue of its disk.
        Fact::NoQueue => device.has_queue == Some(false) && !partition,
        _ => false,
    })
}

/// The row of a filesystem whose driver sends no flushes.
pub(crate) fn never_flushes(fstype: &str) -> Option<&'static DurabilityRow> {
    TABLE.iter().find(|row| matches!(row.fact, Fact::NeverFlushes(of) if fstype == of))
}

/// The row of a filesystem without a journal.
pub(crate) fn unjournaled(mount: &MountFacts) -> Option<&'static DurabilityRow> {
    TABLE.iter().find(|row| match row.fact {
        Fact::NeverJournaled(of) => mount.fstype == of,
        Fact::WithoutJournal(of) => mount.fstype == of && mount.journal == Some(false),
        _ => false,
    })
}

/// Names of the PostgreSQL settings in the table, worst first.
pub fn settings() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter_map(|row| if let Fact::Setting(name, _) = row.fact { Some(name) } else { None })
}

/// Promise of a PostgreSQL setting with this value.
pub fn setting(name: &str, value: &str) -> Option<Promise> {
    let mut rows = TABLE.iter().filter(|row| matches!(row.fact, Fact::Setting(n, v) if n == name && v == value));
    rows.next().map(|row| row.promise(format!("{name} = {value}")))
}

/// Promise of a ZFS dataset property with this value.
pub(crate) fn zfs_property(name: &str, value: &str) -> Option<Promise> {
    let mut rows = TABLE.iter().filter(|row| matches!(row.fact, Fact::ZfsProperty(n, v) if n == name && v == value));
    rows.next().map(|row| row.promise(format!("zfs {name}={value}")))
}

/// Promises of ZFS module parameters; `shown` returns the value of a parameter.
pub(crate) fn zfs_parameters(shown: impl Fn(&str) -> Option<String>) -> impl Iterator<Item = Promise> {
    TABLE.iter().filter_map(move |row| match row.fact {
        Fact::ZfsParameter(name, value) if shown(name).as_deref() == Some(value) => {
            Some(row.promise(format!("ZFS module parameter {name}={value}")))
        }
        _ => None,
    })
}

/// Names of the ZFS module parameters in the table.
pub fn zfs_parameter_names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter_map(|row| if let Fact::ZfsParameter(name, _) = row.fact { Some(name) } else { None })
}

/// Promises of ZFS from the properties and parameters read with its mount.
pub(crate) fn zfs(mount: &MountFacts) -> Vec<Promise> {
    let of_dataset = mount.zfs.iter().filter_map(|(name, value)| zfs_property(name, value));
    of_dataset.chain(zfs_parameters(|name| mount.zfs.get(name).cloned())).collect()
}

/// True if `name` is a partition of the disk `disk`: `vda1` of `vda`, `nvme0n1p2` of `nvme0n1`.
fn is_partition_of(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let ends_in_digit = disk.ends_with(|c: char| c.is_ascii_digit());
    let number = if ends_in_digit { rest.strip_prefix('p').unwrap_or("") } else { rest };
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_told_from_disks_that_merely_share_a_prefix() {
        assert!(is_partition_of("vda1", "vda") && is_partition_of("nvme0n1p2", "nvme0n1"));
        assert!(
            !is_partition_of("vda", "vda") && !is_partition_of("vdab", "vda") && !is_partition_of("loop10", "loop1")
        );
    }

    #[test]
    fn a_name_merely_starting_like_a_ramdisk_is_not_volatile() {
        let claims = |name: &str| {
            let named = DeviceFacts { name: name.to_owned(), ..DeviceFacts::default() };
            device(&named, []).map(|row| row.claim).collect::<Vec<_>>()
        };
        assert_eq!(claims("ram0"), [Claim::Volatile]);
        assert_eq!(claims("ramdisk"), []);
    }

    #[test]
    fn flush_behaviour_is_derived_from_the_queue_never_the_name() {
        let claims = |name: &str, has_queue| {
            let named = DeviceFacts { name: name.to_owned(), has_queue, ..DeviceFacts::default() };
            device(&named, []).map(|row| row.claim).collect::<Vec<_>>()
        };
        for name in ["dm-3", "md0", "zd0", "pmem0", "nvme0n1"] {
            assert_eq!(claims(name, Some(false)), [Claim::FlushesUncounted], "{name}");
            assert_eq!(claims(name, Some(true)), [], "{name}");
            assert_eq!(claims(name, None), [], "{name}");
        }
    }

    #[test]
    fn no_row_stands_twice() {
        for (place, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..place].iter().all(|other| other.fact != row.fact), "{row:?}");
        }
    }
}
