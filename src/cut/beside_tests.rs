//! A case's own pgbench beside the clients, on real stacks.

use super::Verdict;
use super::beside::{self, Unrecorded};
use super::case::cut_case;
use super::cutting::Cutting;
use super::record::record;
use super::session::CutSession;
use super::tests::{can_record, case, options, places};
use crate::error::{Kind, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::provision::recorded;
use crate::record::case::CaseSpec;
use crate::record::options::OptionValue;
use crate::record::verdict::VerdictRecord;
use crate::recorder::Exports;
use std::path::Path;
use std::time::Duration;

/// Creates a temporary table, which a power cut leaves in the catalog.
const TEMPORARY: &str = "CREATE TEMP TABLE IF NOT EXISTS mine (n int PRIMARY KEY); \
                         INSERT INTO mine VALUES (1) ON CONFLICT DO NOTHING;@1";

fn text(text: &str) -> OptionValue {
    OptionValue::Text(text.to_owned())
}

/// A case on ext4 whose workload runs these scripts.
fn with(scripts: &[&str], mount: &[&str]) -> CaseSpec {
    let mut case = case("ext4", mount, &[]);
    case.workload.name = "own".to_owned();
    case.workload.options.set("script", OptionValue::List(scripts.iter().map(|script| text(script)).collect()));
    case.workload.options.set("clients", OptionValue::Integer(8));
    case
}

fn cut(case: &CaseSpec, states: usize) -> Result<VerdictRecord> {
    let (folder, interrupt) = (tempfile::tempdir().unwrap(), Interrupt::never());
    let places = places(folder.path());
    // The clients commit while pgbench starts, which takes half a second on a busy machine.
    let time = Duration::from_secs(3);
    let cutting = Cutting { clients: 2, time, states, workload: true, keeps_evidence: false, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), &places, cutting, &interrupt).unwrap();
    let result = cut_case(&session, case, &places, &|_| ());
    session.close().unwrap();
    assert_eq!(std::fs::read_dir(places.ledgers()).unwrap().count(), 0, "something is left");
    if let Ok(result) = &result {
        println!("{}, {} commits, beside {:?}", result.verdict, result.commits, result.beside);
    }
    result
}

#[test]
fn a_flushing_stack_holds_with_a_workload_beside_the_clients() {
    if !can_record("ext4") {
        return;
    }
    let result = cut(&with(&["simple-update@9", TEMPORARY], &[]), 14).unwrap();
    assert!(matches!(result.verdict, Verdict::Holds { states: 14.. }), "{}", result.verdict);
    assert!(result.recovered >= 12 && result.wal_ends_read >= 14, "{result:?}");
    let beside = result.beside.unwrap();
    assert_eq!(beside.workload, "own");
    assert!(result.commits > 10 && beside.commits as u64 > result.commits, "{beside:?} beside {}", result.commits);
    let ignored = result.devices.iter().find(|on| on.device.starts_with("flush ignored")).unwrap();
    assert!(ignored.verdict.convicts(), "{}", ignored.verdict);
}

#[test]
fn a_stack_without_flushes_is_convicted_with_a_workload_beside() {
    if !can_record("ext4") {
        return;
    }
    let result = cut(&with(&["simple-update"], &["barrier=0"]), 0).unwrap();
    assert!(matches!(result.verdict, Verdict::Loses { commits: 1.., .. }), "{}", result.verdict);
    assert!(result.beside.is_some_and(|beside| beside.commits > 0));
}

