//! Findings about power cuts.

use crate::record::verdict::{DeviceVerdict, StatesTried, Verdict};
use serde::{Deserialize, Serialize};

/// What a power cut would cost the cases that share a stack and a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerCut {
    /// What they are called together: "ext4".
    pub label: String,
    /// Their ids.
    pub cases: Vec<String>,
    pub verdict: Verdict,
    /// Clients that committed, and the commits that were acknowledged.
    pub clients: u16,
    pub commits: u64,
    /// Requests to the recorded disks and bytes of the writes, for each commit; `None` where nothing was recorded.
    pub writes_per_commit: Option<f64>,
    pub flushes_per_commit: Option<f64>,
    pub bytes_per_commit: Option<f64>,
    /// States that were tried; empty for arithmetic alone.
    pub states: Vec<StatesTried>,
    /// Upper bound (95 %) of the share of such states that fail, where none did.
    pub failing_share_max: Option<f64>,
    /// States whose WAL was read to its end, and those that went through recovery and all checks.
    pub wal_ends_read: u64,
    pub recovered: u64,
    /// States with a write torn at 4 KiB that failed, and at 512 bytes, which is outside what filesystems promise.
    pub torn_pages: u64,
    pub torn_sectors: u64,
    /// Checks that nothing could be said of, with the reason.
    pub left_out: Vec<String>,
    /// What each model of the device would make of it, the honest one first: by states where they were tried, else by
    /// arithmetic.
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, where it was kept.
    pub evidence: Option<String>,
}
