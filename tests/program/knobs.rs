//! Knobs of the kernel: in force while a trial is measured, and back after it, whatever became of the run.

use crate::program::machine::settings;
use crate::program::workshop::{Workshop, can_build_stacks, said};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const PLAN: &str = r#"
name = "knobs"
blocks = 1

[machine]
"vm.vfs_cache_pressure" = OURS
vm.dirty_bytes = "512MiB"

[stack.ext4]
device = { loop = "256MiB", in = "IMAGES", queue = { scheduler = "mq-deadline", read_ahead_kb = 64 } }
filesystem = "ext4"

[stack.sparse]
device = { loop = "64MiB", in = "IMAGES", sparse = true }
filesystem = "ext4"

[workload.s]
sync = { duration = "2s" }
"#;

const PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";
const KNOBS: [&str; 3] = [PRESSURE, "/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"];

fn shown() -> [String; 3] {
    KNOBS.map(|path| fs::read_to_string(path).unwrap().trim().to_owned())
}

/// What the knobs are to show while a trial is measured.
fn ours(before: &[String; 3]) -> [String; 3] {
    [(before[0].parse::<u32>().unwrap() + 1).to_string(), "536870912".to_owned(), "0".to_owned()]
}

fn plan(shop: &Workshop, before: &[String; 3]) -> PathBuf {
    let images = shop.path().join("images");
    fs::create_dir(&images).unwrap();
    let text = PLAN.replace("IMAGES", images.to_str().unwrap()).replace("OURS", &ours(before)[0]);
    shop.file("plan.toml", &text)
}

/// Starts the run and waits until its trial is measured.
fn measuring(shop: &Workshop, plan: &Path) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(events.any(|line| line.contains("step_started") && line.contains("\"measure\"")), "it measured nothing");
    (child, events)
}

#[test]
fn knobs_are_set_while_measured_and_restored_afterwards() {
    if !can_build_stacks("knobs of the kernel in a run") {
        return;
    }
    let (shop, before, settings_before) = (Workshop::new(), shown(), settings());
    let (child, events) = measuring(&shop, &plan(&shop, &before));
    let during = shown();
    assert!(events.count() > 0);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(shown(), before);
    assert_eq!(during, ours(&before));
    let trial = fs::read(shop.run_folder().join("trials/ext4.s/1/trial.json")).unwrap();
    let trial: serde_json::Value = serde_json::from_slice(&trial).unwrap();
    assert_eq!(trial["knobs"]["vm.dirty_bytes"], "536870912");
    assert_eq!(trial["knobs"]["vm.dirty_ratio"], serde_json::Value::Null);
    assert_eq!(trial["notes"].as_array().unwrap().len(), 0, "{trial}");
    let device = &trial["stack"]["nodes"][0]["bases"][0]["device"];
    assert_eq!((&device["scheduler"], &device["read_ahead_kb"]), (&"mq-deadline".into(), &64.into()));
    // Of the loop devices that were there, those that nobody has attached or removed meanwhile.
    let after = settings();
    for (name, value) in settings_before.iter().filter(|(name, _)| after.contains_key(*name)) {
        assert_eq!(&after[name], value, "{name}");
    }
    for case in ["ext4.s", "sparse.s"] {
        let trial = fs::read(shop.run_folder().join(format!("trials/{case}/1/trial.json"))).unwrap();
        let trial: serde_json::Value = serde_json::from_slice(&trial).unwrap();
        let device = trial["stack"]["nodes"][0]["details"]["device"].as_str().unwrap().replace("/dev/", "/sys/block/");
        let file = Path::new(&device).join("loop/backing_file");
        assert!(!Path::new(&device).exists() || file.exists(), "{device} of {case} is left");
    }
}

#[test]
fn clean_restores_knobs_of_a_killed_run_unless_changed_since() {
    if !can_build_stacks("knobs of the kernel after kill -9") {
        return;
    }
    for somebody in [false, true] {
        let (shop, before) = (Workshop::new(), shown());
        let (mut child, _events) = measuring(&shop, &plan(&shop, &before));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(shown(), ours(&before));
        let theirs = (before[0].parse::<u32>().unwrap() + 2).to_string();
        if somebody {
            fs::write(PRESSURE, &theirs).unwrap();
        }
        let cleaned = shop.pgstrata(&["clean"]).output().unwrap();
        let mut after = shown();
        let kept = std::mem::replace(&mut after[0], before[0].clone());
        fs::write(PRESSURE, &before[0]).unwrap();
        assert!(cleaned.status.success(), "{}", said(&cleaned));
        assert_eq!(after, before);
        assert_eq!(kept, if somebody { theirs } else { before[0].clone() });
        let told = String::from_utf8_lossy(&cleaned.stdout).contains("left unchanged");
        assert_eq!(told, somebody, "{}", said(&cleaned));
        assert!(fs::read_dir(shop.state().join("ledger")).unwrap().next().is_none());
    }
}
