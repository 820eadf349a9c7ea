//! What a workload counted in one trial, in the same words for every workload.
//!
//! Counts, sums and spans of time only: rates, percentiles and whether two counts agree are computed from these in
//! `analyse`, so that a better formula applies to every stored run.

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
    /// One for each thing measured, the main one first. pgbench: `transactions`, then one per script where there are
    /// several; sync: one per method, as the server writes its WAL.
    pub measures: Vec<Measure>,
    /// Operations whose second was complete already (a clock that was set back); they count in the next open one.
    pub out_of_order: u64,
    /// Why the load ended before its time, in the tool's words: the stack had no room left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// What the tool that drove the load says itself.
    pub reported: Option<Reported>,
    /// The steps of a search for the highest rate; their operations are those of the main measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchCounts>,
    /// What was done once, in order, and how long each took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageCounts>,
    /// The crash of the server, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryCounts>,
    /// What the load before a crash counted, where that crash is still to come. A trial is not stored with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_crash: Option<BeforeCrash>,
    /// The snapshots that were made and deleted meanwhile, where the workload does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SnapshotCounts>,
    /// The whole probe behind the measures of `sync`.
    pub probe: Option<Box<ProbeRecord>>,
}

/// One thing that a workload measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `transactions`, `fdatasync`, ...; also the tag of its intervals in `latency.hist`.
    pub name: String,
    /// Operations completed; `None` where the measure was not available.
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
    /// Why it was not available.
    pub unavailable: Option<String>,
    /// For measures that take turns: its single slices.
    pub slices: Vec<MeasureSlice>,
    /// At a fixed rate: operations that fell due and were never sent, since no client was free until the window had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsent: Vec<Unsent>,
}

/// Operations that fell due, evenly, while all clients of a schedule waited for an answer. Times are microseconds since the
/// window's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsent {
    /// About how many, by the rate.
    pub count: u64,
    /// When the last operation that was sent fell due.
    pub from_us: u64,
    /// The window's end.
    pub until_us: u64,
    /// When a client was free again.
    pub free_us: u64,
}

impl Measure {
    /// Operations that fell due and were never sent.
    pub fn never_sent(&self) -> u64 {
        self.unsent.iter().map(|unsent| unsent.count).sum()
    }

    /// Mean latency of those done, and of those never sent until they could have been; `None` where none is known.
    pub fn latency_us_mean(&self) -> Option<f64> {
        let done = self.done.filter(|done| *done > 0 && self.latency_us_sum > 0)?;
        Some((self.latency_us_sum + self.waited_us()) as f64 / (done + self.never_sent()) as f64)
    }

    /// Waits of those never sent together, microseconds.
    pub fn waited_us(&self) -> u64 {
        self.unsent.iter().flat_map(|unsent| unsent.waits_us()).sum()
    }
}

impl Unsent {
    /// How long each would have waited at least until it was sent, microseconds.
    pub fn waits_us(self) -> impl Iterator<Item = u64> {
        let apart_us = self.until_us.saturating_sub(self.from_us) as f64 / self.count.max(1) as f64;
        let due_us = move |number: u64| self.from_us + ((number as f64 + 0.5) * apart_us) as u64;
        (0..self.count).map(move |number| self.free_us.saturating_sub(due_us(number)))
    }
}

/// A short time in which a measure had its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureSlice {
    /// Operations completed.
    pub operations: u64,
    /// In how many nanoseconds.
    pub elapsed_ns: u64,
}

/// The tool's own summary; its text stays in `raw/`.
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
    /// Operations a second, the set-up of connections left out; `None` where the tool does not print it.
    pub tps: Option<f64>,
    /// Mean latency, milliseconds; `None` where the tool did not measure it.
    pub latency_ms_mean: Option<f64>,
    /// Set-up of the connections, milliseconds; not part of the measurement.
    pub connection_ms: Option<f64>,
    /// Mean latency of each statement.
    pub statements: Vec<StatementFigures>,
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
