//! Trials whose stack filled up.

use serde::{Deserialize, Serialize};

/// A trial whose stack had no room left: a result, with figures up to then where there are some.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FullFinding {
    pub case: String,
    pub trial: u32,
    /// What was being done: "measuring".
    pub step: String,
    /// Until the first refusal, from the first operation on, seconds; without figures from the beginning of the step on.
    pub after_s: f64,
    /// The first refusal in the words of the server or of the tool.
    pub reason: String,
    /// Share of the filesystem of the data that was used, 0 to 1, as df counts it.
    pub used: Option<f64>,
    /// Last lines of the server's log; empty without a server.
    pub server_log: String,
    /// Whether it has figures.
    pub is_measured: bool,
}
