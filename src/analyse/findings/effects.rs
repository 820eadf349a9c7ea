//! Effects of the options of a plan that were varied together.

use super::{DurabilityClass, Estimate, PairOutcome};
use serde::{Deserialize, Serialize};

/// Effects of the options that vary among the cases of one workload and measure. Intervals and outcomes of all its
/// options hold together with 95 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// For example "tpcb".
    pub title: String,
    /// Combinations measured.
    pub combinations: usize,
    /// Blocks that all of them have.
    pub blocks: usize,
    /// Why there are no effects.
    pub unavailable: Option<String>,
    /// Axis by axis, the stack first.
    pub options: Vec<OptionEffect>,
    /// `None` without effects, and where the number of blocks was not fixed in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestCombinations>,
}

/// The best combinations of the safest durability class, at the load of the most important ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestCombinations {
    /// Names of those that no other was shown to beat, best figure first: "xfs full_page_writes=off".
    pub labels: Vec<String>,
    /// Their ids.
    pub cases: Vec<String>,
    /// True if they are shown to be the same, rather than undecided.
    pub are_same: bool,
    pub class: DurabilityClass,
    /// Ids of all combinations of that class at that load.
    pub compared: Vec<String>,
    /// "clients=8"; `None` if the load does not vary.
    pub load: Option<String>,
    /// The baseline, else the plan's first combination.
    pub reference: String,
    /// Of the first of the best over the reference; `None` if it is the reference.
    pub ratio: Option<Estimate>,
}

impl Effects {
    /// True if two or more options vary beside the load: then no single ranking answers the plan.
    pub fn has_several_options(&self) -> bool {
        let mut judged = self.options.iter().filter(|option| option.outcome.is_some()).map(|option| &option.axis);
        judged.next().is_some_and(|first| judged.any(|axis| axis != first))
    }
}

/// Effect of one level of an axis instead of the reference level: over all pairs of trials that differ in it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptionEffect {
    pub axis: String,
    pub level: String,
    /// The baseline's level, else the plan's first.
    pub reference: String,
    /// The level of another axis that it depends on, "clients=16"; `None` for the mean over all combinations of the others.
    pub at: Option<String>,
    /// Geometric mean.
    pub ratio: Estimate,
    /// `None` for an option of the workload: another load is neither better nor worse.
    pub outcome: Option<PairOutcome>,
    pub pairs: usize,
    /// True if the pairs, or some of them, differ in durability class.
    pub differs_in_durability: bool,
}
