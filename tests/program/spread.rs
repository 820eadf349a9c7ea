//! Blocks spread over tasks of an array: each has its share, a task that was killed goes on, the shares are merged.

use crate::program::workshop::{Workshop, run_id, said, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two folders, six blocks: needs neither root nor PostgreSQL.
pub fn plan(shop: &Workshop) {
    fs::create_dir(shop.path().join("a")).unwrap();
    fs::create_dir(shop.path().join("b")).unwrap();
    let stack = |name: &str| format!("[stack.{name}]\ndirectory = \"{}\"\n", shop.path().join(name).display());
    let text = format!(
        "name = \"spread\"\nblocks = 6\nbaseline = {{ stack = \"a\" }}\n{}{}[workload.s]\nfiles = {{ size = \"4MiB\", duration = \"1s\" }}\n",
        stack("a"),
        stack("b")
    );
    shop.file("plan.toml", &text);
}

fn task(shop: &Workshop, index: &str) -> Command {
    let mut command = shop.pgstrata(&["run", "plan.toml", "--share", "slurm"]);
    command.env("SLURM_ARRAY_TASK_ID", index).env("SLURM_ARRAY_TASK_COUNT", "3").env("SLURM_ARRAY_TASK_MIN", "0");
    command
}

/// The run folder of a share, as `2of3`.
pub fn folder_of(results: &Path, share: &str) -> Option<PathBuf> {
    let runs = fs::read_dir(results).ok()?.map(|entry| entry.unwrap().path());
    runs.into_iter().find(|path| path.display().to_string().ends_with(share))
}

pub fn trials(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for case in fs::read_dir(folder.join("trials")).unwrap().map(|entry| entry.unwrap().path()) {
        for trial in fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path()) {
            found.push(format!("{}/{}", case.file_name().unwrap().display(), trial.file_name().unwrap().display()));
        }
    }
    found.retain(|name| !name.contains("/."));
    found.sort();
    found
}

/// Waits until a share has a stored trial, and kills its task.
fn kill_midway(shop: &Workshop, mut task: Child, share: &str) {
    let begun = Instant::now();
    loop {
        if folder_of(&shop.results(), share).is_some_and(|folder| !trials(&folder).is_empty()) {
            break;
        }
        assert!(task.try_wait().unwrap().is_none(), "the task ended by itself");
        assert!(begun.elapsed() < Duration::from_secs(300), "no trial in five minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
    task.kill().unwrap();
    task.wait().unwrap();
}

pub fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

#[test]
fn an_array_with_a_requeued_task_merges_completely() {
    let shop = Workshop::new();
    plan(&shop);
    succeeded(&task(&shop, "0").output().unwrap());
    let killed = task(&shop, "1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    kill_midway(&shop, killed, "2of3");
    let second = folder_of(&shop.results(), "2of3").unwrap();
    let (id, before) = (run_id(&second), trials(&second));
    assert!(before.len() < 4, "{before:?}");
    // The same command again: the same folder, and the trials that it has.
    let requeued = task(&shop, "1").output().unwrap();
    succeeded(&requeued);
    let told = format!("{} trial", before.len());
    assert!(stderr(&requeued).contains(&told) && stderr(&requeued).contains("complete"), "{}", said(&requeued));
    assert_eq!(run_id(&second), id);
    assert_eq!(trials(&second).len(), 4);
    // And once more: nothing is left.
    let third = task(&shop, "1").output().unwrap();
    succeeded(&third);
    assert!(said(&third).contains("the run is complete"), "{}", said(&third));
    succeeded(&task(&shop, "2").output().unwrap());
    let blocks: Vec<String> = ["1of3", "2of3", "3of3"]
        .iter()
        .map(|share| {
            let numbers = trials(&folder_of(&shop.results(), share).unwrap());
            numbers.iter().filter_map(|name| name.strip_prefix("a.s/")).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(blocks, ["1 4", "2 5", "3 6"]);
    // Another division of the same plan, beside it, would give blocks twice.
    let other = shop.pgstrata(&["run", "plan.toml", "--share", "1/2"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(said(&other).contains("asks for 1/2"), "{}", said(&other));

    let folders =
        ["1of3", "2of3", "3of3"].map(|share| folder_of(&shop.results(), share).unwrap().display().to_string());
    let merged = shop.pgstrata(&["merge", "--into", "all", &folders[0], &folders[1], &folders[2]]).output().unwrap();
    succeeded(&merged);
    let all = shop.path().join("all");
    assert_eq!(trials(&all).len(), 12);
    let report = shop.pgstrata(&["report", "all", "--json"]).output().unwrap();
    succeeded(&report);
    let found: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(found["run"]["trials_measured"], 12);
    let rows =
        found["rankings"][0]["classes"].as_array().unwrap().iter().flat_map(|class| class["rows"].as_array().unwrap());
    let methods: Vec<&str> = rows.filter_map(|row| row["comparison"]["method"].as_str()).collect();
    assert_eq!(methods, ["paired over 6 blocks"], "{}", found["rankings"]);
}

#[test]
fn what_cannot_be_spread_is_refused_before_anything_is_built() {
    let shop = Workshop::new();
    plan(&shop);
    let adaptive = fs::read_to_string(shop.path().join("plan.toml")).unwrap();
    shop.file("adaptive.toml", &adaptive.replace("blocks = 6", "blocks = { at_least = 3, at_most = 6 }"));
    for (arguments, told) in [
        (vec!["run", "plan.toml", "--share", "7/7"], "has no block"),
        (vec!["run", "plan.toml", "--blocks", "4"], "--resume"),
        (vec!["run", "--resume", "x", "--blocks", "2/3"], "is --share 1/3"),
        (vec!["run", "plan.toml", "--share", "3/2"], "counted from 1"),
        (vec!["run", "plan.toml", "--share", "kubernetes/2"], "JOB_COMPLETION_INDEX"),
        (vec!["run", "adaptive.toml", "--share", "1/2"], "adaptive"),
        (vec!["run", "plan.toml", "--guest", "--share", "1/2"], "guests"),
    ] {
        let output = shop.pgstrata(&arguments).env_remove("JOB_COMPLETION_INDEX").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(told), "{arguments:?}: {}", said(&output));
    }
    assert!(!shop.results().exists());
}
