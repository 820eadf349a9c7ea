//! The counts of a workload in one trial, in the same form for every workload.
//!
//! Only counts, sums and durations: `analyse` computes rates and percentiles and compares counts, so that a better
//! formula applies to every stored run.

use super::probe::ProbeRecord;
use super::recovery::{BeforeCrash, RecoveryCounts};
use super::search::SearchCounts;
use super::snapshots::SnapshotCounts;
use super::stage::StageCounts;
use serde::{Deserialize, Serialize};

/// The counts of one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Wall time of the measurement, microseconds, from the first operation's start to the last one's end.
    pub elapsed_us: u64,
    /// One per measured item, the main one first. pgbench: `transactions`, then one per script if there are several;
    /// sync: one per method, as the server writes its WAL.
    pub measures: Vec<Measure>,
    /// For a fixed number of operations: what was done while all clients were at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_at_work: Option<AllAtWork>,
    /// Operations whose second was already complete (the clock was set back); they count in the next open one.
    pub out_of_order: u64,
    /// Reason that the load ended early, as the tool printed it: the stack ran out of space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Summary printed by the tool that drove the load.
    pub reported: Option<Reported>,
    /// Steps of a search for the highest rate; their operations are those of the main measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchCounts>,
    /// One-time work with durations, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageCounts>,
    /// The crash of the server, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryCounts>,
    /// Counts from before a machine crash, until the trial continues after it. Never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_crash: Option<BeforeCrash>,
    /// Snapshots made and deleted meanwhile, if the workload does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotCounts>,
    /// The whole probe behind the measures of `sync`.
    pub probe: Option<Box<ProbeRecord>>,
}

/// Work of all clients from when each had done one operation until the first of them ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllAtWork {
    /// Operations completed by all clients.
    pub operations: u64,
    /// Duration, microseconds.
    pub elapsed_us: u64,
}

/// One measured item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `transactions`, `fdatasync`, ...; also the tag of its intervals in `latency.hist`.
    pub name: String,
    /// Operations completed; `None` if the measure was unavailable.
    pub done: Option<u64>,
    /// Failed.
    pub failed: u64,
    /// Skipped because already late.
    pub skipped: u64,
    /// Slower than the limit.
    pub late: u64,
    /// Time spent on these, microseconds (part of the whole if measures take turns).
    pub elapsed_us: u64,
    /// Sum of the latencies of completed operations, microseconds.
    pub latency_us_sum: u64,
    /// Reason that the measure was unavailable.
    pub unavailable: Option<String>,
    /// The slices of measures that take turns.
    pub slices: Vec<MeasureSlice>,
    /// At a fixed rate: operations that fell due and were never sent, since no client was free before the end of the
    /// window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<Unsent>,
}

/// Operations that fell due, evenly, while all clients of a schedule waited for an answer. Times are microseconds since
/// the start of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// Approximate number, from the rate.
    pub count: u64,
    /// Due time of the last sent operation.
    pub from_us: u64,
    /// End of the window.
    pub until_us: u64,
    /// Time at which a client was free again.
    pub free_us: u64,
}

impl Measure {
    /// Operations that fell due and were never sent.
    pub fn never_sent(&self) -> u64 {
        self.unsent.iter().map(|unsent| unsent.count).sum()
    }

    /// Mean latency of completed operations, and of those never sent until they could have been; `None` if unknown.
    pub fn latency_us_mean(&self) -> Option<f64> {
        let done = self.done.filter(|done| *done > 0 && self.latency_us_sum > 0)?;
        Some((self.latency_us_sum + self.waited_us()) as f64 / (done + self.never_sent()) as f64)
    }

    /// Total wait of operations never sent, microseconds.
    pub fn waited_us(&self) -> u64 {
        self.unsent.iter().flat_map(|unsent| unsent.waits_us()).sum()
    }
}

impl Unsent {
    /// Minimum wait of each until it could have been sent, microseconds.
    pub fn waits_us(self) -> impl Iterator<Item = u64> {
        let apart_us = self.until_us.saturating_sub(self.from_us) as f64 / self.count.max(1) as f64;
        let due_us = (0..self.count).map(move |number| self.from_us + ((number as f64 + 0.5) * apart_us) as u64);
        due_us.map(move |due_us| self.free_us.saturating_sub(due_us))
    }
}

/// One turn of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureSlice {
    /// Operations completed.
    pub operations: u64,
    /// Duration, nanoseconds.
    pub elapsed_ns: u64,
}

/// The tool's own summary; its text is in `raw/`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// Operations done.
    pub done: u64,
    /// Failed, where reported.
    pub failed: Option<u64>,
    /// Skipped, where reported.
    pub skipped: Option<u64>,
    /// Slower than the limit, where reported.
    pub late: Option<u64>,
    /// Operations per second, excluding connection set-up; `None` if the tool does not print it.
    pub tps: Option<f64>,
    /// Mean latency, milliseconds; `None` if the tool did not measure it.
    pub latency_ms_mean: Option<f64>,
    /// Set-up of the connections, milliseconds; not part of the measurement.
    pub connection_ms: Option<f64>,
    /// Mean latency of each statement.
    pub statements: Vec<StatementFigures>,
}

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementFigures {
    /// The script.
    pub script: String,
    /// The statement's text.
    pub statement: String,
    /// Mean latency, microseconds.
    pub latency_us_mean: f64,
    /// Failures, where reported.
    pub failures: Option<u64>,
}
