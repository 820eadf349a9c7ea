//! Stories about plans with several axes: what each option does.

use crate::analyse::findings::{Effects, Findings, PairOutcome};
use crate::analyse::stories::story::{Act, Story};
use crate::record::trial::TrialRecord;

/// Stacks in guests of two suites under two loads; trixie is 0.8 times as fast as bookworm.
fn factorial(blocks: u32, xfs: f64, is_there: fn(&str, &str, u64) -> bool) -> Findings {
    let mut story = Story::of(blocks, Some("ext4"));
    for (stack, of_stack) in [("ext4", 1.0), ("xfs", xfs)] {
        for (suite, of_suite) in [("bookworm", 1.0), ("trixie", 0.8)] {
            for (clients, of_load) in [(1, 1.0), (8, 5.0)] {
                if is_there(stack, suite, clients) {
                    let act = Act { unsteady: 0.01, ..Act::on(stack).in_guest(suite).clients(clients) };
                    story = story.with(&act.tps(1000.0 * of_stack * of_suite * of_load));
                }
            }
        }
    }
    story.findings()
}

/// xfs is 1.3 times as fast as ext4.
fn effects_of(blocks: u32, is_there: fn(&str, &str, u64) -> bool) -> Vec<Effects> {
    factorial(blocks, 1.3, is_there).effects
}

#[test]
fn each_option_is_compared_over_all_combinations_of_the_others() {
    let found = effects_of(3, |_, _, _| true);
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((found.title.as_str(), found.combinations, found.blocks), ("tpcb, transactions", 8, 3));
    let rows: Vec<_> = found.options.iter().map(|one| (one.axis.as_str(), one.level.as_str(), one.pairs)).collect();
    assert_eq!(rows, [("stack", "xfs", 12), ("guest", "trixie", 12), ("clients", "8", 12)]);
    for (option, truth) in found.options.iter().zip([1.3, 0.8, 5.0]) {
        assert!((option.ratio.value / truth - 1.0).abs() < 0.02 && option.ratio.low.is_some(), "{option:?}");
        assert!(option.at.is_none() && !option.differs_in_durability, "{option:?}");
    }
    let outcomes: Vec<_> = found.options.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [Some(PairOutcome::Differs), Some(PairOutcome::Differs), None], "a load is not judged");
}

#[test]
fn a_factorial_with_a_hole_has_a_reason_instead_of_effects() {
    let found = effects_of(3, |stack, suite, clients| (stack, suite, clients) != ("xfs", "trixie", 8));
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert!(found.options.is_empty());
    assert_eq!(found.unavailable.as_deref(), Some("7 cases for 8 combinations: not all were measured"));
}

#[test]
fn one_axis_and_the_load_alone_are_no_factorial() {
    assert_eq!(effects_of(3, |stack, suite, _| (stack, suite) == ("ext4", "trixie")), []);
    assert_eq!(effects_of(3, |_, suite, clients| (suite, clients) == ("trixie", 8)), []);
}

#[test]
fn a_single_block_gives_ratios_without_intervals() {
    let found = effects_of(1, |_, _, _| true);
    let first = &found[0].options[0];
    assert_eq!((first.ratio.low, first.outcome, first.pairs), (None, Some(PairOutcome::Undecided), 4));
}

#[test]
fn the_headline_has_the_effects_biggest_first_and_the_best_combination() {
    let found = factorial(3, 1.3, |_, _, _| true);
    let answer = &found.answer.answer;
    assert!(found.headline.starts_with("On this machine (tpcb, transactions) xfs is at 1."), "{}", found.headline);
    assert!(answer.contains(" times ext4 (") && answer.contains(" and guest=trixie at 0."), "{answer}");
    let best = &found.answer.notes[0];
    let start = "Best of the 4 combinations, clients=8: xfs guest=bookworm, 1.";
    assert!(best.starts_with(start) && best.contains(" times ext4 guest=bookworm ("), "{best}");
    assert_eq!(found.answer.notes.len(), 1, "{:?}", found.answer.notes);
}

#[test]
fn an_option_that_changes_the_wal_per_commit_is_named_with_its_effect() {
    let answer = |wal_records: f64| {
        let mut story = Story::of(3, Some("ext4"));
        for stack in ["ext4", "xfs"] {
            for (suite, wal_records) in [("bookworm", 8.0), ("trixie", wal_records)] {
                let act = Act { wal_records: Some(wal_records), ..Act::on(stack).in_guest(suite) };
                story = story.with(&act);
            }
        }
        story.findings()
    };
    let found = answer(4.0);
    let wal = &found.effects[0].wal;
    let effects = wal.iter().map(|one| (one.level.as_str(), (one.ratio.value * 1e3).round(), one.outcome));
    let (same, differs) = (Some(PairOutcome::SameWithin(5)), Some(PairOutcome::Differs));
    assert_eq!(effects.collect::<Vec<_>>(), [("xfs", 1000.0, same), ("trixie", 500.0, differs)]);
    assert_eq!(found.answer.notes[1], "WAL per commit: guest=trixie 50 % less than bookworm.");
    assert!(!answer(7.9).headline.contains("WAL per commit"), "too little to say");
}

#[test]
fn the_wal_is_that_of_the_trials_that_have_a_rate() {
    let without_a_rate = |record: &mut TrialRecord| record.counts.as_mut().unwrap().measures[0].elapsed_us = 0;
    let mut story = Story::of(4, Some("ext4"));
    for stack in ["ext4", "xfs"] {
        for suite in ["bookworm", "trixie"] {
            let act = Act::on(stack).in_guest(suite);
            story = story.with(&act.clone().trials(&[1, 2, 3]));
            let wal_records = if suite == "trixie" { 800.0 } else { 8.0 };
            let act = Act { wal_records: Some(wal_records), ..act.trials(&[4]).touched(without_a_rate) };
            story = story.also(&act);
        }
    }
    let found = story.findings();
    let [found] = found.effects.as_slice() else { panic!("{:?}", found.effects) };
    assert_eq!((found.blocks, found.wal.len()), (3, 2));
    assert!(found.wal.iter().all(|one| (one.ratio.value - 1.0).abs() < 1e-3), "{:?}", found.wal);
}

#[test]
fn combinations_that_no_test_tells_apart_are_best_together() {
    let found = factorial(3, 1.0, |_, _, _| true);
    let best = found.effects[0].best.as_ref().unwrap();
    let mut labels = best.labels.clone();
    labels.sort();
    assert_eq!(labels, ["ext4 guest=bookworm", "xfs guest=bookworm"]);
    let tied = if best.same_within_percent == Some(5) { ", the same within 5 %" } else { ", undecided between them" };
    assert!(found.answer.notes[0].contains(tied), "{}", found.headline);
    assert!(found.answer.answer.starts_with("guest=trixie is at 0."), "{}", found.headline);
    assert!(found.answer.answer.contains("; xfs: "), "{}", found.headline);
}

#[test]
fn a_single_block_has_no_effects_and_no_winner() {
    let found = factorial(1, 1.3, |_, _, _| true);
    assert!(
        found.answer.answer.starts_with("no option was shown to have an effect; xfs and guest=trixie: undecided"),
        "{}",
        found.headline
    );
    assert_eq!(found.effects[0].best.as_ref().unwrap().labels.len(), 4);
}
