//! The ground goes away while it is measured: the program ends, says so, and leaves nothing that it can still reach.

use crate::probe::faults::can_fuse;
use crate::probe::fuse::{Faults, Fuse};
use crate::probe::ground::{Image, Mount, can_make, can_mount};
use crate::probe::program::{Ended, Running, left, nothing_is_left};
use std::fs;
use std::time::Duration;

/// Refused midway, or measured with rows that failed; never a success.
fn says_what_happened(ended: &Ended, words: &[&str]) {
    assert!(matches!(ended.code, Some(1 | 3)), "{}", ended.said());
    let said = ended.stdout() + &ended.stderr();
    assert!(words.iter().any(|word| said.contains(word)), "{}", ended.said());
    assert!(!said.contains("panicked"), "{}", ended.said());
}

#[test]
fn a_folder_removed_midway_is_reported_as_gone() {
    if !can_mount("probe of a folder that is removed") {
        return;
    }
    let mount = Mount::tmpfs("256m");
    let folder = mount.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let running = Running::midway(&folder, "4");
    // It makes new files meanwhile.
    while fs::remove_dir_all(&folder).is_err() {}
    let ended = running.end();
    says_what_happened(&ended, &["ENOENT", "No such file", "gone", "disappeared", "removed"]);
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0, "made again");
}

#[test]
fn a_filesystem_unmounted_midway_keeps_no_probe_files() {
    if !can_make("probe of a filesystem that is unmounted", &["ext4"]) {
        return;
    }
    let image = Image::on_disk("ext4");
    let mount = image.mount("");
    let running = Running::midway(mount.path(), "4");
    mount.detach();
    let ended = running.end();
    // What it holds open can be measured to the end; what it opens anew is gone.
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.said());
    assert!(ended.code == Some(0) || !ended.stderr.is_empty(), "{}", ended.said());
    nothing_is_left(mount.path());
    let again = image.mount("");
    nothing_is_left(again.path());
}

#[test]
fn a_fuse_daemon_that_ends_midway_ends_the_probe() {
    if !can_fuse("probe of a FUSE that goes away") {
        return;
    }
    let below = Mount::tmpfs("256m");
    let mut fuse = Fuse::mount(below.path(), Faults::default());
    let running = Running::midway(&fuse.mount, "4");
    fuse.go_away();
    let ended = running.end();
    says_what_happened(&ended, &["ENOTCONN", "not connected", "ECONNABORTED", "disappeared"]);
    let left = left(below.path());
    assert_eq!(left.len(), 1, "{left:?}");
    let name = left[0].file_name().unwrap().to_str().unwrap();
    let said = ended.stdout() + &ended.stderr();
    assert!(said.contains(name), "what it could not remove it does not name: {}", ended.said());
}

#[test]
fn a_slowly_ending_daemon_does_not_delay_the_probe() {
    if !can_fuse("probe of a slow FUSE that goes away") {
        return;
    }
    let below = Mount::tmpfs("256m");
    let mut fuse = Fuse::mount(below.path(), Faults { delay: Duration::from_millis(5), ..Faults::default() });
    let running = Running::midway(&fuse.mount, "60");
    fuse.go_away();
    says_what_happened(&running.end(), &["ENOTCONN", "not connected", "ECONNABORTED", "disappeared"]);
}
