//! `trial.json`: what was asked of one trial, what was really there, how it ended, what was counted.

use super::age::AgeRecord;
use super::built::StackFacts;
use super::case::CaseSpec;
use super::counts::Counts;
use super::drive::DriveRecord;
use super::event::Step;
use super::facts::{DataFacts, HostFacts, ServerFacts};
use super::full::FullRecord;
use super::operation::Operation;
use super::options::Options;
use super::probe::DeviceCounts;
use super::window::{SettleRecord, WindowRecord};
use crate::record::column::Column;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `trial.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// How a trial ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured to its end.
    #[default]
    Measured,
    /// A requirement was not met or a step failed: no figures.
    NotRun {
        /// In which step.
        step: Step,
        /// Why, with the foreign tool's last lines where one failed.
        reason: String,
        /// What would make it go.
        hint: Option<String>,
    },
}

/// Wall time of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// Which.
    pub step: Step,
    /// How long, microseconds.
    pub wall_us: u64,
}

/// One trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Id of the run.
    pub run: String,
    /// Number of the trial within its case (the block it lies in), from 1.
    pub trial: u32,
    /// What was asked.
    pub case: CaseSpec,
    /// What one operation of its workload is.
    pub operation: Operation,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began, RFC 3339.
    pub started: String,
    /// The machine on which it ran, as it was when the sitting began.
    pub host: HostFacts,
    /// Its steps in order.
    pub steps: Vec<StepTime>,
    /// Kernel knobs in force when the stack was built, by name; of two that exclude each other (`vm.dirty_bytes`,
    /// `vm.dirty_ratio`) the one that counts. Those of devices are in the stack's facts.
    pub knobs: BTreeMap<String, String>,
    /// The stack, as it was.
    pub stack: Option<StackFacts>,
    /// The server, as it ran.
    pub server: Option<ServerFacts>,
    /// What the devices below a folder that was there already did while the trial did nothing; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleTraffic>,
    /// The data.
    pub data: Option<DataFacts>,
    /// What was done to drives below its stack, earlier in the run, to bring them to their steady state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveRecord>,
    /// How its stack was aged, and how the files lay; of a stack with `age`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeRecord>,
    /// How it waited for a quiet machine.
    pub settle: Option<SettleRecord>,
    /// Its checkpoints, and how its measurement began and ended; of a trial with a server.
    pub window: Option<WindowRecord>,
    /// What the workload counted; there in every trial that was measured.
    pub counts: Option<Counts>,
    /// How its stack filled up, where it did: a result, whether or not there are figures up to then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<FullRecord>,
    /// What the clients' backends waited for.
    pub waits: Option<WaitFigures>,
    /// The columns of `seconds.parquet`.
    pub columns: Vec<Column>,
    /// Holes in the telemetry, each with its reason.
    pub gaps: Vec<Gap>,
    /// Growth of the counters of WAL syncs, WAL records, transactions that wrote, and flushes, by column, from before the client was
    /// started until its backends had ended: only then they have told all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load_counts: BTreeMap<String, u64>,
    /// How far the wall clock was set during the measurement, microseconds: its advance less that of the monotonic clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_us: Option<i64>,
    /// CPU time that telemetry cost, microseconds, over the measurement.
    pub telemetry_cpu_us: Option<u64>,
    /// Of that, what each part cost: the samplers by name, `waits`, `rows` (joining and writing them), `latencies`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub telemetry_cpu_us_by: BTreeMap<String, u64>,
    /// What others took of the CPUs during the measurement; `None` where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_taken: Option<CpuTaken>,
    /// Whether it repeats a trial that was disturbed, at the end of its block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeat: bool,
    /// Options of the workload that the plan left open, as they were decided for all cases with the same workload.
    pub decided: Options,
    /// What a reader should know of this trial.
    pub notes: Vec<String>,
    /// The files beside `trial.json` that analysis reads, by name; entered when the trial is stored. One that is not as
    /// it says is damaged, or another trial's.
    pub files: BTreeMap<String, FileMark>,
}

impl TrialRecord {
    /// Whether it needs no further try: it was measured, or its stack filled up, as it would again.
    #[must_use]
    pub fn is_result(&self) -> bool {
        self.outcome == Outcome::Measured || self.full.is_some()
    }
}

/// CPU time during a measurement, from the first to the last row of telemetry that has all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTaken {
    /// Wall time between the two rows, microseconds.
    pub elapsed_us: u64,
    /// Time of all CPUs in all states, nanoseconds.
    pub cpus_ns: u64,
    /// Of that, given to other guests by the hypervisor.
    pub stolen_ns: u64,
    /// CPU time of programs that are not part of the run, nanoseconds, at least: see the column `others_cpu_ns`.
    pub others_ns: u64,
}

/// What a file was when its trial was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Its size.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// What devices did before a trial's data came, while it did nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleTraffic {
    /// How long, microseconds.
    pub elapsed_us: u64,
    /// Growth of the counters of each device, by the name of its ground.
    pub devices: BTreeMap<String, DeviceCounts>,
}

/// A hole in the telemetry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Name of the sampler; `clock` for a tick that was missed by all.
    pub source: String,
    /// First row concerned; `None` where the source was absent all the time.
    pub second: Option<u64>,
    /// How many rows.
    pub rows: u64,
    /// Why.
    pub reason: String,
}

/// What the clients' backends did, sampled from `pg_stat_activity` some times a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitFigures {
    /// Samples taken.
    pub samples: u64,
    /// Samples a second aimed at.
    pub per_second: u32,
    /// Backends seen, summed over the samples.
    pub backends: u64,
    /// How often each was seen.
    pub waits: Vec<WaitCount>,
    /// The same second by second: neighbouring samples see the same stall, so the error of a share is known only from
    /// their order. Stored in `waits.parquet`.
    #[serde(skip)]
    pub seconds: Vec<WaitSecond>,
    /// Wall clock at which the first of these seconds began, microseconds since 1970.
    pub began_us: u64,
    /// What the backend at the end of the queue was doing, for backends that waited for a heavyweight lock: looked at
    /// once a second (`pg_blocking_pids`). Class `Unknown` where the lock was granted meanwhile or the holder was not
    /// found.
    pub lock_holders: Vec<WaitCount>,
}

impl WaitFigures {
    /// The row of `seconds.parquet` in whose second most of a sampled second lies: sampling begins with the client, rows
    /// with its first operation (wall clock, microseconds). 0: before that.
    #[must_use]
    pub fn row(&self, place: usize, first_operation_us: u64) -> u64 {
        let middle = self.began_us + place as u64 * 1_000_000 + 500_000;
        middle.checked_sub(first_operation_us).map_or(0, |after| after / 1_000_000 + 1)
    }
}

/// The samples of one second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSecond {
    /// Samples taken in it; 0 where none could be.
    pub samples: u32,
    /// Place in [`WaitFigures::waits`], and how often that one was seen.
    pub counts: Vec<(u32, u32)>,
}

/// One wait of backends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitCount {
    /// `wait_event_type`; `CPU` for an active backend that waits for nothing; `Client` for one between statements.
    pub class: String,
    /// `wait_event`: `WALSync`, `DataFileRead`, `transactionid`; same as class where there is none.
    pub event: String,
    /// Times seen.
    pub count: u64,
}
