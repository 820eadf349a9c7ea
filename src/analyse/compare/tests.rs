//! What may be compared, what is refused and why, and what a ratio may claim.

mod costs;
mod imports;

use super::findings::{ComparisonFindings, Method, RatioOutcome, Reason};
use super::from_run::RunSource;
use super::judge::objection;
use super::side::{
    ConditionKind, FigureKind, MeasureCondition, MeasureSpread, Medium, Side, SideMeasure, SideOrigin, UnsyncedForm,
};
use super::{compare, from_probe, from_run, ratio};
use crate::analyse::findings::{Durability, DurabilityClass};
use crate::analyse::probe::sample;
use crate::analyse::stories::story::{Act, Story};
use crate::stats::ratio::BlockMean;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn tps(value: f64) -> SideMeasure {
    let conditions = vec![
        MeasureCondition::named(ConditionKind::Workload, Some("tpcb-like".to_owned())),
        MeasureCondition::named(ConditionKind::Scale, Some("100".to_owned())),
        MeasureCondition::named(ConditionKind::Clients, Some("4".to_owned())),
        MeasureCondition::usual(ConditionKind::Connecting, Some("excluded".to_owned()), "excluded"),
    ];
    SideMeasure::new("pgbench", conditions, "tps", FigureKind::Rate, "tps", value)
}

fn with(mut measure: SideMeasure, kind: ConditionKind, value: Option<&str>) -> SideMeasure {
    for condition in measure.conditions.iter_mut().filter(|condition| condition.kind == kind) {
        condition.value = value.map(str::to_owned);
    }
    measure
}

fn class(class: DurabilityClass) -> Option<Durability> {
    Some(Durability::of(class, "it was read back"))
}

fn trials(run: &str, means: &[f64]) -> MeasureSpread {
    let mean = |(block, mean): (u32, &f64)| BlockMean::of(block, *mean);
    MeasureSpread::Trials { run: run.to_owned(), means: (1..).zip(means).map(mean).collect(), slices: false }
}

fn side(argument: usize, label: &str, origin: SideOrigin, measures: Vec<SideMeasure>) -> Side {
    let facts = [("host.kernel".to_owned(), format!("kernel of {label}"))].into();
    Side { argument, label: label.to_owned(), origin, facts, measures, ..Side::default() }
}

fn two(a: SideMeasure, b: SideMeasure) -> ComparisonFindings {
    compare(&[side(0, "a", SideOrigin::Imported, vec![a]), side(1, "b", SideOrigin::Imported, vec![b])])
}

/// The only refusal between two measures: its reason and words.
fn refusal(a: SideMeasure, b: SideMeasure) -> (Reason, String) {
    let found = two(a, b);
    assert!(!found.compared_anything(), "{:?}", found.pairs);
    assert_eq!(found.refused.len(), 1, "{:?}", found.refused);
    assert!(found.answer.starts_with("Nothing can be compared."), "{}", found.answer);
    (found.refused[0].reason, found.refused[0].words.clone())
}

#[test]
fn another_workload_scale_or_client_count_is_refused() {
    let other = |kind, value| refusal(tps(1.0), with(tps(2.0), kind, Some(value)));
    assert_eq!(other(ConditionKind::Workload, "select-only").0, Reason::OtherWorkload);
    assert_eq!(other(ConditionKind::Scale, "10").0, Reason::OtherScale);
    let (reason, words) = other(ConditionKind::Clients, "16");
    assert_eq!(reason, Reason::OtherClients);
    assert_eq!(words, "different client count: 4 (A) against 16 (B)");
    assert_eq!(other(ConditionKind::Connecting, "included").0, Reason::OtherConditions);
}

#[test]
fn a_condition_unknown_on_one_side_permits_no_comparison() {
    let (reason, words) = refusal(tps(1.0), with(tps(2.0), ConditionKind::Scale, None));
    assert_eq!(reason, Reason::NotTold);
    assert_eq!(words, "a condition is unknown on one side, scale: 100 (A) against unknown (B)");
    let neither = with(with(tps(2.0), ConditionKind::Scale, None), ConditionKind::Clients, None);
    let (_, words) = refusal(tps(1.0), neither);
    assert_eq!(words, "a condition is unknown on one side, scale, clients: 100, 4 (A) against unknown (B)");
    let silent = |value| with(tps(value), ConditionKind::Scale, None);
    let found = two(silent(1.0), silent(2.0));
    assert!(found.compared_anything());
    assert!(found.caveats.contains(&"A, B: scale unknown on both sides and may differ".to_owned()));
}

