//! A guest killed at the request of a trial: data that the program outside passes to the one that continues inside.

use crate::record::case::TrialKey;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crashed {
    pub trial: TrialKey,
    /// From the last answer to the client running alongside to the request, microseconds; measured by the guest before
    /// the crash.
    pub since_answer_us: u64,
    /// Longest time between two answers to that client, microseconds.
    pub answers_apart_us: u64,
    /// From the request to the start of the program that continues, microseconds; measured by the host.
    pub down_us: u64,
}
