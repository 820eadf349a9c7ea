//! A stack that had no room left while it was aged or measured: a result, with figures up to then where there are some.

use super::event::Step;
use serde::{Deserialize, Serialize};

/// How a trial's stack filled up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullRecord {
    /// In which step.
    pub step: Step,
    /// Until the first refusal, microseconds: from the first operation of the measurement on where there was one, else from
    /// the beginning of the step.
    pub after_us: u64,
    /// The first refusal in the words of the server or of the tool.
    pub reason: String,
    /// Size of the filesystem of the data as df counts it, bytes. What a pool below it holds besides (snapshots, other volumes)
    /// is not in it.
    pub size_bytes: Option<u64>,
    /// Of that, used.
    pub used_bytes: Option<u64>,
    /// Last lines of the server's log; empty without a server.
    pub server_log: String,
}