#[test]
fn a_custom_query_without_its_script_is_an_unknown_workload() {
    let own = |value| with(tps(value), ConditionKind::Workload, Some("Custom query"));
    let found = two(own(1.0), own(2.0));
    assert!(found.caveats.iter().any(|caveat| caveat.contains("workload unknown on both")), "{:?}", found.caveats);
}

#[test]
fn a_failed_measure_of_a_tool_is_reported_with_reason() {
    let absent = SideMeasure { absent: Some("n/a: not built in".to_owned()), ..tps(0.0) };
    let (reason, words) = refusal(tps(5.0), absent.clone());
    assert_eq!(reason, Reason::NotToBeHad);
    assert_eq!(words, "not available on one side: measured (A) against n/a: not built in (B)");
    let found = two(absent.clone(), absent);
    assert!(found.refused.is_empty() && found.alone.is_empty() && found.pairs[0].rows.is_empty());
}

#[test]
fn another_write_size_is_refused() {
    let of = |size: &str| {
        let size = vec![MeasureCondition::named(ConditionKind::WriteSize, Some(size.to_owned()))];
        SideMeasure::new("pg_test_fsync/one write", size, "fdatasync", FigureKind::Rate, "ops/s", 7.0)
    };
    assert_eq!(refusal(of("8 kB"), of("16 kB")).0, Reason::OtherWriteSize);
    assert_eq!(of("8 kB").key(), "pg_test_fsync/one write/8 kB/fdatasync");
}

#[test]
fn a_mean_is_not_held_against_a_percentile() {
    let latency = |figure| SideMeasure { item: "latency".to_owned(), figure, ..tps(900.0) };
    let p99 = || latency(FigureKind::Percentile("p99".to_owned()));
    let (reason, words) = refusal(latency(FigureKind::Mean), p99());
    assert_eq!(
        (reason, words.as_str()),
        (Reason::MeanAgainstPercentile, "mean vs. percentile: mean (A) against p99 (B)")
    );
    assert_eq!(refusal(latency(FigureKind::Percentile("p95".to_owned())), p99()).0, Reason::MeanAgainstPercentile);
    let [one, other] = [vec![p99()], vec![p99(), latency(FigureKind::Mean)]];
    let found = compare(&[side(0, "a", SideOrigin::Imported, one), side(1, "b", SideOrigin::Imported, other)]);
    assert!(found.refused.is_empty(), "a figure more is no objection: {:?}", found.refused);
}

#[test]
fn files_in_memory_are_not_compared_with_files_on_devices() {
    let lying = |medium| SideMeasure { medium, ..tps(5.0) };
    assert_eq!(refusal(lying(Medium::Memory), lying(Medium::Disk)).0, Reason::MemoryAgainstDisk);
    assert!(two(lying(Medium::Memory), lying(Medium::Unknown)).compared_anything());
}

#[test]
fn datasets_within_ram_are_not_compared_with_larger_ones() {
    let read = |data| SideMeasure { data, ..tps(5.0) };
    assert_eq!(refusal(read(Medium::Disk), read(Medium::Memory)).0, Reason::DataInMemoryAgainstDisk);
}

#[test]
fn comparing_different_durability_classes_is_refused() {
    use DurabilityClass::{Delayed, Flushed, Unknown, Volatile};
    let lasting = |of| SideMeasure { durability: class(of), ..tps(5.0) };
    for (one, other) in [(Flushed, Volatile), (Delayed, Flushed), (Volatile, Delayed)] {
        assert_eq!(refusal(lasting(one), lasting(other)).0, Reason::OtherDurability);
    }
    let found = two(lasting(Flushed), lasting(Unknown));
    assert!(found.compared_anything());
    let caveat = found.pairs[0].caveat.as_ref().unwrap();
    assert!(caveat.contains("equally durable: B unknown, A flushed."), "{caveat}");
    assert_eq!(two(lasting(Flushed), lasting(Flushed)).pairs[0].caveat, None);
}

