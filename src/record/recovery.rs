//! One crash of a server and its recovery, observed from outside.

use serde::{Deserialize, Serialize};

/// Scope of a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrashKind {
    /// All server processes; their writes stay in the page cache.
    Process,
    /// The filesystems below the server too, without writeback.
    Machine,
    /// The guest that the server ran in; it was booted again.
    Guest,
}

/// Counts from before a crash that also ends this program, for the process that continues after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeCrash {
    /// Requested WAL distance, bytes.
    pub wal_asked: u64,
    /// WAL between the redo position of the last checkpoint and the end of the load, bytes.
    pub wal_bytes: u64,
    /// Operations in each whole second of the load.
    pub seconds: Vec<u64>,
    /// Start of the first of these seconds, wall clock, microseconds since 1970.
    pub began_us: u64,
    /// End of the last one, same clock.
    pub ended_us: u64,
    /// Operations done.
    pub done: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Sum of the latencies of completed operations, microseconds.
    pub latency_us_sum: u64,
    /// Page size of the server, bytes.
    pub block_bytes: u64,
}

/// Counts of a crash. Its stages are among those of the trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCounts {
    /// Scope of the crash.
    pub crash: CrashKind,
    /// Requested WAL distance, bytes.
    pub wal_asked: u64,
    /// WAL distance, bytes.
    pub wal_bytes: u64,
    /// Operations in each whole second of the load before the crash.
    pub before: Vec<u64>,
    /// Operations in each whole second of the load after it.
    pub after: Vec<u64>,
    /// Start of the first of these seconds, microseconds after the first answer.
    pub after_begins_us: u64,
    /// Longest time between two answers to the client running alongside before the crash, microseconds: the uncertainty
    /// of the outage.
    pub answers_apart_us: u64,
}
