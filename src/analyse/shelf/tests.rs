//! Tests of claims and rules on synthetic records. `tests/shelf.rs` tests the real shelf.

use super::findings::{ConclusionFinding, RemarkWeight, RuleRemark, Support};
use super::{claims, rules};
use crate::record::imported::{
    ImportRecord, ImportedCase, ImportedFigure, ImportedFile, ImportedOutput, ImportedRow, ImportedTrial,
};
use crate::record::publication::{Compare, Conclusion};
use proptest::prelude::{prop_assert, proptest};

fn figure(name: &str, unit: &str, value: f64) -> ImportedFigure {
    ImportedFigure { name: name.into(), unit: unit.into(), value, text: value.to_string(), line: 1 }
}

fn row(labels: &[(&str, &str)], figures: &[(&str, &str, f64)]) -> ImportedRow {
    ImportedRow {
        labels: labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        figures: figures.iter().map(|(name, unit, value)| figure(name, unit, *value)).collect(),
        line: 1,
        ..ImportedRow::default()
    }
}

fn output(tool: &str, rows: Vec<ImportedRow>) -> ImportedOutput {
    ImportedOutput { tool: tool.into(), rows, ..ImportedOutput::default() }
}

fn trial(outputs: Vec<ImportedOutput>) -> ImportedTrial {
    let files = vec![ImportedFile { name: "out.txt".into(), ..ImportedFile::default() }];
    ImportedTrial { files, outputs, ..ImportedTrial::default() }
}

fn case(name: &str, facts: &[(&str, &str)], trials: Vec<ImportedTrial>) -> ImportedCase {
    let facts = facts.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    ImportedCase { name: name.into(), facts, trials, caveats: Vec::new() }
}

fn record(cases: Vec<ImportedCase>) -> ImportRecord {
    ImportRecord { cases, ..ImportRecord::default() }
}

/// A pgbench run of 60 s with one client.
fn pgbench(tps: f64) -> ImportedOutput {
    let figures = [
        ("clients", "count", 1.0),
        ("duration", "s", 60.0),
        ("transactions", "count", (tps * 60.0).round()),
        ("tps", "tx/s", tps),
    ];
    output("pgbench", vec![row(&[("part", "summary")], &figures)])
}

/// Output of pg_test_fsync: test, method, rate.
fn syncs(rows: &[(&str, &str, f64)]) -> ImportedOutput {
    let mut all = vec![row(&[], &[("seconds_per_test", "s", 5.0)])];
    all.extend(rows.iter().map(|(test, method, rate)| {
        row(&[("test", test), ("write_bytes", "8192"), ("method", method)], &[("rate", "ops/s", *rate)])
    }));
    output("pg_test_fsync", all)
}

fn loads(name: &str, tps: &[f64]) -> ImportedCase {
    case(name, &[], tps.iter().map(|tps| trial(vec![pgbench(*tps)])).collect())
}

fn higher(case: &str, over: &str) -> Compare {
    let (tool, figure) = ("pgbench".into(), "tps".into());
    Compare { case: case.into(), over: over.into(), tool, figure, ..Compare::default() }
}

fn answer(record: &ImportRecord, compare: &[Compare]) -> ConclusionFinding {
    let conclusion = Conclusion { says: "x".into(), compare: compare.to_vec(), ..Conclusion::default() };
    claims::answer(record, &conclusion)
}

fn said(remarks: &[RuleRemark], rule: &str) -> String {
    remarks.iter().find(|remark| remark.rule == rule).map_or_else(String::new, |remark| remark.sentence.clone())
}

#[test]
fn single_runs_carry_no_interval() {
    let found = answer(&record(vec![loads("a", &[1300.0]), loads("b", &[1000.0])]), &[higher("a", "b")]);
    let it = &found.comparisons[0];
    assert_eq!((found.support, it.interval, it.trials), (Support::NotShown, None, (1, 1)));
    assert!(it.sentence.contains("one run of 60 s each, so no interval"), "{}", it.sentence);
}

#[test]
fn single_runs_contradict_as_little_as_they_show() {
    let of = |a: f64| answer(&record(vec![loads("a", &[a]), loads("b", &[1000.0])]), &[higher("a", "b")]).support;
    assert_eq!(of(900.0), Support::NotShown);
    assert_eq!(of(250.0), Support::NotShown);
    assert_eq!(of(999.0), Support::NotShown);
    assert_eq!(of(1001.0), Support::NotShown);
    assert_eq!(of(4000.0), Support::PointsThatWay);
}

