//! Measured windows of trials and cases, as shown to the user.

use crate::analyse::findings::estimate::Estimate;
use crate::record::window::CheckpointDone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialWindow {
    /// Requested checkpoint cycles; `None` if a duration was requested.
    pub asked_cycles: Option<u64>,
    /// Whole checkpoint cycles in the window.
    pub whole_cycles: u64,
    /// True if the time limit ended the window before all requested cycles.
    pub cut: bool,
    /// Seconds.
    pub length_s: f64,
    pub warm_up_cycles: u64,
    /// True if the last two warm-up cycles agreed.
    pub settled: Option<bool>,
    /// True if WAL was written beforehand, so that segments are recycled.
    pub prefilled: bool,
    /// Settings of the plan that its window replaced: the plan's value, and what the server had.
    pub replaced: BTreeMap<String, (String, String)>,
    /// WAL segments newly created in the window.
    pub wal_segments_new: Option<u64>,
    pub checkpoints: Vec<CheckpointFinding>,
    /// First cycle against last (without two whole cycles, first third against last), if both are long enough.
    pub trend: Option<Trend>,
    /// Time spent on the tables that autovacuum finished in the window, seconds.
    pub vacuum_s: f64,
}

/// A checkpoint on the time axis of its trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointFinding {
    /// Seconds after the first operation began; negative for an earlier start.
    pub start_s: f64,
    /// `None` if its end was not seen.
    pub end_s: Option<f64>,
    /// As logged by the server: `time`, `wal`.
    pub cause: String,
    pub done: Option<CheckpointDone>,
}

/// Operations per second in the first and last whole cycle, or third.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    pub first: f64,
    pub last: f64,
    /// True if the difference exceeds what their seconds explain.
    pub seen: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseWindow {
    /// Fewest and most whole checkpoint cycles in a trial.
    pub whole_cycles: (u64, u64),
    /// Seconds entirely within a checkpoint.
    pub inside: PhaseFinding,
    /// Seconds entirely outside checkpoints.
    pub outside: PhaseFinding,
    pub pages: Option<PagesWritten>,
    /// Duration of the checkpoints' sync phase, seconds per GB (10^9 bytes) that they wrote, over trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_s_per_gb: Option<Estimate>,
    /// Autovacuum time on tables over the measured time; above 1 if several workers ran.
    pub vacuum_share: f64,
}

/// Activity in a subset of the seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFinding {
    pub seconds: u64,
    /// Operations per second; `None` without seconds.
    pub rate: Option<f64>,
    /// 99th percentile of latency, microseconds.
    pub p99_us: Option<u64>,
}

/// Pages of data files written in all trials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesWritten {
    pub checkpointer: u64,
    pub background_writer: u64,
    /// Backends, autovacuum workers and all other processes; `None` if a trial lacks them.
    pub backends: Option<u64>,
    /// Why they are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backends_unavailable: Option<String>,
}
