//! Probe types that also appear in the findings of runs.

use serde::{Deserialize, Serialize};

/// Latencies of a row; a percentile is given only if a hundredth of the operations beyond it can be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyFinding {
    /// A tenth of the operations took at most this long.
    pub p10_ns: u64,
    pub p50_ns: u64,
    /// 99th percentile; needs 100 operations.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile; needs 1000 operations.
    pub p999_ns: Option<u64>,
    pub max_ns: u64,
}

/// Credibility of the folder's synced writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredibilityKind {
    /// The folder is in memory.
    Memory,
    /// No flush was seen for a sync.
    NoFlushSeen,
    /// Flushes pass every visible level, and their times are plausible.
    Flushed,
    /// The lowest device declares that it needs no flushes, and nothing contradicts it.
    DeclaredStable,
    /// Faster than the bus, the disk's rotation or any persistent storage allows.
    Implausible,
    /// Faster than any known flash without power-loss protection, on a device that reports a volatile cache.
    Unexplained,
    Unknown,
}
