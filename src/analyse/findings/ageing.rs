//! How figures follow the ageing of a stack.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// One figure of one stack and workload over an amount of ageing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ageing {
    /// Stack, workload and what else the cases have in common.
    pub name: String,
    /// `age.rewrite`, `age.pgbench`, `age.churn`, `age.fill`.
    pub axis: String,
    /// What the amount is: `times overwritten (page rewrite)`.
    pub amount: String,
    /// `extents per GiB`, `scan`.
    pub figure: String,
    /// Unit of the figure.
    pub unit: String,
    /// In the order of the amounts.
    pub points: Vec<AgeingPoint>,
    /// Relative change for each unit of the amount: 0.02 for 2 % more. Of the ratio to the control where each point has one.
    pub slope: Option<Estimate>,
    /// The same in a sentence, with whether it is steady.
    pub sentence: String,
}

/// A figure after an amount of ageing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgeingPoint {
    /// The amount: times, or percent.
    pub x: f64,
    /// On the aged filesystem.
    pub aged: Option<Estimate>,
    /// The control: the same cluster on a fresh filesystem.
    pub fresh: Option<Estimate>,
    /// Aged over fresh, block by block.
    pub ratio: Option<Estimate>,
    /// Whether the ratio's interval leaves out 1, and the ratio is at least 1 % off.
    pub told_apart: Option<bool>,
}
