//! Findings about what trials did once: how long it took.

use crate::analyse::findings::estimate::Estimate;
pub use crate::record::stage::StageKind;
use serde::{Deserialize, Serialize};

/// A stage over the trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageFinding {
    /// `redo`, `CREATE INDEX`.
    pub name: String,
    pub kind: StageKind,
    /// Geometric mean over trials; `None` where a trial lacks it.
    pub seconds: Option<Estimate>,
    /// Why not.
    pub missing: Option<String>,
    /// What it read or wrote, bytes: mean over trials.
    pub bytes: Option<f64>,
    /// Megabytes (10^6 bytes) a second.
    pub mb_per_s: Option<Estimate>,
    /// The trials' own: number of the trial, seconds.
    pub trials: Vec<(u32, f64)>,
}
