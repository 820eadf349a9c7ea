//! `trial.json`: the request of one trial, the facts found, its outcome and its counts.

use super::age::AgeRecord;
use super::built::StackFacts;
use super::case::CaseSpec;
use super::counts::Counts;
use super::disk_probe::DiskProbe;
use super::drive::DriveRecord;
use super::event::Step;
use super::facts::{DataFacts, HostFacts, ServerFacts};
use super::full::FullRecord;
use super::operation::Operation;
use super::options::Options;
use super::probe::DeviceCounts;
use super::turns::TurnsRecord;
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
    /// Measured to its end.
    #[default]
    Measured,
    /// A requirement was not met or a step failed: no figures.
    NotRun {
        /// Step that failed.
        step: Step,
        /// Reason, with the last lines of a failed external tool.
        reason: String,
        /// Remedy.
        hint: Option<String>,
    },
}

/// Wall time of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepTime {
    /// The step.
    pub step: Step,
    /// Duration, microseconds.
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
    /// The case as requested.
    pub case: CaseSpec,
    /// Definition of one operation of its workload.
    pub operation: Operation,
    /// How it ended.
    pub outcome: Outcome,
    /// Start, RFC 3339.
    pub started: String,
    /// The machine it ran on, as of the start of the session.
    pub host: HostFacts,
    /// Its steps in order.
    pub steps: Vec<StepTime>,
    /// Kernel knobs in force when the stack was built, by name; of two mutually exclusive ones (`vm.dirty_bytes`,
    /// `vm.dirty_ratio`) only the active one. Knobs of devices are in the stack's facts.
    pub knobs: BTreeMap<String, String>,
    /// The stack as found.
    pub stack: Option<StackFacts>,
    /// The server as it ran.
    pub server: Option<ServerFacts>,
    /// Activity of the devices below an existing folder while the trial was idle; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleTraffic>,
    /// The data.
    pub data: Option<DataFacts>,
    /// Preconditioning of the drives below its stack, earlier in the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveRecord>,
    /// Ageing of its stack, and the resulting file layout; only for a stack with `age`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<AgeRecord>,
    /// Waiting for a quiet machine.
    pub settle: Option<SettleRecord>,
    /// Checkpoints, and start and end of the measurement; only for a trial with a server.
    pub window: Option<WindowRecord>,
    /// Counts of the workload; present in every measured trial.
    pub counts: Option<Counts>,
    /// How its stack filled up, if it did: a result, whether or not there are figures up to then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<FullRecord>,
    /// Waits of the clients' backends.
    pub waits: Option<WaitFigures>,
    /// The columns of `seconds.parquet`.
    pub columns: Vec<Column>,
    /// Gaps in the telemetry, each with its reason.
    pub gaps: Vec<Gap>,
    /// Growth of the counters of WAL syncs, WAL records, writing transactions and flushes, by column, from before the
    /// client started until its backends had exited: only then have they reported everything.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub load_counts: BTreeMap<String, u64>,
    /// Adjustment of the wall clock during the measurement, microseconds: its advance minus that of the monotonic
    /// clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_us: Option<i64>,
    /// CPU time that telemetry cost, microseconds, over the measurement.
    pub telemetry_cpu_us: Option<u64>,
    /// Breakdown of that: the samplers by name, `waits`, `rows` (joining and writing them), `latencies`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub telemetry_cpu_us_by: BTreeMap<String, u64>,
    /// Probes of the filesystem below its images: before the warm-up, and after the tear-down. Empty for stacks without
    /// images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disk_probes: Vec<DiskProbe>,
    /// Its turns, if it was measured in turns with the other cases of its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsRecord>,
    /// True if it repeats a disturbed trial, at the end of its block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_repeat: bool,
    /// Workload options left open by the plan, as decided for all cases with the same workload.
    pub decided: Options,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// Files beside `trial.json` that analysis reads, by name; recorded when the trial is stored. A file that does not
    /// match is damaged, or another trial's.
    pub files: BTreeMap<String, FileMark>,
}

impl TrialRecord {
    /// Operations per second over its turns that count; `None` without any.
    pub fn rate_of_turns(&self) -> Option<f64> {
        self.turns.as_ref()?.rate(self.commits_late())
    }

    /// True if its clients committed as fast as they could without waiting for WAL.
    pub fn commits_late(&self) -> bool {
        const NAME: &str = "synchronous_commit";
        let of_scripts = self.operation.script_settings.iter().filter(|found| found.name == NAME);
        let of_scripts = of_scripts.filter_map(|found| found.value.as_deref());
        let of_server = self.server.iter().filter_map(|server| Some(server.key_settings.get(NAME)?.as_str()));
        self.operation.rate.is_none() && of_scripts.chain(of_server).any(|value| value == "off")
    }

    /// True if it needs no retry: it was measured, or its stack filled up, as it would again.
    pub fn is_result(&self) -> bool {
        self.outcome == Outcome::Measured || self.full.is_some()
    }
}

/// A file's state when its trial was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Its size.
    pub bytes: u64,
    /// SHA-256, hex.
    pub sha256: String,
}

/// Device activity before a trial's data were loaded, while it was idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleTraffic {
    /// Duration, microseconds.
    pub elapsed_us: u64,
    /// Growth of the counters of each device, by the name of its base.
    pub devices: BTreeMap<String, DeviceCounts>,
}

/// A gap in the telemetry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Name of the sampler; `clock` for a tick missed by all.
    pub source: String,
    /// First row concerned; `None` if the source was always absent.
    pub second: Option<u64>,
    /// Number of rows.
    pub rows: u64,
    /// Reason.
    pub reason: String,
}

/// Wait events of the clients' backends, sampled from `pg_stat_activity` several times a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitFigures {
    /// Samples taken.
    pub samples: u64,
    /// Target number of samples per second.
    pub per_second: u32,
    /// Backends seen, summed over the samples.
    pub backends: u64,
    /// Count of each wait.
    pub waits: Vec<WaitCount>,
    /// The same by second: neighboring samples see the same stall, so the error of a share can only be estimated from
    /// their order. Stored in `waits.parquet`.
    #[serde(skip)]
    pub seconds: Vec<WaitSecond>,
    /// Wall clock at which the first of these seconds began, microseconds since 1970.
    pub began_us: u64,
    /// Activity of the backend at the end of the queue, for backends waiting for a heavyweight lock: queried once a
    /// second (`pg_blocking_pids`). Class `Unknown` if the lock was granted meanwhile or the holder was not found.
    pub lock_holders: Vec<WaitCount>,
}

impl WaitFigures {
    /// The row of `seconds.parquet` that overlaps most of a sampled second: sampling begins with the client, rows with
    /// its first operation (wall clock, microseconds). 0: before that.
    pub fn row(&self, place: usize, first_operation_us: u64) -> u64 {
        let middle = self.began_us + place as u64 * 1_000_000 + 500_000;
        middle.checked_sub(first_operation_us).map_or(0, |after| after / 1_000_000 + 1)
    }
}

/// The samples of one second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSecond {
    /// Samples taken in it; 0 if none succeeded.
    pub samples: u32,
    /// Index into [`WaitFigures::waits`], and count.
    pub counts: Vec<(u32, u32)>,
}

/// A kind of wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitCount {
    /// `wait_event_type`; `CPU` for an active backend that waits for nothing; `Client` for one between statements.
    pub class: String,
    /// `wait_event`: `WALSync`, `DataFileRead`, `transactionid`; same as the class if there is none.
    pub event: String,
    /// Times seen.
    pub count: u64,
}