#[test]
fn a_failed_sync_is_no_measure() {
    let failed = SideMeasure { failure: Some("fdatasync failed: EIO".to_owned()), ..tps(9.0) };
    let (reason, words) = refusal(tps(8.0), failed);
    assert_eq!(reason, Reason::SyncFailed);
    assert!(words.contains("EIO"), "{words}");
}

#[test]
fn the_row_without_a_sync_is_refused_across_versions() {
    use UnsyncedForm::{KeepsOpen, OpensEachTime, Unknown};
    let form = |form| SideMeasure { unsynced_form: Some(form), ..tps(9.0) };
    for (one, other) in [(OpensEachTime, KeepsOpen), (Unknown, KeepsOpen), (Unknown, Unknown)] {
        assert_eq!(refusal(form(one), form(other)).0, Reason::NotSyncedAcrossVersions);
    }
    assert!(two(form(KeepsOpen), form(KeepsOpen)).compared_anything());
}

#[test]
fn the_unsynced_row_keeps_its_file_open_since_version_14() {
    use UnsyncedForm::{KeepsOpen, OpensEachTime, Unknown};
    for (printed, stated, form) in [
        (Some("13"), None, OpensEachTime),
        (Some("14"), None, KeepsOpen),
        (Some("17 or newer"), None, KeepsOpen),
        (Some("9.3 or 9.4"), None, OpensEachTime),
        (Some("13 or 14"), None, Unknown),
        (Some("11 or newer"), None, Unknown),
        (Some("11 or newer"), Some("15.3"), KeepsOpen),
        (Some("9.5 or newer"), Some("11, by the name of the host"), OpensEachTime),
        (None, None, Unknown),
    ] {
        assert_eq!(UnsyncedForm::of(printed, stated), form, "{printed:?} {stated:?}");
    }
}

#[test]
fn a_side_that_did_nothing_has_no_ratio() {
    assert_eq!(refusal(tps(0.0), tps(5.0)).0, Reason::NothingDone);
}

#[test]
fn single_runs_have_a_ratio_without_interval_or_winner() {
    let found = two(tps(100.0), tps(300.0));
    let comparison = found.pairs[0].rows[0].comparison.as_ref().unwrap();
    assert_eq!((comparison.ratio, comparison.low, comparison.outcome), (3.0, None, RatioOutcome::NoInterval));
    assert!(comparison.how.contains("single run, variance unknown"));
    let answer = |a, b| two(tps(a), tps(b)).answer.lines().next().unwrap().to_owned();
    let certain = "; one run each: direction is clear, size is not";
    assert_eq!(answer(100.0, 300.0), format!("B is 3× A at tps, tpcb-like, scale 100, clients 4{certain}"));
    assert_eq!(answer(300.0, 100.0), format!("B is 0.333× A at tps, tpcb-like, scale 100, clients 4{certain}"));
    assert!(answer(100.0, 210.0).ends_with(
        "2.1× A at tps, tpcb-like, scale 100, clients 4; one run each: neither size nor direction is certain"
    ));
    assert!(found.caveats.iter().any(|caveat| caveat.contains("without repeats") && caveat.contains("show no winner")));
}

#[test]
fn on_busy_cpus_not_even_the_direction_is_certain() {
    let mut busy = side(1, "b", SideOrigin::Probe, vec![tps(900.0)]);
    busy.caveats.push("the probe waited for a CPU 81.9 % of the time: other programs use the CPUs".to_owned());
    let found = compare(&[side(0, "a", SideOrigin::Imported, vec![tps(100.0)]), busy]);
    assert!(
        found.answer.contains("9× A at") && found.answer.contains("neither size nor direction"),
        "{}",
        found.answer
    );
}

#[test]
fn of_two_runs_both_figures_are_told() {
    let repeated = SideMeasure { spread: trials("r", &[10.0, 7654.0]), ends: Some((0.1, 7e5)), ..tps(272.0) };
    let row = &two(repeated, tps(100.0)).pairs[0].rows[0];
    assert_eq!((row.reference_runs.as_slice(), row.value_runs.as_slice()), ([10.0, 7654.0].as_slice(), [].as_slice()));
}

