//! Results of a comparison: the only input of its renderers, and the document that `--json` prints.

pub use super::side::{Medium, SideOrigin};
pub use crate::analyse::findings::Durability;
pub use crate::analyse::findings::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this document; 1 is the first.
pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonFindings {
    pub format: u32,
    /// Version of pgstrata that compared.
    pub compared_by: String,
    /// Two lines: the row that matters most, and how much could be compared.
    pub answer: String,
    /// In the order of the arguments; the first is the reference.
    pub sides: Vec<SideFinding>,
    /// Compared pairs; pairs of sides within one argument come last.
    pub pairs: Vec<PairFinding>,
    /// Comparisons that were refused, with reasons.
    pub refused: Vec<ComparisonRefusal>,
    /// Measures that only one side has.
    pub alone: Vec<Alone>,
    /// Facts whose values differ between sides: the candidate causes.
    pub facts_that_differ: Vec<FactDifference>,
    /// Facts known for some sides only, so they may or may not differ.
    pub facts_not_told: Vec<FactDifference>,
    /// What to know before trusting a ratio.
    pub caveats: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideFinding {
    /// Letter of the side in tables: `A`.
    pub mark: String,
    /// Index of the argument it comes from.
    pub argument: usize,
    pub label: String,
    pub origin: SideOrigin,
    /// Storage of its data.
    pub medium: Medium,
    /// What a synced write survives, as far as known; `None` if nothing was synced.
    pub durability: Option<Durability>,
    /// Number of its figures.
    pub measures: usize,
    /// Known facts by dotted key.
    pub facts: BTreeMap<String, String>,
    /// What to know about this side.
    pub caveats: Vec<String>,
    /// Outputs without information about a workload, which are not compared.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairFinding {
    /// Index of the side in [`ComparisonFindings::sides`].
    pub side: usize,
    /// Index of its reference.
    pub against: usize,
    /// Why the two may differ in what they promise, as far as known.
    pub caveat: Option<String>,
    pub rows: Vec<MeasureRow>,
}

/// A measure that both sides of a pair have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasureRow {
    /// For example `pg_test_fsync/one write/8 kB/fdatasync`.
    pub measure: String,
    /// Prefix that groups rows: `pg_test_fsync/one write`.
    pub family: String,
    /// Unit of both figures.
    pub unit: String,
    pub more_is_better: bool,
    /// Value on this side.
    pub value: Estimate,
    /// Value on the reference side.
    pub reference: Estimate,
    /// Figures of its two runs; empty for any other number of runs.
    pub value_runs: Vec<f64>,
    /// The same for the reference side.
    pub reference_runs: Vec<f64>,
    /// `None` if the comparison is refused.
    pub comparison: Option<Comparison>,
    /// Why the comparison is refused.
    pub refused: Option<Reason>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// This side over the reference.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    pub outcome: RatioOutcome,
    pub method: Method,
    /// `method` in words, with the numbers of trials and blocks.
    pub how: String,
}

/// How the interval of a ratio was computed, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// From blocks that both have in common.
    Paired,
    /// From trials of both, without common blocks.
    Trials,
    /// At least one side was measured once, and its only spread is that of its slices, which covers just those minutes.
    Slices,
    /// No interval: at least one side was measured once and has no spread at all.
    SingleRuns,
    /// No interval: percentiles of the operations of all trials together.
    PercentilesTogether,
    /// No interval: the trials agree to the last digit.
    Alike,
    /// No interval: the spread cannot be computed because a trial did no work or differs too much.
    NoSpread,
}

impl Method {
    /// True if one of the two was measured once, so the interval excludes variation between runs.
    pub fn is_of_single_runs(self) -> bool {
        matches!(self, Method::Slices | Method::SingleRuns)
    }
}

/// Conclusion from a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioOutcome {
    /// This side is faster than its reference.
    Faster,
    /// This side is slower than its reference.
    Slower,
    /// An operation of this side costs less: of a counter.
    Lower,
    /// An operation of this side costs more: of a counter.
    Higher,
    /// The interval includes 1, which does not mean that they are equal.
    Undecided,
    /// They differ by more than the scatter within a single measurement; that scatter excludes variation between runs,
    /// so there is no winner.
    NotRepeated,
    /// There is no interval, so there is no winner.
    NoInterval,
}

/// Why two figures may not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Different script or job.
    OtherWorkload,
    /// Different scale of the data.
    OtherScale,
    /// Different number of clients.
    OtherClients,
    /// Different write size.
    OtherWriteSize,
    /// Different query mode, rate limit, or treatment of the connection time.
    OtherConditions,
    /// One of the two does not state a condition.
    NotTold,
    /// A mean against a percentile, or different percentiles.
    MeanAgainstPercentile,
    /// The operation was not possible on one of the two.
    NotToBeHad,
    /// A sync failed on one of the two.
    SyncFailed,
    /// The row without a sync, which differs between versions of pg_test_fsync.
    NotSyncedAcrossVersions,
    /// Files in memory against files on a device.
    MemoryAgainstDisk,
    /// Data that fit into memory against data that do not.
    DataInMemoryAgainstDisk,
    /// At least one of the two ran on an emulated CPU.
    EmulatedCpu,
    /// Different durability class.
    OtherDurability,
    /// At least one of the two did no work.
    NothingDone,
}

/// Figures that may not be compared: one entry per reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRefusal {
    /// Pairs of indexes of sides, the smaller first.
    pub sides: Vec<(usize, usize)>,
    pub reason: Reason,
    /// The reason in words: "other client count: 1, 16 against 4".
    pub words: String,
    /// Names of the affected measures on either side.
    pub measures: Vec<String>,
}

/// Measures that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// Index of the side.
    pub side: usize,
    pub measures: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// For example `host.kernel`.
    pub key: String,
    /// Value on each side; `None` if unknown.
    pub values: Vec<Option<String>>,
}

impl ComparisonFindings {
    /// True if anything was compared.
    pub fn compared_anything(&self) -> bool {
        self.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.comparison.is_some())
    }
}
