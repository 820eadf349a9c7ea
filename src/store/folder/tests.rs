//! Creating, locking, reading back and resuming a run folder, whole, truncated and damaged.

use super::*;
use crate::record::event::Event;

fn record() -> RunRecord {
    RunRecord {
        format: run::FORMAT,
        tool_version: "0.1.0".into(),
        id: "0badcafe".into(),
        name: "which".into(),
        plan_sha256: "00".into(),
        seed: 1,
        blocks: 1,
        baseline: std::collections::BTreeMap::new(),
        quick: None,
        at_least: None,
        precision_percent: 5,
        durability: None,
        extended: Vec::new(),
        share: None,
        turns: Vec::new(),
        merged: Vec::new(),
        started: "2026-11-21T02:41:47Z".into(),
        cases: Vec::new(),
        order: Vec::new(),
    }
}

fn case(id: &str) -> crate::record::case::CaseSpec {
    use crate::record::case::{CaseSpec, WorkloadSpec};
    use crate::record::options::Options;
    use crate::record::stack::StackSpec;
    CaseSpec {
        id: id.into(),
        guest: None,
        stack: StackSpec::linear(id, Vec::new()),
        postgres: None,
        machine: Options::default(),
        age: Options::default(),
        workload: WorkloadSpec { name: "w".into(), kind: "sync".into(), options: Options::default() },
        axes: std::collections::BTreeMap::new(),
    }
}

fn interrupted() -> Stamped {
    Stamped { at_us: 7, what: Event::Interrupted }
}

#[test]
fn run_folders_of_the_same_minute_get_distinct_names() {
    let results = tempfile::tempdir().unwrap();
    let one = Writer::create(results.path(), record(), "name = 'which'").unwrap();
    let two = Writer::create(results.path(), record(), "name = 'which'").unwrap();
    assert!(one.folder().path().ends_with("2026-11-21-0241-which"));
    assert!(two.folder().path().ends_with("2026-11-21-0241-which-2"));
    assert_eq!(RunFolder::open(one.folder().path()).unwrap().record(), &record());
    assert_eq!(one.folder().plan_text().unwrap(), "name = 'which'");
}

#[test]
fn runs_started_in_the_same_second_get_separate_folders() {
    let results = tempfile::tempdir().unwrap();
    let begin = |n: u32| {
        let record = RunRecord { id: format!("{n:08x}"), ..record() };
        Writer::create(results.path(), record, "").map(|writer| writer.folder().record().id.clone())
    };
    let begin = &begin;
    let ids: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..16).map(|n| scope.spawn(move || begin(n))).collect();
        all.into_iter().map(|one| one.join().unwrap().unwrap()).collect()
    });
    let mut found: Vec<String> = listed(results.path())
        .unwrap()
        .iter()
        .map(|folder| RunFolder::open(&folder.path()).unwrap().record().id.clone())
        .collect();
    found.sort();
    assert_eq!(found, ids);
}

#[test]
fn a_damaged_record_is_distinguished_from_newer_and_missing_ones() {
    let results = tempfile::tempdir().unwrap();
    let writer = Writer::create(results.path(), record(), "").unwrap();
    let key = TrialKey { case: "ext4".to_owned(), trial: 1 };
    let place = writer.folder().trial_path(&key);
    assert_eq!(writer.folder().stored(&key).unwrap(), StoredTrial::Missing);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(TRIAL), format!("{{\"format\": {}", trial::FORMAT)).unwrap();
    assert!(matches!(writer.folder().stored(&key).unwrap(), StoredTrial::Damaged(_)));
    fs::write(place.join(TRIAL), format!("{{\"format\": {}}}", trial::FORMAT + 1)).unwrap();
    assert!(writer.folder().stored(&key).is_err(), "a newer one is no damage");
}

#[test]
fn an_event_truncated_by_a_crash_is_skipped_and_overwritten() {
    let results = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(results.path(), record(), "").unwrap();
    writer.append(&interrupted()).unwrap();
    writer.events.write_all(b"{\"at_us\": 8, \"wha").unwrap();
    let path = writer.folder().path().to_path_buf();
    assert_eq!(writer.folder().events().unwrap(), vec![interrupted()]);
    drop(writer);
    let mut writer = Writer::resume(&path, None).unwrap();
    writer.append(&interrupted()).unwrap();
    assert_eq!(writer.folder().events().unwrap().len(), 2);
}

#[test]
fn two_writers_of_one_folder_are_refused() {
    let results = tempfile::tempdir().unwrap();
    let writer = Writer::create(results.path(), record(), "").unwrap();
    let error = Writer::resume(writer.folder().path(), None).unwrap_err();
    assert!(error.to_string().contains("another pgstrata is writing"), "{error}");
}

