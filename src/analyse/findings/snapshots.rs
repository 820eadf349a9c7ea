//! Findings about snapshots under load.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// Snapshots of a case over its trials. Figures are means over trials; `None` if a trial lacks one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFinding {
    /// Time between two snapshots; `None` for the control.
    pub every_s: Option<f64>,
    pub keep: u64,
    /// In all trials.
    pub made: u64,
    pub deleted: u64,
    /// Operations per second by seconds since the snapshot, averaged over snapshots and trials.
    pub curve: Vec<(i64, f64)>,
    /// Slowest averaged second from the snapshot on, over the rate before.
    pub dip: Option<Estimate>,
    /// Seconds until the rate is back at 95 % of the rate before.
    pub back_s: Option<Estimate>,
    /// Longest time without a completed operation that begins within the snapshot's second or the two after it,
    /// seconds, averaged over snapshots.
    pub idle_s: Option<Estimate>,
    /// Duration of the command that makes a snapshot, seconds.
    pub make_s: Option<Estimate>,
    pub delete_s: Option<Estimate>,
    /// Rate in seconds with a deletion, over the rate before snapshots.
    pub delete_load: Option<Estimate>,
    /// Bytes written to the lowest devices per operation, in the seconds before snapshots and from snapshots on.
    pub bytes_before: Option<Estimate>,
    pub bytes_after: Option<Estimate>,
    /// Growth of the space in use, 10^9 bytes per hour: data, WAL and blocks held by snapshots.
    pub gb_per_hour: Option<f64>,
    /// Snapshots that could not be made or deleted, or became invalid, each with its message.
    pub failures: Vec<String>,
}
