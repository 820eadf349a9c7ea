//! A measured window: checkpoints as logged by the server, warm-up cycles, start and end.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requested length of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "extent", rename_all = "snake_case")]
pub enum Extent {
    /// A fixed time.
    Span {
        /// Microseconds.
        span_us: u64,
    },
    /// From the start of one checkpoint to the start of a later one.
    Cycles {
        /// Number of cycles, at least 1.
        cycles: u64,
        /// Longest time allowed, microseconds; `None`: twice the number of cycles times `checkpoint_timeout`.
        limit_us: Option<u64>,
    },
}

/// Reason that a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowEnd {
    /// The checkpoint that ends the last cycle began.
    Cycles,
    /// Time ran out: that of the plan, or the limit for the cycles.
    Time,
}

/// The window of one trial with a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// As requested.
    pub extent: Extent,
    /// Longest time allowed for the measurement, microseconds.
    pub limit_us: u64,
    /// Settings that make checkpoints purely time-driven; settings of the plan win.
    pub settings: BTreeMap<String, String>,
    /// WAL written before the warm-up, so that segments are recycled; `None` if skipped.
    pub prefill: Option<PrefillRecord>,
    /// Warm-up cycles in order; empty if the warm-up was not measured in cycles.
    pub warm_up: Vec<CycleRecord>,
    /// True if the last two cycles agreed; `None` if the warm-up was not measured in cycles.
    pub settled: Option<bool>,
    /// Wall clock when the client was started, microseconds since 1970.
    pub began_us: u64,
    /// Wall clock when the first operation began, microseconds since 1970: start of the trial's seconds.
    pub first_operation_us: u64,
    /// The checkpoint whose start begins the measurement, as an index into `checkpoints`: the warm-up ended with it,
    /// and the client was started at once. `None` if the start was arbitrary.
    pub from_checkpoint: Option<usize>,
    /// Wall clock when the client had ended, microseconds since 1970.
    pub ended_us: u64,
    /// Reason that the measurement ended.
    pub end: WindowEnd,
    /// Segments in pg_wal before the measurement, used and recycled.
    pub wal_segments_before: Option<u64>,
    /// Segments after it. Newly created ones are the difference, plus those removed by its checkpoints.
    pub wal_segments_after: Option<u64>,
    /// Every checkpoint since the server was started, in order.
    pub checkpoints: Vec<CheckpointRecord>,
    /// Autovacuum runs since the server was started, ordered by their ends.
    pub vacuums: Vec<VacuumRecord>,
}

/// WAL written before the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrefillRecord {
    /// Bytes.
    pub bytes: u64,
    /// Duration including checkpoints, microseconds.
    pub wall_us: u64,
}

/// Growth of the server's counters over one checkpoint cycle of the warm-up, from the start of a checkpoint to the
/// start of the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleRecord {
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// `pg_stat_database.xact_commit`, all databases.
    pub commits: u64,
    /// `pg_stat_database.blks_read`, all databases: pages.
    pub blks_read: u64,
    /// From the WAL position.
    pub wal_bytes: u64,
}

/// One checkpoint, as the server logged it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// Wall clock, microseconds since 1970, to the millisecond.
    pub started_us: u64,
    /// Cause in the server's words: `time`, `wal`, `immediate force wait`.
    pub cause: String,
    /// Completion; `None` if it had not ended when the log was read.
    pub done: Option<CheckpointDone>,
}

/// Work of a completed checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointDone {
    /// Wall clock, microseconds since 1970, to the millisecond.
    pub ended_us: u64,
    /// Pages that it wrote.
    pub buffers: u64,
    /// Pages of commit log and the like; reported separately since PostgreSQL 17.
    pub slru_buffers: Option<u64>,
    /// WAL segments created by the checkpointer, without those created by backends.
    pub wal_added: u64,
    /// WAL segments removed.
    pub wal_removed: u64,
    /// WAL segments kept for reuse.
    pub wal_recycled: u64,
    /// Time of its write phase, pauses included, microseconds.
    pub write_us: u64,
    /// Time of its sync phase, microseconds.
    pub sync_us: u64,
    /// Total time, microseconds.
    pub total_us: u64,
    /// Files synced.
    pub files: u64,
    /// Sync of the slowest file, microseconds.
    pub longest_us: u64,
    /// WAL since the previous checkpoint, bytes.
    pub distance_bytes: u64,
    /// The server's estimate for the next distance, bytes.
    pub estimate_bytes: u64,
}

/// Autovacuum's work on one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VacuumRecord {
    /// Wall clock at its end, microseconds since 1970.
    pub ended_us: u64,
    /// Duration, microseconds, to 10 ms.
    pub elapsed_us: u64,
    /// `automatic vacuum of table "postgres.public.pgbench_accounts"`.
    pub what: String,
}

/// A trial's wait for a quiet machine before its workload began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SettleRecord {
    /// Time waited, microseconds.
    pub waited_us: u64,
    /// Longest time allowed, microseconds.
    pub limit_us: u64,
    /// True if the machine was quiet at the end.
    pub quiet: bool,
    /// Dirty pages and pages being written back at the end, bytes.
    pub dirty_bytes: Option<u64>,
    /// Activity of the lowest devices of the stack in the last interval, by kernel name.
    pub devices: BTreeMap<String, DeviceTraffic>,
}

/// Activity of a device over an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Length of the interval, microseconds.
    pub wall_us: u64,
    /// Time with I/O in flight, milliseconds.
    pub busy_ms: u64,
    /// Bytes written.
    pub written_bytes: u64,
}