#[test]
fn repeated_runs_have_an_interval_that_decides() {
    let of = |a: &[f64], b: &[f64]| answer(&record(vec![loads("a", a), loads("b", b)]), &[higher("a", "b")]).support;
    assert_eq!(of(&[1290.0, 1300.0, 1310.0], &[990.0, 1000.0, 1010.0]), Support::Shown);
    assert_eq!(of(&[990.0, 1000.0, 1010.0], &[1290.0, 1300.0, 1310.0]), Support::Contradicted);
    assert_eq!(of(&[900.0, 1300.0, 1700.0], &[700.0, 1000.0, 1300.0]), Support::NotShown);
}

#[test]
fn only_rates_point_a_way_without_repeats() {
    let of = |figure: &str, unit: &str| {
        let case = |name: &str, value| {
            case(name, &[], vec![trial(vec![output("x", vec![row(&[], &[(figure, unit, value)])])])])
        };
        let (tool, figure) = ("x".into(), figure.into());
        let claim = Compare { case: "a".into(), over: "b".into(), tool, figure, ..Compare::default() };
        answer(&record(vec![case("a", 900.0), case("b", 100.0)]), &[claim])
    };
    assert_eq!(of("rate", "ops/s").support, Support::PointsThatWay);
    let latency = of("latency_mean", "ms");
    assert_eq!(latency.support, Support::NotShown);
    assert!(!latency.comparisons[0].sentence.contains("known to scatter"), "{}", latency.comparisons[0].sentence);
}

#[test]
fn what_was_not_published_cannot_be_told() {
    let record = record(vec![loads("a", &[1300.0])]);
    assert_eq!(answer(&record, &[higher("a", "nowhere")]).support, Support::CannotBeTold);
    assert_eq!(answer(&record, &[]).support, Support::CannotBeTold);
    let conclusion = Conclusion { lacks: Some("a disk".into()), ..Conclusion::default() };
    let found = claims::answer(&record, &conclusion);
    assert_eq!((found.support, found.because), (Support::CannotBeTold, vec!["missing: a disk".to_owned()]));
}

/// Remarks on one pg_test_fsync output.
fn on_syncs(facts: &[(&str, &str)], rows: &[(&str, &str, f64)]) -> Vec<RuleRemark> {
    rules::remarks(&record(vec![case("a", facts, vec![trial(vec![syncs(rows)])])]))
}

#[test]
fn rates_of_memory_are_told_with_their_reason() {
    let fast = [("one write", "fsync", 1e6), ("not synced", "write", 5e5)];
    let of = |facts: &[(&str, &str)]| said(&on_syncs(facts, &fast), "too_many_syncs");
    assert!(of(&[("stack.filesystem", "tmpfs")]).contains("tmpfs keeps its files in memory"));
    assert!(of(&[("zfs.sync", "disabled")]).contains("nothing is synced before"));
    assert!(of(&[]).contains("it is memory, or nothing is synced"));
    assert!(on_syncs(&[], &[("one write", "fsync", 500.0), ("not synced", "write", 5e5)]).is_empty());
}

#[test]
fn sync_cost_is_judged_by_the_pg_test_fsync_version() {
    let of = |printed: Option<&str>, published: Option<&str>| {
        let mut output = syncs(&[("one write", "fsync", 1e6), ("not synced", "write", 5e5)]);
        output.version = printed.map(str::to_owned);
        let mut record = record(vec![case("a", &[], vec![trial(vec![output])])]);
        record.origin.postgresql = published.map(str::to_owned);
        said(&rules::remarks(&record), "no_slower_than_unsynced")
    };
    for old in [of(Some("9.3 or 9.4"), None), of(Some("9.5 or newer"), Some("11, by the name of the host"))] {
        assert!(old.contains("opens its file each time: the sync costs less than an open"), "{old}");
    }
    for new in [of(Some("17 or newer"), None), of(Some("11 or newer"), Some("14.10"))] {
        assert!(new.ends_with("no slower than one that is not synced (500 000): the sync costs nothing"), "{new}");
    }
    for unknown in [of(None, None), of(Some("11 or newer"), None), of(Some("9.3 or newer"), Some("some 13 or 14"))] {
        assert_eq!(unknown, "");
    }
}

#[test]
fn syncs_faster_than_a_disk_rotates_are_remarked() {
    let of = |facts: &[(&str, &str)], rate: f64| {
        said(&on_syncs(facts, &[("one write", "fsync", rate)]), "faster_than_a_turn")
    };
    assert!(of(&[("stack.media", "rotating")], 6676.0).contains("0.15 ms"));
    assert_eq!(of(&[("stack.media", "rotating")], 250.0), "");
    assert_eq!(of(&[], 6676.0), "");
}

