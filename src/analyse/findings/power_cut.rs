//! Findings about power cuts.

use crate::record::verdict::VerdictRecord;
use serde::{Deserialize, Serialize};

/// Cost of a power cut for the cases that share a stack and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCut {
    /// Common name of the cases: "ext4".
    pub label: String,
    #[serde(flatten)]
    pub record: VerdictRecord,
    /// Requests to the recorded disks and bytes written, per commit; `None` if nothing was recorded.
    pub writes_per_commit: Option<f64>,
    pub flushes_per_commit: Option<f64>,
    pub bytes_per_commit: Option<f64>,
    /// Upper bound (95 %) of the share of failing states, if none failed.
    pub failing_share_max: Option<f64>,
}
