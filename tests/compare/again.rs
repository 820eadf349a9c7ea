//! A stored run read again: every figure comes from what the folder counts, none is stored.

use crate::compare::run_folder;
use pgstrata::analyse::findings::Findings;
use pgstrata::analyse::load;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn trial_json(folder: &Path) -> PathBuf {
    folder.join("trials/ext4-c4/1/trial.json")
}

fn change(path: &Path, change: impl Fn(&mut Value)) {
    let mut record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut record);
    fs::write(path, record.to_string()).unwrap();
}

/// Rate and mean latency of the first trial, and the tool's own count beside it.
fn figures(found: &Findings) -> (f64, f64, Option<bool>) {
    let is_it = |trial: &&pgstrata::analyse::findings::TrialFinding| trial.case == "ext4-c4" && trial.trial == 1;
    let trial = found.trials.iter().find(is_it).unwrap();
    let case = found.cases.iter().find(|case| case.id == "ext4-c4").unwrap();
    (trial.rate.unwrap(), case.measures[0].rate.unwrap().value, trial.checks.first().map(|check| check.agrees))
}

#[test]
fn comparing_the_same_folder_again_gives_the_same_figures() {
    let results = tempfile::tempdir().unwrap();
    let folder = run_folder::make(results.path());
    let before = load::findings(&folder).unwrap();
    assert_eq!(load::findings(&folder).unwrap(), before);
    let (rate, mean, agrees) = figures(&before);
    assert_eq!(agrees, None);
    change(&trial_json(&folder), |record| {
        let done = &mut record["counts"]["measures"][0]["done"];
        *done = (done.as_u64().unwrap() * 2).into();
        let done = done.clone();
        record["counts"]["reported"] = serde_json::json!({ "done": done, "statements": [] });
    });
    let (twice, higher, agrees) = figures(&load::findings(&folder).unwrap());
    assert!((twice / rate - 2.0).abs() < 1e-9 && higher > mean, "{rate} {twice} {mean} {higher}");
    assert_eq!(agrees, Some(true));
    change(&trial_json(&folder), |record| record["counts"]["reported"]["done"] = 1.into());
    assert_eq!(figures(&load::findings(&folder).unwrap()).2, Some(false));
}

#[test]
fn a_measured_trial_without_counts_is_refused_by_name() {
    let results = tempfile::tempdir().unwrap();
    let folder = run_folder::make(results.path());
    change(&trial_json(&folder), |record| drop(record.as_object_mut().unwrap().remove("counts")));
    let error = load::findings(&folder).unwrap_err().to_string();
    assert!(error.contains("trials/ext4-c4/1/trial.json") && error.contains("has no counts"), "{error}");
}
