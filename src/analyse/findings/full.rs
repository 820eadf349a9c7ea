//! Trials whose stack filled up.

use serde::{Deserialize, Serialize};

/// A trial that ran out of space: a valid result, with figures up to that point if there are any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullFinding {
    pub case: String,
    pub trial: u32,
    /// Step in progress: "measuring".
    pub step: String,
    /// Seconds from the first operation to the first refusal; without figures, from the beginning of the step.
    pub after_s: f64,
    /// Message of the first refusal, from the server or the tool.
    pub reason: String,
    /// Used share of the data filesystem, 0 to 1, as counted by df.
    pub used: Option<f64>,
    /// Last lines of the server's log; empty without a server.
    pub server_log: String,
    /// True if the trial has figures.
    pub is_measured: bool,
}
