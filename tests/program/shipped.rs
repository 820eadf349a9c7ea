//! Plans that ship with the program, run as their pages say: the two shortest with --quick.

use crate::depth::waits_for_full;
use crate::program::workshop::{Workshop, can_build_stacks, said};

/// Runs a shipped plan: its findings.
fn quick(name: &str) -> serde_json::Value {
    let shop = Workshop::new();
    let output = shop.pgstrata(&["run", name, "--quick"]).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code <= 1), "{}", said(&output));
    let folder = shop.run_folder();
    let report = shop.pgstrata(&["report", folder.to_str().unwrap(), "--json"]).output().unwrap();
    serde_json::from_slice(&report.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&report)))
}

/// Cases without figures: their ids, and why.
fn not_measured(findings: &serde_json::Value) -> Vec<(String, String)> {
    let holes = findings["not_run"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    holes.iter().map(|hole| (text(&hole["case"]), text(&hole["reason"]))).collect()
}

#[test]
fn separate_wal_is_run_with_quick_to_its_end() {
    if waits_for_full() || !can_build_stacks("separate-wal --quick") {
        return;
    }
    let findings = quick("separate-wal");
    assert_eq!(not_measured(&findings), [], "{findings}");
    let cases = findings["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        // Ten seconds without a checkpoint flush nothing on data's own filesystem; for no other reason may it be unknown.
        let apart = case["axes"]["stack"] != "together";
        let class = case["durability"]["class"].as_str().unwrap();
        let reason = case["durability"]["reason"].as_str().unwrap();
        let unknown =
            class == "unknown" && reason.contains("the data: only 0 flushes per measurement without a checkpoint");
        assert!(class == "flushed" || (apart && unknown), "{case}");
    }
}

#[test]
fn memory_filesystems_runs_with_quick_and_explains_hugetlbfs() {
    if waits_for_full() || !can_build_stacks("memory-filesystems --quick") {
        return;
    }
    let findings = quick("memory-filesystems");
    for (case, why) in not_measured(&findings) {
        assert!(case.starts_with("hugetlbfs.") && why.contains("write"), "{case}: {why}");
    }
    let cases = findings["cases"].as_array().unwrap().iter();
    for case in cases.filter(|case| case["axes"]["stack"] != "hugetlbfs") {
        let on_disk = case["axes"]["stack"] == "disk";
        let class = &case["durability"]["class"];
        assert_eq!(class == "volatile", !on_disk, "{case}");
    }
}
