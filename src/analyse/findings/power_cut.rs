//! Findings about power cuts.

use crate::record::verdict::{DeviceVerdict, StatesTried, Verdict};
use serde::{Deserialize, Serialize};

/// Cost of a power cut for the cases that share a stack and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCut {
    /// Common name of the cases: "ext4".
    pub label: String,
    pub cases: Vec<String>,
    pub verdict: Verdict,
    /// Clients that committed, and acknowledged commits.
    pub clients: u16,
    pub commits: u64,
    /// Requests to the recorded disks and bytes written, per commit; `None` if nothing was recorded.
    pub writes_per_commit: Option<f64>,
    pub flushes_per_commit: Option<f64>,
    pub bytes_per_commit: Option<f64>,
    /// Crash states that were tried; empty if the verdict is by arithmetic alone.
    pub states: Vec<StatesTried>,
    /// Upper bound (95 %) of the share of failing states, if none failed.
    pub failing_share_max: Option<f64>,
    /// States whose WAL was read to its end, and states that went through recovery and all checks.
    pub wal_ends_read: u64,
    pub recovered: u64,
    /// Failed states with a write torn at 4 KiB, and at 512 bytes, which filesystems do not promise to survive.
    pub torn_pages: u64,
    pub torn_sectors: u64,
    /// Checks without a result, with the reason.
    pub left_out: Vec<String>,
    /// Verdict for each device model, the honest one first: from tried states if there are any, else by arithmetic.
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, if it was kept.
    pub evidence: Option<String>,
}