#[test]
fn a_reason_is_given_once_with_all_its_sides() {
    let clients = |argument, clients: &str| {
        let measure = with(tps(5.0), ConditionKind::Clients, Some(clients));
        side(argument, clients, SideOrigin::Imported, vec![measure])
    };
    let found = compare(&[clients(0, "4"), clients(0, "8"), clients(1, "16")]);
    assert_eq!(found.refused.len(), 1, "{:?}", found.refused);
    assert_eq!(found.refused[0].words, "different client count: 4 (A) against 8 (B) against 16 (C)");
}

#[test]
fn trials_are_paired_within_a_run_and_not_across_runs() {
    let of = |run: &str, means: &[f64]| SideMeasure { spread: trials(run, means), ..tps(means[0]) };
    let measure = |a: SideMeasure, b: SideMeasure| ratio::compare(&a, &b).unwrap();
    let found = measure(of("r", &[110.0, 220.0, 331.0]), of("r", &[100.0, 200.0, 300.0]));
    assert_eq!((found.outcome, found.how.as_str()), (RatioOutcome::Faster, "paired over 3 blocks"));
    let found = measure(of("r", &[110.0, 220.0, 331.0]), of("q", &[100.0, 200.0, 300.0]));
    assert_eq!(found.outcome, RatioOutcome::Undecided);
    assert!(found.how.contains("without common blocks"), "{}", found.how);
    let found = measure(of("r", &[110.0]), of("r", &[100.0]));
    assert_eq!(
        (found.outcome, found.how.as_str()),
        (RatioOutcome::NoInterval, "no interval: single run, variance unknown")
    );
}

#[test]
fn a_ratio_unlike_the_quotient_of_its_figures_is_explained() {
    let explained = |means: &[f64]| {
        let of = |means: &[f64]| {
            let logs: f64 = means.iter().map(|mean| mean.ln()).sum();
            SideMeasure { spread: trials("r", means), ..tps((logs / means.len() as f64).exp()) }
        };
        let found = two(of(&[100.0, 101.0, 99.0]), of(means));
        found.caveats.iter().any(|caveat| caveat.contains("not the quotient of the two means beside it"))
    };
    // Only one of the two has the fourth block.
    assert!(explained(&[150.0, 151.0, 152.0, 1900.0]) && !explained(&[150.0, 151.0, 149.0]));
}

#[test]
fn a_single_trial_has_no_interval_in_any_run() {
    let of = |spread: MeasureSpread| SideMeasure { spread, ..tps(100.0) };
    let own = of(trials("r", &[99.0, 100.0, 101.0]));
    for single in [of(MeasureSpread::None), of(trials("r", &[50.0])), of(trials("other", &[50.0]))] {
        for found in [ratio::compare(&own, &single), ratio::compare(&single, &own)] {
            let found = found.unwrap();
            assert_eq!((found.outcome, found.low, found.high), (RatioOutcome::NoInterval, None, None));
            assert!(found.how.ends_with("single run, variance unknown"), "{}", found.how);
        }
    }
}

#[test]
fn a_run_and_a_probe_each_contribute_their_own_spread() {
    let probe = from_probe::side(0, "probe", &sample::honest());
    let slow = probe.measures.iter().find(|measure| measure.key() == "wal/8 kB/fdatasync").unwrap();
    let means = [1990.0, 2000.0, 2010.0];
    let run = SideMeasure { spread: trials("r", &means), ends: Some((1975.0, 2025.0)), value: 2000.0, ..slow.clone() };
    let found = ratio::compare(&run, slow).unwrap();
    assert_eq!(found.how, "from 3 trials and the slices of one measurement");
    assert!(found.low.unwrap() < found.ratio && found.ratio < found.high.unwrap(), "{found:?}");
}

