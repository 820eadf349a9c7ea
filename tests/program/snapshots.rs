//! Snapshots of a stack under load, on a real btrfs and as reflinks on a real XFS.

use crate::program::workshop::{Workshop, can_build_stacks, json, said};
use std::fs;

const PLAN: &str = r#"
name = "snaps"
blocks = 1

[stack.btrfs]
device = { loop = "800MiB" }
filesystem = "btrfs"

[stack.xfs]
device = { loop = "800MiB" }
filesystem = "xfs"

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.tpcb]
snapshots = { scale = 1, clients = 2, every = ["never", "4s"], keep = 1, duration = "13s", warmup = "1s" }

[[exclude]]
stack = "xfs"
every = "never"
"#;

#[test]
fn snapshots_are_made_and_deleted_on_schedule_beside_a_control() {
    if !can_build_stacks("snapshots under load") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let output = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let findings = json(&output.stdout);
    let mut kinds = Vec::new();
    for case in findings["cases"].as_array().unwrap() {
        let found = &case["snapshots"];
        let id = case["id"].as_str().unwrap();
        let record = json(&fs::read(folder.join(format!("trials/{id}/1/trial.json"))).unwrap());
        let deeds = record["counts"]["snapshots"]["deeds"].as_array().unwrap();
        assert!(deeds.iter().all(|deed| deed["failure"].is_null()), "{deeds:?}");
        kinds.push(found["every_s"].is_null());
        if found["every_s"].is_null() {
            assert!(deeds.is_empty() && found["dip"].is_null(), "{found}");
            continue;
        }
        let counted = (found["made"].as_u64().unwrap(), found["deleted"].as_u64().unwrap());
        assert!(matches!(counted, (3, 1 | 2)), "{found}");
        assert_eq!(found["curve"].as_array().unwrap().len(), 4, "{found}");
        assert!(found["dip"]["value"].as_f64() > Some(0.0) && found["make_s"]["value"].as_f64() > Some(0.0), "{found}");
        assert!(found["bytes_before"]["value"].as_f64() > Some(0.0), "{found}");
        assert!(record["counts"]["snapshots"]["copy_failure"].is_null(), "{record:#}");
        let stages = record["counts"]["stages"].as_array().unwrap();
        assert!(stages.iter().any(|stage| stage["name"] == "first start of a copy"), "{stages:?}");
        let log = fs::read_to_string(folder.join(format!("trials/{id}/1/raw/copy.log"))).unwrap();
        let is_xfs = id.starts_with("xfs");
        // Files of different moments are a base backup, those of one moment a crash.
        let begins = if is_xfs { "consistent recovery state reached" } else { "automatic recovery in progress" };
        assert!(log.contains(begins) && log.contains("redo done at"), "{log}");
        // Entered before it was made: the command stands in the trial's log.
        let commands = fs::read_to_string(folder.join(format!("trials/{id}/1/raw/commands.jsonl"))).unwrap();
        let wanted =
            if is_xfs { ["mkdir", "--one-file-system"] } else { ["subvolume snapshot -r", "subvolume delete"] };
        assert!(wanted.iter().all(|command| commands.contains(command)), "{commands}");
    }
    kinds.sort_unstable();
    assert_eq!(kinds, [false, false, true]);
    let text =
        String::from_utf8(shop.pgstrata(&["report", folder.to_str().unwrap()]).output().unwrap().stdout).unwrap();
    assert!(text.contains("Snapshots\n") && text.contains("longest time without a commit"), "{text}");
}
