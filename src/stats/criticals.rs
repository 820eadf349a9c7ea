//! Cache of the tests' critical values.

use crate::stats::studentized::StudentizedRange;
use crate::stats::{noise, nominal};
use std::collections::BTreeMap;

/// Critical values computed so far; they depend only on the shape of a design.
#[derive(Debug, Clone, Default)]
pub struct Criticals {
    seed: u64,
    ranges: BTreeMap<(usize, u64, u64), f64>,
    noises: BTreeMap<(usize, usize), f64>,
    errors: BTreeMap<(usize, usize), f64>,
    levels: BTreeMap<(usize, u32, u32), f64>,
}

impl Criticals {
    /// An empty cache; `seed` is for the simulated designs.
    pub fn seeded(seed: u64) -> Criticals {
        Criticals { seed, ..Criticals::default() }
    }

    pub(super) fn range(&mut self, cases: usize, degrees: f64, confidence: f64) -> f64 {
        let new = || StudentizedRange::new(cases, degrees).quantile(confidence);
        *self.ranges.entry((cases, degrees.to_bits(), confidence.to_bits())).or_insert_with(new)
    }

    /// Nominal level for looks after each block from `first` to `last`.
    pub(super) fn level(&mut self, cases: usize, first: u32, last: u32) -> f64 {
        *self.levels.entry((cases, first, last)).or_insert_with(|| nominal::level(cases, first, last, self.seed))
    }

    /// Overrides the level, also with one that does not keep the error.
    #[cfg(test)]
    pub(super) fn set_level(&mut self, cases: usize, first: u32, last: u32, level: f64) {
        self.levels.insert((cases, first, last), level);
    }

    pub(super) fn noise(&mut self, cases: usize, blocks: usize) -> f64 {
        *self.noises.entry((cases, blocks)).or_insert_with(|| noise::critical_value(cases, blocks, self.seed))
    }

    /// Standard errors that a pair of `cases` must span in one look at complete blocks.
    pub(super) fn errors(&mut self, cases: usize, blocks: usize) -> f64 {
        *self.errors.entry((cases, blocks)).or_insert_with(|| noise::critical_errors(cases, blocks, self.seed))
    }
}