#[test]
fn a_newer_format_is_refused_with_both_versions() {
    let results = tempfile::tempdir().unwrap();
    let newer = RunRecord { format: run::FORMAT + 1, ..record() };
    let writer = Writer::create(results.path(), newer, "").unwrap();
    let error = RunFolder::open(writer.folder().path()).unwrap_err();
    assert!(error.to_string().contains("format version 2"), "{error}");
    assert!(error.hint_text().unwrap().contains("newer"));
}

#[test]
fn a_folder_that_is_no_run_folder_says_so() {
    let empty = tempfile::tempdir().unwrap();
    assert!(RunFolder::open(empty.path()).unwrap_err().to_string().contains("not a run folder"));
}

#[test]
fn a_record_with_ids_outside_the_folder_is_refused() {
    let results = tempfile::tempdir().unwrap();
    for id in ["/etc", "../x", "", ".hidden", "a/b"] {
        let key = TrialKey { case: id.into(), trial: 1 };
        let evil = RunRecord { order: vec![key], ..record() };
        let writer = Writer::create(results.path(), evil, "").unwrap();
        let error = RunFolder::open(writer.folder().path()).unwrap_err();
        assert!(error.to_string().contains("is not a case id"), "{id}: {error}");
    }
    let path = Writer::create(results.path(), record(), "").unwrap().folder().path().join(RUN);
    let sound: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for name in ["x/../../y", "", "\u{1b}[31m", "<script>", &"n".repeat(400)] {
        let mut evil = sound.clone();
        evil["name"] = name.into();
        std::fs::write(&path, evil.to_string()).unwrap();
        let error = RunFolder::open(path.parent().unwrap()).unwrap_err();
        assert!(error.to_string().contains("is not a name of a plan"), "{name}: {error}");
    }
    let endless = RunRecord { blocks: u32::MAX, ..record() };
    let writer = Writer::create(results.path(), endless, "").unwrap();
    assert!(RunFolder::open(writer.folder().path()).unwrap_err().to_string().contains("exceed the limits of a plan"));
}

#[test]
fn nothing_is_removed_or_written_through_a_symlink() {
    let results = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join(".3.part")).unwrap();
    let writer = Writer::create(results.path(), record(), "").unwrap();
    let folder = writer.folder().path().to_path_buf();
    drop(writer);
    std::os::unix::fs::symlink(elsewhere.path(), folder.join("trials/case")).unwrap();
    let writer = Writer::resume(&folder, None).unwrap();
    assert!(writer.stage(&TrialKey { case: "case".into(), trial: 1 }).is_err());
    drop(writer);
    assert!(elsewhere.path().join(".3.part").exists());
    fs::remove_file(folder.join("events.jsonl")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("log"), folder.join("events.jsonl")).unwrap();
    fs::write(elsewhere.path().join("log"), "half a line").unwrap();
    assert!(Writer::resume(&folder, None).is_err());
    assert_eq!(fs::read_to_string(elsewhere.path().join("log")).unwrap(), "half a line");
}

#[test]
fn a_run_folder_with_symlinked_trials_is_refused_by_name() {
    let (results, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["trials", "set-aside"] {
        let folder = Writer::create(results.path(), record(), "").unwrap().folder().path().to_path_buf();
        drop(fs::remove_dir(folder.join(name)));
        std::os::unix::fs::symlink(elsewhere.path(), folder.join(name)).unwrap();
        let refused = RunFolder::open(&folder).unwrap_err().to_string();
        assert!(refused.contains(&format!("{name} is a symbolic link")), "{refused}");
    }
}

#[test]
fn resume_removes_partial_trials_and_keeps_complete_ones() {
    let results = tempfile::tempdir().unwrap();
    let key = TrialKey { case: "ext4".into(), trial: 1 };
    let with_case = RunRecord { cases: vec![case("ext4")], ..record() };
    let writer = Writer::create(results.path(), with_case, "").unwrap();
    let done = writer.folder().trial_path(&key);
    fs::create_dir_all(&done).unwrap();
    let part = files::beside(&done);
    fs::create_dir_all(part.join("raw")).unwrap();
    let path = writer.folder().path().to_path_buf();
    drop(writer);
    drop(Writer::resume(&path, Some(&key)).unwrap());
    assert!(done.exists() && part.join("raw").exists(), "a trial that goes on");
    drop(Writer::resume(&path, Some(&TrialKey { trial: 2, ..key })).unwrap());
    assert!(done.exists() && !part.exists(), "another one goes on");
    fs::create_dir_all(part.join("raw")).unwrap();
    drop(Writer::resume(&path, None).unwrap());
    assert!(done.exists() && !part.exists());
}
