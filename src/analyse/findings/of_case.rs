//! Findings on a case beside its measures: stages, snapshots, capacity, and what its backends waited for.

use super::Estimate;
use crate::record::stage::StageKind;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageFinding {
    /// `redo`, `CREATE INDEX`.
    pub name: String,
    pub kind: StageKind,
    /// Geometric mean over trials; `None` if a trial lacks it.
    pub seconds: Option<Estimate>,
    pub missing: Option<String>,
    /// Bytes read or written, mean over trials.
    pub bytes: Option<f64>,
    /// 10^6 bytes per second.
    pub mb_per_s: Option<Estimate>,
    /// Trial number and seconds.
    pub trials: Vec<(u32, f64)>,
}

/// Snapshots of a case over its trials. Figures are means over trials; `None` if a trial lacks one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotFinding {
    /// Time between two snapshots; `None` for the control.
    pub every_s: Option<f64>,
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

/// Result of the capacity searches of a case, one per trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityFinding {
    /// Operations slower than this, measured from when they were due, count as late; microseconds.
    pub limit_us: u64,
    /// Unit of the rates.
    pub unit: String,
    pub searches: u32,
    /// Rate at which half of the steps pass, over trials; used to compare cases.
    pub about: Option<Estimate>,
    /// Highest rate that passed three times in a row in every search.
    pub holds: Option<f64>,
    /// `holds` in words, or why there is none.
    pub sentence: String,
    /// Operations per second without a limit (closed loop of the warm-up), mean over trials.
    pub peak: f64,
    /// Every step of every trial, in order.
    pub steps: Vec<CapacityStep>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    pub trial: u32,
    /// Counted from 1.
    pub step: u32,
    /// Target rate, operations per second.
    pub rate: f64,
    pub due: u64,
    /// Skipped because they were already later than the limit.
    pub skipped: u64,
    pub late: u64,
    /// Share of due operations that were late, skipped or failed, 0 to 1.
    pub late_share: f64,
    /// 99th percentile of due operations, microseconds; `None` if it falls among the skipped ones.
    pub p99_us: Option<u64>,
    /// Seconds in which operations were due but none completed.
    pub silent_s: u64,
    /// Mean delay added by the driver before starting an operation, microseconds.
    pub driver_lag_us_mean: f64,
    /// Why the step failed; `None` if it passed.
    pub failed_by: Option<String>,
}

/// Where the clients' backends spent their time, and how busy the CPUs were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackendTime {
    /// For example "39 % of backend time waits for storage (36 to 42)".
    pub sentence: String,
    /// Share of backend time spent waiting for storage, 0 to 1, including waits for locks whose holder waited for
    /// storage; `None` if no waits were sampled.
    pub storage: Option<Estimate>,
    /// True if the share excludes time waiting for the client: at a fixed rate these waits are pauses.
    pub without_client: bool,
    /// Portion of `storage` that is lock waits.
    pub storage_behind_locks: f64,
    /// The same settings on a stack in memory, if the run measured that.
    pub in_memory: Option<InMemory>,
    /// Share of backend samples by class and event, largest first.
    pub waits: Vec<WaitShare>,
    /// CPU use during the measurement, 0 to 1 of the time of all CPUs that the hypervisor left; `None` if unknown.
    pub cpu_busy: Option<f64>,
    /// The same for the busiest CPU of each second.
    pub fullest_cpu: Option<f64>,
    /// Share of the time in which some task on the machine waited for a CPU (PSI), 0 to 1.
    pub cpu_pressure: Option<f64>,
    /// Process or kernel thread that used the most CPU, with its share of one CPU.
    pub busiest_process: Option<(String, f64)>,
}

/// A case on a stack in memory that otherwise equals another case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InMemory {
    pub case: String,
    pub stack: String,
    /// Its rate over that of the other case.
    pub ratio: Estimate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO`, `LWLock`, `Lock`, `CPU`, `Client`, ...
    pub class: String,
    /// `WALSync`, ...
    pub event: String,
    /// Share of the backend samples, 0 to 1.
    pub share: f64,
}
