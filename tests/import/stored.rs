//! What is stored: a folder with the record and the files as they were given, whole or not at all.

use crate::import::desk::{Desk, fixture, said, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

#[test]
fn a_folder_holds_the_record_and_the_files_as_given() {
    let desk = Desk::new();
    let bytes = fixture("pg_test_fsync/15-en.txt");
    desk.put("a/pg_test_fsync-zfs.txt", &bytes);
    let set = ["--set", "stack.filesystem=zfs", "--set", "origin.machine=8 cores", "--name", "old-server"];
    let output = desk.import(&[&["a/pg_test_fsync-zfs.txt", "-o", "results"], &set[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folders = desk.results();
    assert_eq!(folders.len(), 1, "{folders:?}");
    let folder = &folders[0];
    assert!(folder.to_str().unwrap().ends_with("-import-old-server"), "{folder:?}");
    assert!(stdout(&output).contains(folder.to_str().unwrap()), "{}", said(&output));
    assert_eq!(fs::read(folder.join("raw/a/pg_test_fsync-zfs.txt")).unwrap(), bytes);
    let record: Value = serde_json::from_slice(&fs::read(folder.join("import.json")).unwrap()).unwrap();
    assert_eq!((record["format"].as_u64(), record["origin"]["machine"].as_str()), (Some(1), Some("8 cores")));
    assert_eq!(record["cases"][0]["facts"]["stack.filesystem"], "zfs");
    let unknown: Vec<&str> = record["unknown"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(unknown.contains(&"when it was measured") && unknown.contains(&"mount options"), "{unknown:?}");
    assert!(!unknown.contains(&"filesystem") && !unknown.contains(&"machine: CPUs and memory"), "{unknown:?}");
    let file = &record["cases"][0]["trials"][0]["files"][0];
    assert_eq!(file["bytes"].as_u64(), Some(bytes.len() as u64));
    assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn a_folder_is_imported_without_the_imports_in_it() {
    let desk = Desk::new();
    // A name that a run's record has, too.
    desk.put("host/run.json", fixture("fio/3.33.json"));
    for earlier in 0..3 {
        let output = desk.import(&[".", "-o", "results", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(stderr(&output).matches("is a run or import of pgstrata").count(), earlier, "{}", said(&output));
        let record = &serde_json::from_slice::<Value>(&output.stdout).unwrap()["record"];
        assert_eq!(record["cases"].as_array().unwrap().len(), 1, "{record}");
    }
}

#[test]
fn every_number_stands_in_its_line_as_its_text_says() {
    let desk = Desk::new();
    for part in ["pg_test_fsync/18.txt", "pgbench/18-statements.out", "iostat/12.6.1-x.txt", "fio/3.33.json"] {
        desk.put("x.txt", fixture(part));
        let record = desk.record(&["x.txt"]);
        let text = String::from_utf8(fixture(part)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let rows = crate::import::desk::outputs(&record).iter().flat_map(|output| output["rows"].as_array().unwrap());
        let mut count = 0;
        for figure in rows.flat_map(|row| row["figures"].as_array().unwrap()) {
            let line = usize::try_from(figure["line"].as_u64().unwrap()).unwrap();
            assert!(lines[line - 1].contains(figure["text"].as_str().unwrap()), "{part}: {figure}");
            count += 1;
        }
        assert!(count > 10, "{part}: {count}");
    }
}

#[test]
fn an_unwritable_folder_is_an_error_and_leaves_nothing() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.put("file", "in the way");
    let output = desk.import(&["x.txt", "-o", "file/results"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(stderr(&output).contains("-o DIR"), "{}", said(&output));
}

#[test]
fn a_file_that_is_given_twice_is_refused() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt"));
    let output = desk.import(&["x.txt", "./x.txt"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("given twice"), "{}", said(&output));
    assert!(desk.results().is_empty());
    let output = desk.import(&["x.txt", "./x.txt", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn files_of_equal_name_in_different_folders_stay_separate() {
    let desk = Desk::new();
    let one = String::from_utf8(fixture("pg_test_fsync/15-en.txt")).unwrap();
    let other = String::from_utf8(fixture("pg_test_fsync/18.txt")).unwrap();
    desk.put("x.txt", &one);
    desk.put("in/x.txt", &other);
    let mut command = desk.command(&["x.txt", "../x.txt", "-o", "results"]);
    let output = command.current_dir(desk.path().join("in")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folder = fs::read_dir(desk.path().join("in/results")).unwrap().next().unwrap().unwrap().path();
    let record: Value = serde_json::from_slice(&fs::read(folder.join("import.json")).unwrap()).unwrap();
    let trials = record["cases"].as_array().unwrap().iter().flat_map(|case| case["trials"].as_array().unwrap());
    for file in trials.flat_map(|trial| trial["files"].as_array().unwrap()) {
        let wanted = if file["name"] == "x.txt" { &other } else { &one };
        assert_eq!(&fs::read_to_string(folder.join("raw").join(file["raw"].as_str().unwrap())).unwrap(), wanted);
    }
    assert!(folder.join("raw/2/x.txt").exists());
}

#[test]
fn settings_that_mean_nothing_are_refused() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt"));
    for set in ["filesystem", "filesystem=zfs", "origin.colour=red", "a.b=", "stack.filesytem=zfs"] {
        let output = desk.import(&["x.txt", "--set", set]);
        assert_eq!(output.status.code(), Some(2), "{set}: {}", said(&output));
    }
    let output = desk.import(&["x.txt", "--set", "stack.filesytem=zfs"]);
    assert!(stderr(&output).contains("did you mean stack.filesystem?"), "{}", said(&output));
    let output =
        desk.import(&["x.txt", "--set", "stack.encryption=luks", "--set", "stack.media=rotating", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = desk.import(&["x.txt", "--name", "../x"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(desk.results().is_empty());
}

#[test]
fn leftovers_of_a_killed_import_are_cleared_by_the_next() {
    let desk = Desk::new();
    let bytes = fixture("pg_test_fsync/15-en.txt");
    let mut child = desk.command(&["-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(&bytes).unwrap();
    let began = std::time::Instant::now();
    let copied = |desk: &Desk| {
        let raw = desk.results().pop().map(|folder| folder.join("raw/stdin"));
        raw.is_some_and(|raw| fs::metadata(raw).is_ok_and(|facts| facts.len() > 0))
    };
    while !copied(&desk) {
        assert!(began.elapsed().as_secs() < 300, "{:?}", desk.results());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    desk.put("x.txt", &bytes);
    // While it lives, nobody touches what is its own.
    let output = desk.import(&["x.txt", "--name", "other"]);
    assert_eq!((output.status.code(), desk.results().len()), (Some(0), 2), "{}", said(&output));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(desk.results().len(), 2);
    let output = desk.import(&["x.txt", "--name", "stdin"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stderr(&output).contains("removed leftovers of a killed import"), "{}", said(&output));
    assert!(desk.results().iter().all(|folder| folder.join("import.json").exists()), "{:?}", desk.results());
}

/// Runs a script with a mount namespace of its own, the program's path in `$0`; none where that is not allowed.
fn with_mounts(desk: &Desk, script: &str) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    // A copy of the mount table keeps filesystems alive that other tests unmount meanwhile.
    let script = format!("awk '$2 ~ /pgstrata/ {{ print $2 }}' /proc/self/mounts | xargs -r umount -l 2>&1; {script}");
    command.args(["sh", "-c", &script, env!("CARGO_BIN_EXE_pgstrata")]);
    let output = command.current_dir(desk.path()).output().ok()?;
    (output.status.code() != Some(99) && !stderr(&output).contains("unshare")).then_some(output)
}

#[test]
fn a_full_or_read_only_disk_is_an_error() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt").repeat(2000));
    fs::create_dir(desk.path().join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=256k tmpfs disk || exit 99; ";
    for (script, says) in [
        ("\"$0\" import x.txt -o disk/results; code=$?; find disk/results -mindepth 1; exit $code", "No space left"),
        ("mount -o remount,ro disk || exit 99; \"$0\" import x.txt -o disk/results", "Read-only file system"),
    ] {
        let Some(output) = with_mounts(&desk, &format!("{mount}{script}")) else {
            println!("skipped: a mount namespace of one's own is not allowed here");
            return;
        };
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
        assert!(stderr(&output).contains(says) && stderr(&output).contains("-o DIR"), "{}", said(&output));
        assert!(!stdout(&output).contains("disk/results"), "{}", said(&output));
    }
}

#[test]
fn what_figures_say_by_themselves_is_told_at_once() {
    let desk = Desk::new();
    desk.put("in/zfs.txt", fixture("published/freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-disabled.txt"));
    desk.put("in/zfs-get.txt", fixture("published/freebsd10-zfs-fsync-2014/zfs-get-all.txt"));
    desk.put("in/publication.toml", "[[case]]\nname = 'zfs'\ntrials = [['zfs.txt', 'zfs-get.txt']]\n");
    let args = ["in", "--set", "zfs.sync=standard"];
    let output = desk.import(&args);
    let text = stdout(&output);
    assert!(text.contains("zfs get lists sync=disabled, but the case states"), "{}", said(&output));
    assert!(text.contains("faster than any known durable storage"), "{}", said(&output));
    assert!(text.contains("compare     pgstrata compare /"), "{}", said(&output));
    let output = desk.import(&[&args[..], &["--json", "--dry-run"]].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["remarks"][0]["rule"], "facts_contradict");
    desk.put("vmstat.txt", fixture("vmstat/4.0.2-plain.txt"));
    let output = desk.import(&["vmstat.txt"]);
    assert!(stdout(&output).contains("stored"), "{}", said(&output));
    assert!(!stdout(&output).contains("pgstrata compare"), "{}", said(&output));
}

#[test]
fn set_values_never_replace_figures_of_the_file() {
    let desk = Desk::new();
    desk.put("pgbench.txt", fixture("pgbench/18-scripts.out"));
    let output = desk.import(&["pgbench.txt", "--set", "workload.clients=64"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folder = desk.results().pop().unwrap();
    let record: Value = serde_json::from_slice(&fs::read(folder.join("import.json")).unwrap()).unwrap();
    assert_eq!(record["cases"][0]["caveats"].as_array().unwrap().len(), 0, "it is found anew each time");
    let flowing = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "pgbench reports clients 2, but the case states 64";
    assert!(flowing.contains(words), "{words}: {}", said(&output));
    let clients = record["cases"][0]["trials"][0]["outputs"][0]["rows"][0]["figures"][1].clone();
    assert_eq!((clients["name"].as_str(), clients["value"].as_f64()), (Some("clients"), Some(2.0)));
}

#[test]
fn the_report_of_an_import_is_refused_with_alternatives() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.import(&["x.txt"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = command.arg("report").arg(desk.results().pop().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("pgstrata compare"), "{}", said(&output));
}
