//! Snapshots made and deleted while a load ran.

use serde::{Deserialize, Serialize};

/// The snapshots of one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotCounts {
    /// Requested time between two of them, microseconds; `None` for the control, which makes none.
    pub every_us: Option<u64>,
    /// Number to keep.
    pub keep: u64,
    /// Actions in order.
    pub deeds: Vec<SnapshotDeed>,
    /// Numbers of those invalidated because their own space was full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u64>,
    /// Reason that no server could be started on a copy of the last one, if that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_failure: Option<String>,
    /// Bytes in use at the start and end of the load, including those held by snapshots.
    pub used_bytes: Option<(u64, u64)>,
}

/// One snapshot made or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotDeed {
    /// Number of the snapshot, from 1.
    pub number: u64,
    /// Kind of action.
    pub kind: DeedKind,
    /// Start, microseconds after the first operation.
    pub start_us: u64,
    /// Duration of the command, microseconds, excluding later background work.
    pub length_us: u64,
    /// Reason for failure.
    pub failure: Option<String>,
}

/// Action on a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeedKind {
    /// It was made.
    Make,
    /// It was deleted.
    Delete,
}
