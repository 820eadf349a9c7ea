//! Windows of whole checkpoint cycles, on a real server. Checkpoints come on request here, by a small max_wal_size: those
//! by time come every 30 s at most.

use crate::depth::waits_for_full;
use crate::program::workshop::{Workshop, can_build_stacks, json, said};
use std::fs;

const PLAN: &str = r#"
name = "cycles"
blocks = 1

[stack.tmp]
filesystem = { tmpfs = "512MiB" }

[postgres]
settings = { shared_buffers = "64MB", max_wal_size = "48MB" }

[workload.tpcb]
pgbench = { scale = 2, clients = 2, log_sample = 1.0 }
"#;

/// The record of the only trial, and the findings.
fn measured(shop: &Workshop) -> (serde_json::Value, serde_json::Value) {
    let folder = shop.run_folder();
    let record = json(&fs::read(folder.join("trials/tmp.tpcb/1/trial.json")).unwrap());
    let output = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    (record, json(&output.stdout))
}

#[test]
fn a_writing_workload_is_measured_over_three_whole_checkpoint_cycles() {
    if !can_build_stacks("windows of whole checkpoint cycles") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    let (record, findings) = measured(&shop);
    let window = &record["window"];
    assert_eq!(window["end"], "cycles", "{window}");
    assert!(window["prefill"]["bytes"].as_u64().unwrap() >= 48 << 20, "{window}");
    assert!(window["warm_up"].as_array().unwrap().len() >= 2, "{window}");
    let found = &findings["trials"][0]["window"];
    assert_eq!((&found["whole_cycles"], &found["asked_cycles"]), (&3.into(), &3.into()), "{found}");
    // The client was started just after the checkpoint began with which the window begins.
    let begins = found["checkpoints"].as_array().unwrap().iter().map(|it| it["start_s"].as_f64().unwrap());
    let latest_before = begins.filter(|at| *at <= 0.0).fold(f64::MIN, f64::max);
    assert!(latest_before > -15.0, "{found}");
    // What pgbench counted is what its log holds, although it was told to end.
    let checks = findings["trials"][0]["checks"].as_array().unwrap();
    let transactions = checks.iter().find(|check| check["what"] == "transactions").unwrap();
    assert_eq!(transactions["tool"], transactions["own"]);
    // Segments are recycled, not made anew.
    assert!(found["wal_segments_new"].as_u64().unwrap() <= 1, "{found}");
    let pages = &findings["cases"][0]["window"]["pages"];
    assert!(pages["checkpointer"].as_u64().unwrap() > 100, "{pages}");
    assert!(!findings["headline"].as_str().unwrap().contains("quick"));
}

#[test]
fn a_quick_run_reports_what_its_fixed_time_left_out() {
    if !can_build_stacks("a quick run") {
        return;
    }
    let shop = Workshop::new();
    let plan = shop.file("plan.toml", &PLAN.replace("clients = 2", "clients = 2, warmup = \"1s\", cycles = 2"));
    let shown = shop.pgstrata(&["plan", plan.to_str().unwrap(), "--quick", "--json"]).output().unwrap();
    let quick_us = json(&shown.stdout)["forecast"]["expected_us"].as_u64().unwrap();
    let shown = shop.pgstrata(&["plan", plan.to_str().unwrap(), "--json"]).output().unwrap();
    let whole_us = json(&shown.stdout)["forecast"]["expected_us"].as_u64().unwrap();
    assert!(quick_us >= 13_000_000 && whole_us >= quick_us + 40_000_000, "{quick_us} {whole_us}");
    let output = shop.pgstrata(&["run", plan.to_str().unwrap(), "--quick"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let (record, findings) = measured(&shop);
    assert_eq!(record["window"]["extent"]["span_us"], 10_000_000, "{}", record["window"]);
    let headline = findings["headline"].as_str().unwrap();
    let (answer, left_out) = headline.split_once(" This was a quick run").unwrap_or_else(|| panic!("{headline}"));
    assert!(answer.starts_with("On this machine"), "{headline}");
    assert!(left_out.contains("recycled WAL segments"), "{headline}");
}

#[test]
fn a_script_without_wal_writes_is_measured_for_fixed_time() {
    if waits_for_full() || !can_build_stacks("a script that writes no WAL") {
        return;
    }
    let shop = Workshop::new();
    shop.file("reads.sql", "SELECT count(*) FROM pgbench_branches;\n");
    // Two checkpoint_timeouts of 30 s must pass before it is known that no further checkpoint comes.
    let plan = "name = \"reads\"\nblocks = 1\n[stack.tmp]\nfilesystem = { tmpfs = \"512MiB\" }\n\
                [postgres]\nsettings = { shared_buffers = \"16MB\", max_wal_size = \"48MB\" }\n[workload.tpcb]\n\
                pgbench = { script = \"reads.sql\", scale = 1, cycles = 1, limit = \"5s\", autovacuum = \"deferred\" }\n";
    let output = shop.run(&shop.file("plan.toml", plan));
    assert!(output.status.success(), "{}", said(&output));
    let (record, findings) = measured(&shop);
    let window = &record["window"];
    assert_eq!((&window["end"], &window["settings"]["autovacuum"]), (&"time".into(), &"off".into()), "{window}");
    let length_us = record["counts"]["elapsed_us"].as_u64().unwrap();
    assert!((4_000_000..7_000_000).contains(&length_us), "{length_us}");
    let warm_up = record["steps"].as_array().unwrap().iter().find(|step| step["step"] == "warm_up").unwrap();
    assert!((60_000_000..180_000_000).contains(&warm_up["wall_us"].as_u64().unwrap()), "{warm_up}");
    let cautions = findings["cautions"].to_string();
    let wanted = "no WAL, so no checkpoint: measured for 5 s instead of cycles";
    assert!(cautions.contains(wanted), "{cautions}");
}
