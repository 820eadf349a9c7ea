//! Stories about ranks and the figures beside them, with every trial given.

use crate::analyse::findings::{ClassRanking, CostCounter, Findings, PairOutcome, RankRow};
use crate::analyse::stories::story::{Act, Story};
use crate::record::trial::TrialRecord;

/// Rates of one stack in its blocks.
type Rates = (&'static str, [f64; 3]);

/// A run of these stacks against ext4; `set` gives a trial its rate.
fn findings_of(rates: &[Rates], set: fn(&mut TrialRecord)) -> Findings {
    let mut story = Story::of(3, Some("ext4"));
    for (stack, [first, ..]) in rates {
        let mut act = Act::on(stack).tps(*first).touched(set);
        act.unsteady = 1e-6;
        story = story.with(&act);
    }
    story.findings()
}

fn set(record: &mut TrialRecord, rates: &[Rates]) {
    let (_, rates) = rates.iter().find(|(stack, _)| record.case.stack.name == *stack).unwrap();
    let measure = &mut record.counts.as_mut().unwrap().measures[0];
    measure.elapsed_us = 60_000_000;
    measure.done = Some((rates[record.trial as usize - 1] * 60.0) as u64);
}

fn class(found: &Findings) -> &ClassRanking {
    &found.rankings[0].classes[0]
}

fn row<'a>(found: &'a Findings, label: &str) -> &'a RankRow {
    class(found).rows.iter().find(|row| row.label == label).unwrap()
}

const SCATTERED: [Rates; 4] = [
    ("ext4", [1000.0, 1010.0, 990.0]),
    ("xfs", [1110.0, 1250.0, 1080.0]),
    ("btrfs", [705.0, 700.0, 690.0]),
    ("zfs", [501.0, 495.0, 505.0]),
];

#[test]
fn the_interval_of_a_ratio_comes_from_the_deciding_test() {
    let found = findings_of(&SCATTERED, |record| set(record, &SCATTERED));
    let decision = class(&found).decision.as_ref().unwrap();
    assert!(decision.sentence.contains("Tukey's test on all 6 pairs over 3 blocks"), "{}", decision.sentence);
    let ranks: Vec<(u32, &str)> = class(&found).rows.iter().map(|row| (row.rank, row.label.as_str())).collect();
    assert_eq!(ranks, [(1, "xfs"), (2, "ext4"), (3, "btrfs"), (4, "zfs")]);
    let comparison = row(&found, "xfs").comparison.as_ref().unwrap();
    // Separately, the two blockwise ratios scatter too much: 1.144 (0.93 to 1.41).
    assert!(comparison.outcome.differs() && comparison.ratio.low.unwrap() > 1.0, "{comparison:?}");
    assert!(decision.remarks.is_empty(), "{:?}", decision.remarks);
    assert!(found.headline.contains("xfs is the fastest stack: 1.1"), "{}", found.headline);
}

const WIDE: [Rates; 2] = [("ext4", [1000.0, 1900.0, 700.0]), ("xfs", [1600.0, 1500.0, 1900.0])];

#[test]
fn two_cases_that_may_differ_either_way_are_undecided() {
    let found = findings_of(&WIDE, |record| set(record, &WIDE));
    assert_eq!(row(&found, "xfs").comparison.as_ref().unwrap().outcome, PairOutcome::Undecided);
    let says = "it is undecided which of xfs and ext4 is the fastest stack (smallest detectable difference at 80 % power: a factor of ";
    assert!(
        found.headline.contains(says) && found.headline.contains("; xfs is 1.5") && !found.headline.contains(" = "),
        "{}",
        found.headline
    );
}

const CLOSE: [Rates; 4] = [
    ("ext4", [1000.0, 1001.0, 999.0]),
    ("xfs", [1010.0, 1012.0, 1008.0]),
    ("btrfs", [900.0, 1000.0, 950.0]),
    ("zfs", [1020.0, 960.0, 930.0]),
];

#[test]
fn a_pair_significant_only_alone_is_undecided_among_all_pairs() {
    let found = findings_of(&CLOSE, |record| set(record, &CLOSE));
    let comparison = row(&found, "xfs").comparison.as_ref().unwrap();
    assert!(!comparison.outcome.differs() && comparison.ratio.low.unwrap() < 1.0, "{comparison:?}");
    assert!(comparison.detectable_ratio.unwrap() > comparison.ratio.value);
    assert!(class(&found).rows.iter().all(|row| row.rank == 1));
    assert!(found.headline.contains("(smallest detectable difference at 80 % power: 1"), "{}", found.headline);
}

