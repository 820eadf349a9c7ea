//! What a case does to the turn that follows its own: it leaves caches, dirty pages and a device at work.
//!
//! The order is balanced (E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149), so that all other cases bear such an effect
//! alike; the case itself, which does not follow itself, bears none.

use crate::stats::moments::mean;
use crate::stats::student;
use std::collections::BTreeMap;

/// Share of runs without any such effect in which one is seen, over all cases together.
const LEVEL: f64 = 0.05;

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
}

/// Effect of each of `cases` cases; `None` with too few turns.
pub fn after_each(turns: &[Turn], cases: usize) -> Vec<Option<CarryOver>> {
    let own = means(turns, |turn| (turn.case, turn.block, 0), |turn| turn.log);
    let less_own = |turn: &Turn| turn.log - own[&(turn.case, turn.block, 0)];
    let of_round = means(turns, |turn| (0, turn.block, turn.round), less_own);
    let residuals: Vec<(Option<usize>, f64)> =
        turns.iter().map(|turn| (turn.after, less_own(turn) - of_round[&(0, turn.block, turn.round)])).collect();
    let degrees = (turns.len() + 1).saturating_sub(own.len() + of_round.len() + cases) as f64;
    let effects = (0..cases).map(|case| {
        let after: Vec<f64> =
            residuals.iter().filter(|(after, _)| *after == Some(case)).map(|(_, residual)| *residual).collect();
        let found = mean(&after).filter(|_| after.len() > 1 && degrees >= 1.0)?;
        let variance = residuals.iter().map(|(_, residual)| residual * residual).sum::<f64>() / degrees;
        let error = (variance / after.len() as f64).sqrt();
        let quantile = student::two_sided_quantile(1.0 - LEVEL / cases as f64, degrees);
        Some(CarryOver { log: found, half_width: quantile * error })
    });
    effects.collect()
}

type Group = (usize, u32, u32);

fn means(turns: &[Turn], group: fn(&Turn) -> Group, value: impl Fn(&Turn) -> f64) -> BTreeMap<Group, f64> {
    let mut groups: BTreeMap<Group, Vec<f64>> = BTreeMap::new();
    for turn in turns {
        groups.entry(group(turn)).or_default().push(value(turn));
    }
    groups.into_iter().filter_map(|(group, values)| Some((group, mean(&values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::Noise;

    /// Turns of four cases in rotating order, the ones after case 1 slower by `effect`.
    fn turns(seed: u64, effect: f64) -> Vec<Turn> {
        let mut noise = Noise::seeded(seed);
        let mut all = Vec::new();
        for block in 1..=6 {
            let mut after = None;
            for round in 1..=6 {
                for place in 0..4 {
                    let step = if (block + round) % 2 == 0 { 1 } else { 3 };
                    let case = (place * step + round as usize) % 4;
                    let slower = if after == Some(1) { effect } else { 0.0 };
                    all.push(Turn { case, block, round, after, log: 0.07 * noise.normal() - slower });
                    after = Some(case);
                }
            }
        }
        all
    }

    #[test]
    fn an_effect_on_the_next_turn_is_seen() {
        let found = after_each(&turns(7, 0.1), 4)[1].unwrap();
        assert!(found.is_seen() && found.log < -0.03, "{found:?}");
    }

    #[test]
    fn without_an_effect_one_is_rarely_seen() {
        let runs = 400;
        let seen = (0..runs).filter(|seed| after_each(&turns(*seed, 0.0), 4).iter().flatten().any(CarryOver::is_seen));
        let seen = seen.count();
        assert!(seen <= 32, "{seen} of {runs}");
    }

    #[test]
    fn few_turns_show_nothing() {
        assert_eq!(after_each(&turns(1, 0.0)[..3], 4), [None; 4]);
    }
}
