//! A guest that was killed because a trial asked for it: what the program outside tells the one that goes on inside.

use crate::record::case::TrialKey;
use serde::{Deserialize, Serialize};

/// One such crash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crashed {
    pub trial: TrialKey,
    /// From the last answer to the client beside the server to the request, microseconds; by the guest before the crash.
    pub since_answer_us: u64,
    /// Longest time between two answers to that client, microseconds.
    pub answers_apart_us: u64,
    /// From the request to the call of the program that goes on, microseconds; by the host.
    pub down_us: u64,
}
