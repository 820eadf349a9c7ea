//! Findings about the highest rate within a latency limit.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// What the searches of a case say: one in each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Operations slower than this count as late, from when they were due, microseconds.
    pub limit_us: u64,
    /// Unit of the rates.
    pub unit: String,
    pub searches: u32,
    /// Rate at which half of the steps pass, over trials; for comparing cases.
    pub about: Option<Estimate>,
    /// Highest rate that passed three times in a row in every search; a promise.
    pub holds: Option<f64>,
    /// The promise, or why there is none, in words.
    pub sentence: String,
    /// Operations a second without a limit (the closed loop of the warm-up), mean over trials.
    pub peak: f64,
    /// Every step, trial by trial.
    pub steps: Vec<CapacityStep>,
}

/// One rate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    pub trial: u32,
    /// From 1.
    pub step: u32,
    /// Operations a second that were to be sent.
    pub rate: f64,
    /// Operations due.
    pub due: u64,
    pub done: u64,
    pub failed: u64,
    /// Skipped, being later than the limit already.
    pub skipped: u64,
    /// Done, later than the limit.
    pub late: u64,
    /// Share of those due that were late, skipped or failed, 0 to 1.
    pub late_share: f64,
    /// 99th percentile of those due, microseconds; `None` where it lies among the skipped ones.
    pub p99_us: Option<u64>,
    /// Seconds in which operations were due and none was done.
    pub silent_s: u64,
    /// Mean time by which the driver began an operation late by itself, microseconds.
    pub driver_lag_us_mean: f64,
    /// Why it did not pass; `None` where it did.
    pub failed_by: Option<String>,
}