#[test]
fn slices_of_a_single_measurement_name_no_winner() {
    let mean = |mean| BlockMean::of(1, mean);
    let ends = |value: f64| Some((value * 0.99, value * 1.01));
    let trial = |run: &str, value| {
        let spread = MeasureSpread::Trials { run: run.to_owned(), means: vec![mean(value)], slices: true };
        SideMeasure { spread, ends: ends(value), ..tps(value) }
    };
    let once = |value| trial("", value);
    let several = SideMeasure { spread: trials("q", &[99.0, 100.0, 101.0]), ends: ends(100.0), ..tps(100.0) };
    for (a, b) in [
        (once(200.0), once(100.0)),
        (trial("r", 200.0), trial("q", 100.0)),
        (trial("r", 200.0), once(100.0)),
        (once(200.0), several),
    ] {
        let found = ratio::compare(&a, &b).unwrap();
        assert_eq!((found.outcome, found.method), (RatioOutcome::NotRepeated, Method::Slices), "{a:?} {b:?}");
        assert!(found.low.unwrap() > 1.9 && found.high.unwrap() < 2.1, "{found:?}");
    }
    assert_eq!(ratio::compare(&once(100.0), &once(100.5)).unwrap().outcome, RatioOutcome::Undecided);
}

#[test]
fn only_rates_measured_once_can_exceed_the_known_scatter() {
    let beyond = |a: SideMeasure, b: SideMeasure| two(a, b).answer.contains("direction is clear");
    assert!(beyond(tps(100.0), tps(900.0)));
    let latency = |figure: FigureKind, value| SideMeasure { item: "latency".to_owned(), figure, ..tps(value) };
    assert!(!beyond(latency(FigureKind::Mean, 100.0), latency(FigureKind::Mean, 900.0)));
    let together = |value| {
        let spread = MeasureSpread::Together { trials: 3, alone: None };
        SideMeasure { spread, ..latency(FigureKind::Percentile("max".to_owned()), value) }
    };
    assert!(!beyond(together(100.0), together(900.0)));
    let copies = |value| SideMeasure { spread: trials(&format!("of {value}"), &[value, value]), ..tps(value) };
    assert!(!beyond(copies(100.0), copies(900.0)));
    let wide = SideMeasure { ends: Some((10.0, 2000.0)), ..tps(100.0) };
    assert!(!beyond(wide, tps(900.0)), "a figure inside of the other's interval points nowhere");
}

#[test]
fn trials_without_variance_between_them_have_no_interval() {
    let of = |run: &str, means: &[f64]| SideMeasure { spread: trials(run, means), ..tps(means[0]) };
    for (a, b) in [
        (of("r", &[200.0; 3]), of("r", &[100.0; 3])),
        (of("r", &[200.0, 400.0, 300.0]), of("r", &[100.0, 200.0, 150.0])),
        (of("r", &[0.3, 0.3, 0.3]), of("q", &[0.1, 0.1, 0.1])),
    ] {
        let found = ratio::compare(&a, &b).unwrap();
        assert_eq!((found.outcome, found.low, found.high), (RatioOutcome::NoInterval, None, None));
        assert!(found.how.contains("no variance between trials"), "{}", found.how);
    }
}

#[test]
fn a_shorter_latency_is_faster() {
    let latency = |means: &[f64]| SideMeasure {
        figure: FigureKind::Mean,
        item: "latency".to_owned(),
        spread: trials("r", means),
        ..tps(means[0])
    };
    let (short, long) = (latency(&[10.0, 10.1, 9.9]), latency(&[20.0, 20.1, 19.9]));
    let found = ratio::compare(&short, &long).unwrap();
    assert_eq!(found.outcome, RatioOutcome::Faster);
}

#[test]
fn two_probes_compare_by_their_slices() {
    let slow = sample::honest();
    let mut fast = sample::honest();
    sample::all_at(&mut fast, 3000);
    let found = compare(&[from_probe::side(0, "slow", &slow), from_probe::side(1, "fast", &fast)]);
    let row = found.pairs[0].rows.iter().find(|row| row.measure == "pg_test_fsync/one write/8 kB/fdatasync").unwrap();
    let comparison = row.comparison.as_ref().unwrap();
    assert_eq!((comparison.outcome, comparison.method), (RatioOutcome::NotRepeated, Method::Slices));
    assert!((comparison.ratio - 3.0).abs() < 0.1 && comparison.low.unwrap() > 2.8, "{comparison:?}");
    let first = "B is 3× A at fdatasync, wal, 8 kB; one run each: direction is clear, size is not\n";
    assert!(found.answer.starts_with(first), "{}", found.answer);
    assert_eq!(found.answer.lines().count(), 2);
    assert!(found.caveats.iter().any(|caveat| caveat.contains("show no winner")), "{:?}", found.caveats);
    assert!(found.refused.is_empty() && found.alone.is_empty(), "{:?} {:?}", found.refused, found.alone);
    let same = compare(&[from_probe::side(0, "one", &slow), from_probe::side(1, "two", &slow)]);
    let outcomes = same.pairs[0].rows.iter().map(|row| row.comparison.as_ref().unwrap().outcome);
    assert!(outcomes.into_iter().all(|outcome| outcome == RatioOutcome::Undecided));
}

