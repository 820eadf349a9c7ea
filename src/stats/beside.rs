//! What CPU time other programs took beside a turn. Which cases have their turns beside a neighbour's burst is chance, and on
//! a shared machine most of what equal cases differ by.
//!
//! It is measured between turns, when no case is at work. Within a turn a case that waits leaves others more CPU, and would
//! be excused for it.

use super::carry_over::{OWN, ROUND, Turn, groups, less_means, product};
use crate::stats::student;
use std::collections::{BTreeMap, BTreeSet};

/// Lowest slope: the loss of a load that needs all CPUs while others take half of them (the derivative of ln(1 - x) at
/// 1/2). So chance explains nothing where others hardly come and go.
const LEAST_SLOPE: f64 = -2.0;

/// Fewest degrees of freedom of the fit: with fewer, nothing is taken out.
const LEAST_DEGREES: usize = 20;

/// Turns without the effect of what was measured beside them.
pub struct TakenOut {
    pub turns: Vec<Turn>,
    /// Mean effect on the turns of each case in each block, as the logarithm of a ratio.
    pub borne: BTreeMap<(usize, u32), f64>,
    /// Change of the logarithm of a turn's rate for all CPUs.
    pub slope: f64,
    /// Half the width of its 95 % interval; `None` where it is not fitted, or was as low as may be.
    pub half_width: Option<f64>,
}

/// Takes the effect out, less its mean in the block. One slope for all cases, by least squares together with what each
/// case does in each block and what each round has in common, in the blocks until `until`: looks at these must find later
/// what they found. Turns are in order of time.
pub fn taken_out(turns: &[Turn], until: u32) -> TakenOut {
    let others = at_both_ends(turns);
    let first = &turns[..turns.partition_point(|turn| turn.block <= until)];
    let logs = less_means(first, first.iter().map(|turn| turn.log).collect());
    let column = less_means(first, others[..first.len()].to_vec());
    let blocks = first.iter().map(|turn| turn.block).collect::<BTreeSet<u32>>().len();
    let fitted = groups(first, OWN).len() + groups(first, ROUND).len();
    let is_enough = first.len() + blocks > fitted + LEAST_DEGREES && column.iter().any(|share| *share != 0.0);
    let (squares, fit) = (product(&column, &column), product(&column, &logs));
    let degrees = (first.len() + blocks).saturating_sub(fitted + 1) as f64;
    let residual = (product(&logs, &logs) - fit * fit / squares).max(0.0);
    let slope = if is_enough { (fit / squares).clamp(LEAST_SLOPE, 0.0) } else { 0.0 };
    let half_width = (is_enough && slope > LEAST_SLOPE)
        .then(|| student::two_sided_quantile(0.95, degrees) * (residual / degrees / squares).sqrt());
    let mean = |of: &[usize]| of.iter().map(|at| slope * others[*at]).sum::<f64>() / of.len() as f64;
    let borne = groups(turns, OWN).into_iter().map(|((case, block, _), of)| ((case, block), mean(&of))).collect();
    let turns = turns.iter().zip(&others).map(|(turn, share)| Turn { log: turn.log - slope * share, ..*turn });
    TakenOut { turns: turns.collect(), borne, slope, half_width }
}

/// True if a turn follows another at once, and not a round that is left out.
fn is_next(turn: &Turn, next: &Turn) -> bool {
    next.block == turn.block && next.after == Some(turn.case) && next.round <= turn.round + 1
}