#[test]
fn a_pair_within_the_precision_differs_by_less_or_is_the_same() {
    let acts = [Act::on("ext4").tps(1000.0), Act::on("xfs").tps(1028.0), Act::on("btrfs").tps(1000.0)];
    let found = acts.iter().fold(Story::of(12, Some("ext4")), Story::with).findings();
    let outcome = |case| row(&found, case).comparison.as_ref().unwrap().outcome;
    assert_eq!((outcome("xfs"), outcome("btrfs")), (PairOutcome::DiffersWithin(5), PairOutcome::SameWithin(5)));
}

const NEARLY: [Rates; 2] = [("ext4", [1000.0, 1120.0, 900.0]), ("xfs", [1120.0, 1190.0, 1080.0])];

#[test]
fn the_command_that_adds_blocks_names_the_run() {
    let found = findings_of(&NEARLY, |record| set(record, &NEARLY));
    let remarks = class(&found).decision.as_ref().unwrap().remarks.join("; ");
    let says = " more blocks (a minute) would decide: pgstrata run --resume results/story --blocks ";
    assert!(remarks.contains(says), "{remarks}");
}

#[test]
fn the_quotient_of_two_rates_equals_the_ratio_beside_them() {
    for (rates, setter) in [
        (SCATTERED, (|record: &mut TrialRecord| set(record, &SCATTERED)) as fn(&mut TrialRecord)),
        (CLOSE, |record| set(record, &CLOSE)),
    ] {
        let found = findings_of(&rates, setter);
        let base = row(&found, "ext4");
        for row in &class(&found).rows {
            assert_eq!(row.trials.len(), 3);
            assert!(row.trials.iter().all(|trial| trial.used));
            let Some(comparison) = &row.comparison else { continue };
            assert!((row.rate.value / base.rate.value / comparison.ratio.value - 1.0).abs() < 1e-9);
            let ratio = comparison.ratio;
            let holds_1 = (ratio.low.unwrap()..=ratio.high.unwrap()).contains(&1.0);
            assert_eq!(holds_1, !comparison.outcome.differs(), "{row:?}");
        }
        assert_eq!(found.cases[0].measures[0].rate, Some(base.rate), "a rate has one interval");
    }
}

#[test]
fn trials_in_blocks_missing_elsewhere_are_displayed_but_unused() {
    let found = Story::of(5, Some("ext4"))
        .with(&Act::on("ext4"))
        .with(&Act::on("xfs").tps(1200.0).trials(&[1, 2, 4, 5]))
        .with(&Act::on("btrfs").tps(700.0))
        .findings();
    let sentence = &class(&found).decision.as_ref().unwrap().sentence;
    assert!(sentence.contains("over 4 blocks"), "{sentence}");
    let used = |label: &str| -> Vec<(u32, bool)> {
        row(&found, label).trials.iter().map(|trial| (trial.trial, trial.used)).collect()
    };
    assert_eq!(used("ext4"), [(1, true), (2, true), (3, false), (4, true), (5, true)]);
    assert_eq!(used("xfs").len(), 4);
    assert_eq!((row(&found, "ext4").rate.trials, found.cases[0].measures[0].rate), (4, Some(row(&found, "ext4").rate)));
    let ratio = row(&found, "btrfs").comparison.as_ref().unwrap().ratio;
    assert!((row(&found, "btrfs").rate.value / row(&found, "ext4").rate.value / ratio.value - 1.0).abs() < 1e-9);
}

#[test]
fn a_case_that_lacks_most_blocks_leads_to_pairwise_decisions() {
    let found = Story::of(5, Some("ext4"))
        .with(&Act::on("ext4"))
        .with(&Act::on("xfs").tps(2000.0))
        .with(&Act::on("btrfs").tps(700.0).trials(&[3]))
        .findings();
    let decision = class(&found).decision.as_ref().unwrap();
    assert!(decision.sentence.contains("too few blocks in common"), "{}", decision.sentence);
    assert!(class(&found).rows.iter().flat_map(|row| &row.trials).all(|trial| trial.used));
    assert_eq!(row(&found, "xfs").rank, 1);
}

const JUMPY: [Rates; 4] = [
    ("ext4", [1000.0, 1001.0, 999.0]),
    ("xfs", [1200.0, 1202.0, 1198.0]),
    ("btrfs", [900.0, 1900.0, 300.0]),
    ("zfs", [800.0, 801.0, 799.5]),
];

