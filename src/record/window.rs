//! What a measured window held: checkpoints as the server logged them, cycles of the warm-up, how it began and ended.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a workload is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "extent", rename_all = "snake_case")]
pub enum Extent {
    /// For a time, whatever falls into it.
    Span {
        /// Microseconds.
        span_us: u64,
    },
    /// From the start of a checkpoint to the start of the one so many later.
    Cycles {
        /// How many, at least 1.
        cycles: u64,
        /// Longest time that they may take, microseconds; `None`: twice what `checkpoint_timeout` makes of them.
        limit_us: Option<u64>,
    },
}

/// Why a measurement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowEnd {
    /// The checkpoint began that ends the last cycle.
    Cycles,
    /// The time was over: that of the plan, or the limit for the cycles.
    Time,
}

/// The window of one trial with a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// What was asked for.
    pub extent: Extent,
    /// Longest time that the measurement could take, microseconds.
    pub limit_us: u64,
    /// Settings that pgstrata gave the server so that checkpoints come by time alone; those of the plan win.
    pub settings: BTreeMap<String, String>,
    /// WAL that was written before the warm-up, so that segments are recycled; `None` where that was left out.
    pub prefill: Option<PrefillRecord>,
    /// The cycles of the warm-up, in order; empty where it was not made of cycles.
    pub warm_up: Vec<CycleRecord>,
    /// Whether its last two cycles agreed; `None` where it was not made of cycles.
    pub settled: Option<bool>,
    /// Wall clock when the client was started, microseconds since 1970.
    pub began_us: u64,
    /// Wall clock when the first operation began, microseconds since 1970: where the seconds of the trial begin.
    pub first_operation_us: u64,
    /// The checkpoint with whose start the measurement begins, as its place in `checkpoints` from 0: the warm-up ended
    /// with it, and the client was started at once. `None` where it began at any time.
    pub from_checkpoint: Option<usize>,
    /// Wall clock when the client had ended, microseconds since 1970.
    pub ended_us: u64,
    /// Why it ended.
    pub end: WindowEnd,
    /// Segments in pg_wal before the measurement, used and recycled ones.
    pub wal_segments_before: Option<u64>,
    /// Segments after it. Those made new in it: the difference, and those that its checkpoints removed.
    pub wal_segments_after: Option<u64>,
    /// Every checkpoint since the server was started, in order.
    pub checkpoints: Vec<CheckpointRecord>,
    /// What autovacuum did since the server was started, in order of its end.
    pub vacuums: Vec<VacuumRecord>,
}

/// WAL written before the warm-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrefillRecord {
    /// Bytes.
    pub bytes: u64,
    /// How long it took, checkpoints included, microseconds.
    pub wall_us: u64,
}

/// One checkpoint cycle of the warm-up, from the start of a checkpoint to the start of the next: what the server's
/// counters grew by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleRecord {
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// `pg_stat_database.xact_commit`, all databases.
    pub commits: u64,
    /// `pg_stat_database.blks_read`, all databases: pages.
    pub blks_read: u64,
    /// By the position in the WAL.
    pub wal_bytes: u64,
}

/// One checkpoint, as the server logged it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// Wall clock, microseconds since 1970, to the millisecond.
    pub started_us: u64,
    /// Why, in the server's words: `time`, `wal`, `immediate force wait`.
    pub cause: String,
    /// What it did; `None` where it had not ended when the log was read.
    pub done: Option<CheckpointDone>,
}

/// What a checkpoint did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointDone {
    /// Wall clock, microseconds since 1970, to the millisecond.
    pub ended_us: u64,
    /// Pages that it wrote.
    pub buffers: u64,
    /// Pages of commit log and the like; told apart since PostgreSQL 17.
    pub slru_buffers: Option<u64>,
    /// WAL segments that the checkpointer made new; those that backends make are not in it.
    pub wal_added: u64,
    /// WAL segments removed.
    pub wal_removed: u64,
    /// WAL segments kept to be written again.
    pub wal_recycled: u64,
    /// Time of its write phase, pauses included, microseconds.
    pub write_us: u64,
    /// Time of its sync phase, microseconds.
    pub sync_us: u64,
    /// Both and the rest, microseconds.
    pub total_us: u64,
    /// Files synced.
    pub files: u64,
    /// Sync of the slowest file, microseconds.
    pub longest_us: u64,
    /// WAL since the checkpoint before, bytes.
    pub distance_bytes: u64,
    /// The server's estimate of that for the next, bytes.
    pub estimate_bytes: u64,
}

/// Autovacuum's work on one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VacuumRecord {
    /// Wall clock at its end, microseconds since 1970.
    pub ended_us: u64,
    /// How long it took, microseconds, to 10 ms.
    pub elapsed_us: u64,
    /// `automatic vacuum of table "postgres.public.pgbench_accounts"`.
    pub what: String,
}

/// How a trial waited for the machine to be quiet before its workload began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SettleRecord {
    /// How long it waited, microseconds.
    pub waited_us: u64,
    /// How long it would have waited at most, microseconds.
    pub limit_us: u64,
    /// Whether the machine was quiet at the end.
    pub quiet: bool,
    /// Dirty pages and pages being written back at the end, bytes.
    pub dirty_bytes: Option<u64>,
    /// What the lowest devices of the stack did in the last second, by kernel name.
    pub devices: BTreeMap<String, DeviceTraffic>,
}

/// What a device did in a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// The stretch, microseconds.
    pub wall_us: u64,
    /// Time with I/O in flight, milliseconds.
    pub busy_ms: u64,
    /// Bytes written.
    pub written_bytes: u64,
}
