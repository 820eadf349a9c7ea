//! Findings about the duration of one-off work in trials.

use crate::analyse::findings::estimate::Estimate;
pub use crate::record::stage::StageKind;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageFinding {
    /// `redo`, `CREATE INDEX`.
    pub name: String,
    pub kind: StageKind,
    /// Geometric mean over trials; `None` if a trial lacks it.
    pub seconds: Option<Estimate>,
    /// Why `seconds` is missing.
    pub missing: Option<String>,
    /// Bytes read or written, mean over trials.
    pub bytes: Option<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Option<Estimate>,
    /// Trial number and seconds.
    pub trials: Vec<(u32, f64)>,
}
