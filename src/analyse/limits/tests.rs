//! Limits decided from sides made by hand.

use super::*;
use crate::analyse::compare::side::{ConditionKind, MeasureCondition, MeasureSpread, Medium};
use crate::analyse::findings::{Durability, DurabilityClass};
use crate::stats::ratio::BlockMean;

fn tps(run: &str, means: &[f64]) -> SideMeasure {
    let clients = MeasureCondition::named(ConditionKind::Clients, Some("4".to_owned()));
    let value = means.iter().sum::<f64>() / means.len() as f64;
    let mean = |(block, mean): (u32, &f64)| BlockMean::of(block, *mean);
    let spread =
        MeasureSpread::Trials { run: run.to_owned(), means: (1..).zip(means).map(mean).collect(), slices: false };
    SideMeasure {
        spread,
        medium: Medium::Disk,
        ..SideMeasure::new("pgbench", vec![clients], "tps", FigureKind::Rate, "tps", value)
    }
}

fn side(name: &str, measures: Vec<SideMeasure>) -> Side {
    let facts = [("host.kernel".to_owned(), "6.1".to_owned())].into();
    Side { label: name.to_owned(), name: name.to_owned(), facts, measures, ..Side::default() }
}

/// A run without cases, since a check reads sides alone.
fn record(id: &str, left_out: &[&str]) -> RunRecord {
    serde_json::from_value(serde_json::json!({
        "format": 1, "tool_version": "", "id": id, "name": "", "plan_sha256": "", "seed": 1, "blocks": 3, "baseline": {},
        "quick": { "cases": 0, "blocks": 0, "left_out": left_out }, "started": "2026-03-02T09:14:33Z", "cases": [], "order": [],
    }))
    .unwrap()
}

fn of<'a>(id: &'a str, sides: &'a [Side]) -> CheckedRun<'a> {
    let run = Box::leak(Box::new(record(id, &[])));
    CheckedRun { label: id, run, wall_us: None, trials: (3, 3), sides }
}

/// A figure of a case, with so many clients.
fn of_case(case: &str, clients: &str, figure: SideMeasure) -> SideMeasure {
    let clients = MeasureCondition::named(ConditionKind::Clients, Some(clients.to_owned()));
    SideMeasure { case: case.to_owned(), conditions: vec![clients], ..figure }
}

fn limits(texts: &[&str]) -> Vec<Limit> {
    texts.iter().map(|text| Limit::parse(text).unwrap()).collect()
}

/// Compliance of one limit on the rates of two runs.
fn outcome(new: &[f64], old: &[f64], limit: &str) -> Compliance {
    let (new, old) = ([side("ext4", vec![tps("new", new)])], [side("ext4", vec![tps("old", old)])]);
    let found = check(of("new", &new), of("old", &old), &limits(&[limit]));
    assert_eq!(found.limits.len(), 1);
    assert_eq!(found.outcome, found.limits[0].outcome);
    found.outcome
}

