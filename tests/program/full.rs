//! Stacks that fill up while they are aged or measured: a result with its time and the server's last words.

use crate::depth::waits_for_full;
use crate::program::machine::traces;
use crate::program::workshop::{Ran, Workshop, can_build_stacks, json, said, skipped};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
name = "full"
blocks = 1

[stack.ext4]
device = { loop = "256MiB" }
filesystem = "ext4"

[stack.btrfs]
device = { loop = "320MiB" }
filesystem = "btrfs"

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "32MB" }

# Until the machine is quiet, which it never is under the tests, a trial waits for a third of its duration.
[workload.growing]
pgbench = { scale = 1, clients = 2, script = "SCRIPT", rate = 30, duration = "36s", warmup = "0s" }
"#;

/// WAL that is recycled: the space in use stays what it is, but for what snapshots hold.
const HELD: &str = r#"
name = "held"
blocks = 1

[stack.btrfs]
device = { loop = "450MiB" }
filesystem = "btrfs"

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "64MB", checkpoint_timeout = "30s" }

[workload.held]
snapshots = { scale = 1, clients = 2, script = "SCRIPT", every = ["never", "4s"], keep = 40, duration = "45s", warmup = "1s" }
"#;

/// The same on a thin pool: the filesystem has room, the pool below it has none.
const THIN: &str = r#"
name = "thin"
blocks = 1

[stack.lvm-thin]
device = { loop = "300MiB" }
volume = { lvm = { thin = true } }
filesystem = "ext4"

[postgres]
settings = { shared_buffers = "32MB", max_wal_size = "64MB", min_wal_size = "64MB", checkpoint_timeout = "30s" }

[workload.held]
snapshots = { scale = 1, clients = 2, script = "SCRIPT", every = "4s", keep = 40, duration = "240s", warmup = "1s" }
"#;

/// Writes WAL and nothing else.
const MESSAGE: &str = "SELECT pg_logical_emit_message(true, 'x', repeat('y', 1000000));\n";

const FILES: &str = r#"
name = "files"
blocks = 1

[stack.ext4]
device = { loop = "256MiB" }
filesystem = "ext4"
age = { fill = [50, 90] }

[workload.files]
files = { size = "40MiB", duration = "1s" }
"#;

fn record(folder: &Path, case: &str) -> serde_json::Value {
    json(&fs::read(folder.join(format!("trials/{case}/1/trial.json"))).unwrap())
}

#[test]
fn a_load_that_fills_its_stack_keeps_its_earlier_figures() {
    if !can_build_stacks("full stacks") {
        return;
    }
    let shop = Workshop::new();
    let rows = "INSERT INTO pgbench_history SELECT 1, 1, 1, 1, now(), 'x' FROM generate_series(1, 10000);\n";
    let script = shop.file("grow.sql", rows);
    let Ran { said: told, findings, text, folder } = shop.ran(&PLAN.replace("SCRIPT", script.to_str().unwrap()));
    assert!(told.contains("FULL after"), "{told}");
    let full = findings["full"].as_array().unwrap();
    assert_eq!(full.len(), 2, "{full:#?}");
    for case in ["ext4.growing", "btrfs.growing"] {
        let record = record(&folder, case);
        assert_eq!(record["outcome"]["outcome"], "measured", "{record:#}");
        let found = full.iter().find(|one| one["case"] == case).unwrap();
        let after_s = found["after_s"].as_f64().unwrap();
        assert!(after_s > 1.0 && after_s < 36.0, "{found:#}");
        assert!(found["reason"].as_str().unwrap().contains("No space left on device"), "{found:#}");
        assert!(found["server_log"].as_str().unwrap().contains("No space left on device"), "{found:#}");
        assert!(record["counts"]["measures"][0]["done"].as_u64() > Some(10), "{record:#}");
        assert!(record["counts"]["ended"].as_str().unwrap().contains("pgbench"), "{record:#}");
        assert!(found["used"].as_f64() > Some(0.7), "{found:#}");
    }
    assert_eq!(findings["not_run"].as_array().unwrap().len(), 0);
    assert!(text.contains("Full stacks") && text.contains("the server log ends with"), "{text}");
    // It would fill up again: nothing is left to do.
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success() && !said(&output).contains("FULL after"), "{}", said(&output));
}

#[test]
fn snapshots_fill_their_stack_but_not_its_control() {
    if waits_for_full() || !can_build_stacks("stacks full of snapshots") {
        return;
    }
    let shop = Workshop::new();
    let script = shop.file("wal.sql", MESSAGE);
    let Ran { said: told, findings, folder, .. } = shop.ran(&HELD.replace("SCRIPT", script.to_str().unwrap()));
    assert!(told.contains("FULL after"), "{told}");
    let full = findings["full"].as_array().unwrap();
    let cases: Vec<&str> = full.iter().filter_map(|one| one["case"].as_str()).collect();
    assert_eq!(cases, ["btrfs.held.every-4s"], "{full:#?}");
    let record = record(&folder, "btrfs.held.every-4s");
    let deeds = record["counts"]["snapshots"]["deeds"].as_array().unwrap();
    assert!(deeds.len() > 1 && record["counts"]["measures"][0]["done"].as_u64() > Some(0), "{record:#}");
}

#[test]
fn a_thin_pool_filled_by_snapshots_is_a_named_result() {
    const NAME: &str = "a thin pool full of snapshots";
    if !can_build_stacks(NAME) {
        return;
    }
    let shop = Workshop::new();
    let script = shop.file("wal.sql", MESSAGE);
    let output = shop.run(&shop.file("plan.toml", &THIN.replace("SCRIPT", script.to_str().unwrap())));
    // The machine lacks something of the only case.
    if output.status.code() == Some(3) {
        return skipped(NAME, &said(&output));
    }
    let record = record(&shop.run_folder(), "lvm-thin.held");
    let full = &record["full"];
    let reason = full["reason"].as_str().unwrap_or_else(|| panic!("{record:#}\n{}", said(&output)));
    assert!(reason.contains("thin pool"), "{full:#}");
    assert!(!full["server_log"].as_str().unwrap().is_empty(), "{full:#}");
    assert!(output.status.success() && said(&output).contains("FULL after"), "{}", said(&output));
    assert_eq!(traces(shop.path().to_str().unwrap()), BTreeSet::new());
}

#[test]
fn a_filesystem_too_small_for_test_files_is_a_result() {
    if !can_build_stacks("a filled filesystem") {
        return;
    }
    let shop = Workshop::new();
    let Ran { said: told, findings, text, folder } = shop.ran(FILES);
    assert!(told.contains("FULL after"), "{told}");
    let full = findings["full"].as_array().unwrap();
    assert_eq!(full.len(), 1, "{full:#?}");
    assert_eq!((&full[0]["case"], &full[0]["is_measured"]), (&"ext4.files.age-fill-90".into(), &false.into()));
    assert_eq!(record(&folder, "ext4.files.age-fill-50")["outcome"]["outcome"], "measured");
    assert!(text.contains("no figures") && !text.contains("Not run, and why"), "{text}");
}
