//! Cases that stood side by side and were measured in turns.

use super::estimate::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnsFinding {
    /// Rounds that count.
    pub rounds: u64,
    /// Rounds that were made again, since the disk was disturbed.
    pub made_again: u64,
    /// Rounds on a disturbed disk that count all the same: as many as may be had been made again.
    pub off: u64,
    /// True if ratios of rates are without what turns bore from the cases before.
    pub is_taken_out: bool,
    /// Change of a turn's log rate if others took all CPUs around it, which ratios are without; of guests the largest.
    pub others_slope: f64,
    /// Half the width of its 95 % interval; `None` if it was not fitted, or as low as may be.
    pub others_slope_half_width: Option<f64>,
    pub cases: Vec<CaseTurns>,
}

/// Turns of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseTurns {
    pub case: String,
    pub turns: u64,
    /// Bytes that its stack wrote between its turns, as a share of those in them.
    pub idle_share: Option<f64>,
    /// Rate of the turns after its own, divided by that of all.
    pub after: Option<Estimate>,
    /// True if that differs from 1, at 5 % over all cases.
    pub is_carried_over: bool,
    /// By block, the natural logarithm of what other programs and the cases before did to its rate. Ratios are without it.
    pub borne: BTreeMap<u32, f64>,
    /// Blocks in which its turns lay apart from those of the others, as when it is measured again alone.
    pub apart: u32,
}
