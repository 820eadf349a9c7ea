//! Stages: one-time work of a trial, and its durations. `analyse` computes figures over trials.

use serde::{Deserialize, Serialize};

/// One stage of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// Name as reported: `redo`, `CREATE INDEX`. The same in every trial of a case.
    pub name: String,
    /// Role in the trial.
    pub kind: StageKind,
    /// Duration, microseconds.
    pub length_us: u64,
    /// Bytes read or written, if known; the rate is this over the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Role of a stage in its trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// The subject of the workload: cases are ranked by its time.
    #[default]
    Ranked,
    /// A part of the preceding ranked stage; its parts add up to it.
    Part,
    /// Reported only: neither ranked nor a part of another.
    Beside,
}
