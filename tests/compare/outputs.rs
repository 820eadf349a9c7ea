//! Raw outputs as arguments: folders that hold them, copies of a file, several files of one case, and the page's file.

use super::{compare, findings, published, stderr, stdout};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// An output of `pg_test_fsync` that ships with the program.
fn output() -> String {
    fs::read_to_string(published("memory-filesystems-2018/pg_test_fsync-local-disk.txt")).unwrap()
}

/// The same with another figure in place of its `fdatasync` of one write.
fn output_at(rate: &str) -> String {
    let whole = output();
    let line = whole.lines().find(|line| line.contains("40183.743")).unwrap();
    // A rate whose time does not fit it is not read.
    let (us, per_s) = (line.split_whitespace().rev().nth(1).unwrap(), rate.parse::<f64>().unwrap());
    let (changed, us_of) = (line.replacen("40183.743", rate, 1), format!("{:.0} usecs/op", 1e6 / per_s));
    whole.replacen(line, &changed.replacen(&format!("{us} usecs/op"), &us_of, 1), 1)
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
fn a_folder_of_outputs_is_refused_with_the_import_command() {
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
        assert!(said.contains("write `old server/.`"), "{said}");
    }
    // The command is exact, and what it makes is a side.
    import(folder.path(), &["old server", "-o", "results"]);
    findings(folder.path(), &[&imported(folder.path()), "shelf:memory-filesystems-2018:local-disk"], 0);
}

#[test]
fn a_folder_named_as_a_place_is_always_probed() {
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
        assert!(stderr(&found).contains("(fsync.txt of pg_test_fsync) is ignored"), "{}", stderr(&found));
    }
}

#[test]
fn a_data_directory_is_not_taken_for_outputs() {
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

#[test]
fn a_page_takes_the_place_of_its_own_kind_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (one, other) = (published("memory-filesystems-2018/pg_test_fsync-local-disk.txt"), at("other.txt"));
    fs::write(&other, output_at("40000.000")).unwrap();
    let written = |page: &str| compare(folder.path(), &[&one, other.to_str().unwrap(), "--html", page]);
    for (name, bytes) in [
        ("measured.txt", output().into_bytes()),
        ("page.html", b"<!DOCTYPE html><meta name=\"generator\" content=\"another program\">".to_vec()),
        ("empty.html", Vec::new()),
        ("binary", vec![0, 159, 146, 150]),
    ] {
        fs::write(at(name), &bytes).unwrap();
        let refused = written(name);
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", stdout(&refused));
        assert!(refused.stdout.is_empty() && stderr(&refused).contains("is not a pgstrata page"), "{name}");
        assert_eq!(fs::read(at(name)).unwrap(), bytes, "{name}");
    }
    assert_eq!(written("other.txt").status.code(), Some(2), "a side of the comparison itself");
    assert_eq!(fs::read_to_string(&other).unwrap(), output_at("40000.000"));
    assert_eq!(written("mine.html").status.code(), Some(0));
    let first = fs::read_to_string(at("mine.html")).unwrap();
    fs::write(&other, output_at("20000.000")).unwrap();
    assert_eq!(written("mine.html").status.code(), Some(0), "its own page");
    let second = fs::read_to_string(at("mine.html")).unwrap();
    assert_ne!(first, second);
}

/// Trials of the first row of the only case that these files make, and whether its ratio to a publication has an interval.
fn trials(files: &[(&str, String)]) -> (u64, bool) {
    let folder = tempfile::tempdir().unwrap();
    let measured = folder.path().join("measured");
    fs::create_dir(&measured).unwrap();
    for (name, text) in files {
        fs::write(measured.join(name), text).unwrap();
    }
    let runs: Vec<String> = files.iter().map(|(name, _)| format!("['{name}']")).collect();
    let manifest = format!("[[case]]\nname = 'fsync'\ntrials = [{}]\n", runs.join(", "));
    fs::write(measured.join("publication.toml"), manifest).unwrap();
    import(folder.path(), &["measured"]);
    let side = imported(folder.path());
    let found = findings(folder.path(), &[&side, "shelf:memory-filesystems-2018:local-disk"], 0);
    let rows = found["pairs"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "pg_test_fsync/one write/8 kB/fdatasync").unwrap();
    (row["reference"]["trials"].as_u64().unwrap(), !row["reference"]["low"].is_null())
}

#[test]
fn a_file_and_its_copy_are_one_trial() {
    let copy = ("fsync-run2.txt", output());
    assert_eq!(trials(&[("fsync-run1.txt", output()), copy.clone()]), (1, false));
    assert_eq!(trials(&[("fsync-run1.txt", output()), copy.clone(), ("fsync-run3.txt", output())]), (1, false));
    let others = ["40000.000", "41000.000"].map(output_at);
    let [one, other] = others.map(|output| ("fsync-run1.txt", output));
    assert_eq!(trials(&[one.clone(), copy.clone()]), (2, false), "two trials have no interval");
    assert_eq!(trials(&[one, copy, ("fsync-run4.txt", other.1)]), (3, true));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fsync.txt"), output()).unwrap();
    let found = findings(folder.path(), &["fsync.txt", "./fsync.txt"], 0);
    let rows = found["pairs"][0]["rows"].as_array().unwrap();
    assert!(rows.iter().filter(|row| !row["comparison"].is_null()).all(|row| row["comparison"]["low"].is_null()));
}

#[test]
fn trials_that_are_alike_have_no_interval() {
    let same = |note: &str| output() + note;
    // Two files, and no figure differs.
    assert_eq!(trials(&[("fsync-run1.txt", same("\n")), ("fsync-run2.txt", same("\n\n"))]), (1, false));
}

#[test]
fn files_without_a_manifest_are_cases_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["pg_test_fsync-a-1.txt", "pg_test_fsync-b-1.txt"];
    for (name, rate) in names.iter().zip(["40000.000", "20000.000"]) {
        fs::write(folder.path().join(name), output_at(rate)).unwrap();
    }
    import(folder.path(), &names);
    let found = findings(folder.path(), &[&imported(folder.path())], 0);
    let labels: Vec<&str> =
        found["sides"].as_array().unwrap().iter().map(|side| side["label"].as_str().unwrap()).collect();
    assert!(labels.len() == 2 && labels[0].ends_with("-a-1") && labels[1].ends_with("-b-1"), "{labels:?}");
    let rows = found["pairs"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "pg_test_fsync/one write/8 kB/fdatasync").unwrap();
    assert_eq!((&row["comparison"]["ratio"], &row["reference"]["trials"]), (&0.5.into(), &1.into()));
}
