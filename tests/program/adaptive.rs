//! Adaptive blocks: looks are stored, stop what they say, and a run that has ended takes more blocks.

use crate::program::workshop::{Workshop, can_build_stacks, said, stderr};
use std::fs;
use std::path::Path;

/// The values of the events of one name, in their order.
fn events(folder: &Path, name: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["what"].clone());
    all.filter(|event| event["event"] == name).collect()
}

/// Blocks in which a case has a trial.
fn blocks(folder: &Path, case: &str) -> Vec<u64> {
    let trials = fs::read_dir(folder.join("trials").join(case)).unwrap();
    let mut found: Vec<u64> =
        trials.map(|trial| trial.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    found.sort_unstable();
    found
}

/// Every case has trials in all blocks up to the first look that it did not go on from, and none after it.
fn trials_are_those_of_the_looks(folder: &Path, cases: [&str; 2], most: u64) {
    let looks = events(folder, "looked");
    for case in cases {
        let goes_on = |look: &&serde_json::Value| look["going_on"].as_array().unwrap().iter().any(|id| id == case);
        let stopped = looks.iter().find(|look| !goes_on(look)).map(|look| look["block"].as_u64().unwrap());
        let last = stopped.unwrap_or(most);
        assert_eq!(blocks(folder, case), (1..=last).collect::<Vec<_>>(), "{case} {looks:?}");
    }
}

#[test]
fn an_adaptive_run_compares_cases_after_each_block() {
    if !can_build_stacks("adaptive blocks") {
        return;
    }
    let shop = Workshop::new();
    let text = "name = \"adaptive\"\nblocks = { at_least = 3, at_most = 4 }\n\
                [stack.a]\nfilesystem = { tmpfs = \"256MiB\" }\n[stack.b]\nfilesystem = { tmpfs = \"257MiB\" }\n\
                [postgres]\nsettings = { shared_buffers = \"16MB\" }\n[workload.w]\n\
                pgbench = { scale = 1, duration = \"1s\", warmup = \"0s\" }\n";
    let plan = shop.file("plan.toml", text);
    let output = shop.run(&plan);
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("after block 3: "), "{}", said(&output));
    let folder = shop.run_folder();
    let looks = events(&folder, "looked");
    assert_eq!(looks[0]["block"], 3, "{looks:?}");
    trials_are_those_of_the_looks(&folder, ["a.w", "b.w"], 4);
    let said_of = |output: &std::process::Output| said(output).split_whitespace().collect::<Vec<_>>().join(" ");
    let full = || said_of(&shop.pgstrata(&["report", folder.to_str().unwrap(), "--full"]).output().unwrap());
    assert!(full().contains("after each block from 3 to at most 4"), "{}", full());
    assert!(!said_of(&output).contains("not yet run"), "a stopped case is not pending: {}", said(&output));

    let folder_text = folder.to_str().unwrap();
    let plan_before = fs::read(folder.join("plan.toml")).unwrap();
    let output = shop.pgstrata(&["run", "--resume", folder_text, "--blocks", "4"]).output().unwrap();
    assert!(stderr(&output).contains("may take up to 4 blocks already"), "{}", said(&output));
    let output = shop.pgstrata(&["run", "--resume", folder_text, "--blocks", "5"]).output().unwrap();
    if stderr(&output).contains("no comparison of this run is open") {
        // Noise decided the only pair at the last look: then more blocks are refused, and nothing is changed.
        assert_eq!((output.status.code(), events(&folder, "run_extended").len()), (Some(2), 0));
        return;
    }
    assert!(output.status.success(), "{}", said(&output));
    assert!(said_of(&output).contains("extended from 4 to 5 blocks"), "{}", said(&output));
    assert!(full().contains("tested by its e-value"), "{}", full());
    assert_eq!(fs::read(folder.join("plan.toml")).unwrap(), plan_before);
    let run: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    assert_eq!((&run["blocks"], &run["extended"][0]["from"]), (&5.into(), &4.into()));
    assert_eq!(events(&folder, "run_extended").len(), 1);
}

#[test]
fn a_run_with_fixed_blocks_is_extended_by_whole_blocks() {
    if !can_build_stacks("extended run") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    let order = |folder: &Path| -> Vec<serde_json::Value> {
        let run: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
        run["order"].as_array().unwrap().clone()
    };
    let before = order(&folder);
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap(), "--blocks", "3"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(stderr(&output).contains("4 trials complete, 2 left"), "{}", said(&output));
    for case in ["one.tpcb", "another-with-a-long-name.tpcb"] {
        assert_eq!(blocks(&folder, case), [1, 2, 3]);
    }
    assert_eq!(order(&folder)[..4], before);
    assert_eq!(events(&folder, "looked").len(), 0);
}
