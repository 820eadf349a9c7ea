//! Snapshots that were made and deleted while a load ran.

use serde::{Deserialize, Serialize};

/// The snapshots of one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotCounts {
    /// Time between two of them that was asked for, microseconds; `None` for a case without, the control.
    pub every_us: Option<u64>,
    /// How many were to be kept.
    pub keep: u64,
    /// What was done, in order.
    pub deeds: Vec<SnapshotDeed>,
    /// Numbers of those that became useless because their own room was full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<u64>,
    /// Why no server could be started on a copy of the last one, where that was tried and failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_failure: Option<String>,
    /// Bytes in use when the load began and when it ended, those that snapshots hold included.
    pub used_bytes: Option<(u64, u64)>,
}

/// One snapshot made or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotDeed {
    /// Number of the snapshot, from 1.
    pub number: u64,
    /// Made or deleted.
    pub kind: DeedKind,
    /// When it began, microseconds after the first operation.
    pub start_us: u64,
    /// How long the command took, microseconds; what goes on in the background afterwards is not in it.
    pub length_us: u64,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What was done with a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeedKind {
    /// It was made.
    Make,
    /// It was deleted.
    Delete,
}
