//! How figures change as a stack ages.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// One figure of a stack and workload by amount of ageing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ageing {
    /// Stack, workload and other axes that the cases share.
    pub name: String,
    /// `age.rewrite`, `age.pgbench`, `age.churn`, `age.fill`.
    pub axis: String,
    /// Meaning of the amount: `times overwritten (page rewrite)`.
    pub amount: String,
    /// `extents per GiB`, `scan`.
    pub figure: String,
    pub unit: String,
    /// In ascending order of amount.
    pub points: Vec<AgeingPoint>,
    /// Relative change per unit of the amount, 0.02 for 2 % more; of the ratio to the control if every point has one.
    pub slope: Option<Estimate>,
    /// The slope in words, and whether the figure is steady.
    pub sentence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgeingPoint {
    /// Amount of ageing: repetitions, or percent.
    pub x: f64,
    /// On the aged filesystem.
    pub aged: Option<Estimate>,
    /// Control: the same cluster on a fresh filesystem.
    pub fresh: Option<Estimate>,
    /// Aged over fresh, block by block.
    pub ratio: Option<Estimate>,
    /// True if the ratio's interval excludes 1 and the ratio differs from 1 by at least 1 %.
    pub told_apart: Option<bool>,
}
