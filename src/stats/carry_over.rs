//! What a case does to the turn that follows its own: it leaves caches, dirty pages and a device at work.
//!
//! The order is balanced (E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149): each case follows each about as often, itself
//! from one round to the next, so that all bear such an effect nearly alike. Comparisons take out what is left, where it is
//! suspected.

use crate::stats::student;
use std::collections::{BTreeMap, BTreeSet};

/// Share of runs without any such effect in which one is seen, over all cases together.
const LEVEL: f64 = 0.05;

/// Passes that take means out: one does where every case had its turn in every round.
const PASSES: usize = 8;

/// An order that tells less about an effect than one turn would tells none apart.
const LEAST_PIVOT: f64 = 1.0;

/// One turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub case: usize,
    pub block: u32,
    pub round: u32,
    /// Case of the turn before; `None` for the first of a block.
    pub after: Option<usize>,
    /// Logarithm of its rate.
    pub log: f64,
    /// Share of the CPUs that programs outside of the run took just before it; `None` if unknown.
    pub others_share: Option<f64>,
}

/// Effect on the turns after one case, compared with the mean turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CarryOver {
    /// Logarithm of the ratio.
    pub log: f64,
    /// Half the width of its interval, at [`LEVEL`] over all cases together.
    pub half_width: f64,
}

impl CarryOver {
    /// True if its interval excludes no effect.
    pub fn is_seen(&self) -> bool {
        self.log.abs() > self.half_width
    }

    /// True if it may be there: then the fit's error costs less than the effect.
    fn is_suspected(&self) -> bool {
        self.log.abs() > self.half_width * 0.65
    }
}

/// Effect of each of `cases` cases; `None` with too few turns. Fitted by least squares together with what each case does
/// in each block and what each round has in common: the mean of a case holds the effects of those before it. The first
/// turn of a block follows none, and is left out.
pub fn after_each(turns: &[Turn], cases: usize) -> Vec<Option<CarryOver>> {
    let turns = &turns.iter().filter(|turn| turn.after.is_some()).copied().collect::<Vec<_>>();
    let logs = less_means(turns, turns.iter().map(|turn| turn.log).collect());
    let mut found = vec![None; cases];
    // One that had no turn, as after it was beaten or had failed, is before none.
    let before: BTreeSet<usize> = turns.iter().filter_map(|turn| turn.after).collect();
    let before: Vec<usize> = before.into_iter().collect();
    // Effects add up to zero: the last is the sum of the others, negated.
    let Some((last, others)) = before.split_last() else { return found };
    let is_after = |turn: &Turn, case: usize| f64::from(u8::from(turn.after == Some(case)));
    let column = |case| turns.iter().map(|turn| is_after(turn, case) - is_after(turn, *last)).collect();
    let columns: Vec<Vec<f64>> = others.iter().map(|case| less_means(turns, column(*case))).collect();
    let normal = columns.iter().map(|one| columns.iter().map(|other| product(one, other)).collect());
    let Some(inverse) = inverse(normal.collect()) else { return found };
    let moments: Vec<f64> = columns.iter().map(|column| product(column, &logs)).collect();
    let mut effects: Vec<f64> = inverse.iter().map(|row| product(row, &moments)).collect();
    let squares = product(&logs, &logs) - product(&effects, &moments);
    let mut variances: Vec<f64> = (0..others.len()).map(|at| inverse[at][at]).collect();
    effects.push(-effects.iter().sum::<f64>());
    variances.push(inverse.iter().flatten().sum());
    let blocks: BTreeSet<u32> = turns.iter().map(|turn| turn.block).collect();
    let fitted = groups(turns, OWN).len() + groups(turns, ROUND).len() + others.len();
    let degrees = (turns.len() + blocks.len()).saturating_sub(fitted) as f64;
    if degrees < 1.0 {
        return found;
    }
    let quantile = student::two_sided_quantile(1.0 - LEVEL / cases as f64, degrees);
    let half_width = |variance: f64| quantile * (variance * squares.max(0.0) / degrees).sqrt();
    for ((case, log), variance) in before.iter().zip(effects).zip(variances) {
        found[*case] = Some(CarryOver { log, half_width: half_width(variance) });
    }
    found
}

/// Mean effect that the turns of each case bore in each block, as the logarithm of a ratio; none if no effect is suspected
/// in the blocks until `until`: looks at these must find later what they found. Fitted in each block by itself: the error
/// of the fit then differs by block, and is in the error of what is compared.
pub fn borne(turns: &[Turn], cases: usize, until: u32) -> BTreeMap<(usize, u32), f64> {
    let first: Vec<Turn> = turns.iter().filter(|turn| turn.block <= until).copied().collect();
    if !after_each(&first, cases).iter().flatten().any(CarryOver::is_suspected) {
        return BTreeMap::new();
    }
    let blocks: BTreeSet<u32> = turns.iter().map(|turn| turn.block).collect();
    let of_block = blocks.into_iter().flat_map(|block| {
        let turns: Vec<Turn> = turns.iter().filter(|turn| turn.block == block).copied().collect();
        let effects = after_each(&turns, cases);
        let effect = |turn: &Turn| turn.after.and_then(|case| effects[case]).map_or(0.0, |effect| effect.log);
        let mean = |of: &[usize]| of.iter().map(|at| effect(&turns[*at])).sum::<f64>() / of.len() as f64;
        groups(&turns, OWN).into_iter().map(|((case, block, _), of)| ((case, block), mean(&of))).collect::<Vec<_>>()
    });
    of_block.collect()
}

