//! What the program outside passes to the one that continues inside: trials during which a guest died, and the one at whose
//! request it was killed.

use crate::record::case::TrialKey;
use crate::record::event::Step;
use serde::{Deserialize, Serialize};

/// A trial during which its guest died: the next session stores it as not run and does not retry it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    pub trial: TrialKey,
    pub step: Step,
    /// Diagnosis, with the last lines of the console.
    pub reason: String,
}

/// A trial at whose request its guest was killed: the next session continues it.
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
