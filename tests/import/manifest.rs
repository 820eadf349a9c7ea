//! A folder with a publication.toml: what it names is read, as it says, and nothing else.

use crate::import::desk::{Desk, fixture, fixture_text, said, stderr, stdout};
use serde_json::Value;

/// A folder of two repetitions with logs and mounts, and of one file alone.
fn measured() -> Desk {
    let desk = Desk::new();
    let summary = fixture_text("pgbench/15-unmeasured.out");
    for run in 1..=2 {
        desk.put(&format!("in/run{run}/pgbench.txt"), summary.replace("tps = ", &format!("tps = {run}")));
        desk.put(&format!("in/run{run}/pgbench_log.17"), fixture("pgbench/15-unmeasured.log"));
    }
    desk.put("in/run1/pgbench_log.17.1", fixture("pgbench/15-unmeasured.log"));
    desk.put("in/mount.txt", fixture("mount/2.38.1.txt"));
    desk.put("in/disabled.txt", summary);
    desk
}

fn names(trial: &Value) -> Vec<&str> {
    trial["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect()
}

#[test]
fn the_example_sorts_a_folder_into_cases_and_repetitions() {
    let desk = measured();
    let example = stdout(&desk.import(&["--manifest-example"]));
    desk.put("in/publication.toml", &example);
    desk.put("in/notes.md", "fdatasync 5 ops/sec\n");
    let output = desk.import(&["in", "--set", "zfs.dataset=tank/pg", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(stderr(&output).contains("not named in in/publication.toml, so not read: notes.md"), "{}", said(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &printed["record"];
    let case = &record["cases"][0];
    assert_eq!((case["name"].as_str(), record["cases"].as_array().unwrap().len()), (Some("sync-standard"), 2));
    assert_eq!(case["facts"]["zfs.sync"], "standard");
    assert_eq!(case["facts"]["zfs.dataset"], "tank/pg");
    let trials = case["trials"].as_array().unwrap();
    let first = ["in/run1/pgbench.txt", "in/run1/pgbench_log.17", "in/run1/pgbench_log.17.1", "in/mount.txt"];
    assert_eq!((trials.len(), names(&trials[0])), (2, first.to_vec()));
    let done = |trial: usize| trials[trial]["log"]["done"].as_u64().unwrap();
    assert_eq!(done(0), 2 * done(1), "the logs of two threads are one");
    assert_eq!(
        (record["varied"].as_str(), record["origin"]["machine"].as_str()),
        (Some("ZFS property sync"), Some("8 cores, 64 GiB"))
    );
    let unknown = record["unknown"].as_array().unwrap();
    assert!(unknown.contains(&"write cache of the disks".into()) && unknown.len() > 1, "{unknown:?}");
    assert!(std::path::Path::new(printed["folder"].as_str().unwrap()).join("raw/in/mount.txt").exists());
}

#[test]
fn repetitions_of_a_manifest_have_an_interval_in_a_comparison() {
    let desk = measured();
    let case = "name = 'a'\ntrials = [['run1/pgbench.txt', 'mount.txt'], ['run2/pgbench.txt', 'mount.txt']]";
    desk.put("in/publication.toml", format!("[[case]]\n{case}\n"));
    let output = desk.import(&["in", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut compare = std::process::Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    let compare = compare.arg("compare").args([printed["folder"].as_str().unwrap(), "in/disabled.txt", "--json"]);
    let output = compare.current_dir(desk.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["pairs"][0]["rows"].as_array().unwrap();
    let tps = rows.iter().find(|row| row["measure"].as_str().unwrap().ends_with("/tps")).unwrap();
    assert_eq!(tps["reference"]["trials"], 2, "{tps}");
    assert!(!found.to_string().contains("byte for byte"), "mounts may be told with each repetition");
}

#[test]
fn a_wrong_manifest_is_refused_with_its_line() {
    let desk = measured();
    for (text, says) in [
        ("[[case]]\nname = 'a'\ntrial = []\n", "in/publication.toml, line 3: unknown field `trial`"),
        ("[[case]]\nname = 'a'\ntrials = [['disable.txt']]\n", "did you mean disabled.txt?"),
        ("[[case]]\nname = 'a'\n", "in/publication.toml names no file"),
        ("[[conclusion]]\nsays = 'x'\n", "`conclusion` is only for the publications"),
    ] {
        desk.put("in/publication.toml", text);
        let output = desk.import(&["in"]);
        assert_eq!(output.status.code(), Some(2), "{text}: {}", said(&output));
        assert!(stderr(&output).contains(says), "{text}: {}", said(&output));
    }
    desk.put("in/publication.toml", "[[case]]\nname = 'a'\ntrials = [['disabled.txt']]\n");
    desk.put("in/disabled.txt", "nothing of use\n");
    let output = desk.import(&["in"]);
    assert_eq!(output.status.code(), Some(2), "what a manifest names must be readable: {}", said(&output));
    desk.put("other.txt", "x");
    let output = desk.import(&["in", "other.txt"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("import in alone"), "{}", said(&output));
    assert!(desk.results().is_empty());
}
