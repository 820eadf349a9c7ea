//! Effects of several options that were varied together: contrasts of the logarithms of a full factorial in complete
//! blocks (Montgomery, "Design and Analysis of Experiments", 8th ed., sections 3.5 and 5.3). Reasons and error rates:
//! `docs/adr/0044-effects-of-options.md`.
//!
//! The error of a contrast is the mean square of case x block; where Hartley's test finds the cases unequally noisy, the
//! contrast's own spread over the blocks. It is never taken to be less than the seconds inside the trials imply.

use super::criticals::Criticals;
use super::decisions::BlockDesign;
use super::interval::{Component, between};
use super::margin::Margin;
use super::moments;
use super::nominal::LEVEL;
use super::ratio::BlockMean;
use super::sequence::same;
use super::student;
use std::f64::consts::SQRT_2;

/// Probability of any false interaction in a table.
const INTERACTIONS: f64 = 0.01;
/// Probability of any false effect in a table: together with the interactions 5 %.
const EFFECTS: f64 = LEVEL - INTERACTIONS;

/// A full factorial: one cell for each combination of levels, the first axis varying slowest. Level 0 of each axis is
/// the one that others are compared with.
#[derive(Debug, Clone)]
pub struct Factorial {
    levels: Vec<usize>,
    /// Mean logarithm of each cell.
    means: Vec<f64>,
    /// `None` if its ratios can have no interval.
    design: Option<BlockDesign>,
    has_equal_noise: bool,
    /// Blocks that all cells have; without complete blocks, the fewest trials of a cell.
    pub blocks: usize,
}

/// Effect of a level relative to level 0 of its axis.
#[derive(Debug, Clone)]
pub struct Effect {
    pub axis: usize,
    pub level: usize,
    /// The axis that it depends on, and the level there; `None` for the mean over all other axes.
    pub at: Option<(usize, usize)>,
    /// Weight of each cell: positive at the level, negative at level 0.
    pub weights: Vec<f64>,
    pub log: f64,
    /// All effects of a factorial hold together with 95 %; `None` if there are too few data.
    pub margin: Option<Margin>,
}

impl Effect {
    /// True if its interval does not contain 1; true if it lies within so much of 1, per cent.
    pub fn decides(&self, percent: u32) -> (bool, bool) {
        let Some(margin) = self.margin else { return (false, false) };
        (self.log.abs() > margin.log, self.log.abs() + margin.log < same(percent))
    }
}

impl Factorial {
    /// `None` if a cell has no trial, or one without operations. `is_fixed`: the number of blocks was fixed in advance;
    /// otherwise no interval holds.
    pub fn of(levels: Vec<usize>, cells: &[Vec<BlockMean>], is_fixed: bool, criticals: &mut Criticals) -> Option<Self> {
        if cells.iter().flatten().any(|trial| trial.trial.mean <= 0.0) {
            return None;
        }
        let design = BlockDesign::of(cells);
        let logs = cells.iter().map(|cell| moments::mean(&cell.iter().map(|t| t.trial.mean.ln()).collect::<Vec<_>>()));
        let means: Option<Vec<f64>> = logs.collect();
        Some(Factorial {
            levels,
            blocks: design.as_ref().map_or_else(|| cells.iter().map(Vec::len).min(), |found| Some(found.blocks))?,
            means: design.as_ref().map_or(means, |found| Some(found.means.clone()))?,
            has_equal_noise: design.as_ref().is_none_or(|found| found.unequal_noise(criticals).is_none()),
            design: design.filter(|_| is_fixed),
        })
    }

    /// Effects of all levels, axis by axis. One that depends on another axis is split by its levels.
    pub fn effects(&self, criticals: &mut Criticals) -> Vec<Effect> {
        let splits = self.splits(criticals);
        let places = splits.into_iter().map(|split| match split {
            Some(other) => (0..self.levels[other]).map(|level| Some((other, level))).collect(),
            None => vec![None],
        });
        let places: Vec<Vec<Option<(usize, usize)>>> = places.collect();
        let families: usize = places.iter().map(Vec::len).sum();
        let mut found = Vec::new();
        for (axis, of) in self.levels.iter().enumerate() {
            for level in 1..*of {
                for at in places[axis].iter().copied() {
                    let weights = self.weights(axis, [level, 0], at);
                    let margin = self.margin(&weights, *of, EFFECTS / families as f64, criticals);
                    found.push(Effect { axis, level, at, log: self.log(&weights), weights, margin });
                }
            }
        }
        found
    }