#[test]
fn a_failing_script_is_an_error_and_no_verdict() {
    if !can_record("ext4") {
        return;
    }
    let failed = cut(&with(&["SELECT 1;", "INSERT INTO nowhere VALUES (1);"], &[]), 0).unwrap_err();
    let said = failed.chain();
    assert_eq!(failed.kind(), Kind::Tool, "{said}");
    for words in ["workload `own` of the case ext4", "\"nowhere\" does not exist", "LINE 1: INSERT INTO nowhere"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn what_was_found_before_a_script_failed_stands() {
    if !can_record("ext4") {
        return;
    }
    let (folder, interrupt) = (tempfile::tempdir().unwrap(), Interrupt::never());
    let places = places(folder.path());
    let bad = |name: &str| {
        let mut case = with(&["INSERT INTO nowhere VALUES (1);"], &[]);
        (case.id, case.workload.name) = (name.to_owned(), name.to_owned());
        case
    };
    let cases = [with(&["simple-update"], &["barrier=0"]), bad("bad"), bad("never")];
    let cutting = Cutting { clients: 2, workload: true, keeps_evidence: false, ..Cutting::default() };
    let cuts = crate::cut::case::cut(&Host::this(), &cases, &places, cutting, &interrupt, &|_| ()).unwrap();
    assert_eq!((cuts.results.len(), cuts.left), (1, 2));
    assert!(matches!(cuts.results[0].verdict, Verdict::Loses { .. }), "{}", cuts.results[0].verdict);
    let ended_by = cuts.ended_by.unwrap().chain();
    assert!(ended_by.contains("workload `bad` of the case bad"), "{ended_by}");
    assert_eq!(std::fs::read_dir(places.ledgers()).unwrap().count(), 0, "something is left");
}

/// Records a case with its workload while `meanwhile` watches the file of pgbench's output. Returns the result, and
/// pgbench's output and error output.
fn recording(interrupt: &Interrupt, meanwhile: impl FnOnce(&Path) + Send) -> (Result<(), Unrecorded>, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let places = places(folder.path());
    let cutting = Cutting { time: Duration::from_secs(1), workload: true, ..Cutting::default() };
    let session = CutSession::open(&Host::this(), &places, cutting, interrupt).unwrap();
    let target = recorded::prepare(&session.ledger, &session.folder).unwrap();
    let exports = Exports::mount(&target, recorded::SOURCE).unwrap();
    let files = ["out", "err"].map(|kind| session.work.join("workload").join(format!("pgbench-beside.{kind}")));
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| meanwhile(&files[0]));
        record(&session, &with(&["simple-update"], &[]), &exports, &session.work).map(drop)
    });
    drop(exports);
    let said = files.map(|file| std::fs::read_to_string(file).unwrap());
    session.close().unwrap();
    (ended, said)
}

#[test]
fn pgbench_ends_before_its_server_does() {
    if !can_record("ext4") {
        return;
    }
    let (ended, [printed, complained]) = recording(&Interrupt::never(), |_| ());
    ended.unwrap();
    assert!(printed.contains("number of transactions actually processed"), "its summary: {printed}{complained}");
    let interrupt = Interrupt::never();
    let (ended, [printed, complained]) = recording(&interrupt, |output| {
        for _ in 0..12_000 {
            if output.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        interrupt.raise();
    });
    assert!(matches!(&ended, Err(Unrecorded::Other(e)) if e.kind() == Kind::Interrupted), "{ended:?}");
    assert!(!printed.contains("number of transactions"), "it was to run for longer: {printed}");
    for words in ["terminating connection", "server closed the connection"] {
        assert!(!complained.contains(words), "the server went before it: {complained}");
    }
}

#[test]
fn data_too_large_for_the_stack_are_not_measured() {
    if !can_record("ext4") {
        return;
    }
    let mut case = with(&["simple-update"], &[]);
    case.stack.nodes[0].options = options(&[("loop", "256MiB")]);
    case.workload.options.set("scale", OptionValue::Integer(20));
    let result = cut(&case, 0).unwrap();
    let small = "the stack is too small for the workload";
    assert!(matches!(&result.verdict, Verdict::NotMeasured { why } if why.contains(small)), "{}", result.verdict);
}

#[test]
fn other_workloads_than_pgbench_are_not_measured() {
    if !can_record("ext4") {
        return;
    }
    let mut case = with(&["simple-update"], &[]);
    case.workload.kind = "scan".to_owned();
    let result = cut(&case, 0).unwrap();
    let why = format!("only the workload {} runs beside the clients, not scan", beside::KIND);
    assert_eq!(result.verdict, Verdict::NotMeasured { why });
}
