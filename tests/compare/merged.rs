//! Runs on several machines: what is merged, what is left out, and that no pair of cases spans machines.

use crate::compare::run_folder::{Made, make_as};
use pgstrata::analyse::findings::{Findings, RankRow};
use pgstrata::analyse::load;
use pgstrata::record::case::TrialKey;
use pgstrata::record::run::Share;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const IDS: [&str; 3] = ["00000001", "00000002", "00000003"];

pub fn pgstrata(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pgstrata")).args(args).current_dir(folder).output().unwrap()
}

pub fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Share `part` of 3 of a plan of 6 blocks, on a machine of its own.
fn share(part: u32, speed: f64) -> Made {
    Made {
        id: IDS[part as usize - 1],
        blocks: 6,
        share: Some(Share { part, of: 3 }),
        host: format!("node{part}"),
        speed,
        ..Made::default()
    }
}

/// Merges everything below `results` into `all`; gives `merged.json` and the folder.
fn merge(folder: &Path, code: i32) -> (Value, PathBuf) {
    let mut runs: Vec<String> = fs::read_dir(folder.join("results"))
        .unwrap()
        .map(|entry| format!("results/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    runs.sort();
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let output = pgstrata(folder, &[vec!["merge", "--into", "all", "--json"], runs].concat());
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    let merged: Value = serde_json::from_slice(&fs::read(folder.join("all/merged.json")).unwrap()).unwrap();
    assert_eq!(merged, serde_json::from_slice::<Value>(&output.stdout).unwrap());
    (merged, folder.join("all"))
}

fn row<'f>(found: &'f Findings, case: &str) -> &'f RankRow {
    let rows = found.rankings.iter().flat_map(|ranking| &ranking.classes).flat_map(|class| &class.rows);
    rows.into_iter().find(|row| row.case == case).unwrap()
}

#[test]
fn three_machines_with_two_blocks_rank_like_one_with_six() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    // One is twice as fast as another: what differs between machines must not reach a ratio.
    for (part, speed) in [(1, 1.0), (2, 0.6), (3, 1.3)] {
        make_as(&results, &share(part, speed));
    }
    let (merged, place) = merge(folder.path(), 0);
    assert_eq!(merged["merged"].as_array().unwrap().len(), 3);
    assert_eq!(merged["merged"][1]["hosts"][0], "node2");
    assert_eq!(merged["merged"][1]["blocks"], serde_json::json!([2, 5]));
    assert_eq!(merged["left_out"], serde_json::json!([]));
    let alone = make_as(&folder.path().join("alone"), &Made { blocks: 6, ..Made::default() });
    let (of_one, of_all) = (load::findings(&alone).unwrap(), load::findings(&place).unwrap());
    assert_eq!(of_all.machines.len(), 3);
    assert!(of_all.answer.question.starts_with("On these 3 machines"), "{}", of_all.headline);
    assert_eq!(of_all.run.blocks_held.as_deref(), Some("1, 2, 3, 4, 5, 6 of 6, merged from 3 runs on 3 hosts"));
    let order = |found: &Findings| -> Vec<(String, u32)> {
        let rows = found.rankings.iter().flat_map(|ranking| &ranking.classes).flat_map(|class| &class.rows);
        rows.map(|row| (row.case.clone(), row.rank)).collect()
    };
    assert_eq!(order(&of_one), order(&of_all));
    let (one, all) = (row(&of_one, "xfs-c4"), row(&of_all, "xfs-c4"));
    let (one, all) = (one.comparison.as_ref().unwrap(), all.comparison.as_ref().unwrap());
    assert_eq!((all.method.as_str(), all.method == one.method, &all.caveat), ("paired over 6 blocks", true, &None));
    // The machines' speeds cancel inside each block: what is left is rounding.
    assert!((one.ratio.value / all.ratio.value - 1.0).abs() < 1e-3, "{one:?} {all:?}");
    assert!(one.ratio.low.unwrap() < all.ratio.value && all.ratio.value < one.ratio.high.unwrap(), "{one:?} {all:?}");
    // Read by the other commands, too.
    let status = pgstrata(folder.path(), &["status", "all"]);
    assert!(status.status.success() && said(&status).contains("complete"), "{}", said(&status));
    assert!(pgstrata(folder.path(), &["compare", "all:ext4", "all:xfs"]).status.success());
    assert!(place.join("trials.parquet").is_file());
    let resumed = pgstrata(folder.path(), &["run", "--resume", "all"]);
    assert_eq!(resumed.status.code(), Some(2), "{}", said(&resumed));
    assert!(said(&resumed).contains("was merged from 3 runs"), "{}", said(&resumed));
    // And never over something that is there.
    let before = fs::read(place.join("merged.json")).unwrap();
    let runs: Vec<String> =
        fs::read_dir(&results).unwrap().map(|run| run.unwrap().path().display().to_string()).collect();
    let again = pgstrata(folder.path(), &["merge", "--into", "all", &runs[0], &runs[1]]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert_eq!(fs::read(place.join("merged.json")).unwrap(), before);
}

