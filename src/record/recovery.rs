//! One crash of a server and its recovery, as it was seen from outside.

use serde::{Deserialize, Serialize};

/// What was ended at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrashKind {
    /// All processes of the server; what they wrote stays in the page cache.
    Process,
    /// The filesystems below the server too, without writing anything back.
    Machine,
    /// The guest that the server ran in; it was booted again.
    Guest,
}

/// What was counted before a crash that ends the program that counts, for the one that goes on after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeCrash {
    /// WAL that was asked for, bytes.
    pub wal_asked: u64,
    /// WAL between the redo position of the last checkpoint and the end of the load, bytes.
    pub wal_bytes: u64,
    /// Operations in each whole second of the load.
    pub seconds: Vec<u64>,
    /// When the first of them began, wall clock, microseconds since 1970.
    pub began_us: u64,
    /// When the last one ended, same clock.
    pub ended_us: u64,
    /// Operations done.
    pub done: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Sum of the latencies of those done, microseconds.
    pub latency_us_sum: u64,
    /// Bytes of a page of the server.
    pub block_bytes: u64,
}

/// The counts of a crash. Its stages stand with those of the trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryCounts {
    /// What was ended.
    pub crash: CrashKind,
    /// WAL that was asked for between the checkpoint and the crash, bytes.
    pub wal_asked: u64,
    /// WAL between the redo position of that checkpoint and the crash, bytes.
    pub wal_bytes: u64,
    /// Operations in each whole second of the load before the crash.
    pub before: Vec<u64>,
    /// Operations in each whole second of the load after it.
    pub after: Vec<u64>,
    /// When the first of these seconds began, microseconds after the first answer.
    pub after_begins_us: u64,
    /// Longest time between two answers to the client running alongside before the crash, microseconds: the uncertainty
    /// of the outage.
    pub answers_apart_us: u64,
}
