//! Findings about snapshots under load.

use crate::analyse::findings::estimate::Estimate;
use serde::{Deserialize, Serialize};

/// The snapshots of a case over its trials. Figures are means over trials; `None` where a trial lacks one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFinding {
    /// Time between two of them; `None` for the control.
    pub every_s: Option<f64>,
    pub keep: u64,
    /// In all trials.
    pub made: u64,
    pub deleted: u64,
    /// Operations a second by seconds after the one in which a snapshot was made, averaged over snapshots and trials.
    pub curve: Vec<(i64, f64)>,
    /// Slowest of the averaged seconds from the snapshot on, over the rate before.
    pub dip: Option<Estimate>,
    /// Seconds until 95 % of the rate before.
    pub back_s: Option<Estimate>,
    /// Longest time without a completed operation in the second of the snapshot and the two after it, followed to its end,
    /// seconds, averaged over snapshots.
    pub idle_s: Option<Estimate>,
    /// Time of the command that makes one, seconds.
    pub make_s: Option<Estimate>,
    pub delete_s: Option<Estimate>,
    /// Rate in the seconds in which one was deleted, over the rate before snapshots.
    pub delete_load: Option<Estimate>,
    /// Bytes written to the lowest devices for each operation, in the seconds before snapshots and from them on.
    pub bytes_before: Option<Estimate>,
    pub bytes_after: Option<Estimate>,
    /// Growth of the space in use, 10^9 bytes an hour: data, WAL and what snapshots hold.
    pub gb_per_hour: Option<f64>,
    /// Snapshots that could not be made or deleted, or became invalid, each with its words.
    pub failures: Vec<String>,
}