#[test]
fn mismatched_runs_are_left_out_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    make_as(&results.join("good"), &share(1, 1.0));
    make_as(&results.join("good2"), &share(2, 1.0));
    let foreign: [(&str, Made, &str); 6] = [
        ("plan", Made { plan: "name = \"other\"\n", ..share(3, 1.0) }, "another plan than"),
        ("seed", Made { seed: 2, ..share(3, 1.0) }, "another seed than"),
        ("count", Made { blocks: 9, ..share(3, 1.0) }, "another number of blocks than"),
        ("firmware", Made { firmware: "B2", ..share(3, 1.0) }, "firmware B2"),
        ("model", Made { model: "OTHER", ..share(3, 1.0) }, "storage OTHER"),
        ("empty", Made { without: |_| true, ..share(3, 1.0) }, "no trial with a result"),
    ];
    let mut arguments = Vec::new();
    for place in ["good", "good2"].into_iter().chain(foreign.iter().map(|(name, ..)| *name)) {
        if let Some((_, made, _)) = foreign.iter().find(|(name, ..)| *name == place) {
            make_as(&results.join(place), made);
        }
        let run = fs::read_dir(results.join(place)).unwrap().next().unwrap().unwrap().path();
        arguments.push(run.display().to_string());
    }
    let mut command = vec!["merge", "--into", "all", "--json"];
    command.extend(arguments.iter().map(String::as_str));
    let output = pgstrata(folder.path(), &command);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let merged: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(merged["missing"], serde_json::json!([3, 6]));
    for (name, _, reason) in &foreign {
        let part = format!("/{name}/");
        let mut left = merged["left_out"].as_array().unwrap().iter();
        let found = left.find(|left| left["folder"].as_str().unwrap().contains(&part)).unwrap();
        assert!(found["reason"].as_str().unwrap().contains(reason), "{found}");
    }
    let found = load::findings(&folder.path().join("all")).unwrap();
    assert_eq!(found.run.trials_planned, 20);
    assert!(
        found.cautions.iter().any(|caution| caution.text == "no run has blocks 3, 6 of the plan"),
        "{:?}",
        found.cautions
    );
    // Of one run nothing is merged, and nothing is written.
    let output = pgstrata(folder.path(), &["merge", "--into", "none", &arguments[0], &arguments[2]]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("another plan than") && !folder.path().join("none").exists(), "{}", said(&output));
}

/// Makes the cases of a run have a profile's load, whose tables have so many bytes.
fn load_a_profile(run: &Path, bytes: u64) {
    let mut record: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    for case in record["cases"].as_array_mut().unwrap() {
        let options = &mut case["workload"]["options"];
        options["profile"] = format!("{}/busy.toml", run.display()).into();
        options["setup"] = format!("-- load of busy.toml (0123abcd), 100 commits/s, {bytes} bytes\nselect 1").into();
    }
    fs::write(run.join("run.json"), record.to_string()).unwrap();
}

#[test]
fn a_profile_that_gave_another_load_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    for (part, bytes) in [(1, 4096), (2, 4096), (3, 8192)] {
        load_a_profile(&make_as(&results, &share(part, 1.0)), bytes);
    }
    let (merged, _) = merge(folder.path(), 1);
    assert_eq!(merged["merged"].as_array().unwrap().len(), 2, "{merged}");
    let reason = merged["left_out"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("another load of a profile than") && reason.contains("8192 bytes, there"), "{reason}");
}