#[test]
fn two_synced_writes_cost_about_two() {
    let of = |one: f64, two: f64| on_syncs(&[], &[("one write", "open_sync", one), ("two writes", "open_sync", two)]);
    let disk = said(&of(3753.0, 85.2), "two_writes_cost_much");
    assert!(disk.contains("85.2/s (12 ms each)") && disk.contains("0.27 ms") && disk.contains("is unknown"), "{disk}");
    let little = said(&of(1000.0, 746.0), "two_writes_cost_little");
    assert!(
        little.starts_with("two open_sync writes cost 1.34 times one") && little.ends_with("is unknown"),
        "{little}"
    );
    assert!(of(1000.0, 490.0).is_empty());
}

#[test]
fn two_writes_are_not_judged_against_a_conflicting_size_test() {
    let of = |two: f64, again: f64| {
        let mut output = syncs(&[("one write", "open_sync", 1000.0), ("two writes", "open_sync", two)]);
        let labels = [("test", "open_sync sizes"), ("writes", "2"), ("write_bytes", "8192"), ("method", "open_sync")];
        output.rows.push(row(&labels, &[("rate", "ops/s", again)]));
        let remarks = rules::remarks(&record(vec![case("a", &[], vec![trial(vec![output])])]));
        remarks.into_iter().map(|remark| (remark.rule, remark.sentence)).next()
    };
    for again in [1000.0 / 1.93, 1000.0 / 56.0] {
        let (rule, sentence) = of(1000.0 / 1.34, again).unwrap();
        assert_eq!(rule, "two_writes_disagree");
        assert!(sentence.contains("1.34 times one in one row and") && sentence.ends_with("is unknown"), "{sentence}");
    }
    assert_eq!(of(1000.0 / 1.34, 1000.0 / 1.3).unwrap().0, "two_writes_cost_little");
    assert_eq!(of(500.0, 510.0), None);
}

#[test]
fn what_a_commit_writes_is_seen_beside_the_load() {
    let device = |name: &str, per_s: f64| {
        let figures = [
            ("write_ops_per_s", "ops/s", per_s),
            ("write_bytes_per_s", "B/s", per_s * 8192.0),
            ("write_merges_per_s", "requests/s", per_s),
            ("util_percent", "%", 90.0),
        ];
        row(&[("report", "1"), ("device", name)], &figures)
    };
    let of = |rows: Vec<ImportedRow>, facts: &[(&str, &str)]| {
        let outputs = vec![pgbench(1000.0), output("iostat -x", rows)];
        said(&rules::remarks(&record(vec![case("a", facts, vec![trial(outputs)])])), "commit_writes")
    };
    let whole = of(vec![device("sda", 1500.0), device("sda1", 1500.0), device("sdb", 0.0)], &[("wal_block", "8 kB")]);
    let wanted = "sda: 1.50 writes of 8.0 KiB per commit, 12.0 KiB in total, from all programs; a write is one WAL block \
                  of 8 KiB, however small the row";
    assert_eq!(whole, wanted);
    let scattering = [1400.0, 1500.0, 1600.0].map(|per_s| device("sda", per_s));
    let of_three = of(scattering.to_vec(), &[]);
    assert!(of_three.starts_with("sda: 1.50 writes of 8.0 KiB per commit, 12.0 KiB in total"), "{of_three}");
    let other = of(vec![device("sda", 7.0)], &[]);
    assert_eq!(other, "sda: 0.007 writes per commit: commits were not written to it one by one");
    assert_eq!(
        of(vec![device("sda", 1500.0), device("sdb", 10.0)], &[]),
        "",
        "which of the two has the WAL is not known"
    );
}

#[test]
fn a_summary_that_does_not_fit_itself_is_told() {
    let mut odd = pgbench(1000.0);
    odd.rows[0].figures[2].value = 30_000.0;
    let remarks = rules::remarks(&record(vec![case("a", &[("pgbench.clients", "4")], vec![trial(vec![odd])])]));
    let sentences: Vec<&str> = remarks.iter().map(|remark| remark.sentence.as_str()).collect();
    assert!(sentences.iter().any(|it| it.starts_with("30 000 transactions in 60 s are 500 a second")), "{sentences:?}");
    assert!(sentences.iter().any(|it| it.starts_with("pgbench reports clients 1")), "{sentences:?}");
    assert!(remarks.iter().all(|remark| remark.weight == RemarkWeight::Contradiction));
    let fine = rules::remarks(&record(vec![loads("a", &[1000.0])]));
    assert!(fine.is_empty(), "{fine:?}");
}

