//! Stacks that are aged before they are measured, against the same cluster on a fresh filesystem.

use crate::depth::is_full;
use crate::program::machine;
use crate::program::workshop::{Ran, Workshop, can_build_stacks, json, said};
use std::fs;
use std::path::Path;

const PLAN: &str = r#"
name = "ageing"
blocks = BLOCKS

[stack.FILESYSTEM]
device = { loop = "512MiB", sparse = true }
filesystem = "FILESYSTEM"
age = { rewrite = [0, 3], batch = "4MiB", filesystem = ["aged", "fresh"] }

[[exclude]]
"age.rewrite" = 0
"age.filesystem" = "fresh"

[postgres]
settings = { shared_buffers = "1MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.scan]
scan = { scale = 1, duration = "1s" }
"#;

/// Runs the plan on a filesystem.
fn rewritten(shop: &Workshop, filesystem: &str, blocks: &str) -> Ran {
    shop.ran(&PLAN.replace("FILESYSTEM", filesystem).replace("BLOCKS", blocks))
}

/// A figure by the amount of ageing: at none, and at three rewrites beside the control.
fn points(ran: &Ran, name: &str, figure: &str) -> [serde_json::Value; 2] {
    let all = ran.findings["ageing"].as_array().unwrap();
    let found = all.iter().find(|one| one["name"] == name && one["figure"] == figure);
    let points = found.unwrap_or_else(|| panic!("{name}, {figure}: {all:#?}"))["points"].as_array().unwrap();
    let [none, last] = &points[..] else { panic!("{points:#?}") };
    assert_eq!((&none["x"], &last["x"]), (&0.0.into(), &3.0.into()), "{points:#?}");
    [none.clone(), last.clone()]
}

fn told_apart(point: &serde_json::Value) -> Option<bool> {
    point["told_apart"].as_bool()
}

fn ratio(point: &serde_json::Value) -> f64 {
    point["ratio"]["value"].as_f64().unwrap_or_else(|| panic!("{point:#}"))
}

#[test]
fn rewritten_pages_move_where_they_are_copied_on_write() {
    if !can_build_stacks("ageing") {
        return;
    }
    let shop = Workshop::new();
    // One block has the ratios; what tells them apart is an interval, which takes three.
    let ran = rewritten(&shop, "btrfs", if is_full() { "3" } else { "1" });
    let [_, extents] = points(&ran, "btrfs, scan", "extents per GiB");
    assert!(ratio(&extents) > 20.0, "{extents:#}");
    assert_eq!(told_apart(&extents), is_full().then_some(true), "{extents:#}");
    let [_, read] = points(&ran, "btrfs, scan", "mean device read");
    assert!(ratio(&read) < 0.8, "{read:#}");
    let [none, _] = points(&ran, "btrfs, scan", "scan");
    assert!(none["aged"]["value"].as_f64() > Some(0.0), "{none:#}");
    let age =
        |case: &str| json(&fs::read(ran.folder.join("trials").join(case).join("1/trial.json")).unwrap())["age"].clone();
    let aged = age("btrfs.scan.age-rewrite-3.age-filesystem-aged");
    let written = aged["pages"]["written_bytes"].as_f64().unwrap() / aged["data_bytes"].as_f64().unwrap();
    assert_eq!((written, &aged["is_fresh"]), (3.0, &false.into()), "{aged:#}");
    let control = age("btrfs.scan.age-rewrite-3.age-filesystem-fresh");
    assert_eq!((&control["pages"], &control["is_fresh"]), (&serde_json::Value::Null, &true.into()));
    assert!(ran.text.contains("What ageing changes") && ran.text.contains("per overwrite"), "{}", ran.text);
}

#[test]
fn pages_rewritten_in_place_lie_as_on_a_fresh_filesystem() {
    if !can_build_stacks("ageing in place") {
        return;
    }
    let shop = Workshop::new();
    let ran = rewritten(&shop, "ext4", "1");
    let [none, extents] = points(&ran, "ext4, scan", "extents per GiB");
    // Two extents or four is chance of when the kernel writes back; pages that moved would be thousands.
    for case in [&none["aged"], &extents["aged"], &extents["fresh"]] {
        assert!(case["value"].as_f64().is_some_and(|found| found > 0.0 && found < 1000.0), "{none:#} {extents:#}");
    }
}

const FILLED: &str = r#"
name = "filled"
blocks = 1

[stack.btrfs]
device = { loop = "640MiB", sparse = true }
filesystem = "btrfs"
age = { fill = [18, 54], deletes = true, snapshots = [false, true] }

[stack.xfs]
device = { loop = "512MiB", sparse = true }
filesystem = "xfs"
age = { fill = 54, deletes = true, snapshots = true }

[workload.files]
files = { size = "16MiB", duration = "1s" }
"#;

#[test]
fn snapshots_hold_what_is_deleted_and_go_with_the_stack() {
    if !can_build_stacks("ageing with snapshots") {
        return;
    }
    let shop = Workshop::new();
    let output = shop.run(&shop.file("plan.toml", FILLED));
    assert!(output.status.success(), "{}", said(&output));
    let folder = shop.run_folder();
    let age =
        |case: &str| json(&fs::read(folder.join("trials").join(case).join("1/trial.json")).unwrap())["age"].clone();
    let case = |snapshots: bool| format!("btrfs.files.age-fill-54.age-snapshots-{snapshots}");
    let (with, without) = (age(&case(true)), age(&case(false)));
    let number = |of: &serde_json::Value, path: &str| of.pointer(path).and_then(serde_json::Value::as_u64).unwrap();
    let deleted = |of: &serde_json::Value| number(of, "/fill/deleted") * number(of, "/fill/file_bytes");
    let held = |of: &serde_json::Value| {
        let grown = number(of, "/snapshots/used_after_bytes") - number(of, "/snapshots/used_before_bytes");
        grown.saturating_sub(number(of, "/fill/left_bytes"))
    };
    for aged in [&with, &age("xfs.files")] {
        // Two whole steps, each with its deletes, and what is left to 54 %.
        assert!(number(aged, "/snapshots/made") == 3 && deleted(aged) > 40 << 20, "{aged:#}");
        assert!(held(aged) > deleted(aged) / 2, "{aged:#}");
    }
    // Filled to the same level, so fewer files are left where snapshots hold some.
    let left = |of: &serde_json::Value| number(of, "/fill/left_bytes");
    assert!(
        without["snapshots"].is_null() && left(&with) + deleted(&with) / 2 < left(&without),
        "{with:#} {without:#}"
    );
    let used = |of: &serde_json::Value| number(of, "/layout/size_bytes") - number(of, "/layout/free_bytes");
    assert!(used(&with).abs_diff(used(&without)) < 40 << 20, "{with:#} {without:#}");
    let report = |args: &[&str]| {
        let output = shop.pgstrata(&[&["report", folder.to_str().unwrap()], args].concat()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        output.stdout
    };
    let findings = json(&report(&["--json"]));
    let names = |figure: &str| -> Vec<String> {
        let all = findings["ageing"].as_array().unwrap().iter().filter(|one| one["figure"] == figure);
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let both = ["age.snapshots=false, btrfs, files", "age.snapshots=true, btrfs, files"];
    assert_eq!(
        (names("filesystem used"), names("held by snapshots")),
        (both.map(str::to_owned).to_vec(), vec![both[1].to_owned()])
    );
}

#[test]
fn a_stack_without_snapshots_is_refused_before_building() {
    let shop = Workshop::new();
    let plan = FILLED.replace("filesystem = \"btrfs\"", "filesystem = \"ext4\"");
    let output = shop.run(&shop.file("plan.toml", &plan));
    assert!(!output.status.success());
    let said = said(&output);
    assert!(said.contains("no layer below the data of the stack btrfs has snapshots"), "{said}");
    assert!(said.contains("plan.toml:8:") && said.contains("btrfs, xfs (reflinks), lvm and zfs have them"), "{said}");
    let held = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
    assert!(!shop.results().exists(), "there is a run folder: {said}");
    assert_eq!(held(&shop.state().join("ledger")), 0, "{said}");
    // Loop devices, mounts and processes.
    let traces = machine::traces(shop.path().to_str().unwrap());
    assert!(traces.is_empty(), "{traces:?}");
}

#[test]
fn a_stack_without_snapshots_is_refused_in_every_guest() {
    let shop = Workshop::new();
    let guests = "blocks = 1\nguest = [\"bookworm\", \"trixie\"]";
    let text = FILLED.replace("filesystem = \"btrfs\"", "filesystem = \"ext4\"").replace("blocks = 1", guests);
    let plan = shop.file("plan.toml", &text);
    let output = shop.pgstrata(&["plan", plan.to_str().unwrap()]).output().unwrap();
    assert!(!output.status.success());
    let said = said(&output);
    assert!(said.contains("no layer below the data of the stack btrfs has snapshots"), "{said}");
}
