//! Hosts as units: the slow one of twenty is named, and of equal ones none.

use crate::merged::{pgstrata, said};
use crate::run_folder::{Made, make_as};
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
fn the_one_of_twenty_hosts_that_is_15_percent_slower_is_named_and_of_equal_ones_none() {
    let folder = tempfile::tempdir().unwrap();
    let runs = fleet(folder.path(), 20, Some(7), ["6.1.0"; 2]);
    let found = compared(folder.path(), "model,firmware,kernel", &runs, 0);
    assert_eq!(slow_hosts(&found), ["node7"]);
    assert_eq!(found["groups"].as_array().unwrap().len(), 1);
    assert_eq!(found["groups"][0]["name"], "model DISK 1T, firmware A1, kernel 6.1.0");
    let answer = found["answer"][0].as_str().unwrap();
    assert!(
        answer.contains("node7 is 1") && answer.contains("% slower than the median of its 19 siblings"),
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
