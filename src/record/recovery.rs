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
    /// Longest time between two answers to the client beside the server before the crash, microseconds: the outage is known
    /// no better.
    pub answers_apart_us: u64,
}
