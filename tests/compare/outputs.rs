//! Raw outputs as arguments: folders that hold them, copies of a file, several files of one case, and the page's file.

use super::{compare, findings, published, stderr, stdout};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// An output of `pg_test_fsync` that ships with the program.
fn output() -> String {
    fs::read_to_string(published("memory-filesystems-2018/pg_test_fsync-local-disk.txt")).unwrap()
}

fn import(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = command.arg("import").args(args).current_dir(folder).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    output
}

/// The only folder below `results`.
fn imported(folder: &Path) -> String {
    let mut entries = fs::read_dir(folder.join("results")).unwrap();
    let only = entries.next().unwrap().unwrap().path().display().to_string();
    assert!(entries.next().is_none());
    only
}

#[test]
fn a_folder_of_outputs_is_refused_with_the_command_that_imports_it() {
    let folder = tempfile::tempdir().unwrap();
    let measured = folder.path().join("old server");
    fs::create_dir(&measured).unwrap();
    fs::write(measured.join("a-notes.txt"), "Measured on a Friday, 17 h.\n").unwrap();
    fs::write(measured.join("fsync.txt"), output()).unwrap();
    for args in [["old server", "shelf:sync-devices"], ["old server:fsync", "shelf:sync-devices"]] {
        let found = compare(folder.path(), &args);
        assert_eq!(found.status.code(), Some(2), "{}", stdout(&found));
        let said = stderr(&found);
        assert!(said.contains("fsync.txt of pg_test_fsync"), "{said}");
        assert!(said.contains("`pgstrata import 'old server' -o results`"), "{said}");
        assert!(said.contains("write old server/."), "{said}");
    }
    // The command is exact, and what it makes is a side.
    import(folder.path(), &["old server", "-o", "results"]);
    findings(folder.path(), &[&imported(folder.path()), "shelf:memory-filesystems-2018:local-disk"], 0);
}

#[test]
fn a_folder_that_is_named_as_a_place_is_probed_whatever_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let measured = folder.path().join("measured");
    fs::create_dir(&measured).unwrap();
    fs::write(measured.join("fsync.txt"), output()).unwrap();
    let shelf = "shelf:memory-filesystems-2018:local-disk";
    for (at, name) in [(folder.path(), "measured/."), (measured.as_path(), ".")] {
        let found = compare(at, &[shelf, name, "--seconds", "1", "--json"]);
        assert!(matches!(found.status.code(), Some(0 | 1)), "{}", stderr(&found));
        let sides: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        assert_eq!(sides["sides"][1]["origin"], "probe");
        assert!(stderr(&found).contains("(fsync.txt of pg_test_fsync) are not read"), "{}", stderr(&found));
    }
}

#[test]
fn a_data_directory_and_files_below_a_folder_make_no_folder_of_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["data", "mount", "mount/old"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("data/PG_VERSION"), "15\n").unwrap();
    for name in ["data/logfile", "mount/old/fsync.txt", "mount/.fsync.txt"] {
        fs::write(at(name), output()).unwrap();
    }
    std::os::unix::fs::symlink("old/fsync.txt", at("mount/link.txt")).unwrap();
    for name in ["data", "mount"] {
        let args = ["shelf:memory-filesystems-2018:local-disk", name, "--seconds", "1"];
        let found = compare(folder.path(), &args);
        assert!(matches!(found.status.code(), Some(0 | 1)), "{}", stderr(&found));
    }
}
