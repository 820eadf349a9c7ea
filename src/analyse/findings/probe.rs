//! Types of a probe that findings of runs show as well.

use serde::{Deserialize, Serialize};

/// Latencies of a row; a percentile only where a hundredth of the operations beyond it can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyFinding {
    /// Operations whose latency is known.
    pub operations: u64,
    /// A tenth of the operations were as fast or faster.
    pub p10_ns: u64,
    pub p50_ns: u64,
    /// 99th percentile; from 100 operations on.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile; from 1000 operations on.
    pub p999_ns: Option<u64>,
    pub max_ns: u64,
}

/// What is thought of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredibilityKind {
    /// It lies in memory.
    Memory,
    /// A sync was not seen to force anything out.
    NoFlushSeen,
    /// Flushes pass every level that can be seen, and their times are plausible.
    Flushed,
    /// The lowest device declares that it needs no flushes, and nothing speaks against it.
    DeclaredStable,
    /// Faster than physics allows: than a bus carries, than the disk turns, than any storage that keeps data.
    Implausible,
    /// Faster than flash without protection is known to be, on a device that reports a volatile cache.
    Unexplained,
    /// It is unknown.
    Unknown,
}