pub(super) type Group = (usize, u32, u32);

pub(super) const OWN: fn(&Turn) -> Group = |turn| (turn.case, turn.block, 0);
pub(super) const ROUND: fn(&Turn) -> Group = |turn| (0, turn.block, turn.round);

/// Indices of the turns of each group.
pub(super) fn groups(turns: &[Turn], group: fn(&Turn) -> Group) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    turns.iter().enumerate().for_each(|(at, turn)| groups.entry(group(turn)).or_default().push(at));
    groups
}

/// A value of each turn less its means over case and block, and over the round.
pub(super) fn less_means(turns: &[Turn], mut left: Vec<f64>) -> Vec<f64> {
    let groups: Vec<Vec<usize>> =
        [OWN, ROUND].into_iter().flat_map(|group| groups(turns, group)).map(|(_, of)| of).collect();
    for of in (0..PASSES).flat_map(|_| &groups) {
        let mean = of.iter().map(|at| left[*at]).sum::<f64>() / of.len() as f64;
        of.iter().for_each(|at| left[*at] -= mean);
    }
    left
}

pub(super) fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Inverse of a symmetric matrix by Gauss and Jordan's elimination; `None` if it has none.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    for (at, row) in matrix.iter_mut().enumerate() {
        row.extend((0..size).map(|column| f64::from(u8::from(column == at))));
    }
    for at in 0..size {
        let pivot = matrix[at][at];
        if pivot < LEAST_PIVOT {
            return None;
        }
        matrix[at].iter_mut().for_each(|value| *value /= pivot);
        let own = matrix[at].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != at) {
            let factor = row[at];
            row.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
        }
    }
    Some(matrix.into_iter().map(|row| row[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::Noise;

    /// Turns of four cases in rotating order with noise of `deviation`, the ones after case 1 slower by `effect`.
    fn turns(seed: u64, deviation: f64, effect: f64) -> Vec<Turn> {
        let mut noise = Noise::seeded(seed);
        let mut all = Vec::new();
        for block in 1..=6 {
            let mut after = None;
            for round in 1..=6 {
                for place in 0..4 {
                    let step = if (block + round) % 2 == 0 { 1 } else { 3 };
                    let case = (place * step + round as usize) % 4;
                    let slower = if after == Some(1) { effect } else { 0.0 };
                    all.push(Turn {
                        case,
                        block,
                        round,
                        after,
                        log: deviation * noise.normal() - slower,
                        others_share: None,
                    });
                    after = Some(case);
                }
            }
        }
        all
    }

    #[test]
    fn an_effect_on_the_next_turn_is_seen() {
        let found = after_each(&turns(7, 0.07, 0.1), 4)[1].unwrap();
        assert!(found.is_seen() && (-0.1..-0.05).contains(&found.log), "{found:?}");
    }

    #[test]
    fn without_noise_equal_cases_are_equal_less_what_they_bore() {
        let turns = turns(7, 0.0, 0.1);
        let borne = borne(&turns, 4, 9);
        let own = groups(&turns, OWN).into_iter();
        let own = own.map(|(group, of)| (group, of.iter().map(|at| turns[*at].log).sum::<f64>() / of.len() as f64));
        let own: BTreeMap<Group, f64> = own.collect();
        for block in 1..=6 {
            let less = |case: usize| own[&(case, block, 0)] - borne[&(case, block)];
            // But for the first turn of the block, which bore nothing.
            let first = turns.iter().find(|turn| turn.block == block).unwrap().case;
            let rest: Vec<f64> = (0..4).filter(|case| *case != first).map(less).collect();
            assert!(rest.iter().all(|one| (one - rest[0]).abs() < 1e-9), "{block}: {borne:?}");
            assert!((less(first) - rest[0]).abs() < 0.005, "{block}: {borne:?}");
            assert!((own[&(1, block, 0)] - own[&(0, block, 0)]).abs() > 0.01, "{own:?}");
        }
    }

    #[test]
    fn without_an_effect_one_is_rarely_seen() {
        let runs = 400;
        let seen =
            (0..runs).filter(|seed| after_each(&turns(*seed, 0.07, 0.0), 4).iter().flatten().any(CarryOver::is_seen));
        let seen = seen.count();
        assert!(seen <= 32, "{seen} of {runs}");
    }

    #[test]
    fn blocks_without_a_case_are_less_what_was_borne_too() {
        let (mut after, mut left) = (None, Vec::new());
        for turn in turns(7, 0.02, 0.2).into_iter().filter(|turn| turn.block < 4 || turn.case != 3) {
            left.push(Turn { after: turn.after.and(after), ..turn });
            after = Some(turn.case);
        }
        let borne = borne(&left, 4, 9);
        assert!((1..=6).all(|block| borne[&(0, block)] != borne[&(1, block)]), "{borne:?}");
    }

    #[test]
    fn blocks_after_the_first_look_do_not_decide_whether_an_effect_is_taken_out() {
        let equal = turns(7, 0.02, 0.0).into_iter().filter(|turn| turn.block <= 3);
        let slower = turns(7, 0.02, 0.2).into_iter().filter(|turn| turn.block > 3);
        let all: Vec<Turn> = equal.chain(slower).collect();
        assert_eq!((borne(&all, 4, 3).len(), borne(&all, 4, 9).len()), (0, 24));
    }

    #[test]
    fn few_turns_show_nothing() {
        assert_eq!(after_each(&turns(1, 0.07, 0.0)[..3], 4), [None; 4]);
    }
}
