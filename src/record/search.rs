//! What was counted of a search for the highest rate within a latency limit: one step at each rate that was tried.

use serde::{Deserialize, Serialize};

/// The steps of one search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchCounts {
    /// Operations a second of the warm-up, a closed loop without a limit, as the tool printed it; the search begins at 0.7 of
    /// it.
    pub peak_tps: f64,
    /// The steps in the order in which they were taken.
    pub steps: Vec<StepCounts>,
}

/// One step: all clients together keep to a rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCounts {
    /// Its rate as rungs above the first one, each 5 % more than the one before.
    pub rung: i32,
    /// Operations a second that were to be sent, at random times.
    pub rate: f64,
    /// When its first operation began, microseconds after that of the first step.
    pub start_us: u64,
    /// From the start of its first operation to the end of its last, microseconds.
    pub elapsed_us: u64,
    /// Operations done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped, being later than the limit already, or never sent, since no client was free until the step had ended.
    pub skipped: u64,
    /// Done, and later than the limit, from the time at which they were due.
    pub late: u64,
    /// Whole seconds in which operations were due and none was done.
    pub silent_s: u64,
    /// Operations that the driver began late by itself (its client was free), by more than a tenth of the limit.
    pub lagging: u64,
    /// Sum of the times by which the driver was late by itself, microseconds.
    pub driver_lag_us_sum: u64,
    /// Tag of its intervals in `latency.hist`.
    pub tag: String,
}
