//! The FUSE filesystem of these tests does what it is told, and nothing of it stays.

use crate::probe::fuse::{Faults, Fuse, Syncs};
use crate::probe::ground::{folder, skipped};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Whether a FUSE filesystem can be mounted; prints why not.
pub fn can_fuse(test: &str) -> bool {
    Fuse::can().map_err(|why| skipped(test, &why)).is_ok()
}

fn errno(error: &Error) -> Option<Errno> {
    Errno::from_io_error(error)
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap()
}

#[test]
fn fuse_passes_files_and_folders_through() {
    if !can_fuse("FUSE passes through") {
        return;
    }
    let below = folder();
    let fuse = Fuse::mount(below.path(), Faults::default());
    let own = fuse.mount.join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("a"), vec![7; 300_000]).unwrap();
    assert_eq!(fs::read(below.path().join("own/a")).unwrap(), vec![7; 300_000]);
    fs::rename(own.join("a"), own.join("b")).unwrap();
    assert_eq!(fs::read(own.join("b")).unwrap().len(), 300_000);
    let names: Vec<_> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["b"]);
    let file = OpenOptions::new().write(true).open(own.join("b")).unwrap();
    file.set_len(5).unwrap();
    fs::remove_file(own.join("b")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5, "open and unlinked");
    drop(file);
    fs::remove_dir(&own).unwrap();
    assert!(fs::read_dir(below.path()).unwrap().next().is_none());
    let mount = fuse.mount.clone();
    drop(fuse);
    assert!(!mounts().contains(mount.to_str().unwrap()) && !mount.exists());
}

fn sync_thrice(faults: Faults) -> (Vec<Option<Errno>>, u64) {
    let below = folder();
    let fuse = Fuse::mount(below.path(), faults);
    let mut file = File::create(fuse.mount.join("a")).unwrap();
    let sync = |_| {
        file.write_all(b"x").unwrap();
        file.sync_data().err().and_then(|error| errno(&error))
    };
    ((0..3).map(sync).collect(), fuse.syncs())
}

#[test]
fn syncs_on_fuse_are_counted_ignored_or_fail_as_told() {
    if !can_fuse("FUSE syncs") {
        return;
    }
    let with = |syncs| sync_thrice(Faults { syncs, ..Faults::default() });
    assert_eq!(with(Syncs::Honest), (vec![None; 3], 3));
    assert_eq!(with(Syncs::Ignored), (vec![None; 3], 3));
    assert_eq!(with(Syncs::FailFrom(2)), (vec![None, Some(Errno::IO), Some(Errno::IO)], 3));
}

#[test]
fn a_write_with_o_dsync_on_fuse_is_a_sync() {
    if !can_fuse("FUSE and O_DSYNC") {
        return;
    }
    let below = folder();
    let fuse = Fuse::mount(below.path(), Faults::default());
    let flags = rustix::fs::OFlags::DSYNC.bits().cast_signed();
    let mut file = OpenOptions::new().write(true).create(true).custom_flags(flags).open(fuse.mount.join("a")).unwrap();
    file.write_all(b"x").unwrap();
    assert_eq!(fuse.syncs(), 1);
}

#[test]
fn writes_on_fuse_fail_or_come_out_short_as_told() {
    if !can_fuse("FUSE writes") {
        return;
    }
    let below = folder();
    let written = |path: &Path| File::create(path).unwrap().write_at(&[1; 8192], 0).map_err(|e| errno(&e));
    for error in [Errno::NOSPC, Errno::DQUOT] {
        let fuse = Fuse::mount(below.path(), Faults { full: Some((10_000, error)), ..Faults::default() });
        assert_eq!(written(&fuse.mount.join("a")), Ok(8192));
        assert_eq!(written(&fuse.mount.join("b")), Err(Some(error)));
    }
    let fuse = Fuse::mount(below.path(), Faults { short: Some(8192), ..Faults::default() });
    assert_eq!(written(&fuse.mount.join("a")), Ok(8192));
    assert_eq!(written(&fuse.mount.join("b")), Ok(4096));
}

#[test]
fn a_vanished_fuse_refuses_and_leaves_no_mount() {
    if !can_fuse("FUSE goes away") {
        return;
    }
    let below = folder();
    let mut fuse = Fuse::mount(below.path(), Faults { delay: Duration::from_millis(1), ..Faults::default() });
    let mut file = File::create(fuse.mount.join("a")).unwrap();
    fuse.go_away();
    assert_eq!(file.write_all(b"x").err().and_then(|error| errno(&error)), Some(Errno::NOTCONN));
    let mount = fuse.mount.clone();
    drop(fuse);
    assert!(!mounts().contains(mount.to_str().unwrap()) && !mount.exists());
}

#[test]
fn a_fuse_is_unmounted_when_its_test_panics() {
    if !can_fuse("FUSE and a panic") {
        return;
    }
    let below = folder();
    let fuse = Fuse::mount(below.path(), Faults::default());
    let mount = fuse.mount.clone();
    let fell = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _held = &fuse;
        let _file = File::create(fuse.mount.join("a")).unwrap();
        std::panic::resume_unwind(Box::new("as a failed assertion does"));
    }));
    assert!(fell.is_err());
    assert!(!mounts().contains(mount.to_str().unwrap()) && !mount.exists());
}
