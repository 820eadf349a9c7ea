//! What a probe says of filesystems that lie, that are memory, and that are honest.

use crate::probe::faults::can_fuse;
use crate::probe::fuse::{Faults, Fuse, Syncs};
use crate::probe::ground::{Image, Mount, can_make, can_mount, disk_folder, skipped};
use crate::probe::program::{Measured, measured, operations};
use pgstrata::record::probe::DeviceCounts;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Flushes of the device below the filesystem for each operation of a row.
fn flushes_per_operation(result: &Measured, row: &str) -> f64 {
    let row = result.row(row);
    let of = |counts: &[Option<DeviceCounts>]| counts[0].unwrap().flushes.unwrap();
    let flushes: u64 = row.slices.iter().map(|slice| of(&slice.devices)).sum();
    let operations: u64 = row.slices.iter().map(|slice| slice.operations).sum();
    flushes as f64 / operations as f64
}

/// An image on the machine's disk with barriers: the loop device sees a flush for each sync.
fn is_flushed_and_not_convicted(kind: &str) {
    let image = Image::on_disk(kind);
    let mount = image.mount("");
    let result = measured(mount.path(), "3");
    result.is_not_convicted();
    let flushes = flushes_per_operation(&result, "one_write.fdatasync");
    assert!((0.9..2.1).contains(&flushes), "{flushes} flushes per operation on {kind}");
}

#[test]
fn a_tmpfs_is_memory() {
    if !can_mount("probe of a tmpfs") {
        return;
    }
    let mount = Mount::tmpfs("256m");
    let result = measured(mount.path(), "2");
    assert_eq!(result.credibility(), "memory");
    assert!(result.record.place.devices.is_empty());
}

#[test]
fn ext4_without_barriers_sends_no_flush() {
    if !can_make("probe of ext4", &["ext4"]) {
        return;
    }
    let image = Image::on_disk("ext4");
    {
        let lying = image.mount("barrier=0");
        let result = measured(lying.path(), "2");
        assert_eq!(result.credibility(), "no_flush_seen");
        let flushes = flushes_per_operation(&result, "one_write.fdatasync");
        assert!(flushes < 0.05, "{flushes}");
    }
    let honest = image.mount("barrier=1");
    let result = measured(honest.path(), "3");
    result.is_not_convicted();
    let flushes = flushes_per_operation(&result, "one_write.fdatasync");
    assert!((0.9..1.2).contains(&flushes), "{flushes}");
}

#[test]
fn xfs_with_barriers_is_not_convicted() {
    if can_make("probe of xfs", &["xfs"]) {
        is_flushed_and_not_convicted("xfs");
    }
}

#[test]
fn btrfs_with_barriers_is_not_convicted() {
    if can_make("probe of btrfs", &["btrfs"]) {
        is_flushed_and_not_convicted("btrfs");
    }
}

/// Runs something, and the threads and programs that it starts, on a single CPU.
fn on_one_cpu(work: impl FnOnce() + Send + 'static) {
    let pinned = std::thread::spawn(move || {
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).unwrap();
        work();
    });
    pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// On a machine that is busy a lying filesystem is too slow to be found out each time.
const ATTEMPTS: usize = 4;

#[test]
fn a_fuse_whose_sync_does_nothing_is_found_out() {
    if !can_fuse("probe of a lying FUSE") {
        return;
    }
    // Only ground on which writes are as fast as memory can be told from an honest one that writes through: room for files
    // of full size, and no way between two CPUs.
    on_one_cpu(is_found_out);
}

fn is_found_out() {
    /// Below this writes may have gone through to storage, and a sync has nothing left to do (`analyse::probe`).
    const AS_FAST_AS_MEMORY_BYTES_PER_S: f64 = 1.25e9;
    /// What no bus carries.
    const BEYOND_THE_BUS_BYTES_PER_S: f64 = 64e9;
    let below = Mount::tmpfs("2g");
    let fuse = Fuse::mount(below.path(), Faults { syncs: Syncs::Ignored, forgets: true, ..Faults::default() });
    let mut fastest: f64 = 0.0;
    let found_out = (0..ATTEMPTS).any(|_| {
        let result = measured(&fuse.mount, "2");
        let largest = result.findings["growth"].as_array().unwrap().last().unwrap().clone();
        let per_s = |name: &str| largest[name].as_f64().unwrap_or(0.0);
        let written = per_s("write_bytes_per_s");
        fastest = fastest.max(written);
        let can_be = written > AS_FAST_AS_MEMORY_BYTES_PER_S && per_s("sync_bytes_per_s") > BEYOND_THE_BUS_BYTES_PER_S;
        let expected = if can_be { "no_flush_seen" } else { "unknown" };
        assert_eq!(result.credibility(), expected, "{largest} {}", result.findings["credibility"]);
        can_be
    });
    assert!(fuse.syncs() > 0);
    if !found_out {
        skipped(
            "probe of a lying FUSE",
            &format!("FUSE writes {:.2} GB/s at most here, 1.25 are needed", fastest / 1e9),
        );
    }
}

#[test]
fn an_honest_fuse_is_not_convicted() {
    if !can_fuse("probe of an honest FUSE") || !can_make("probe of an honest FUSE", &[]) {
        return;
    }
    let below = disk_folder();
    let fuse = Fuse::mount(below.path(), Faults::default());
    let result = measured(&fuse.mount, "2");
    assert_eq!(result.credibility(), "unknown", "{}", result.findings["credibility"]);
    assert!(operations(result.row("one_write.fdatasync")) > 0);
}
