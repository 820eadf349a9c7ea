//! Findings about the highest rate within a latency limit.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Result of the capacity searches of a case, one per trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityFinding {
    /// Operations slower than this, measured from when they were due, count as late; microseconds.
    pub limit_us: u64,
    /// Unit of the rates.
    pub unit: String,
    pub searches: u32,
    /// Rate at which half of the steps pass, over trials; used to compare cases.
    pub about: Option<Estimate>,
    /// Highest rate that passed three times in a row in every search.
    pub holds: Option<f64>,
    /// `holds` in words, or why there is none.
    pub sentence: String,
    /// Operations per second without a limit (closed loop of the warm-up), mean over trials.
    pub peak: f64,
    /// Every step of every trial, in order.
    pub steps: Vec<CapacityStep>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    pub trial: u32,
    /// Counted from 1.
    pub step: u32,
    /// Target rate, operations per second.
    pub rate: f64,
    pub due: u64,
    pub done: u64,
    pub failed: u64,
    /// Skipped because they were already later than the limit.
    pub skipped: u64,
    /// Completed later than the limit.
    pub late: u64,
    /// Share of due operations that were late, skipped or failed, 0 to 1.
    pub late_share: f64,
    /// 99th percentile of due operations, microseconds; `None` if it falls among the skipped ones.
    pub p99_us: Option<u64>,
    /// Seconds in which operations were due but none completed.
    pub silent_s: u64,
    /// Mean delay added by the driver before starting an operation, microseconds.
    pub driver_lag_us_mean: f64,
    /// Why the step failed; `None` if it passed.
    pub failed_by: Option<String>,
}
