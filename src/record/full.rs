//! A stack that ran out of space during ageing or measurement: a result, with figures up to then if there are any.

use super::event::Step;
use serde::{Deserialize, Serialize};

/// How a trial's stack filled up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullRecord {
    /// The step.
    pub step: Step,
    /// Time to the first refusal, microseconds: from the first operation of the measurement if there was one, else from
    /// the start of the step.
    pub after_us: u64,
    /// Message of the server or tool at the first refusal.
    pub reason: String,
    /// Size of the data's filesystem as df counts it, bytes. Excludes other content of a pool below it (snapshots,
    /// other volumes).
    pub size_bytes: Option<u64>,
    /// Used part of that, bytes.
    pub used_bytes: Option<u64>,
    /// Last lines of the server's log; empty without a server.
    pub server_log: String,
}
