//! `pgstrata compare` as a person calls it: a publication beside a probe, raw files, cases of a run, what cannot be; runs of
//! several machines, merged and beside each other.

mod again;
mod check;
mod duckdb;
mod groups;
mod merged;
mod outputs;
mod run_folder;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Raw output of `pg_test_fsync` that ships with the program.
fn published(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shelf").join(file).display().to_string()
}

fn compare(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pgstrata")).arg("compare").args(args).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The findings of a comparison that exits with `code`.
fn findings(folder: &Path, args: &[&str], code: i32) -> Value {
    let output = compare(folder, &[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn reasons(found: &Value) -> Vec<&str> {
    found["refused"].as_array().unwrap().iter().map(|refusal| refusal["reason"].as_str().unwrap()).collect()
}

#[test]
fn a_publication_stands_beside_a_probe_of_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let found = findings(folder.path(), &["shelf:freebsd10-zfs-fsync-2014", ".", "--seconds", "3"], 0);
    let labels: Vec<&str> = found["sides"].as_array().unwrap().iter().map(|s| s["label"].as_str().unwrap()).collect();
    assert_eq!(
        labels,
        ["shelf:freebsd10-zfs-fsync-2014:sync-standard", "shelf:freebsd10-zfs-fsync-2014:sync-disabled", "."]
    );
    let pair = &found["pairs"][0];
    assert_eq!(pair["side"], 2);
    let rows = pair["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "pg_test_fsync/one write/8 kB/fsync");
    let row = row.unwrap_or_else(|| panic!("not measured: {found}"));
    assert!(row["value"]["value"].as_f64().unwrap() > 0.0 && row["reference"]["value"].as_f64().unwrap() > 0.0);
    // The figure of either case as it stands in the article.
    assert!(
        [6_675.9, 115_687.3]
            .iter()
            .any(|published| { (row["reference"]["value"].as_f64().unwrap() - published).abs() < 1.0 }),
        "{row}"
    );
    assert!(reasons(&found).contains(&"not_synced_across_versions"));
    let facts: Vec<&str> =
        found["facts_that_differ"].as_array().unwrap().iter().map(|f| f["key"].as_str().unwrap()).collect();
    assert!(facts.contains(&"host.system"), "{facts:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the probe leaves nothing");
}

#[test]
fn two_folders_are_probed_alternately_and_compared_round_by_round() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let output = compare(folder.path(), &["one", "two", "--seconds", "3", "--json"]);
    // What is seen of flushes on a busy machine may differ from round to round; then a comparison is refused.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for side in found["sides"].as_array().unwrap() {
        assert!(side["caveats"].to_string().contains("3 rounds"), "{side}");
    }
    let rows = found["pairs"][0]["rows"].as_array().unwrap();
    let how: Vec<&str> = rows.iter().filter_map(|row| row["comparison"]["how"].as_str()).collect();
    assert!(!rows.is_empty() && !how.iter().any(|how| how.contains("slices")), "{how:?}");
    assert!(rows.len() <= 6, "the rows of `main` share the time: {rows:?}");
    for name in ["one", "two"] {
        assert_eq!(std::fs::read_dir(folder.path().join(name)).unwrap().count(), 0, "the probe leaves nothing");
    }
}

#[test]
fn two_raw_files_are_compared_by_row_without_a_winner() {
    let folder = tempfile::tempdir().unwrap();
    let (standard, disabled) = (
        published("freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-standard.txt"),
        published("freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-disabled.txt"),
    );
    let page = folder.path().join("page.html");
    let output = compare(folder.path(), &[&standard, &disabled, "--html", page.to_str().unwrap()]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("neither size nor direction is certain") && text.contains("no interval"), "{text}");
    assert!(!text.contains(") faster") && !text.contains(") slower"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.starts_with("report ")), "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("no interval") && !page.contains("<script"));
}

#[test]
fn several_outputs_in_one_file_are_sides_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let read = |file: &str| std::fs::read_to_string(published(&format!("memory-filesystems-2018/{file}"))).unwrap();
    let both = read("pg_test_fsync-tmpfs.txt") + "\n" + &read("pg_test_fsync-local-disk.txt");
    std::fs::write(folder.path().join("both.txt"), both).unwrap();
    let found = findings(folder.path(), &["both.txt"], 0);
    assert_eq!((&found["sides"][0]["label"], &found["sides"][1]["label"]), (&"both.txt".into(), &"both.txt#2".into()));
    assert!(found["pairs"][0]["rows"][0]["comparison"]["ratio"].as_f64().unwrap() < 0.1);
}

#[test]
fn cases_of_a_run_have_ratios_with_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_folder::make(folder.path());
    let case = |name: &str| format!("{}:{name}", run.display());
    let found = findings(folder.path(), &[&case("ext4"), &case("xfs")], 0);
    let row = &found["pairs"][0]["rows"][0];
    assert_eq!(row["measure"], "pgbench/tpcb-like/scale 10/clients 4/tps");
    let comparison = &row["comparison"];
    assert_eq!((&comparison["outcome"], &comparison["how"]), (&"faster".into(), &"paired over 3 blocks".into()));
    let (low, high) = (comparison["low"].as_f64().unwrap(), comparison["high"].as_f64().unwrap());
    assert!(low < 1.5 && 1.5 < high && low > 1.2, "{comparison}");
    let found = findings(folder.path(), &[&case("ext4"), &case("tmpfs")], 1);
    assert_eq!(reasons(&found), ["memory_against_disk", "other_clients"]);
    let found = findings(folder.path(), &[&case("ext4-c4"), &case("ext4-c16")], 1);
    assert_eq!(reasons(&found), ["other_clients"]);
    // The run as a whole: what differs in its workload alone is one side.
    let found = findings(folder.path(), &[run.to_str().unwrap()], 0);
    assert_eq!(found["sides"].as_array().unwrap().len(), 4, "{}", found["sides"]);
}

#[test]
fn an_import_with_its_facts_is_a_side() {
    let folder = tempfile::tempdir().unwrap();
    let file = published("memory-filesystems-2018/pg_test_fsync-local-disk.txt");
    for (name, filesystem) in [("one", "ext4"), ("two", "xfs")] {
        let filesystem = format!("stack.filesystem={filesystem}");
        let args = ["import", &file, "--set", &filesystem, "--name", name];
        let made = Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(args).current_dir(folder.path()).output().unwrap();
        assert!(matches!(made.status.code(), Some(0 | 1)), "{}", stderr(&made));
    }
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder.path().join("results")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let args: Vec<&str> = folders.iter().map(|path| path.to_str().unwrap()).collect();
    let found = findings(folder.path(), &args, 0);
    assert_eq!(found["facts_that_differ"][0]["key"], "stack.filesystem");
    assert_eq!(found["facts_that_differ"][0]["values"], serde_json::json!(["ext4", "xfs"]));
    assert_eq!(found["pairs"][0]["rows"][0]["comparison"]["ratio"], 1.0);
}

#[test]
fn what_cannot_be_a_side_is_refused_with_what_could() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_folder::make(folder.path());
    std::fs::write(folder.path().join("garbage.bin"), [0u8, 159, 146, 150, 1, 2, 3]).unwrap();
    std::fs::write(folder.path().join("prose.txt"), "There are 7 hills.\n").unwrap();
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    std::fs::create_dir(folder.path().join("damaged")).unwrap();
    std::fs::write(folder.path().join("damaged/import.json"), "{\"format\": 1").unwrap();
    let run = run.display().to_string();
    let refused = |args: &[&str]| {
        let output = compare(folder.path(), args);
        assert!(output.stdout.is_empty(), "{args:?}: {}", stdout(&output));
        (output.status.code().unwrap(), stderr(&output))
    };
    for (args, code, said) in [
        (vec!["garbage.bin", "shelf:wal-blocksize-2012"], 2, "garbage.bin"),
        (vec!["prose.txt", "shelf:wal-blocksize-2012"], 2, "not the output of a known tool"),
        (vec!["empty.txt", "shelf:wal-blocksize-2012"], 2, "empty.txt"),
        (vec!["damaged", "shelf:wal-blocksize-2012"], 5, "import.json"),
        (vec!["shelf:wal-blocksize-2021", "."], 2, "did you mean `wal-blocksize-2012`?"),
        (vec!["wal-blocksize-2012", "."], 2, "did you mean `shelf:wal-blocksize-2012`?"),
        (vec!["shelf:wal-blocksize-2012:fdatasync-9k", "."], 2, "did you mean `fdatasync-8k`?"),
        (vec!["prose.tx", "."], 2, "did you mean `prose.txt`?"),
        (vec![&format!("{run}:ext5"), &run], 2, "did you mean `ext4`?"),
        (vec![&format!("{run}/ext4"), &run], 2, "write a case of a folder as"),
        (vec![&run, ".", "--html", "nowhere/page.html"], 2, "the folder nowhere for --html"),
        (vec![".:ext4", "."], 2, "has no cases"),
        (vec!["prose.txt:x", "."], 2, "has no cases"),
        (vec!["."], 2, "is the only side"),
        (vec![], 2, "SIDE"),
    ] {
        let (found, error) = refused(&args);
        assert_eq!(found, code, "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
    }
}

#[test]
fn sides_without_a_common_measure_exit_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let fsync = published("memory-filesystems-2018/pg_test_fsync-local-disk.txt");
    let output = compare(folder.path(), &[&fsync, &published("wal-blocksize-2012/pgbench-fdatasync-8k.txt")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("Nothing can be compared: the sides have no measure in common."));
    assert!(stdout(&output).contains("only A measured pg_test_fsync/"));
}
