//! Stories about plans with several axes: what each option does.

use crate::analyse::findings::{Effects, PairOutcome};
use crate::analyse::stories::story::{Act, Story};

/// Stacks in guests of two suites under two loads; xfs is 1.3 times as fast as ext4, trixie 0.8 times as bookworm.
fn effects_of(blocks: u32, is_there: fn(&str, &str, u64) -> bool) -> Vec<Effects> {
    let mut story = Story::of(blocks, Some("ext4"));
    for (stack, of_stack) in [("ext4", 1.0), ("xfs", 1.3)] {
        for (suite, of_suite) in [("bookworm", 1.0), ("trixie", 0.8)] {
            for (clients, of_load) in [(1, 1.0), (8, 5.0)] {
                if is_there(stack, suite, clients) {
                    let act = Act { unsteady: 0.01, ..Act::on(stack).in_guest(suite).clients(clients) };
                    story = story.with(&act.tps(1000.0 * of_stack * of_suite * of_load));
                }
            }
        }
    }
    story.findings().effects
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