    /// For each axis the one that its effects depend on: that of the interaction furthest beyond its margin. All pairs
    /// of levels of all pairs of axes are tested together, by Bonferroni's inequality.
    fn splits(&self, criticals: &mut Criticals) -> Vec<Option<usize>> {
        let mut tested: Vec<(usize, usize, Vec<f64>)> = Vec::new();
        for (one, of) in self.levels.iter().enumerate() {
            for (other, of_other) in self.levels.iter().enumerate().skip(one + 1) {
                for [low, high] in pairs(*of) {
                    for [first, second] in pairs(*of_other) {
                        let of_first = self.weights(one, [high, low], Some((other, first)));
                        let of_second = self.weights(one, [high, low], Some((other, second)));
                        tested.push((one, other, of_first.iter().zip(of_second).map(|(a, b)| a - b).collect()));
                    }
                }
            }
        }
        let mut strongest = vec![(1.0, None); self.levels.len()];
        for (one, other, weights) in &tested {
            let margin = self.margin(weights, 2, INTERACTIONS / tested.len() as f64, criticals);
            let beyond = margin.map_or(0.0, |margin| self.log(weights).abs() / margin.log);
            for (axis, with) in [(*one, *other), (*other, *one)] {
                if beyond > strongest[axis].0 {
                    strongest[axis] = (beyond, Some(with));
                }
            }
        }
        strongest.into_iter().map(|(_, with)| with).collect()
    }

    /// The mean of the cells at one level of an axis less that at another, where another axis has a given level.
    fn weights(&self, axis: usize, [level, against]: [usize; 2], at: Option<(usize, usize)>) -> Vec<f64> {
        let contexts = self.means.len() / self.levels[axis] / at.map_or(1, |(other, _)| self.levels[other]);
        let signs = (0..self.means.len()).map(|cell| match self.level_of(cell, axis) {
            _ if at.is_some_and(|(other, level)| self.level_of(cell, other) != level) => 0.0,
            own if own == level => 1.0,
            own if own == against => -1.0,
            _ => 0.0,
        });
        signs.map(|sign| sign / contexts as f64).collect()
    }

    fn level_of(&self, cell: usize, axis: usize) -> usize {
        cell / self.levels[axis + 1..].iter().product::<usize>() % self.levels[axis]
    }

    fn log(&self, weights: &[f64]) -> f64 {
        weights.iter().zip(&self.means).map(|(weight, mean)| weight * mean).sum()
    }

    /// Margin of a difference between two of so many means, all pairs of which are tested together: Tukey's, or, with
    /// unequal noise, Bonferroni's.
    fn margin(&self, weights: &[f64], means: usize, level: f64, criticals: &mut Criticals) -> Option<Margin> {
        let design = self.design.as_ref()?;
        let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
        let per_block = squares / design.blocks as f64;
        let of_blocks = (0..design.blocks)
            .map(|block| weights.iter().zip(&design.logs).map(|(weight, logs)| weight * logs[block]).sum::<f64>());
        let spread = match self.has_equal_noise {
            true => design.residual().scaled(per_block),
            false => between(&of_blocks.collect::<Vec<_>>())?,
        };
        let inside = design.inside.map(|inside| inside.scaled(per_block));
        spread.carries_an_interval().then(|| {
            let mut spanned = |error: Component| match self.has_equal_noise && means > 2 {
                true => (error, criticals.range(means, error.degrees, 1.0 - level) / SQRT_2),
                false => (error, student::two_sided_quantile(1.0 - level / pairs(means).count() as f64, error.degrees)),
            };
            Margin::larger(spanned(spread), inside.map(spanned))
        })
    }
}

