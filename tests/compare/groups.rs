//! Hosts as units: the slow one of twenty is named, and of equal ones none.

use crate::compare::merged::{pgstrata, said};
use crate::compare::run_folder::{Made, make_as};
use serde_json::Value;
use std::path::Path;

/// Normal noise of 3 % by the sum of twelve uniform numbers.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn speed(&mut self) -> f64 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (0.03 * normal).exp()
    }
}

/// One run on each of so many hosts of one model; the host of this number is slower.
fn fleet(folder: &Path, hosts: u32, slow: Option<u32>, kernels: [&'static str; 2]) -> Vec<String> {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let of_host = |host: u32| {
        let speed = noise.speed() * if slow == Some(host) { 0.85 } else { 1.0 };
        let kernel = kernels[usize::from(host > hosts / 2)];
        let made = Made { host: format!("node{host}"), kernel, speed, blocks: 2, ..Made::default() };
        make_as(&folder.join(format!("results{host}")), &made).display().to_string()
    };
    (1..=hosts).map(of_host).collect()
}

fn compared(folder: &Path, by: &str, runs: &[String], code: i32) -> Value {
    let arguments: Vec<&str> =
        ["compare", "--json", "--group-by", by].into_iter().chain(runs.iter().map(String::as_str)).collect();
    let output = pgstrata(folder, &arguments);
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn slow_hosts(found: &Value) -> Vec<String> {
    let groups = found["groups"].as_array().unwrap().iter();
    let hosts = groups.flat_map(|group| group["hosts"].as_array().unwrap());
    hosts.filter(|host| host["is_slow"] == true).map(|host| host["host"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn only_the_host_15_percent_slower_among_twenty_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let runs = fleet(folder.path(), 20, Some(7), ["6.1.0"; 2]);
    let found = compared(folder.path(), "model,firmware,kernel", &runs, 0);
    assert_eq!(slow_hosts(&found), ["node7"]);
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);
    assert_eq!(found["groups"][0]["name"], "model DISK 1T, firmware A1, kernel 6.1.0");
    let answer = found["answer"][0].as_str().unwrap();
    assert!(
        answer.contains("node7 is 1") && answer.contains("% slower than the median of its group of 20"),
        "{answer}"
    );
    let shown = pgstrata(
        folder.path(),
        &[vec!["compare", "--group-by", "model"], runs.iter().map(String::as_str).collect()].concat(),
    );
    assert!(said(&shown).contains("node7 (slow)"), "{}", said(&shown));

    let equal = tempfile::tempdir().unwrap();
    let runs = fleet(equal.path(), 20, None, ["6.1.0"; 2]);
    assert_eq!(slow_hosts(&compared(equal.path(), "model", &runs, 0)), Vec::<String>::new());
}

#[test]
fn groups_are_compared_with_each_host_counting_once() {
    let folder = tempfile::tempdir().unwrap();
    let runs = fleet(folder.path(), 8, None, ["6.1.0", "6.12.0"]);
    let found = compared(folder.path(), "kernel", &runs, 0);
    let groups: Vec<&str> =
        found["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(groups, ["kernel 6.1.0", "kernel 6.12.0"]);
    let comparison = &found["comparisons"][0];
    assert_eq!(comparison["hosts"], serde_json::json!([4, 4]));
    let end = |name: &str| comparison["ratio"][name].as_f64().unwrap();
    assert!(end("low") < 1.0 && 1.0 < end("high"), "equal hosts: {comparison}");
    // Four hosts are too few to name one.
    assert!(found["groups"][0]["limit"].is_null());
}

#[test]
fn few_hosts_and_other_plans_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = fleet(folder.path(), 3, Some(1), ["6.1.0"; 2]);
    let other = Made { plan: "name = \"other\"\n", ..Made::default() };
    runs.push(make_as(&folder.path().join("other"), &other).display().to_string());
    let found = compared(folder.path(), "model", &runs, 1);
    assert_eq!(slow_hosts(&found), Vec::<String>::new());
    assert!(found["answer"][0].as_str().unwrap().contains("no outlier can be named among fewer than 6"), "{found}");
    assert!(found["left_out"][0][1].as_str().unwrap().contains("another plan than"), "{found}");
    let wrong = pgstrata(folder.path(), &["compare", "--group-by", "colour", &runs[0]]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
}

/// Six hosts that differ by up to 30 %, each with a run before and one after a change that costs 5 %.
fn before_and_after(folder: &Path, after: &Made) -> Vec<String> {
    let of_host = |host: u32| {
        let speed = 1.0 + 0.06 * f64::from(host);
        let made = Made { id: "0000000a", host: format!("node{host}"), speed, blocks: 2, ..Made::default() };
        // No two hosts lose quite the same.
        let speed = speed * (0.95 - 0.002 * f64::from(host % 3));
        let later = Made { id: "0000000b", speed, host: made.host.clone(), blocks: 2, ..*after };
        [made, later]
            .map(|made| make_as(&folder.join(format!("results{host}{}", made.id)), &made).display().to_string())
    };
    (1..=6).flat_map(of_host).collect()
}

#[test]
fn the_same_hosts_before_and_after_new_firmware_are_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let runs = before_and_after(folder.path(), &Made { firmware: "B2", ..Made::default() });
    let found = compared(folder.path(), "firmware", &runs, 0);
    let groups: Vec<_> = found["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (&group["name"], group["hosts"].as_array().unwrap().len()))
        .collect();
    assert_eq!(groups, [(&"firmware A1".into(), 6), (&"firmware B2".into(), 6)]);
    let comparison = &found["comparisons"][0];
    assert_eq!(comparison["method"], "paired over 6 hosts");
    assert_eq!(found["comparisons"].as_array().unwrap().len(), 1);
    // Hosts differ by 30 %, and the change is known to 1 % all the same.
    let end = |name: &str| comparison["ratio"][name].as_f64().unwrap();
    assert!(0.94 < end("low") && end("high") < 0.96, "{comparison}");
    let shown = pgstrata(
        folder.path(),
        &[vec!["compare", "--group-by", "firmware"], runs.iter().map(String::as_str).collect()].concat(),
    );
    assert!(said(&shown).contains("paired over 6 hosts"), "{}", said(&shown));
    // Of each host both runs are its history, and what changed between them.
    let history = &found["groups"][0]["hosts"][0]["history"];
    assert_eq!(history[1]["changes"], serde_json::json!(["firmware A1 to B2"]));
    assert_eq!((&history[0]["in_group"], &history[1]["in_group"]), (&true.into(), &false.into()));
}

#[test]
fn hosts_in_only_one_group_are_compared_unpaired() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = before_and_after(folder.path(), &Made { firmware: "B2", ..Made::default() });
    for (host, firmware) in [("old1", "A1"), ("old2", "A1"), ("new1", "B2"), ("new2", "B2"), ("new3", "B2")] {
        let made = Made { host: host.to_owned(), firmware, blocks: 2, ..Made::default() };
        runs.push(make_as(&folder.path().join(host), &made).display().to_string());
    }
    let found = compared(folder.path(), "firmware", &runs, 0);
    let parts: Vec<_> =
        found["comparisons"].as_array().unwrap().iter().map(|part| (&part["method"], &part["hosts"])).collect();
    let (pairs, rest) = (serde_json::json!([6, 6]), serde_json::json!([2, 3]));
    assert_eq!(parts, [(&"paired over 6 hosts".into(), &pairs), (&"unpaired".into(), &rest)]);
}

#[test]
fn a_host_that_booted_another_kernel_is_still_one_host() {
    let folder = tempfile::tempdir().unwrap();
    let runs = before_and_after(folder.path(), &Made { kernel: "6.12.0", ..Made::default() });
    let found = compared(folder.path(), "model", &runs, 0);
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);
    assert_eq!(found["groups"][0]["hosts"].as_array().unwrap().len(), 6);
    let found = compared(folder.path(), "kernel", &runs, 0);
    assert_eq!(found["comparisons"][0]["method"], "paired over 6 hosts");
}

#[test]
fn a_host_with_two_disks_forms_a_single_group() {
    let folder = tempfile::tempdir().unwrap();
    let failed = |key: &pgstrata::record::case::TrialKey| key.case == "xfs-c4" && key.trial == 2;
    let run = make_as(&folder.path().join("results"), &Made { without: failed, ..Made::default() });
    for trial in [1, 3] {
        let path = run.join(format!("trials/xfs-c4/{trial}/trial.json"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("DISK 1T"));
        std::fs::write(path, text.replace("DISK 1T", "DISK 2T")).unwrap();
    }
    let found = compared(folder.path(), "model", &[run.display().to_string()], 1);
    let groups: Vec<&str> =
        found["groups"].as_array().unwrap().iter().map(|group| group["name"].as_str().unwrap()).collect();
    assert_eq!(groups, ["model DISK 1T and DISK 2T"]);
}

#[test]
fn a_merged_run_beside_its_sources_adds_no_trials() {
    let folder = tempfile::tempdir().unwrap();
    let share = |part: u32| {
        let share = pgstrata::record::run::Share { part, of: 3 };
        let id = ["00000001", "00000002", "00000003"][part as usize - 1];
        let made = Made { id, blocks: 6, share: Some(share), host: format!("node{part}"), ..Made::default() };
        make_as(&folder.path().join("results"), &made).display().to_string()
    };
    let mut runs: Vec<String> = (1..=3).map(share).collect();
    let alone = compared(folder.path(), "model", &runs, 1);
    let merge = [vec!["merge", "--into", "results/all"], runs.iter().map(String::as_str).collect()].concat();
    let merged = pgstrata(folder.path(), &merge);
    assert!(merged.status.success(), "{}", said(&merged));
    runs.push(folder.path().join("results/all").display().to_string());
    let both = compared(folder.path(), "model", &runs, 1);
    assert_eq!(both["groups"], alone["groups"]);
    let reason = both["left_out"][0][1].as_str().unwrap();
    assert!(reason.contains("30 of its 30 trials are in folders named before it"), "{reason}");
}
