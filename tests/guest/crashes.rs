//! A machine crash in a guest: the guest is killed in the middle of a trial, booted again, and the trial goes on.

use super::ground::{SUITE, guest_in_full, pgstrata, said, set_mode};
use std::path::Path;
use std::process::Stdio;

const PLAN: &str = r#"
name = "crashes"
blocks = 1
baseline = "ext4"

[stack.ext4]
device = { loop = "600MiB" }
filesystem = "ext4"

[stack.btrfs]
device = { loop = "600MiB" }
filesystem = "btrfs"

[postgres]
settings = { shared_buffers = "64MB" }

[workload.crash]
recovery = { scale = 1, clients = 2, wal = "16MiB", limit = "60s", after = "4s", warmup = "1s", crash = "machine" }
"#;

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap()
}

fn length(stages: &serde_json::Value, name: &str) -> Option<u64> {
    stages.as_array().unwrap().iter().find(|stage| stage["name"] == name)?["length_us"].as_u64()
}

#[test]
fn a_trial_continues_in_the_next_boot_after_a_crash() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = tempfile::tempdir().unwrap();
    set_mode(desk.path(), 0o755);
    let (plan, results) = (desk.path().join("plan.toml"), desk.path().join("results"));
    std::fs::write(&plan, PLAN).unwrap();
    let mut command = pgstrata(&["run", &format!("--guest={SUITE}"), "--json", "--results"]);
    let output = command.arg(&results).arg(&plan).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |word: &str| events.lines().filter(|line| line.contains(word)).count();
    assert_eq!((count("\"crash_asked\""), count("\"crash_survived\"")), (2, 2), "{events}");
    assert_eq!((count("\"trial_started\""), count("\"trial_done\"")), (2, 2), "{events}");
    let folder = std::fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path()).next().unwrap();
    for case in ["ext4.crash", "btrfs.crash"] {
        let trial = folder.join(format!("trials/{case}/1"));
        let record = json(&trial.join("trial.json"));
        assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
        let (stages, recovery) = (&record["counts"]["stages"], &record["counts"]["recovery"]);
        assert_eq!(recovery["crash"], "guest", "{recovery}");
        let parts = stages.as_array().unwrap().iter().filter(|stage| stage["kind"] == "part");
        let parts: u64 = parts.map(|stage| stage["length_us"].as_u64().unwrap()).sum();
        assert_eq!(length(stages, "outage"), Some(parts), "{stages}");
        for name in [
            "opening the devices",
            "mount with journal replay",
            "start of the server",
            "fsync pass",
            "redo",
            "end-of-recovery checkpoint",
            "ready to first answer",
            "kill and boot of the guest",
        ] {
            assert!(length(stages, name) > Some(0), "{name}: {stages}");
        }
        assert!(length(stages, "rest of the outage").unwrap() <= 5_000 + parts / 10, "{stages}");
        // An emulated CPU may not write all of it within the limit.
        assert!(recovery["wal_bytes"].as_u64().unwrap() >= 1 << 20, "{recovery}");
        assert!(recovery["after"].as_array().unwrap().len() >= 3, "{recovery}");
        let log = std::fs::read_to_string(trial.join("raw/server.log")).unwrap();
        assert!(log.contains("was interrupted") && log.contains("automatic recovery in progress"), "{log}");
        // What was made before the crash was stored before it.
        assert!(trial.join("seconds.parquet").is_file() && trial.join("raw/commands-before-crash.jsonl").is_file());
        assert!(!trial.join("handover.json").exists());
    }
    let output = pgstrata(&["report"]).arg(&folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("kill and boot of the guest") && text.contains("no telemetry after the crash"), "{text}");
}
