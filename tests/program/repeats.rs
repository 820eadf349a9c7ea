//! Trials around which the disk below the images was off.

use crate::program::workshop::{Workshop, can_build_stacks, said, stderr};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
name = "repeats"
blocks = 5

[stack.ext4]
device = { loop = "160MiB" }
filesystem = "ext4"

[postgres]
settings = { shared_buffers = "16MB", max_wal_size = "32MB", min_wal_size = "32MB" }

[workload.read]
pgbench = { script = "select-only", scale = 1, duration = "1s", warmup = "0s" }
"#;

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Writes probes of this many synced writes a second into a stored trial, as if it had not been repeated.
fn set_probes(trial: &Path, per_s: [u64; 2]) {
    let mut record = json_of(trial);
    let folder = record["disk_probes"][0]["folder"].clone();
    let probes =
        per_s.map(|flushes| json!({"wall_us": 1, "flushes": flushes, "elapsed_us": 1_000_000, "folder": folder}));
    record["disk_probes"] = json!(probes);
    record.as_object_mut().unwrap().remove("is_repeat");
    fs::write(trial, serde_json::to_vec(&record).unwrap()).unwrap();
}

#[test]
fn a_disturbed_trial_is_repeated_after_its_block() {
    if !can_build_stacks("repeats of disturbed trials") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("plus up to 1 repeat of disturbed trials"), "{}", said(&output));
    let folder = shop.run_folder();
    let trial = |number: u32| folder.join(format!("trials/ext4.read/{number}/trial.json"));
    let probed = json_of(&trial(1))["disk_probes"].clone();
    assert_eq!(probed.as_array().map(Vec::len), Some(2), "before and after: {probed}");
    // What a run leaves that was killed after its third trial, behind which the disk stalled.
    drop(fs::remove_dir_all(folder.join("set-aside")));
    [4, 5].iter().for_each(|number| fs::remove_dir_all(trial(*number).parent().unwrap()).unwrap());
    [1, 2].iter().for_each(|number| set_probes(&trial(*number), [4000, 4100]));
    set_probes(&trial(3), [4000, 400]);
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let findings: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(findings["run"]["trials_disturbed"], 1, "{}", findings["run"]);
    assert_eq!(findings["run"]["disks"][0]["per_s_lowest"], 400.0, "{}", findings["run"]);
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    let opening = stderr(&resumed);
    assert!(opening.contains("3 trials complete, 2 left"), "{opening}");
    assert!(opening.contains("plus up to 1 repeat"), "{opening}");
    // Which of the two counts depends on the disk of this machine now.
    let aside = json_of(&folder.join("set-aside/ext4.read/3/trial.json"));
    assert_ne!(aside["is_repeat"] == true, json_of(&trial(3))["is_repeat"] == true);
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let (_, session) = events.rsplit_once("run_resumed").unwrap();
    let started: Vec<&str> =
        session.lines().filter(|line| line.contains("_started") && !line.contains("step")).collect();
    assert!(started[0].contains("repeat_started"), "at the end of its block: {started:#?}");
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(stderr(&resumed).contains("nothing is left to do"), "{}", said(&resumed));
}
