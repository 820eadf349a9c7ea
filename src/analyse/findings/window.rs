//! The measured windows of trials and cases, as they are shown.

use crate::analyse::findings::estimate::Estimate;
use crate::record::window::CheckpointDone;
use serde::{Deserialize, Serialize};

/// The window of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialWindow {
    /// Checkpoint cycles that were asked for; `None` for a duration.
    pub asked_cycles: Option<u64>,
    /// Whole ones in it.
    pub whole_cycles: u64,
    /// Whether the time limit ended it before all cycles that were asked for.
    pub cut: bool,
    /// Length, seconds.
    pub length_s: f64,
    /// Cycles of the warm-up.
    pub warm_up_cycles: u64,
    /// Whether the last two of these agreed.
    pub settled: Option<bool>,
    /// Whether WAL was written beforehand, so that segments are recycled.
    pub prefilled: bool,
    /// WAL segments made new in it.
    pub wal_segments_new: Option<u64>,
    /// The checkpoints that touch it.
    pub checkpoints: Vec<CheckpointFinding>,
    /// First cycle against last, or first third against last without two whole cycles, where both are long enough.
    pub trend: Option<Trend>,
    /// Tables that autovacuum ended with in it, and the time that it took for them, seconds.
    pub vacuums: u64,
    pub vacuum_s: f64,
}

/// A checkpoint on the time axis of its trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointFinding {
    /// Seconds after the first operation began; below 0 for one that began before.
    pub start_s: f64,
    /// `None` where its end was not seen.
    pub end_s: Option<f64>,
    /// In the server's words: `time`, `wal`.
    pub cause: String,
    /// What it did.
    pub done: Option<CheckpointDone>,
}

/// Operations a second of the first and of the last whole cycle, or third.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub first: f64,
    pub last: f64,
    /// Whether they differ by more than their seconds explain.
    pub seen: bool,
}

/// The windows of a case, over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseWindow {
    /// Fewest and most whole checkpoint cycles in a trial.
    pub whole_cycles: (u64, u64),
    /// Seconds that lie wholly in a checkpoint, from its start to its end.
    pub inside: Phase,
    /// Seconds that lie wholly outside.
    pub outside: Phase,
    /// Pages that were written, by whom.
    pub pages: Option<PagesWritten>,
    /// Time that checkpoints spent in their sync phase, seconds for each GB (10^9 bytes) that they wrote, over trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_s_per_gb: Option<Estimate>,
    /// Time of autovacuum on tables, over the time measured; above 1 where several workers were at it.
    pub vacuum_share: f64,
}

/// What was done in some of the seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub seconds: u64,
    /// Operations a second; `None` without seconds.
    pub rate: Option<f64>,
    /// 99th percentile of their latencies, microseconds.
    pub p99_us: Option<u64>,
}

/// Pages of data files written over all trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesWritten {
    pub checkpointer: u64,
    pub background_writer: u64,
    /// Backends, autovacuum workers and all others.
    pub backends: u64,
}
