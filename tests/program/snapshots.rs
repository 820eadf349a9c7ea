//! Snapshots of a stack under load, on a real btrfs and as reflinks on a real XFS.

use crate::program::workshop::{Ran, Workshop, can_build_stacks, json};
use serde_json::Value;
use std::fs;

const PLAN: &str = r#"
name = "snaps"
blocks = 1

[stack.FILESYSTEM]
device = { loop = "800MiB", sparse = true }
filesystem = "FILESYSTEM"

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.tpcb]
snapshots = { scale = 1, clients = 2, every = EVERY, keep = 1, duration = "13s", warmup = "1s" }
"#;

/// Runs the plan on a filesystem. Returns every case's findings with its record, and the report.
fn measured(shop: &Workshop, filesystem: &str, every: &str) -> (Vec<(Value, Value)>, Ran) {
    let ran = shop.ran(&PLAN.replace("FILESYSTEM", filesystem).replace("EVERY", every));
    let cases = ran.findings["cases"].as_array().unwrap().iter().map(|case| {
        let record = ran.folder.join("trials").join(case["id"].as_str().unwrap()).join("1/trial.json");
        (case.clone(), json(&fs::read(record).unwrap()))
    });
    (cases.collect(), ran)
}

/// Snapshots came and went on schedule, and a server started on a copy of the last one: its log and the trial's commands.
fn came_and_went(case: &Value, record: &Value, ran: &Ran) -> (String, String) {
    let found = &case["snapshots"];
    let deeds = record["counts"]["snapshots"]["deeds"].as_array().unwrap();
    assert!(deeds.iter().all(|deed| deed["failure"].is_null()), "{deeds:?}");
    let counted = (found["made"].as_u64().unwrap(), found["deleted"].as_u64().unwrap());
    assert!(matches!(counted, (3, 1 | 2)), "{found}");
    assert_eq!(found["curve"].as_array().unwrap().len(), 4, "{found}");
    assert!(found["dip"]["value"].as_f64() > Some(0.0) && found["make_s"]["value"].as_f64() > Some(0.0), "{found}");
    assert!(found["bytes_before"]["value"].as_f64() > Some(0.0), "{found}");
    assert!(record["counts"]["snapshots"]["copy_failure"].is_null(), "{record:#}");
    let stages = record["counts"]["stages"].as_array().unwrap();
    assert!(stages.iter().any(|stage| stage["name"] == "first start of a copy"), "{stages:?}");
    let raw = ran.folder.join("trials").join(case["id"].as_str().unwrap()).join("1/raw");
    let read = |name: &str| fs::read_to_string(raw.join(name)).unwrap();
    let (log, commands) = (read("copy.log"), read("commands.jsonl"));
    assert!(log.contains("redo done at"), "{log}");
    assert!(ran.text.contains("Snapshots\n") && ran.text.contains("longest time without a commit"), "{}", ran.text);
    (log, commands)
}

#[test]
fn snapshots_are_made_and_deleted_on_schedule_beside_a_control() {
    if !can_build_stacks("snapshots under load") {
        return;
    }
    let shop = Workshop::new();
    let (cases, ran) = measured(&shop, "btrfs", "[\"never\", \"4s\"]");
    let (controls, cases): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|(case, _)| case["snapshots"]["every_s"].is_null());
    let ([(control, without)], [(case, record)]) = (&controls[..], &cases[..]) else {
        panic!("{controls:?} {cases:?}")
    };
    assert_eq!(without["counts"]["snapshots"]["deeds"], serde_json::json!([]), "{without:#}");
    assert!(control["snapshots"]["dip"].is_null(), "{control}");
    let (log, commands) = came_and_went(case, record, &ran);
    // Files of one moment are a crash.
    assert!(log.contains("automatic recovery in progress"), "{log}");
    // Entered before it was made: the command stands in the trial's log.
    let wanted = ["subvolume snapshot -r", "subvolume delete"];
    assert!(wanted.iter().all(|command| commands.contains(command)), "{commands}");
}

#[test]
fn snapshots_by_reflinks_start_as_a_base_backup_does() {
    if !can_build_stacks("snapshots by reflinks") {
        return;
    }
    let shop = Workshop::new();
    let (cases, ran) = measured(&shop, "xfs", "\"4s\"");
    let [(case, record)] = &cases[..] else { panic!("{cases:?}") };
    let (log, commands) = came_and_went(case, record, &ran);
    // Files of different moments are a base backup.
    assert!(log.contains("consistent recovery state reached"), "{log}");
    let wanted = ["mkdir", "--one-file-system"];
    assert!(wanted.iter().all(|command| commands.contains(command)), "{commands}");
}
