//! What cannot be probed is refused with the reason and the right exit code, and nothing is left behind.

use crate::probe::faults::can_fuse;
use crate::probe::fuse::{Faults, Fuse};
use crate::probe::ground::{Mount, call, can_mount, folder, set_mode, words};
use crate::probe::output::Copy;
use crate::probe::program::{Running, command, measured, nothing_is_left, probe};
use std::fs;
use std::path::Path;

#[test]
fn a_folder_that_is_not_there_is_wrong_usage() {
    let folder = folder();
    let missing = folder.path().join("missing");
    let path = missing.to_str().unwrap();
    probe(&missing, &["--seconds", "1"]).with_code(2).complains(&[path]);
    assert!(!missing.exists(), "it was made");
}

#[test]
fn a_file_is_no_folder() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    probe(&file, &["--seconds", "1"]).with_code(2).complains(&[file.to_str().unwrap()]);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    nothing_is_left(folder.path());
}

#[test]
fn arguments_that_make_no_sense_are_wrong_usage() {
    let folder = folder();
    let wrong = [
        ["--seconds", "0"],
        ["--seconds=-1", "--json"],
        ["--seconds", "soon"],
        ["--seconds", "NaN"],
        ["--seconds", "inf"],
        ["--precision", "NaN"],
        ["--wal-block", "3"],
        ["--wal-block", "0"],
        ["--writers", "0"],
        ["--format", "pg_test_disk"],
        ["--server", "x"],
    ];
    for args in wrong {
        let ended = Running::start(&mut command(folder.path(), &args)).end();
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.said());
        let option = args[0].split('=').next().unwrap();
        assert!(ended.stdout.is_empty() && ended.stderr().contains(option), "{args:?}: {}", ended.said());
        nothing_is_left(folder.path());
    }
}

#[test]
fn without_a_folder_it_says_how_it_is_used() {
    let mut command = std::process::Command::new(crate::probe::program::PROGRAM);
    Running::start(command.arg("probe")).end().with_code(2).complains(&["Usage"]);
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    if !can_mount("probe as nobody") {
        return;
    }
    let Some(copy) = Copy::of_the_program("probe as nobody") else { return };
    let mount = Mount::tmpfs("256m");
    let ended = copy.probe_as_nobody(mount.path(), &["--seconds", "1"]);
    ended.with_code(3).complains(&[mount.path().to_str().unwrap()]);
    nothing_is_left(mount.path());
    // Not even looked into.
    set_mode(mount.path(), 0o700);
    let ended = copy.probe_as_nobody(mount.path(), &["--seconds", "1"]);
    assert!(matches!(ended.code, Some(2 | 3)), "{}", ended.said());
}

#[test]
fn a_full_filesystem_is_refused_and_stays_as_it_was() {
    if !can_mount("probe of a full filesystem") {
        return;
    }
    let mount = Mount::tmpfs("1m");
    fs::write(mount.path().join("filling"), vec![1; 1 << 20]).unwrap();
    let ended = probe(mount.path(), &["--seconds", "1"]);
    ended.with_code(3).complains(&["free", mount.path().to_str().unwrap()]);
    assert_eq!(names(mount.path()), ["filling"]);
}

#[test]
fn on_little_free_space_the_test_files_are_smaller() {
    if !can_mount("probe of a small filesystem") {
        return;
    }
    let mount = Mount::tmpfs("100m");
    let result = measured(mount.path(), "1");
    let record = &result.record;
    assert!(record.file_bytes + record.segment_bytes < 32 << 20, "{} {}", record.file_bytes, record.segment_bytes);
    assert!(record.place.free_bytes.is_some_and(|free| free <= 100 << 20));
}

#[test]
fn a_filesystem_mounted_read_only_is_refused() {
    if !can_mount("probe of a read-only filesystem") {
        return;
    }
    let mount = Mount::tmpfs("256m");
    call(words("mount", &["-o", "remount,ro"]).arg(mount.path()));
    let ended = probe(mount.path(), &["--seconds", "1"]).with_code(3);
    let says = ended.stderr().to_lowercase();
    assert!(says.contains("read-only"), "{}", ended.said());
    ended.complains(&[mount.path().to_str().unwrap()]);
}

#[test]
fn a_fuse_whose_daemon_is_gone_is_refused() {
    if !can_fuse("probe of a dead FUSE") {
        return;
    }
    let below = folder();
    let mut fuse = Fuse::mount(below.path(), Faults::default());
    fuse.go_away();
    let ended = probe(&fuse.mount, &["--seconds", "1"]);
    assert!(matches!(ended.code, Some(2 | 3)), "{}", ended.said());
    ended.complains(&[fuse.mount.to_str().unwrap()]);
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
