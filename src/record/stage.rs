//! Stages: what a trial did once, and how long each took. Figures over trials are computed from these in `analyse`.

use serde::{Deserialize, Serialize};

/// One stage of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// In the words of the report: `redo`, `CREATE INDEX`. The same in every trial of a case.
    pub name: String,
    /// What it is to the trial.
    pub kind: StageKind,
    /// How long it took, microseconds.
    pub length_us: u64,
    /// What it read or wrote, bytes, where that is known: its rate is this over its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What a stage is to its trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// What the workload is about: cases are ranked by its time.
    Ranked,
    /// A part of the ranked stage before it; its parts add up to it.
    Part,
    /// Shown, neither ranked nor a part of another.
    Beside,
}
