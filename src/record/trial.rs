//! `trial.json`: what was asked of one trial, what was really there, how it ended, raw figures.

use super::built::StackFacts;
use super::case::CaseSpec;
use super::event::Step;
use super::facts::{DataFacts, ServerFacts};
use super::probe::ProbeRecord;
use super::seconds::Column;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `trial.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured to its end.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Id of the run.
    pub run: String,
    /// Number of the trial within its case (the block it lies in), from 1.
    pub trial: u32,
    /// What was asked.
    pub case: CaseSpec,
    /// How it ended.
    pub outcome: Outcome,
    /// When it began, RFC 3339.
    pub started: String,
    /// Its steps in order.
    pub steps: Vec<StepTime>,
    /// Kernel knobs in force when the stack was built, by name; of two that exclude each other (`vm.dirty_bytes`,
    /// `vm.dirty_ratio`) the one that counts. Those of devices are in the stack's facts.
    pub knobs: BTreeMap<String, String>,
    /// The stack, as it was.
    pub stack: Option<StackFacts>,
    /// The server, as it ran.
    pub server: Option<ServerFacts>,
    /// The data.
    pub data: Option<DataFacts>,
    /// What the workload measured.
    pub figures: Option<Figures>,
    /// What the clients' backends waited for.
    pub waits: Option<WaitFigures>,
    /// The columns of `seconds.parquet`.
    pub columns: Vec<Column>,
    /// Holes in the telemetry, each with its reason.
    pub gaps: Vec<Gap>,
    /// CPU time that telemetry cost, microseconds, over the measurement.
    pub telemetry_cpu_us: Option<u64>,
    /// What a reader should know of this trial.
    pub notes: Vec<String>,
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

/// What a workload measured, in the same words for every workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Wall time of the measurement, microseconds, from the first operation's start to the last one's end.
    pub elapsed_us: u64,
    /// One for each thing measured. pgbench: `transactions` first, then one per script where there are several;
    /// sync: one per method, as the server writes its WAL.
    pub measures: Vec<Measure>,
    /// Mean latency of each statement, where the workload has them.
    pub statements: Vec<StatementFigures>,
    /// The tool's own summary against what pgstrata counted.
    pub checks: Vec<CrossCheck>,
    /// Connections' set-up time, microseconds, as the tool reports it; not part of `elapsed_us`.
    pub connect_us: Option<u64>,
    /// The whole probe behind the measures of `sync`.
    pub probe: Option<Box<ProbeRecord>>,
}

/// One thing that a workload measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `transactions`, `fdatasync`, ...; also the tag of its histogram in `latency.hist`.
    pub name: String,
    /// What one operation is: `transaction`, `8 kB write + sync`.
    pub operation: String,
    /// Operations completed; `None` where the measure could not be had.
    pub done: Option<u64>,
    /// Failed.
    pub failed: u64,
    /// Skipped, being already late.
    pub skipped: u64,
    /// Slower than the limit.
    pub late: u64,
    /// Time in which these were done, microseconds (a slice of the whole where measures take turns).
    pub elapsed_us: u64,
    /// Sum of the latencies of those done, microseconds.
    pub latency_us_sum: u64,
    /// Why it could not be had.
    pub unavailable: Option<String>,
    /// For measures that take turns: rates of the single slices, operations a second.
    pub slice_rates: Vec<f64>,
}

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementFigures {
    /// Which script.
    pub script: String,
    /// The statement's text.
    pub statement: String,
    /// Mean latency, microseconds.
    pub latency_us_mean: f64,
    /// Failures, where reported.
    pub failures: Option<u64>,
}

/// A figure of the tool beside our own for the same thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// What: `transactions`, `latency_ms_mean`.
    pub what: String,
    /// As the tool's summary has it.
    pub tool: f64,
    /// As pgstrata counted it.
    pub own: f64,
    /// Whether they agree within `tolerance`.
    pub agrees: bool,
    /// Relative tolerance; 0 = exactly.
    pub tolerance: f64,
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
