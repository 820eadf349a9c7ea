//! Trials that other programs disturb, on a machine that a program of the test keeps busy all the time.

use crate::program::workshop::{Workshop, can_build_stacks, said, stderr};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

const PLAN: &str = r#"
name = "repeats"
blocks = 5

[stack.tmp]
filesystem = { tmpfs = "256MiB" }

[postgres]
settings = { shared_buffers = "16MB" }

[workload.read]
pgbench = { script = "select-only", scale = 1, duration = "2s", warmup = "0s" }
"#;

/// Uses a CPU until it is dropped. No child of pgstrata, so it is another program.
struct Burner(Child);

impl Burner {
    fn start() -> Burner {
        Burner(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_disturbed_trial_is_repeated_after_its_block() {
    if !can_build_stacks("repeats of disturbed trials") {
        return;
    }
    let shop = Workshop::new();
    let _burner = Burner::start();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("plus up to 1 repeat of disturbed trials"), "{}", said(&output));
    let folder = shop.run_folder();
    // A fifth of five trials is one; it was disturbed as well, so that the first one counts.
    let aside = folder.join("set-aside/tmp.read/1");
    let (first, repeat) = (json(&folder.join("trials/tmp.read/1/trial.json")), json(&aside.join("trial.json")));
    assert_eq!((&first["is_repeat"], &repeat["is_repeat"]), (&serde_json::Value::Null, &true.into()));
    let taken = &first["cpu_taken"];
    assert!(taken["others_ns"].as_u64().unwrap() * 20 > taken["elapsed_us"].as_u64().unwrap() * 1000, "{taken}");
    assert!(aside.join("seconds.parquet").exists() && !folder.join("set-aside/tmp.read/2").exists());
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let done: Vec<&str> =
        events.lines().filter(|line| line.contains("trial_done") || line.contains("repeat_st")).collect();
    assert!(done.len() == 7 && done[1].contains("repeat_started"), "at the end of its block: {done:#?}");
    let shown = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let cautions = findings["cautions"].to_string();
    assert!(cautions.contains("this machine is too busy: 5 of 5 counted trials were disturbed"), "{cautions}");
    assert_eq!(findings["cases"][0]["trials"], 5);
    assert_eq!(findings["set_aside"][0]["is_repeat"], true);
    // As if it had been stopped before the repeat was stored: every trial is complete, and one repeat is due.
    fs::remove_dir_all(folder.join("set-aside")).unwrap();
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(stderr(&resumed).contains("5 trials complete, 0 left, plus up to 1 repeat"), "{}", said(&resumed));
    assert!(aside.exists(), "{}", said(&resumed));
    let resumed = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(stderr(&resumed).contains("nothing is left to do"), "{}", said(&resumed));
}