/// Rounds of a folder on a machine that slows down from round to round; `faster` is the folder's own factor.
fn rounds(faster: f64, jitter: [f64; 3]) -> Vec<crate::record::probe::ProbeRecord> {
    let drift = [3000.0, 1500.0, 500.0];
    let round = |(drift, jitter): (f64, f64)| {
        let mut record = sample::honest();
        sample::all_at(&mut record, (drift * faster * jitter) as u64);
        record
    };
    drift.into_iter().zip(jitter).map(round).collect()
}

#[test]
fn folders_that_took_turns_are_compared_round_by_round() {
    let side = |argument, rounds: &[_]| from_probe::side_of_rounds(argument, "f", "in turn", rounds).unwrap();
    let (one, same) = (rounds(1.0, [1.0, 1.05, 0.97]), rounds(1.0, [1.04, 0.98, 1.01]));
    let found = compare(&[side(0, &one), side(1, &same)]);
    let comparisons = || found.pairs[0].rows.iter().map(|row| row.comparison.as_ref().unwrap());
    assert!(comparisons().all(|found| found.outcome == RatioOutcome::Undecided && found.how.starts_with("paired")));
    let faster = rounds(1.5, [1.04, 0.98, 1.01]);
    let found = compare(&[side(0, &one), side(1, &faster)]);
    let row = found.pairs[0].rows.iter().find(|row| row.measure == "wal/8 kB/fdatasync").unwrap();
    assert_eq!(row.comparison.as_ref().unwrap().outcome, RatioOutcome::Faster, "{row:?}");
    assert!(from_probe::side_of_rounds(0, "f", "in turn", &[]).is_none());
}

#[test]
fn what_one_round_gave_away_holds_for_the_folder() {
    let mut all = rounds(1.0, [1.0; 3]);
    for row in &mut all[1].rows {
        sample::counted(row, 0, 1.0, Some(0.0));
    }
    sample::find(&mut all[2], "one_write.fsync").failure = Some(sample::failure());
    let side = from_probe::side_of_rounds(0, "f", "in turn", &all).unwrap();
    let of = |key: &str| side.measures.iter().find(|measure| measure.key() == key).unwrap();
    let fdatasync = of("wal/8 kB/fdatasync");
    assert_eq!(fdatasync.durability.as_ref().unwrap().class, DurabilityClass::Unknown);
    assert!(of("pg_test_fsync/one write/8 kB/fsync").failure.as_ref().unwrap().contains("EIO"));
}

#[test]
fn a_side_is_compared_with_its_namesake_or_first_comparable() {
    let named = |argument, name: &str, medium| {
        let measure = SideMeasure { medium, ..tps(5.0) };
        Side { name: name.to_owned(), ..side(argument, name, SideOrigin::Run, vec![measure]) }
    };
    let runs = [
        named(0, "ext4", Medium::Disk),
        named(0, "xfs", Medium::Disk),
        named(1, "ext4", Medium::Disk),
        named(1, "xfs", Medium::Disk),
    ];
    let against: Vec<(usize, usize)> = compare(&runs).pairs.iter().map(|pair| (pair.side, pair.against)).collect();
    assert_eq!(against, [(2, 0), (3, 1), (1, 0)]);
    let shelf = [named(0, "tmpfs", Medium::Memory), named(0, "disk", Medium::Disk), named(1, "", Medium::Disk)];
    let found = compare(&shelf);
    let pairs: Vec<(usize, usize)> = found.pairs.iter().map(|pair| (pair.side, pair.against)).collect();
    assert_eq!(pairs, [(2, 1), (1, 0)]);
    assert_eq!(found.refused.iter().filter(|refusal| refusal.sides.contains(&(0, 2))).count(), 1);
}

