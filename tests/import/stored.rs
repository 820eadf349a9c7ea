//! What is stored: a folder with the record and the files as they were given, whole or not at all.

use crate::desk::{Desk, fixture, said, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::io::Write;
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
fn every_number_stands_in_its_line_as_its_text_says() {
    let desk = Desk::new();
    for part in ["pg_test_fsync/15-de.txt", "pgbench/18-statements.out", "iostat/12.6.1-x.txt", "fio/3.33.json"] {
        desk.put("x.txt", fixture(part));
        let record = desk.record(&["x.txt"]);
        let text = String::from_utf8(fixture(part)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let rows = crate::desk::outputs(&record).iter().flat_map(|output| output["rows"].as_array().unwrap());
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
fn a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing() {
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
fn files_whose_names_differ_in_what_leads_out_of_the_folder_are_two() {
    let desk = Desk::new();
    let one = String::from_utf8(fixture("pg_test_fsync/15-en.txt")).unwrap();
    let other = String::from_utf8(fixture("pg_test_fsync/15-de.txt")).unwrap();
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
fn a_copy_is_passed_over_and_facts_that_are_the_same_for_two_loads_are_not() {
    let desk = Desk::new();
    let copy = fixture("pgbench/15-scripts.out");
    let other = String::from_utf8(copy.clone()).unwrap().replace("tps = ", "tps = 1");
    for (folder, load) in [("run1", copy.as_slice()), ("run2", other.as_bytes())] {
        desk.put(&format!("in/{folder}/pgbench-zfs.txt"), load);
        desk.put(&format!("in/{folder}/mount.txt"), fixture("mount/2.38.1.txt"));
        desk.put(&format!("in/{folder}/zfs-get.txt"), "NAME PROPERTY VALUE SOURCE\ntank sync disabled local\n");
    }
    let output = desk.import(&["in"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folder = desk.results().pop().unwrap();
    assert!(folder.join("raw/in/run1/mount.txt").exists() && folder.join("raw/in/run2/mount.txt").exists());
    desk.put("in/run3/pgbench-zfs.txt", &copy);
    desk.put("in/run2/mount.out", fixture("mount/2.38.1.txt"));
    let output = desk.import(&["in", "--dry-run"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for name in ["in/run3/pgbench-zfs.txt", "in/run2/mount.txt"] {
        let words = format!("passed over: {name}: the same as a file before it");
        assert!(stderr(&output).contains(&words), "{}", said(&output));
    }
    assert_eq!(stderr(&output).matches("passed over").count(), 2, "{}", said(&output));
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
fn an_import_that_is_killed_leaves_nothing_that_the_next_one_does_not_clear() {
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
        assert!(began.elapsed().as_secs() < 60, "{:?}", desk.results());
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
    assert!(stderr(&output).contains("removed what a killed import left"), "{}", said(&output));
    assert!(desk.results().iter().all(|folder| folder.join("import.json").exists()), "{:?}", desk.results());
}

/// Runs a script with a mount namespace of its own, the program's path in `$0`; none where that is not allowed.
fn with_mounts(desk: &Desk, script: &str) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script, env!("CARGO_BIN_EXE_pgstrata")]);
    let output = command.current_dir(desk.path()).output().ok()?;
    (output.status.code() != Some(99) && !stderr(&output).contains("unshare")).then_some(output)
}

#[test]
fn a_full_disk_and_one_that_is_read_only_are_errors_that_say_what_to_do_and_leave_nothing() {
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
    desk.put("zfs.txt", fixture("published/freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-disabled.txt"));
    desk.put("zfs-get-zfs.txt", fixture("published/freebsd10-zfs-fsync-2014/zfs-get-all.txt"));
    let args = ["zfs.txt", "zfs-get-zfs.txt", "--set", "zfs.sync=standard"];
    let output = desk.import(&args);
    let text = stdout(&output);
    assert!(text.contains("zfs get lists sync=disabled, where the case is said to have"), "{}", said(&output));
    assert!(text.contains("which no storage that keeps data is known to do"), "{}", said(&output));
    assert!(text.contains("compare     pgstrata compare /"), "{}", said(&output));
    let output = desk.import(&[&args[..], &["--json", "--dry-run"]].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["remarks"][0]["rule"], "facts_contradict");
    desk.put("vmstat.txt", fixture("vmstat/4.0.2-plain.txt"));
    // Lines of a log in a page are rows, and no whole log.
    let log = String::from_utf8(fixture("pgbench/18-scripts.log")).unwrap();
    let lines: Vec<&str> = log.lines().take(20).collect();
    let page = [fixture("vmstat/4.0.2-plain.txt"), b"\n\n".to_vec(), (lines.join("\n") + "\n").into_bytes()].concat();
    desk.put("page.txt", page);
    assert!(desk.record(&["page.txt"]).to_string().contains("\"pgbench -l\""));
    for name in ["vmstat.txt", "page.txt"] {
        let output = desk.import(&[name]);
        assert!(stdout(&output).contains("stored"), "{}", said(&output));
        assert!(!stdout(&output).contains("pgstrata compare"), "{}", said(&output));
    }
}

#[test]
fn where_a_file_was_put_by_its_name_is_said_and_can_be_read_by_programs() {
    let desk = Desk::new();
    desk.put("in/mount.txt", fixture("mount/2.38.1.txt"));
    for (name, part) in [("zfs-1", "15"), ("zfs-2", "15"), ("ext4", "18")] {
        desk.put(&format!("in/pgbench-{name}.txt"), fixture(&format!("pgbench/{part}-scripts.out")));
    }
    // A copy is no repetition.
    let other = String::from_utf8(fixture("pgbench/15-scripts.out")).unwrap().replace("tps = ", "tps = 1");
    desk.put("in/pgbench-zfs-2.txt", other);
    let output = desk.import(&["in"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = stdout(&output);
    for words in [
        "case zfs, trial 2: in/pgbench-zfs-2.txt\n",
        "in/mount.txt: no measurement; put to the cases ext4, zfs\n",
        "  zfs-1, zfs-2 were taken as 2 trials of it",
    ] {
        assert!(text.contains(words), "`{words}` is not in:\n{}", said(&output));
    }
    let output = desk.import(&["in", "--json", "--dry-run"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let case = &printed["record"]["cases"][1];
    assert_eq!(case["caveats"].as_array().unwrap().len(), 1);
    let names = |of: &Value| {
        let files = of["files"].as_array().unwrap();
        files.iter().map(|file| file["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&case["trials"][1]), ["in/pgbench-zfs-2.txt"]);
    assert_eq!(names(&case["context"]), ["in/mount.txt"]);
}

#[test]
fn facts_of_a_case_with_several_trials_are_told_once() {
    let desk = Desk::new();
    let summary = String::from_utf8(fixture("pgbench/15-scripts.out")).unwrap();
    let properties = "NAME PROPERTY VALUE SOURCE\ntank sync standard local\ntank/a sync disabled local\n";
    desk.put("in/mount.txt", fixture("mount/2.38.1.txt"));
    for run in 1..=2 {
        desk.put(&format!("in/run{run}/pgbench.txt"), summary.replace("tps = 1", &format!("tps = 1{run}")));
        desk.put(&format!("in/run{run}/zfs-get.txt"), properties);
    }
    let output = desk.import(&["in", "--set", "zfs.sync=standard", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let remarks = printed["remarks"].as_array().unwrap();
    let of_sets = remarks.iter().find(|remark| remark["rule"] == "datasets_differ").unwrap();
    let sentence = of_sets["sentence"].as_str().unwrap();
    assert!(sentence.contains("zfs get lists tank sync=standard, tank/a sync=disabled: "), "{sentence}");
    let mut compare = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = compare.arg("compare").args([printed["folder"].as_str().unwrap(), "in/run1/pgbench.txt"]);
    let output = output.current_dir(desk.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(!stdout(&output).contains("byte for byte"), "{}", said(&output));
}

#[test]
fn what_is_told_of_all_replaces_nothing_that_a_file_says_and_the_doubt_is_told_and_not_stored() {
    let desk = Desk::new();
    desk.put("pgbench.txt", fixture("pgbench/18-scripts.out"));
    desk.put("mount.txt", fixture("mount/2.38.1.txt"));
    let set = ["--set", "origin.postgresql=15", "--set", "stack.filesystem=zfs", "--set", "workload.clients=64"];
    let output = desk.import(&[&["pgbench.txt", "mount.txt"], &set[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let folder = desk.results().pop().unwrap();
    let record: Value = serde_json::from_slice(&fs::read(folder.join("import.json")).unwrap()).unwrap();
    assert_eq!(record["cases"][0]["caveats"].as_array().unwrap().len(), 0, "it is found anew each time");
    let flowing = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "the output is of version 18.6, where PostgreSQL is said to be 15",
        "are mounted and no zfs, where the case is said to be on zfs",
        "pgbench says clients 2, where the case is said to have 64",
    ] {
        assert!(flowing.contains(words), "{words}: {}", said(&output));
    }
    let clients = record["cases"][0]["trials"][0]["outputs"][0]["rows"][0]["figures"][1].clone();
    assert_eq!((clients["name"].as_str(), clients["value"].as_f64()), (Some("clients"), Some(2.0)));
}

#[test]
fn who_asks_for_the_report_of_an_import_is_told_what_there_is() {
    let desk = Desk::new();
    desk.put("x.txt", fixture("pg_test_fsync/15-en.txt"));
    desk.import(&["x.txt"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let output = command.arg("report").arg(desk.results().pop().unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("pgstrata compare"), "{}", said(&output));
}
