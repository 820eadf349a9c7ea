//! Filesystems of other kinds: layered, over the network, of huge pages.

use crate::probe::ground::{Mount, call, can_make, can_mount, disk_folder, has_program, skipped, words};
use crate::probe::program::{measured, operations, probe};
use pgstrata::record::probe::Way;
use std::fs;

#[test]
fn an_overlay_is_measured_with_its_devices_or_a_reason() {
    let test = "probe of an overlay";
    if !can_make(test, &[]) {
        return;
    }
    if !fs::read_to_string("/proc/filesystems").unwrap().contains("overlay") {
        return skipped(test, "the kernel has no overlay");
    }
    let disk = disk_folder();
    for name in ["lower", "upper", "work"] {
        fs::create_dir(disk.path().join(name)).unwrap();
    }
    let at = |name: &str| disk.path().join(name).display().to_string();
    let options = format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
    let mount = Mount::new(&mut words("mount", &["-t", "overlay", "-o", &options, "pgstrata-test"]));
    let result = measured(mount.path(), "2");
    assert_ne!(result.credibility(), "memory");
    assert!(operations(result.row("one_write.fdatasync")) > 0);
    let place = &result.record.place;
    assert!(!place.devices.is_empty() || !place.ends.is_empty(), "{place:?}");
    crate::probe::program::nothing_is_left(&disk.path().join("upper"));
}

/// A folder that is exported to this machine, until it is dropped.
struct Exported(String);

impl Drop for Exported {
    fn drop(&mut self) {
        drop(words("exportfs", &["-u", &self.0]).output());
    }
}

#[test]
fn nfs_is_measured_and_not_taken_for_memory() {
    let test = "probe of NFS";
    if !can_make(test, &[]) {
        return;
    }
    let serves = fs::read_to_string("/proc/fs/nfsd/threads").is_ok_and(|threads| threads.trim() != "0");
    if !serves || !has_program("exportfs") || !has_program("mount.nfs") {
        return skipped(test, "needs an NFS server that runs on this machine, exportfs and mount.nfs");
    }
    let disk = disk_folder();
    let export = format!("127.0.0.1:{}", disk.path().display());
    call(&mut words("exportfs", &["-o", "rw,no_root_squash,insecure,sync,fsid=4711", &export]));
    let _exported = Exported(export.clone());
    let mount = Mount::new(&mut words("mount", &["-t", "nfs", &export]));
    let result = measured(mount.path(), "2");
    result.is_not_convicted();
    assert!(operations(result.row("one_write.fdatasync")) > 0);
}

/// Huge pages on top of those that were reserved, until it is dropped.
struct HugePages(u64);

const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

impl HugePages {
    fn reserve(count: u64) -> Option<HugePages> {
        let reserved = || fs::read_to_string(HUGE_PAGES).ok()?.trim().parse::<u64>().ok();
        let before = reserved()?;
        let restored = HugePages(before);
        fs::write(HUGE_PAGES, (before + count).to_string()).ok()?;
        (reserved()? >= before + count).then_some(restored)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        drop(fs::write(HUGE_PAGES, self.0.to_string()));
    }
}

#[test]
fn hugetlbfs_rows_except_msync_are_unavailable_with_a_reason() {
    let test = "probe of hugetlbfs";
    if !can_mount(test) {
        return;
    }
    let Some(_pages) = HugePages::reserve(64) else { return skipped(test, "64 huge pages cannot be reserved") };
    let mount = Mount::new(&mut words("mount", &["-t", "hugetlbfs", "pgstrata-test"]));
    let result = probe(mount.path(), &["--json", "--seconds", "1"]).with_code(0).result();
    assert_eq!(result.credibility(), "memory");
    for row in &result.record.rows {
        let id = &row.spec.id;
        if row.spec.way == Way::Msync {
            assert!(operations(row) > 0, "{id}: {:?}", row.unavailable);
        } else {
            assert!(row.unavailable.as_ref().is_some_and(|why| !why.is_empty()) && row.slices.is_empty(), "{id}");
        }
    }
}