#[test]
fn differing_facts_are_distinguished_from_facts_unknown_on_one_side() {
    let mut a = side(0, "a", SideOrigin::Run, vec![tps(1.0)]);
    let b = side(1, "b", SideOrigin::Run, vec![tps(1.0)]);
    a.facts.insert("host.cpus".to_owned(), "8".to_owned());
    let found = compare(&[a, b]);
    assert_eq!(found.facts_that_differ.len(), 1);
    assert_eq!(found.facts_that_differ[0].values[1].as_deref(), Some("kernel of b"));
    assert_eq!(found.facts_not_told[0].key, "host.cpus");
}

fn run(story: Story) -> RunSource {
    let (run, trials) = (story.input.run.clone(), story.trials.iter().map(|trial| trial.record.clone()).collect());
    RunSource { run, trials, findings: story.findings() }
}

fn a_run() -> RunSource {
    run(Story::of(3, Some("ext4"))
        .with(&Act::on("ext4").tps(1000.0))
        .with(&Act::on("ext4").tps(300.0).clients(4))
        .with(&Act::on("xfs").tps(1500.0))
        .with(&Act::in_memory().tps(9000.0)))
}

#[test]
fn cases_of_one_stack_form_one_side() {
    let source = a_run();
    let sides = from_run::sides(0, "x", &source, None);
    let labels: Vec<&str> = sides.iter().map(|side| side.label.as_str()).collect();
    assert_eq!(labels, ["x:ext4", "x:xfs", "x:tmpfs"]);
    let found = compare(&sides);
    let row = &found.pairs[0].rows[0];
    assert_eq!(row.comparison.as_ref().unwrap().outcome, RatioOutcome::Faster, "{row:?}");
    assert!(row.comparison.as_ref().unwrap().how.starts_with("paired over 3"));
    assert!(
        found.refused.iter().any(|r| r.sides.contains(&(0, 1)) && r.reason == Reason::OtherClients),
        "{:?}",
        found.refused
    );
    assert!(found.refused.iter().any(|r| r.sides.contains(&(0, 2)) && r.reason == Reason::MemoryAgainstDisk));
    assert!(found.facts_that_differ.iter().any(|fact| fact.key == "stack.filesystem"));
}

#[test]
fn percentiles_of_a_run_are_compared_trial_by_trial() {
    let found = compare(&from_run::sides(0, "x", &a_run(), None));
    let of = |which: &str| {
        let row = found.pairs[0].rows.iter().find(|row| row.measure.ends_with(which)).unwrap();
        (row.comparison.clone().unwrap(), row.value.trials, row.reference.trials)
    };
    let (p99, own, other) = of("latency p99");
    assert_eq!((own, other), (3, 3));
    assert!(p99.how.starts_with("paired over 3") && p99.low.is_some(), "{p99:?}");
    let (max, ..) = of("latency max");
    assert_eq!(max.outcome, RatioOutcome::NoInterval);
    assert!(max.how.ends_with("merged (3 trials vs. 3 trials)"), "{}", max.how);
    assert!(!found.caveats.iter().any(|caveat| caveat.contains("one run each")), "{:?}", found.caveats);
}

#[test]
fn a_case_is_found_only_by_id_side_or_stack() {
    let source = a_run();
    let labels = |wanted: &str| {
        from_run::sides(0, "x", &source, Some(wanted)).into_iter().map(|side| side.label).collect::<Vec<_>>()
    };
    assert_eq!(labels("ext4"), ["x:ext4"]);
    assert_eq!(labels("xfs-tpcb-c16"), ["x:xfs-tpcb-c16"]);
    assert!(labels("zfs").is_empty());
    assert!(source.names().contains(&"tmpfs".to_owned()));
}