#[test]
fn cases_of_unequal_noise_are_decided_pair_by_pair() {
    let found = findings_of(&JUMPY, |record| set(record, &JUMPY));
    let decision = class(&found).decision.as_ref().unwrap();
    assert!(decision.sentence.contains("variances differ"), "{}", decision.sentence);
    assert_eq!((row(&found, "xfs").rank, row(&found, "ext4").rank, row(&found, "zfs").rank), (1, 2, 3));
    assert_eq!(row(&found, "btrfs").rank, 1, "nothing was shown to be faster");
    let wide = row(&found, "btrfs").rate;
    assert!(wide.high.unwrap() / wide.low.unwrap() > 3.0, "{wide:?}");
}

#[test]
fn a_case_beaten_only_by_the_first_is_called_slower() {
    // Alternating residuals: the margin lies between one step and two.
    let by_turns = |story: Story, stack: &str, odd: f64, even: f64| {
        let act = |tps: f64| Act::on(stack).tps(tps);
        story.with(&act(odd).trials(&[1, 3])).also(&act(even).trials(&[2, 4]))
    };
    let story = by_turns(Story::of(4, None), "ext4", 1072.0, 932.0);
    let story = by_turns(story, "xfs", 827.0, 951.0);
    let found = by_turns(story, "btrfs", 787.0, 787.0).findings();
    let ranks: Vec<u32> = found.rankings[0].classes[0].rows.iter().map(|row| row.rank).collect();
    assert_eq!(ranks, [1, 1, 2]);
    assert!(found.headline.contains("; btrfs is slower than ext4"), "{}", found.headline);
}

#[test]
fn counters_per_commit_are_told_apart_where_rates_are_undecided() {
    let mut story = Story::of(3, Some("ext4"));
    for (stack, flushes) in [("ext4", 0.5), ("xfs", 0.5), ("btrfs", 1.5), ("nobarrier", 0.0)] {
        let act = Act { flushes: vec![Some(flushes)], wal_syncs: Some(0.5), unsteady: 0.2, ..Act::on(stack) };
        story = story.with(&act.tps(1000.0));
    }
    let found = story.findings();
    let flushes = |counter| found.rankings[0].counters.iter().find(|found| found.counter == counter).unwrap();
    let compared = flushes(CostCounter::FlushesPerWalSync);
    let row = |label: &str| compared.rows.iter().find(|row| row.label == label).unwrap();
    assert_eq!((row("ext4").outcome, row("ext4").ratio), (None, None));
    assert!(!row("xfs").outcome.unwrap().differs(), "{:?}", row("xfs"));
    let (btrfs, ratio) = (row("btrfs"), row("btrfs").ratio.unwrap());
    assert!(btrfs.outcome == Some(PairOutcome::Differs) && ratio.low.unwrap() > 2.9, "{btrfs:?}");
    let none = row("nobarrier");
    assert_eq!((none.outcome, none.ratio, none.figure.value), (Some(PairOutcome::Differs), None, 0.0));
    assert!((ratio.value - 3.0).abs() < 0.02 && (btrfs.figure.value - 3.0).abs() < 0.05, "{btrfs:?}");
}

#[test]
fn an_incomplete_run_ranks_cases_by_their_single_rates() {
    let rates: [Rates; 2] = [("ext4", [1000.0, 1010.0, 9000.0]), ("xfs", [1100.0, 1120.0, 0.0])];
    fn set_trial(record: &mut TrialRecord) {
        set(record, &[("ext4", [1000.0, 1010.0, 9000.0]), ("xfs", [1100.0, 1120.0, 0.0])]);
    }
    let mut story = Story::of(3, Some("ext4"));
    for (stack, trials) in [("ext4", vec![1, 2, 3]), ("xfs", vec![1, 2])] {
        let act = Act { trials, ..Act::on(stack) };
        story = story.with(&act.tps(rates[0].1[0]).touched(set_trial));
    }
    let found = story.findings();
    let labels: Vec<&str> = class(&found).rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["xfs", "ext4"], "by the blocks that both have");
    for row in &class(&found).rows {
        let case = found.cases.iter().find(|case| case.id == row.case).unwrap();
        assert_eq!(case.measures[0].rate, Some(row.rate));
    }
    assert_eq!(row(&found, "ext4").trials.iter().map(|trial| trial.used).collect::<Vec<_>>(), [true, true, false]);
}
