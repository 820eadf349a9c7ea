//! Crashes of a server and of the filesystem below it, and maintenance, on real stacks.

use crate::program::workshop::{Ran, Workshop, can_build_stacks, json};
use std::fs;

/// Writes 16 MiB of WAL in seconds on any disk; pages of a table change, too.
pub const FAST_WAL: &str = "\\set aid random(1, 100000)\nBEGIN;\n\
                        UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n\
                        SELECT pg_logical_emit_message(true, 'x', repeat('y', 30000));\nEND;\n";

const CRASHES: &str = r#"
name = "crashes"
blocks = 2

[stack.FILESYSTEM]
device = { loop = "600MiB", sparse = true }
filesystem = "FILESYSTEM"

[postgres]
settings = { shared_buffers = "64MB" }

[workload.crash]
recovery = { scale = 1, clients = 2, script = "fast_wal.sql", wal = "16MiB", after = "3s", warmup = "0s", crash = "CRASH" }
"#;

const MAINTENANCE: &str = r#"
name = "care"
blocks = 1

[stack.ext4]
device = { loop = "600MiB", sparse = true }
filesystem = "ext4"

[stack.tmp]
filesystem = { tmpfs = "600MiB" }

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.care]
maintenance = { scale = 1 }
"#;

fn stage<'a>(stages: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    stages.as_array().unwrap().iter().find(|stage| stage["name"] == name)
}

/// Crashes twice on a filesystem: each outage has its phases, as the stopped client and the server's log tell.
fn outages_have_their_phases(filesystem: &str, crash: &str) {
    let shop = Workshop::new();
    shop.file("fast_wal.sql", FAST_WAL);
    let Ran { findings, text, folder, .. } =
        shop.ran(&CRASHES.replace("FILESYSTEM", filesystem).replace("CRASH", crash));
    for trial in ["1", "2"] {
        let trial = folder.join("trials").join(format!("{filesystem}.crash")).join(trial);
        let record = json(&fs::read(trial.join("trial.json")).unwrap());
        assert_eq!(record["counts"]["recovery"]["crash"], crash, "{record:#}");
        has_its_phases(&record["counts"]);
        let log = fs::read_to_string(trial.join("raw/server.log")).unwrap();
        assert!(log.contains("automatic recovery in progress"), "{log}");
    }
    assert!(findings["rankings"].as_array().unwrap().iter().any(|it| it["by"] == "time" && it["measure"] == "outage"));
    let case = &findings["cases"][0];
    let outage = stage(&case["stages"], "outage").unwrap();
    assert_eq!(outage["seconds"]["trials"], 2, "{outage}");
    let range = outage["seconds"]["range"].as_array().unwrap();
    assert!(range[0].as_f64() < range[1].as_f64(), "{outage}");
    assert!(stage(&case["stages"], "redo").unwrap()["mb_per_s"]["value"].as_f64() > Some(0.0));
    assert!(text.contains("Stage by stage") && text.contains("end-of-recovery"), "{text}");
}

fn has_its_phases(counts: &serde_json::Value) {
    let (stages, recovery) = (&counts["stages"], &counts["recovery"]);
    let length = |name: &str| stage(stages, name).map(|stage| stage["length_us"].as_u64().unwrap());
    let outage = length("outage").unwrap();
    let parts = stages.as_array().unwrap().iter().filter(|it| it["kind"] == "part");
    assert_eq!(parts.map(|it| it["length_us"].as_u64().unwrap()).sum::<u64>(), outage, "{stages}");
    for name in ["fsync pass", "redo", "end-of-recovery checkpoint"] {
        assert!(length(name).is_some(), "{name}: {stages}");
    }
    let is_machine = recovery["crash"] == "machine";
    assert_eq!(length("mount with journal replay").is_some(), is_machine, "{stages}");
    assert_eq!(length("unmount").is_some(), is_machine, "{stages}");
    // All parts follow each other: clocks that count milliseconds are all that may be left, and a late look of a busy machine.
    assert!(length("rest of the outage").unwrap() <= 5_000 + outage / 10, "{stages}");
    let redone = stage(stages, "redo").unwrap()["bytes"].as_u64().unwrap();
    assert!(recovery["wal_bytes"].as_u64().unwrap() >= 16 << 20 && redone > 15 << 20, "{recovery} {redone}");
    assert!(recovery["answers_apart_us"].as_u64().unwrap() < 60_000_000, "{recovery}");
    assert!(recovery["after"].as_array().unwrap().len() >= 2, "{recovery}");
}

#[test]
fn outage_phases_match_what_a_client_of_the_server_saw() {
    if can_build_stacks("crashes of a server") {
        outages_have_their_phases("ext4", "process");
    }
}

#[test]
fn a_machine_outage_has_its_unmount_and_journal_replay() {
    if can_build_stacks("crashes of a machine") {
        outages_have_their_phases("xfs", "machine");
    }
}

#[test]
fn each_maintenance_step_is_timed_and_ranked_on_two_stacks() {
    if !can_build_stacks("maintenance") {
        return;
    }
    let shop = Workshop::new();
    let Ran { findings, text, folder, .. } = shop.ran(MAINTENANCE);
    let ranked = ["CREATE INDEX", "VACUUM", "pg_basebackup", "restore"];
    let measures: Vec<&str> =
        findings["rankings"].as_array().unwrap().iter().map(|it| it["measure"].as_str().unwrap()).collect();
    for name in ranked {
        assert!(measures.contains(&name), "{measures:?}");
    }
    for case in findings["cases"].as_array().unwrap() {
        for name in ranked {
            let found = stage(&case["stages"], name).unwrap();
            assert!(found["seconds"]["value"].as_f64() > Some(0.0), "{found}");
            assert!(found["bytes"].as_f64() > Some(1e6) && found["mb_per_s"]["value"].as_f64() > Some(0.0), "{found}");
        }
    }
    let log = fs::read_to_string(folder.join("trials/ext4.care/1/raw/restored.log")).unwrap();
    assert!(log.contains("consistent recovery state reached"), "{log}");
    assert!(text.contains("pg_basebackup"), "{text}");
}