#[test]
fn of_duplicate_blocks_the_more_complete_one_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    // A task that lost its node, and the one that was submitted for it.
    make_as(
        &results.join("a"),
        &Made { without: |key: &TrialKey| key.trial == 4 && key.case != "ext4-c4", ..share(1, 1.0) },
    );
    make_as(&results.join("b"), &Made { id: "00000009", host: "node9".to_owned(), ..share(1, 0.9) });
    make_as(&results.join("c"), &share(2, 1.0));
    let run =
        |name: &str| fs::read_dir(results.join(name)).unwrap().next().unwrap().unwrap().path().display().to_string();
    let runs = ["a", "b", "c"].map(run);
    let output = pgstrata(folder.path(), &["merge", "--into", "all", "--json", &runs[0], &runs[1], &runs[2]]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let merged: Value = serde_json::from_slice(&output.stdout).unwrap();
    let blocks: Vec<&Value> = merged["merged"].as_array().unwrap().iter().map(|run| &run["blocks"]).collect();
    assert_eq!(blocks, [&serde_json::json!([1]), &serde_json::json!([4]), &serde_json::json!([2, 5])]);
    assert!(
        merged["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .all(|left| left["reason"].as_str().unwrap().starts_with("taken from"))
    );
}

#[test]
fn a_block_measured_on_two_machines_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let moved = make_as(&results, &share(1, 1.0));
    make_as(&results, &share(2, 1.0));
    let path = moved.join("trials/xfs-c4/4/trial.json");
    let mut trial: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    trial["host"]["hostname"] = "elsewhere".into();
    fs::write(&path, trial.to_string()).unwrap();
    let (merged, all) = merge(folder.path(), 1);
    assert_eq!(merged["left_out"][0]["blocks"], serde_json::json!([4]));
    assert!(merged["left_out"][0]["reason"].as_str().unwrap().contains("several machines"), "{merged}");
    let mut blocks: std::collections::BTreeMap<u32, Vec<String>> = std::collections::BTreeMap::new();
    for machine in &load::findings(&all).unwrap().machines {
        for key in &machine.trials {
            blocks.entry(key.trial).or_default().push(machine.host.hostname.clone());
        }
    }
    assert_eq!(blocks.keys().copied().collect::<Vec<_>>(), [1, 2, 5]);
    assert!(blocks.values().all(|hosts| hosts.iter().all(|host| *host == hosts[0])), "{blocks:?}");
}

/// Makes one trial of a run not run, because its machine lacked a program.
fn lack(run: &Path, case: &str, block: u32) {
    let path = run.join(format!("trials/{case}/{block}/trial.json"));
    let mut trial: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    trial["outcome"] = serde_json::json!({ "outcome": "not_run", "step": "check", "reason": "the program mkfs.xfs is missing", "hint": null });
    fs::write(&path, trial.to_string()).unwrap();
}

#[test]
fn a_machine_unable_to_run_a_shared_case_is_excluded() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    make_as(&results, &share(1, 1.0));
    make_as(&results, &share(2, 1.0));
    lack(&make_as(&results, &share(3, 1.0)), "xfs-c4", 3);
    let (merged, all) = merge(folder.path(), 1);
    let reason = merged["left_out"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("does not meet the plan's requirements: xfs-c4: the program mkfs.xfs"), "{reason}");
    // The report says so, too.
    for format in ["html", "md", "json"] {
        let written = pgstrata(folder.path(), &["report", "all", "--format", format, "--output", "report"]);
        assert!(written.status.success(), "{}", said(&written));
        let report = fs::read_to_string(folder.path().join("report")).unwrap();
        for part in ["does not meet the plan", "the program mkfs.xfs is missing"] {
            assert!(report.contains(part), "{format} lacks {part}");
        }
    }
    assert!(load::findings(&all).unwrap().run.merge.is_some());
}

#[test]
fn what_all_machines_lack_leaves_none_of_them_out() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    for part in 1..=3 {
        let run = make_as(&results, &share(part, 1.0));
        [part, part + 3].into_iter().for_each(|block| lack(&run, "xfs-c4", block));
    }
    let (merged, _) = merge(folder.path(), 0);
    assert_eq!((merged["merged"].as_array().unwrap().len(), &merged["left_out"]), (3, &serde_json::json!([])));
}

#[test]
fn a_damaged_folder_beside_a_good_one_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let good = make_as(&results, &share(1, 1.0)).display().to_string();
    let damaged = make_as(&results, &share(2, 1.0));
    fs::write(damaged.join("run.json"), "{\"format\": 1, \"id\"").unwrap();
    let output = pgstrata(folder.path(), &["merge", "--into", "all", &good, &damaged.display().to_string()]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let reason = format!("{}: failed to read {}", damaged.display(), damaged.join("run.json").display());
    assert!(said(&output).contains(&reason), "{}", said(&output));
}

#[test]
fn a_damaged_trial_is_left_out_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let runs = [1, 2, 3].map(|part| make_as(&results, &share(part, 1.0)));
    let first = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).min().unwrap();
    fs::write(first(first(runs[1].join("trials"))).join("trial.json"), "{").unwrap();
    let (merged, all) = merge(folder.path(), 1);
    let left_out = merged["left_out"].as_array().unwrap();
    assert_eq!((merged["merged"].as_array().unwrap().len(), left_out.len()), (3, 1), "{merged}");
    assert!(left_out[0]["reason"].as_str().unwrap().contains("is damaged, or was not measured"), "{merged}");
    let lost = load::findings(&all).unwrap().not_run;
    assert!(lost[0].hint.as_deref().unwrap().contains("pgstrata merge DIR"), "{lost:?}");
}