/// Mean of what was measured before and after each turn, less that of its block; 0 where neither is known.
fn at_both_ends(turns: &[Turn]) -> Vec<f64> {
    let of_turn = |(at, turn): (usize, &Turn)| {
        let next = turns.get(at + 1).filter(|next| is_next(turn, next));
        let both = [turn.others_share, next.and_then(|next| next.others_share)];
        let known: Vec<f64> = both.into_iter().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let known: Vec<Option<f64>> = turns.iter().enumerate().map(of_turn).collect();
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (turn, share) in turns.iter().zip(&known) {
        let (sum, count) = sums.entry(turn.block).or_default();
        share.iter().for_each(|share| (*sum, *count) = (*sum + share, *count + 1.0));
    }
    let less = |(turn, share): (&Turn, &Option<f64>)| {
        share.map_or(0.0, |share| share - sums[&turn.block].0 / sums[&turn.block].1)
    };
    turns.iter().zip(&known).map(less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two blocks of twelve rounds of four equal cases, beside a neighbour who takes this share for seven turns and goes.
    fn turns(share: f64, effect: f64) -> Vec<Turn> {
        let (mut turns, mut after) = (Vec::new(), None);
        for at in 0..96_u32 {
            let (block, round, case) = (at / 48, at / 4, (at % 4 + at / 4) as usize % 4);
            let others = f64::from(at / 7 % 2) * share;
            let (log, after_this) = (others * effect + f64::from(round) / 10.0, Some(case));
            turns.push(Turn { case, block, round, after: after.filter(|_| at != 48), log, others_share: Some(others) });
            after = after_this;
        }
        turns
    }

    /// Widest difference between cases, with what their turns bore and without.
    fn widest(turns: &[Turn], borne: &BTreeMap<(usize, u32), f64>) -> (f64, f64) {
        let of = |case: usize, less: bool| {
            let own = turns.iter().filter(|turn| turn.case == case);
            own.map(|turn| turn.log - if less { borne[&(case, turn.block)] } else { 0.0 }).sum::<f64>() / 24.0
        };
        let spread = |less: bool| {
            let means: Vec<f64> = (0..4).map(|case| of(case, less)).collect();
            means.iter().fold(f64::MIN, |a, b| a.max(*b)) - means.iter().fold(f64::MAX, |a, b| a.min(*b))
        };
        (spread(false), spread(true))
    }

    #[test]
    fn equal_cases_are_more_equal_without_their_neighbours() {
        let turns = turns(0.4, -1.1);
        let found = taken_out(&turns, 9);
        assert!((-1.6..-0.6).contains(&found.slope), "{}", found.slope);
        assert!((found.slope + 1.1).abs() < found.half_width.unwrap(), "{} +- {:?}", found.slope, found.half_width);
        let (with, without) = widest(&turns, &found.borne);
        assert!(without < with / 2.0, "{with} {without}");
    }

    #[test]
    fn blocks_after_the_first_look_do_not_change_the_slope() {
        let all: Vec<Turn> =
            turns(0.4, -1.1).into_iter().zip(turns(0.4, -0.3)).map(|(a, b)| if a.block == 0 { a } else { b }).collect();
        let (early, late) = (taken_out(&all, 0), taken_out(&all, 1));
        assert_eq!(early.slope, taken_out(&all[..48], 9).slope);
        assert!((early.slope - late.slope).abs() > 0.1, "{} {}", early.slope, late.slope);
        assert_eq!(early.turns.len(), all.len());
    }

    #[test]
    fn a_turn_after_a_round_that_is_left_out_follows_none() {
        let turn = turns(0.4, 0.0)[0];
        let next = |round| Turn { after: Some(turn.case), round: turn.round + round, ..turn };
        assert_eq!([0, 1, 2].map(|rounds| is_next(&turn, &next(rounds))), [true, true, false]);
    }

    #[test]
    fn what_cannot_be_an_effect_is_not_taken_out() {
        assert_eq!(taken_out(&turns(0.4, 0.9), 9).slope, 0.0);
        let steep = taken_out(&turns(0.4, -9.0), 9);
        assert_eq!((steep.slope, steep.half_width), (LEAST_SLOPE, None));
        assert_eq!(taken_out(&turns(0.0, -1.0), 9).slope, 0.0, "nobody came or went");
        assert_eq!(taken_out(&turns(0.4, -1.1)[..24], 9).slope, 0.0, "few turns");
        let unknown: Vec<Turn> = turns(0.4, -1.1).into_iter().map(|turn| Turn { others_share: None, ..turn }).collect();
        assert_eq!(taken_out(&unknown, 9).slope, 0.0);
        assert!(taken_out(&[], 9).borne.is_empty());
    }

    #[test]
    fn a_turn_made_long_after_says_nothing_of_the_one_before() {
        let turn = |case, after, others_share| Turn { case, block: 1, round: 1, after, log: 0.0, others_share };
        // The second follows a turn that was made again; the third has no disk to probe.
        let shares = at_both_ends(&[turn(0, None, Some(0.2)), turn(1, Some(2), Some(0.6)), turn(2, Some(1), None)]);
        let wanted = [-0.2, 0.2, 0.0];
        assert!(shares.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9), "{shares:?}");
    }
}
