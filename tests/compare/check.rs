//! `pgstrata check` as a CI job calls it: its exit codes, its JSON, its JUnit file.

use super::run_folder::{self, Made};
use super::{stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn check(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pgstrata")).arg("check").args(args).current_dir(folder).output().unwrap()
}

/// The findings of a check that exits with `code`.
fn findings(folder: &Path, args: &[&str], code: i32) -> Value {
    let output = check(folder, &[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(&output), stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn cases_of_one_run_are_paired_for_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_folder::make(folder.path()).display().to_string();
    let case = |name: &str| format!("{run}:{name}");
    let (ext4, xfs) = (case("ext4-c4"), case("xfs-c4"));
    let kept = findings(folder.path(), &[&xfs, "--against", &ext4, "--limit", "tps -5 %"], 0);
    assert_eq!((&kept["outcome"], &kept["paired"]), (&"pass".into(), &true.into()));
    let exceeded = findings(folder.path(), &[&ext4, "--against", &xfs, "--limit", "tps -5 %"], 6);
    let limit = &exceeded["limits"][0];
    assert_eq!((&limit["outcome"], &limit["how"]), (&"fail".into(), &"paired over 3 blocks".into()));
    assert!(limit["change"]["high"].as_f64().unwrap() < -0.05, "{limit}");
    // A third less: the interval of the change holds such a limit.
    let within = limit["change"]["value"].as_f64().unwrap() * -100.0;
    let held = findings(folder.path(), &[&ext4, "--against", &xfs, "--limit", &format!("tps -{within} %")], 7);
    assert_eq!(held["outcome"], "undecided");
}

#[test]
fn two_runs_are_compared_unpaired_with_a_ci_file() {
    let folder = tempfile::tempdir().unwrap();
    let old = run_folder::make(&folder.path().join("old")).display().to_string();
    let new = run_folder::make_as(
        &folder.path().join("new/results"),
        &Made { id: "0therrun", speed: 0.4, ..Made::default() },
    )
    .display()
    .to_string();
    let limits = ["--limit", "tps -5 %", "--limit", "tps -60 %"];
    let args = [&[new.as_str(), "--against", old.as_str(), "--junit", "check.xml"][..], &limits].concat();
    let output = check(folder.path(), &args);
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(6), "{text}{}", stderr(&output));
    assert!(text.starts_with("FAIL: ") && text.contains("their trials are not paired"), "{text}");
    let found = findings(folder.path(), &args, 6);
    let of = |limit: &str, outcome: &str| {
        let all = found["limits"].as_array().unwrap().iter();
        all.filter(|one| one["limit"] == limit && one["outcome"] == outcome).count()
    };
    // Every case fell to two fifths: far beyond the first limit, and the second lies in the middle of the interval.
    assert_eq!((of("tps -5 %", "fail"), of("tps -60 %", "undecided")), (5, 5), "{found}");
    let junit = fs::read_to_string(folder.path().join("check.xml")).unwrap();
    assert!(junit.contains("tests=\"10\" failures=\"5\" errors=\"5\""), "{junit}");
}

#[test]
fn what_cannot_be_checked_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_folder::make(folder.path()).display().to_string();
    let refused = |args: &[&str], says: &str| {
        let output = check(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    };
    refused(&[&run, "--against", &run, "--limit", "tsp -5 %"], "did you mean `tps`?");
    refused(&[&run, "--against", &run, "--limit", "tps 5 %"], "expected FIGURE and a signed percentage");
    refused(&[&run, "--against", "nowhere", "--limit", "tps -5 %"], "nowhere is not a run folder");
    refused(&[&run, "--against", &format!("{run}:zfs"), "--limit", "tps -5 %"], "has no case `zfs`");
    refused(&[&run, "--against", &run], "--limit");
}

/// A run of a plan with one folder and files of this size: its run folder.
fn measured(folder: &Path, name: &str, blocks: u32, size: &str) -> String {
    let data = folder.join(name);
    fs::create_dir(&data).unwrap();
    let plan = format!(
        "name = \"{name}\"\nblocks = {blocks}\n[stack.d]\ndirectory = \"{}\"\n[workload.f]\nfiles = {{ size = \"{size}\", \
         duration = \"100ms\" }}\n",
        data.display()
    );
    fs::write(folder.join("plan.toml"), plan).unwrap();
    let results = format!("results-{name}");
    let output = pgstrata(folder, &["run", "plan.toml", "--results", &results]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    only(&folder.join(results)).display().to_string()
}

fn pgstrata(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    command.args(args).env("PGSTRATA_STATE", folder.join("state")).current_dir(folder).output().unwrap()
}

/// The only folder in a folder.
fn only(folder: &Path) -> PathBuf {
    let found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn a_rerun_interleaves_both_runs_and_resumes_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (measured(folder.path(), "old", 1, "4MiB"), measured(folder.path(), "new", 2, "1MiB"));
    let args = ["check", &new, "--against", &old, "--rerun-baseline", "--limit", "write -5 %", "--json"];
    let check = || {
        let output = pgstrata(folder.path(), &args);
        let code = output.status.code().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {code} {}{}", stdout(&output), stderr(&output)));
        let outcome =
            [(0, "pass"), (6, "fail"), (7, "undecided")].into_iter().find(|(known, _)| *known == code).unwrap();
        assert_eq!(found["outcome"], outcome.1, "{found}");
        assert_eq!(
            (&found["paired"], &found["limits"][0]["how"]),
            (&true.into(), &"paired over 3 blocks".into()),
            "{found}"
        );
        (found, stderr(&output))
    };
    let (first, _) = check();
    let rerun = only(&folder.path().join("results"));
    assert_eq!(first["rerun"], rerun.display().to_string());
    let record: Value = serde_json::from_slice(&fs::read(rerun.join("run.json")).unwrap()).unwrap();
    let order: Vec<&str> =
        record["order"].as_array().unwrap().iter().map(|key| key["case"].as_str().unwrap()).collect();
    assert_eq!(order.len(), 6, "three blocks, though the runs have fewer: an interval needs them");
    for block in order.chunks(2) {
        assert!(block.contains(&"baseline.d.f") && block.contains(&"run.d.f"), "{order:?}");
    }
    // Whole, it is read; where a trial is missing, that one is measured.
    let (again, said) = check();
    assert_eq!((again["limits"].clone(), said.as_str()), (first["limits"].clone(), ""));
    fs::remove_dir_all(rerun.join("trials/run.d.f/2")).unwrap();
    let (resumed, _) = check();
    assert_ne!(resumed["limits"], first["limits"]);
    assert_eq!(only(&folder.path().join("results")), rerun);

    let refused =
        pgstrata(folder.path(), &["check", &new, "--against", &new, "--rerun-baseline", "--limit", "write -5 %"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("nothing to interleave"), "{}", stderr(&refused));
    let other = run_folder::make(&folder.path().join("other")).display().to_string();
    let refused =
        pgstrata(folder.path(), &["check", &new, "--against", &other, "--rerun-baseline", "--limit", "write -5 %"]);
    assert!(stderr(&refused).contains("have no case in common"), "{}", stderr(&refused));
}
