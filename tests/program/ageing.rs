//! Stacks that are aged before they are measured, against the same cluster on a fresh filesystem.

use crate::workshop::{Workshop, can_build_stacks, json, said};
use std::fs;

const PLAN: &str = r#"
name = "ageing"
blocks = 2
baseline = "ext4"

[stack.ext4]
device = { loop = "512MiB", sparse = true }
filesystem = "ext4"
age = { rewrite = [0, 10], batch = "4MiB", filesystem = ["aged", "fresh"] }

[stack.btrfs]
device = { loop = "512MiB", sparse = true }
filesystem = "btrfs"
age = { rewrite = [0, 10], batch = "4MiB", filesystem = ["aged", "fresh"] }

[[exclude]]
"age.rewrite" = 0
"age.filesystem" = "fresh"

[postgres]
settings = { shared_buffers = "1MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.scan]
scan = { scale = 2, duration = "2s" }
"#;

#[test]
fn a_stack_that_ages_is_told_from_its_control_and_one_that_does_not_is_not() {
    if !can_build_stacks("ageing") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", PLAN));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let report = |args: &[&str]| {
        let output = shop.pgstrata(&[&["report", folder.to_str().unwrap()], args].concat()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let findings = json(&report(&["--json"]));
    let figure = |stack: &str, figure: &str| {
        let all = findings["ageing"].as_array().unwrap();
        let found = all.iter().find(|one| one["name"] == format!("{stack}, scan") && one["figure"] == figure);
        found.unwrap_or_else(|| panic!("{stack}, {figure}: {all:#?}")).clone()
    };
    let last = |stack: &str| figure(stack, "extents per GiB")["points"][1].clone();
    let (ext4, btrfs) = (last("ext4"), last("btrfs"));
    assert_eq!((&btrfs["x"], &btrfs["told_apart"]), (&10.0.into(), &true.into()), "{btrfs:#}");
    assert!(btrfs["ratio"]["value"].as_f64() > Some(20.0), "{btrfs:#}");
    assert_eq!(ext4["told_apart"], false, "{ext4:#}");
    assert!((ext4["ratio"]["value"].as_f64().unwrap() - 1.0).abs() < 0.2, "{ext4:#}");
    assert!(figure("btrfs", "mean device read")["points"][1]["ratio"]["value"].as_f64() < Some(0.8));
    assert!(figure("btrfs", "scan")["points"][0]["aged"]["value"].as_f64() > Some(0.0));
    let record =
        json(&fs::read(folder.join("trials/btrfs.scan.age-rewrite-10.age-filesystem-aged/1/trial.json")).unwrap());
    let age = &record["age"];
    let written = age["pages"]["written_bytes"].as_f64().unwrap() / age["data_bytes"].as_f64().unwrap();
    assert_eq!((written, &age["is_fresh"]), (10.0, &false.into()), "{age:#}");
    let control =
        json(&fs::read(folder.join("trials/btrfs.scan.age-rewrite-10.age-filesystem-fresh/1/trial.json")).unwrap());
    assert_eq!((&control["age"]["pages"], &control["age"]["is_fresh"]), (&serde_json::Value::Null, &true.into()));
    let text = String::from_utf8(report(&[])).unwrap();
    assert!(text.contains("What ageing changes") && text.contains("per overwrite"), "{text}");
}
