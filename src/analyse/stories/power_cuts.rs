//! Effects of verdicts on ranks and classes.

use crate::analyse::findings::{DurabilityClass, Findings};
use crate::analyse::run::power_cuts::of_plan;
use crate::analyse::stories::story::{Act, Story};
use crate::record::cut::CutRecord;
use crate::record::verdict::{self, DeviceVerdict, RanBeside, StatesTried, Verdict, VerdictRecord};

fn record(cases: &[&str], verdict: Verdict) -> VerdictRecord {
    VerdictRecord {
        format: verdict::FORMAT,
        tool_version: "0.1.0".to_owned(),
        made: "2025-01-01T00:00:00Z".to_owned(),
        cases: cases.iter().map(|case| (*case).to_owned()).collect(),
        verdict,
        clients: 4,
        commits: 200,
        writes: 300,
        flushes: 200,
        bytes: 200 << 13,
        states: Vec::new(),
        wal_ends_read: 0,
        recovered: 0,
        devices: vec![DeviceVerdict { device: "honest".to_owned(), verdict: Verdict::Holds { states: 0 } }],
        ..VerdictRecord::default()
    }
}

/// ext4 at 1000 tps and xfs at 3000, both flushing, with these verdicts.
fn story(verdicts: Vec<VerdictRecord>) -> Story {
    let mut story = Story::of(3, Some("ext4")).with(&Act::on("ext4")).with(&Act::on("xfs").tps(3000.0));
    story.input.verdicts = verdicts;
    story
}

fn class(found: &Findings, case: usize) -> DurabilityClass {
    found.cases[case].durability.class
}

#[test]
fn a_convicted_case_ranks_among_those_that_lose_everything() {
    let before = story(Vec::new()).findings();
    assert_eq!((class(&before, 0), class(&before, 1)), (DurabilityClass::Flushed, DurabilityClass::Flushed));
    assert_eq!(before.rankings[0].classes.len(), 1);
    let lost = Verdict::Loses { commits: 120, us: 30_000 };
    let verdicts =
        vec![record(&["ext4-tpcb-c16"], Verdict::Holds { states: 0 }), record(&["xfs-tpcb-c16"], lost.clone())];
    let found = story(verdicts.clone()).findings();
    assert_eq!((class(&found, 0), class(&found, 1)), (DurabilityClass::Flushed, DurabilityClass::Volatile));
    let classes: Vec<_> = found.rankings[0].classes.iter().map(|class| (class.class, class.rows.len())).collect();
    assert_eq!(classes, [(DurabilityClass::Flushed, 1), (DurabilityClass::Volatile, 1)]);
    let xfs = &found.rankings[0].classes[1].rows[0];
    assert_eq!(xfs.verdict, Some(lost));
    let reason = &xfs.durability.reason;
    assert!(reason.starts_with("a power cut: loses 120 commits / 30 ms; by facts flushed: "), "{reason}");
    assert!(xfs.comparison.as_ref().unwrap().caveat.is_some(), "its ratio is shown with a caveat");
    let said = "convicted: a power cut: loses 120 commits / 30 ms; ranked as volatile";
    assert_eq!(found.cases[1].cautions[0], said);
    assert!(!found.headline.contains("xfs is the fastest stack:"), "{}", found.headline);
    // A look stops cases without another case to compare with.
    let look = story(verdicts).at_least(3).look(3);
    assert!(look.needed.is_empty() && look.stopped.len() == 2, "{look:?}");
}

#[test]
fn a_verdict_improves_no_durability_class() {
    let holds = |case: &str| record(&[case], Verdict::Holds { states: 2000 });
    let mut story = Story::of(3, None).with(&Act::on("ext4").setting("fsync", "off"));
    story.input.verdicts = vec![holds("ext4-tpcb-c16")];
    let found = story.findings();
    assert_eq!(class(&found, 0), DurabilityClass::Volatile);
    assert!(found.cases[0].durability.reason.contains("fsync = off"), "{}", found.cases[0].durability.reason);
    let mut reads = Act::on("ext4");
    reads.writes = crate::record::operation::Writes::Never;
    let mut story = Story::of(3, None).with(&reads);
    story.input.verdicts = vec![record(&["ext4-tpcb-c16"], Verdict::Torn { what: "a page".to_owned(), unit: None })];
    let found = story.findings();
    assert_eq!(class(&found, 0), DurabilityClass::NotApplicable);
    assert!(found.cases[0].verdict.is_some());
}

#[test]
fn an_expected_loss_puts_a_case_into_class_delayed() {
    let class_with = |verdict| class(&story(vec![record(&["ext4-tpcb-c16"], verdict)]).findings(), 0);
    assert_eq!(class_with(Verdict::ExpectedLoss { commits: 9, us: 5 }), DurabilityClass::Delayed);
    for why in [
        Verdict::NotMeasured { why: "only loop images and disks of a guest are recorded, not disk".to_owned() },
        Verdict::HarnessBroken { why: "no commit was acknowledged".to_owned() },
    ] {
        assert_eq!(class_with(why), DurabilityClass::Flushed);
    }
}

#[test]
fn power_cut_figures_are_per_commit() {
    let mut tried = record(&["ext4-tpcb-c16"], Verdict::Holds { states: 300 });
    tried.states = vec![StatesTried { class: "floor".to_owned(), tried: 300, of: 900, may_fail: false }];
    tried.wal_ends_read = 300;
    let nothing = VerdictRecord {
        commits: 0,
        writes: 0,
        flushes: 0,
        ..record(&["xfs-tpcb-c16"], Verdict::NotMeasured { why: "no FUSE".to_owned() })
    };
    let stranger = record(&["nobody"], Verdict::Torn { what: "a page".to_owned(), unit: None });
    let found = story(vec![tried, nothing, stranger]).findings().power_cuts;
    let labels: Vec<&str> = found.iter().map(|cut| cut.label.as_str()).collect();
    assert_eq!(labels, ["ext4", "xfs"]);
    assert_eq!((found[0].writes_per_commit, found[0].flushes_per_commit), (Some(1.5), Some(1.0)));
    assert_eq!((found[0].bytes_per_commit, found[0].failing_share_max), (Some(8192.0), Some(0.01)));
    assert_eq!((found[1].writes_per_commit, found[1].failing_share_max), (None, None));
}

#[test]
fn the_answer_of_a_cut_names_the_gravest_verdicts_first() {
    let holds = |case: &str| record(&[case], Verdict::Holds { states: 300 });
    let lost = record(&["lying"], Verdict::Loses { commits: 3, us: 2_000 });
    let nothing = record(&["tmp"], Verdict::NotMeasured { why: "no FUSE".to_owned() });
    let verdicts = [["a", "b", "c", "d", "e", "f"].map(holds).to_vec(), vec![nothing, lost]].concat();
    let found = of_plan(CutRecord { verdicts, ..CutRecord::default() });
    assert_eq!(found.answer, "Convicted: lying loses 3 commits / 2 ms. Holds: 6 cases. Not measured: tmp.");
}

#[test]
fn disk_work_is_divided_by_the_commits_of_both_workloads() {
    let beside = Some(RanBeside { workload: "tpcb".to_owned(), commits: 100 });
    let verdict = VerdictRecord { beside, ..record(&["ext4"], Verdict::Holds { states: 1 }) };
    let found = of_plan(CutRecord { verdicts: vec![verdict], ..CutRecord::default() });
    assert_eq!(found.power_cuts[0].writes_per_commit, Some(1.0));
}