/// All pairs of levels, the lower one first.
fn pairs(levels: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..levels).flat_map(move |low| (low + 1..levels).map(move |high| [low, high]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::{Noise, numbered_blocks, runs};

    const LEVELS: [usize; 3] = [2, 3, 2];
    const CELLS: usize = 12;

    /// Levels of a cell of [`LEVELS`].
    fn place(cell: usize) -> [usize; 3] {
        [cell / 6, cell / 2 % 3, cell % 2]
    }

    /// Trials of three blocks that drift together, around a logarithm for each cell.
    fn trials(
        noise: &mut Noise,
        log: impl Fn([usize; 3]) -> f64,
        spread: impl Fn(usize) -> f64,
    ) -> Vec<Vec<BlockMean>> {
        let drift: Vec<f64> = (0..3).map(|_| 0.2 * noise.normal()).collect();
        let mut cell = |cell: usize| {
            let logs = drift.iter().map(|drift| (drift + log(place(cell)) + spread(cell) * noise.normal()).exp());
            numbered_blocks(&logs.collect::<Vec<_>>())
        };
        (0..CELLS).map(&mut cell).collect()
    }

    fn effects(cells: &[Vec<BlockMean>], criticals: &mut Criticals) -> Vec<Effect> {
        Factorial::of(LEVELS.to_vec(), cells, true, criticals).unwrap().effects(criticals)
    }

    /// Per cent of runs of which this is true.
    fn share(full: u32, seed: u64, mut is: impl FnMut(&mut Noise, &mut Criticals) -> bool) -> f64 {
        let (mut noise, mut criticals) = (Noise::seeded(seed), Criticals::seeded(1));
        let found = (0..full).filter(|_| is(&mut noise, &mut criticals)).count();
        found as f64 / f64::from(full) * 100.0
    }

    /// True if each effect's interval holds the mean of the true logarithms.
    fn holds(found: &[Effect], log: impl Fn([usize; 3]) -> f64) -> bool {
        found.iter().all(|effect| {
            let truth: f64 = effect.weights.iter().enumerate().map(|(cell, weight)| weight * log(place(cell))).sum();
            (effect.log - truth).abs() <= effect.margin.unwrap().log
        })
    }

    fn plain(at: [usize; 3]) -> f64 {
        [0.0, 0.1][at[0]] + [0.0, -0.05, 0.02][at[1]] + [0.0, 0.9][at[2]]
    }

    /// The first option works at the second level of the third alone.
    fn interacting(at: [usize; 3]) -> f64 {
        plain(at) + if at[0] == 1 && at[2] == 1 { 0.2 } else { 0.0 }
    }

    #[test]
    fn an_effect_is_the_mean_over_pairs_that_differ_in_it_alone() {
        let cells = trials(&mut Noise::seeded(3), plain, |_| 0.05);
        let found = effects(&cells, &mut Criticals::seeded(1));
        assert_eq!(found.iter().map(|one| (one.axis, one.level)).collect::<Vec<_>>(), [(0, 1), (1, 1), (1, 2), (2, 1)]);
        let pairs = (0..6).flat_map(|cell| cells[cell].iter().zip(&cells[cell + 6]));
        let logs: Vec<f64> = pairs.map(|(a, b)| (b.trial.mean / a.trial.mean).ln()).collect();
        assert!((found[0].log - moments::mean(&logs).unwrap()).abs() < 1e-12);
    }

    #[test]
    fn all_intervals_of_a_table_hold_the_truth_together() {
        // The standard error of a share is 0.9 % at 500 runs.
        for (what, log) in [("no interaction", plain as fn([usize; 3]) -> f64), ("an interaction", interacting)] {
            let found =
                share(500, 7, |noise, criticals| holds(&effects(&trials(noise, log, |_| 0.03), criticals), log));
            println!("{what}: all intervals hold in {found:.1} % of runs");
            assert!((93.0..=98.8).contains(&found), "{what}: {found} %");
        }
    }

    #[test]
    fn equal_cells_show_a_false_effect_in_one_run_of_twenty() {
        // The standard error of a share is 0.3 % at 4000 runs, 0.7 % at 1000.
        for (what, most, noisy) in [("equal noise", 5.5, 0.03), ("one level six times noisier", 6.0, 0.18)] {
            let found = share(runs(4000), 11, |noise, criticals| {
                let cells = trials(noise, |_| 0.0, |cell| if place(cell)[2] == 1 { noisy } else { 0.03 });
                effects(&cells, criticals).iter().any(|one| one.decides(5).0)
            });
            println!("{what}: {found:.1} % of runs with a false effect");
            assert!(found <= most, "{what}: {found} %");
        }
    }

    #[test]
    fn an_effect_that_depends_on_another_option_is_split_by_it() {
        let found = share(runs(800), 5, |noise, criticals| {
            let found = effects(&trials(noise, interacting, |_| 0.03), criticals);
            let of = |axis: usize| found.iter().filter(|one| one.axis == axis).map(|one| one.at).collect::<Vec<_>>();
            of(0) == [Some((2, 0)), Some((2, 1))] && of(2) == [Some((0, 0)), Some((0, 1))] && of(1) == [None, None]
        });
        println!("an interaction of 0.2 at noise 0.03: {found:.1} % of runs split it, and nothing else");
        assert!(found > 90.0, "{found} %");
    }

    #[test]
    fn one_block_or_open_blocks_give_ratios_without_intervals() {
        let mut criticals = Criticals::seeded(1);
        let cells = trials(&mut Noise::seeded(3), plain, |_| 0.01);
        let single: Vec<Vec<BlockMean>> = cells.iter().map(|cell| cell[..1].to_vec()).collect();
        for (cells, is_fixed, blocks) in [(&single, true, 1), (&cells, false, 3)] {
            let found = Factorial::of(LEVELS.to_vec(), cells, is_fixed, &mut criticals).unwrap();
            let first = &found.effects(&mut criticals)[0];
            assert!(found.blocks == blocks && first.margin.is_none() && (first.log - 0.1).abs() < 0.05, "{first:?}");
        }
        let mut idle = cells;
        idle[0][0].trial.mean = 0.0;
        assert!(Factorial::of(LEVELS.to_vec(), &idle, true, &mut criticals).is_none());
    }
}