fn any_measure() -> impl Strategy<Value = SideMeasure> {
    let word = |words: &'static [&'static str]| {
        (0..=words.len()).prop_map(move |at| words.get(at).map(|word| (*word).to_owned()))
    };
    let figure = prop_oneof![
        Just(FigureKind::Rate),
        Just(FigureKind::Mean),
        Just(FigureKind::Percentile("p99".to_owned())),
        Just(FigureKind::Percentile("p95".to_owned()))
    ];
    let medium = prop_oneof![Just(Medium::Memory), Just(Medium::Disk), Just(Medium::Unknown)];
    let data = prop_oneof![Just(Medium::Memory), Just(Medium::Disk), Just(Medium::Unknown)];
    let lasting = prop_oneof![
        Just(None),
        Just(class(DurabilityClass::Flushed)),
        Just(class(DurabilityClass::Volatile)),
        Just(class(DurabilityClass::Unknown))
    ];
    let form = prop_oneof![Just(None), Just(Some(UnsyncedForm::KeepsOpen)), Just(Some(UnsyncedForm::Unknown))];
    let numbers = (proptest::collection::vec(0.0f64..1e6, 0..4), any::<bool>(), any::<bool>(), any::<bool>());
    (word(&["4", "16"]), word(&["10", "100"]), figure, medium, data, lasting, form, numbers).prop_map(
        |(clients, scale, figure, medium, data, durability, unsynced_form, (means, fails, same_run, emulated))| {
            let measure = with(tps(means.first().copied().unwrap_or(1.0)), ConditionKind::Clients, clients.as_deref());
            let measure = with(measure, ConditionKind::Scale, scale.as_deref());
            let failure = fails.then(|| "fsync failed".to_owned());
            let spread =
                if means.is_empty() { MeasureSpread::None } else { trials(if same_run { "r" } else { "q" }, &means) };
            SideMeasure { figure, medium, data, durability, unsynced_form, failure, spread, emulated, ..measure }
        },
    )
}

proptest! {
    #[test]
    fn refusing_does_not_depend_on_who_stands_first(a in any_measure(), b in any_measure()) {
        let (one, other) = (objection(&a, &b), objection(&b, &a));
        prop_assert_eq!(one.as_ref().map(|found| found.reason), other.as_ref().map(|found| found.reason));
        if let (Some(one), Some(other)) = (one, other) {
            prop_assert_eq!(one.values, (other.values.1, other.values.0));
        }
        let reasons = |found: ComparisonFindings| {
            let mut reasons: Vec<Reason> = found.refused.iter().map(|refusal| refusal.reason).collect();
            reasons.sort_unstable();
            reasons
        };
        prop_assert_eq!(reasons(two(a.clone(), b.clone())), reasons(two(b, a)));
    }

    #[test]
    fn an_inverted_ratio_is_the_inverse_and_keeps_the_winner(a in any_measure(), b in any_measure()) {
        let b = SideMeasure { figure: a.figure.clone(), ..b };
        let one = ratio::compare(&a, &b);
        let other = ratio::compare(&b, &a);
        prop_assert_eq!(one.is_some(), other.is_some());
        if let (Some(one), Some(other)) = (one, other) {
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9, "{} {}", one.ratio, other.ratio);
            let turned = match other.outcome {
                RatioOutcome::Faster => RatioOutcome::Slower,
                RatioOutcome::Slower => RatioOutcome::Faster,
                same => same,
            };
            prop_assert_eq!(one.outcome, turned);
            if let (Some(low), Some(high)) = (one.low, other.high) {
                prop_assert!((low * high - 1.0).abs() < 1e-6 || high > 1e100);
            }
        }
    }

    #[test]
    fn every_measure_is_compared_refused_or_alone(sides in proptest::collection::vec(any_measure(), 2..5)) {
        let sides: Vec<Side> = (0..).zip(sides).map(|(n, m)| side(n, &format!("s{n}"), SideOrigin::Run, vec![m])).collect();
        let found = compare(&sides);
        for place in 1..sides.len() {
            let compared = found.pairs.iter().any(|pair| pair.side == place && pair.rows.iter().any(|row| row.comparison.is_some()));
            let refused = found.refused.iter().any(|refusal| refusal.sides.contains(&(0, place)));
            prop_assert!(compared != refused, "{place}: {found:?}");
        }
        let text = serde_json::to_string(&found).unwrap();
        let again: ComparisonFindings = serde_json::from_str(&text).unwrap();
        prop_assert_eq!((again.answer, again.refused), (found.answer, found.refused));
    }
}