#[test]
fn facts_are_held_against_what_was_printed() {
    let property = output("zfs get", vec![row(&[("property", "sync"), ("value", "disabled")], &[])]);
    let mounts = output("mount", vec![row(&[("mount", "/data"), ("type", "xfs")], &[])]);
    let facts = [("zfs.sync", "standard"), ("stack.filesystem", "ext4"), ("stack.mount", "/data")];
    let remarks = rules::remarks(&record(vec![case("a", &facts, vec![trial(vec![property, mounts])])]));
    let all: Vec<&str> = remarks.iter().map(|remark| remark.sentence.as_str()).collect();
    assert_eq!(
        all,
        [
            "zfs get lists sync=disabled, but the case states sync=standard",
            "/data is mounted as xfs, but the case states ext4"
        ]
    );
}

#[test]
fn a_property_is_read_from_the_dataset_in_use() {
    let of =
        |name: &str, property: &str, value: &str| row(&[("name", name), ("property", property), ("value", value)], &[]);
    let lists = [
        of("tank", "sync", "standard"),
        of("tank/pg", "sync", "disabled"),
        of("tank", "mountpoint", "/tank"),
        of("tank/pg", "mountpoint", "/data"),
    ];
    let said = |facts: &[(&str, &str)]| {
        let outputs = vec![output("zfs get", lists.to_vec())];
        let remarks = rules::remarks(&record(vec![case("a", facts, vec![trial(outputs)])]));
        assert!(remarks.len() < 2, "{remarks:?}");
        remarks.into_iter().next().map(|remark| (remark.weight, remark.sentence))
    };
    let standard = ("zfs.sync", "standard");
    let contradicts = "zfs get lists sync=disabled, but the case states sync=standard".to_owned();
    let expected = Some((RemarkWeight::Contradiction, contradicts));
    assert_eq!(said(&[standard, ("zfs.dataset", "tank/pg")]), expected);
    assert_eq!(said(&[standard, ("stack.mount", "/data")]), expected);
    assert_eq!(said(&[standard, ("zfs.dataset", "tank")]), None);
    assert_eq!(said(&[standard, ("zfs.dataset", "other/pg")]), None, "nothing is listed of it");
    assert_eq!(said(&[standard]), None, "one of the two may be the one that it used");
    let (weight, neither) = said(&[("zfs.sync", "always")]).unwrap();
    assert_eq!(weight, RemarkWeight::Contradiction);
    assert!(neither.starts_with("zfs get lists sync=standard, but"), "{neither}");
}

#[test]
fn the_price_of_durability_needs_two_otherwise_equal_cases() {
    let of = |facts: &[(&str, &str)], rate: f64| {
        case(&format!("{rate}"), facts, vec![trial(vec![syncs(&[("one write", "fsync", rate)])])])
    };
    let (slow, fast) = (of(&[("zfs.sync", "standard")], 100.0), of(&[("zfs.sync", "disabled")], 1700.0));
    let other = of(&[("zfs.sync", "disabled"), ("zfs.logbias", "throughput")], 1700.0);
    let price = |a: &ImportedCase, b: &ImportedCase| {
        said(&rules::remarks(&record(vec![a.clone(), b.clone()])), "price_of_durability")
    };
    assert!(price(&slow, &fast).contains("17 times is the price of durability"), "{}", price(&slow, &fast));
    assert_eq!(price(&slow, &other), "");
}

proptest! {
    #[test]
    fn a_claim_and_its_opposite_are_never_both_shown(a in 1.0..1e6f64, b in 1.0..1e6f64, again in 0.5..1.5f64) {
        let record = record(vec![loads("a", &[a, a * again]), loads("b", &[b]), loads("c", &[a])]);
        for (one, other) in [("a", "b"), ("c", "b"), ("a", "c")] {
            let up = answer(&record, &[higher(one, other)]).support;
            let down = answer(&record, &[higher(other, one)]).support;
            prop_assert!(up < Support::PointsThatWay || down < Support::PointsThatWay);
            prop_assert!((up == Support::Shown) <= (down == Support::Contradicted));
        }
    }

    #[test]
    fn no_figures_make_the_rules_panic(one in -1.0..1e7f64, two in 0.0..1e7f64, tps in 0.0..1e6f64) {
        let rows = [("one write", "open_sync", one), ("two writes", "open_sync", two), ("one write", "fsync", two)];
        let outputs = vec![syncs(&rows), pgbench(tps)];
        let facts = [("stack.media", "rotating"), ("iostat.interval_s", "0"), ("pgbench.clients", "x")];
        for remark in rules::remarks(&record(vec![case("a", &facts, vec![trial(outputs)])])) {
            prop_assert!(!remark.sentence.is_empty() && !remark.at.is_empty() && !remark.source.is_empty());
        }
    }
}