#[test]
fn a_limit_is_read_with_its_sign() {
    let read = |text| Limit::parse(text).map(|limit| (limit.figure.clone(), limit.is_fall, limit.words()));
    assert_eq!(read("tps -5 %"), Ok(("tps".to_owned(), true, "tps -5 %".to_owned())));
    for p999 in [" p99.9+2.5%", "latency_us_p999 +2.5 %"] {
        assert_eq!(read(p999), Ok(("p99.9".to_owned(), false, "p99.9 +2.5 %".to_owned())));
    }
    assert_eq!(read("pgbench/a-b/tps -0 %").map(|it| it.2), Ok("pgbench/a-b/tps -0 %".to_owned()));
    for bad in [
        "tps",
        "tps 5 %",
        "tps -5",
        "-5 %",
        "tps -x %",
        "tps -100 %",
        "tps -nan %",
        "tps -5 % or so",
        "latency_us_max +5 %",
    ] {
        assert!(Limit::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_limit_inside_the_interval_is_undecided() {
    let steady = [1000.0, 1002.0, 998.0];
    assert_eq!(outcome(&[1001.0, 999.0, 1003.0], &steady, "tps -5 %"), Compliance::Pass);
    assert_eq!(outcome(&[901.0, 899.0, 903.0], &steady, "tps -5 %"), Compliance::Fail);
    assert_eq!(outcome(&[950.0, 960.0, 940.0], &steady, "tps -5 %"), Compliance::Undecided);
    // A rate may rise by any amount unless the limit is on its rise.
    assert_eq!(outcome(&[1501.0, 1499.0, 1503.0], &steady, "tps -5 %"), Compliance::Pass);
    assert_eq!(outcome(&[1501.0, 1499.0, 1503.0], &steady, "tps +5 %"), Compliance::Fail);
}

#[test]
fn a_single_trial_decides_nothing() {
    assert_eq!(outcome(&[500.0], &[1000.0, 1001.0, 999.0], "tps -5 %"), Compliance::Undecided);
    assert_eq!(outcome(&[500.0], &[1000.0], "tps -5 %"), Compliance::Undecided);
}

#[test]
fn a_case_missing_from_the_run_is_undecided() {
    let means = [1000.0, 1002.0, 998.0];
    let new = [side("ext4", vec![tps("new", &means)]), side("btrfs", vec![tps("new", &means)])];
    let old = [side("ext4", vec![tps("old", &means)]), side("xfs", vec![tps("old", &means)])];
    let found = check(of("new", &new), of("old", &old), &limits(&["tps -5 %"]));
    let outcomes: Vec<(&str, Compliance)> = found.limits.iter().map(|it| (it.case.as_str(), it.outcome)).collect();
    assert_eq!(outcomes, [("ext4", Compliance::Pass), ("xfs", Compliance::Undecided)]);
    assert_eq!(found.outcome, Compliance::Undecided);
    assert!(found.notes.iter().any(|note| note.ends_with("no such figure: case btrfs")), "{:?}", found.notes);
}

#[test]
fn what_only_left_out_of_a_quick_run_is_not_missing() {
    let means = [1000.0, 1002.0, 998.0];
    let [few, many] = [("ext4.few", "2"), ("ext4.many", "4")].map(|(id, n)| of_case(id, n, tps("old", &means)));
    let old = [side("ext4", vec![few, many]), side("xfs", vec![of_case("xfs.few", "2", tps("old", &means))])];
    let new = of_case("ext4.few", "2", tps("new", &[1001.0, 999.0, 1003.0]));
    let new = [side("ext4", vec![new]), side("zfs", Vec::new())];
    let checked = |left_out: &[&str], old: &[Side]| {
        check(CheckedRun { run: &record("new", left_out), ..of("new", &new) }, of("old", old), &limits(&["tps -5 %"]))
    };
    let found = checked(&["ext4.many", "xfs.few"], &old);
    assert_eq!((found.outcome, found.limits.len()), (Compliance::Pass, 1));
    let said = "Not checked, because `only` in the plan's [quick] leaves these cases out: ext4.many; xfs.few";
    assert!(found.notes.iter().any(|note| note == said), "{:?}", found.notes);
    let found = checked(&["ext4.many"], &old);
    assert_eq!((found.outcome, found.limits.len()), (Compliance::Undecided, 2), "xfs is not in the plan");
    let found = checked(&["xfs.few"], &old[1..]);
    assert_eq!((found.outcome, found.limits.len()), (Compliance::Undecided, 0), "nothing was checked");
}

#[test]
fn a_case_is_matched_whatever_the_other_cases_of_its_run_vary() {
    let means = [1000.0, 1002.0, 998.0];
    let with = |id: &str, options: &str, run| {
        let mut measure = of_case(id, "4", tps(run, &means));
        let options = MeasureCondition::usual(ConditionKind::Options, Some(options.to_owned()), "");
        measure.conditions.push(options);
        measure
    };
    let [half, full] =
        ["fillfactor 50", "fillfactor 90"].map(|options| with(&options.replace(' ', "-"), options, "old"));
    let old = [side("ext4 guest=a", vec![half, full]), side("ext4 guest=b", vec![with("b", "", "old")])];
    let new = [side("ext4", vec![with("fillfactor-50", "", "new")])];
    let left_out = record("new", &["fillfactor-90", "b"]);
    let run = CheckedRun { run: &left_out, ..of("new", &new) };
    let found = check(run, of("old", &old), &limits(&["tps -5 %"]));
    assert_eq!((found.outcome, found.limits.len()), (Compliance::Pass, 1), "{:?}", found.limits);
    assert_eq!(found.limits[0].measure, "pgbench/clients 4/fillfactor 50/tps");
    let other = [side("ext4", vec![with("fillfactor-50", "fillfactor 50 %", "new")])];
    let found = check(of("new", &other), of("old", &old[..1]), &limits(&["tps -5 %"]));
    assert_eq!(found.outcome, Compliance::Undecided, "ids may leave out signs of a value");
}

#[test]
fn what_is_left_out_is_named_up_to_a_few() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let old = [side("ext4", ids.map(|id| of_case(id, id, tps("old", &[1.0; 3]))).to_vec())];
    let left_out = record("new", &ids);
    let found = check(CheckedRun { run: &left_out, ..of("new", &[]) }, of("old", &old), &limits(&["tps -5 %"]));
    assert!(found.notes.iter().any(|note| note.ends_with(": a; b; c; d; e; f; 2 more")), "{:?}", found.notes);
}

#[test]
fn what_the_run_has_instead_is_named() {
    let means = [1000.0, 1002.0, 998.0];
    let with = |clients| of_case("", clients, tps("old", &means));
    let old = [side("ext4", vec![with("4")]), side("xfs", vec![with("4")])];
    let new = [side("ext4", vec![with("8")]), side("zfs", Vec::new())];
    let found = check(of("new", &new), of("old", &old), &limits(&["tps -5 %"]));
    let how: Vec<&str> = found.limits.iter().map(|one| one.how.as_str()).collect();
    assert_eq!(how[0], "the run has no such figure; the nearest is pgbench/clients 8/tps");
    assert_eq!(how[1], "the run has no such case; name one on each side, as in RUN:ext4; it has ext4; zfs");
}

#[test]
fn counters_have_limits_and_may_agree_exactly() {
    let counter = |run, means: &[f64]| SideMeasure {
        item: "wal_bytes".to_owned(),
        figure: FigureKind::Counter,
        unit: String::new(),
        ..tps(run, means)
    };
    let outcome = |new: &[f64], limit| {
        let (new, old) = ([side("a", vec![counter("new", new)])], [side("a", vec![counter("old", &[500.0; 3])])]);
        assert_eq!(unknown(&limits(&[limit]), &new, &old), None);
        assert_eq!(on_gains_alone(&limits(&[limit]), &old), None);
        check(of("new", &new), of("old", &old), &limits(&[limit])).outcome
    };
    assert_eq!(outcome(&[500.0; 3], "wal_bytes +1 %"), Compliance::Pass);
    assert_eq!(outcome(&[511.0, 510.0, 512.0], "wal_bytes +1 %"), Compliance::Fail);
    let gain = on_gains_alone(&limits(&["wal_bytes -1 %"]), &[side("a", vec![counter("old", &[500.0; 3])])]);
    assert_eq!(gain.unwrap().1, "wal_bytes +1 %");
}

#[test]
fn what_compare_refuses_is_undecided_with_the_reason() {
    let means = [1000.0, 1002.0, 998.0];
    let in_memory = SideMeasure { medium: Medium::Memory, ..tps("new", &means) };
    let (new, old) = ([side("a", vec![in_memory])], [side("a", vec![tps("old", &means)])]);
    let found = check(of("new", &new), of("old", &old), &limits(&["tps -5 %"]));
    assert_eq!(found.outcome, Compliance::Undecided);
    assert_eq!(found.limits[0].how, "not compared: memory vs. disk: in memory; baseline: on a device");
}

#[test]
fn what_the_run_gave_up_or_did_not_measure_exceeds_a_limit() {
    let durable = |run, class| {
        let durability = Durability { class, reason: "barrier".to_owned(), otherwise: None, sight_ends: Vec::new() };
        SideMeasure { durability: Some(durability), ..tps(run, &[1000.0, 1002.0, 998.0]) }
    };
    let outcome = |new: Vec<SideMeasure>, old: SideMeasure| {
        check(of("new", &[side("a", new)]), of("old", &[side("a", vec![old])]), &limits(&["tps -5 %"])).outcome
    };
    let [flushed, volatile] = [DurabilityClass::Flushed, DurabilityClass::Volatile];
    assert_eq!(outcome(vec![durable("new", volatile)], durable("old", flushed)), Compliance::Fail);
    assert_eq!(outcome(vec![durable("new", flushed)], durable("old", volatile)), Compliance::Undecided);
    assert_eq!(outcome(vec![tps("new", &[0.0; 3])], durable("old", flushed)), Compliance::Fail);
    assert_eq!(outcome(Vec::new(), durable("old", flushed)), Compliance::Undecided, "not reached, or not asked");
    let old = [side("a", vec![durable("old", flushed)])];
    for left in [Vec::new(), vec![durable("new", flushed)]] {
        let failed = Side { failed: Some("the stack was full in trial 2".to_owned()), ..side("a", left) };
        let found = check(of("new", &[failed]), of("old", &old), &limits(&["tps -5 %"]));
        assert_eq!((found.limits[0].how.as_str(), found.outcome), ("the stack was full in trial 2", Compliance::Fail));
    }
}

#[test]
fn a_limit_on_a_gain_alone_is_told() {
    let sides = [side("a", vec![tps("one", &[1.0])])];
    let told = |texts: &[&str]| on_gains_alone(&limits(texts), &sides);
    assert_eq!(told(&["tps +5 %"]), Some(("tps +5 %".to_owned(), "tps -5 %".to_owned())));
    assert_eq!(told(&["tps +150 %"]).unwrap().1, "tps -5 %");
    for both in [["tps +50 %", "tps -5 %"], ["tps +50 %", "pgbench/clients 4/tps -5 %"]] {
        assert_eq!(told(&both), None);
    }
}

#[test]
fn only_separate_runs_are_called_unpaired() {
    let means = [1000.0, 1002.0, 998.0];
    let sides = [side("ext4", vec![tps("one", &means)])];
    let others = [side("xfs", vec![tps("one", &[1001.0, 1003.0, 999.5])])];
    let apart = check(of("new", &sides), of("old", &others), &limits(&["tps -5 %"]));
    assert!(!apart.paired && apart.notes[0].contains("not paired"), "{:?}", apart.notes);
    let one = check(of("one", &sides), of("one", &others), &limits(&["tps -5 %"]));
    assert!(one.paired && !one.notes.iter().any(|note| note.contains("paired")), "{:?}", one.notes);
    assert_eq!(one.limits[0].how, "paired over 3 blocks");
}

#[test]
fn cases_of_other_names_that_are_compared_are_both_named() {
    let (new, old) = ([side("xfs", vec![tps("one", &[1.0; 3])])], [side("ext4", vec![tps("one", &[1.0; 3])])]);
    let named = |run: &[Side], baseline: &[Side]| {
        let found = check(of("one", run), of("one", baseline), &limits(&["tps -5 %"]));
        found.limits.iter().map(|one| one.case.clone()).collect::<Vec<_>>()
    };
    assert_eq!(named(&new, &old), ["xfs against ext4"]);
    assert_eq!(named(&old, &old), ["ext4"]);
}

#[test]
fn a_case_that_fails_when_measured_again_is_undecided() {
    let means = [1000.0, 1002.0, 998.0];
    let both = |run, means| [side("ext4", vec![tps(run, means)]), side("xfs", vec![tps(run, means)])];
    let (new, old) = (both("new", &[1001.0, 1003.0, 999.5]), both("old", &means));
    let before = check(of("new", &new), of("old", &old), &limits(&["tps -5 %"]));
    let (again, without) =
        (both("again", &[1001.0, 1003.0, 999.5]), [side("ext4", vec![tps("again", &means)]), side("xfs", Vec::new())]);
    let now = check(of("again", &again), of("again", &without), &limits(&["tps -5 %"]));
    assert_eq!((now.outcome, now.limits.len()), (Compliance::Pass, 1));
    let found = now.of_rerun("results/again".to_owned(), before);
    assert_eq!((found.outcome, found.limits.len()), (Compliance::Undecided, 2));
    assert_eq!(found.limits[0].how, "paired over 3 blocks");
    assert_eq!((found.limits[1].case.as_str(), found.limits[1].value), ("xfs", None));
}

#[test]
fn an_unknown_figure_is_named_along_with_the_available_ones() {
    let sides = [side("ext4", vec![tps("one", &[1.0])])];
    let found = unknown(&limits(&["tps -5 %", "qps -5 %"]), &sides, &[]);
    assert_eq!(found, Some(("qps".to_owned(), vec!["tps".to_owned()])));
    assert_eq!(unknown(&limits(&["tps -5 %"]), &sides, &[]), None);
}
