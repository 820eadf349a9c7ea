//! What a comparison concludes: the one thing that its renderers see, and what `--json` prints.

pub use super::side::{Medium, Origin};
pub use crate::analyse::findings::Durability;
pub use crate::analyse::findings::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this document. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that is concluded from holding sides against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonFindings {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that compared.
    pub compared_by: String,
    /// The answer: a line with the row that matters most, and one with how much could be compared.
    pub answer: String,
    /// The sides in the order of the arguments; the first is the reference.
    pub sides: Vec<SideFinding>,
    /// Which side is compared with which; sides of one argument among themselves come last.
    pub pairs: Vec<PairFinding>,
    /// What may not be compared, and why.
    pub refused: Vec<Refusal>,
    /// What only one side measured.
    pub alone: Vec<Alone>,
    /// Facts of which the sides tell different values: the candidate causes.
    pub facts_that_differ: Vec<FactDifference>,
    /// Facts that some sides tell and others don't: whether they differ is not known.
    pub facts_not_told: Vec<FactDifference>,
    /// What a reader should know before believing a ratio.
    pub caveats: Vec<String>,
}

/// A side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideFinding {
    /// Its letter in tables: `A`.
    pub mark: String,
    /// Which argument it comes from, from 0.
    pub argument: usize,
    /// What it is called.
    pub label: String,
    /// Whose measurement it is.
    pub origin: Origin,
    /// Where its data lay.
    pub medium: Medium,
    /// What a synced write survives there, as far as known; `None` where nothing was synced.
    pub durability: Option<Durability>,
    /// Figures that it has.
    pub measures: usize,
    /// What is known of it, by dotted key.
    pub facts: BTreeMap<String, String>,
    /// What a reader should know of it.
    pub caveats: Vec<String>,
    /// Outputs that say nothing of a workload and are not compared.
    pub left_out: Vec<String>,
}

/// One side compared with another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairFinding {
    /// Place of the side in [`ComparisonFindings::sides`].
    pub side: usize,
    /// Place of the one that it is compared with.
    pub against: usize,
    /// Why the two may not promise the same, as far as is known.
    pub caveat: Option<String>,
    /// Measures that both have.
    pub rows: Vec<Row>,
}

/// A measure that both sides of a pair have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What: `pg_test_fsync/one write/8 kB/fdatasync`.
    pub measure: String,
    /// The part of it that groups rows: `pg_test_fsync/one write`.
    pub family: String,
    /// Unit of both figures.
    pub unit: String,
    /// Whether more is better.
    pub more_is_better: bool,
    /// The figure of the side.
    pub value: Estimate,
    /// The figure of the one that it is compared with.
    pub reference: Estimate,
    /// The figures of its two runs; empty where there are more or fewer.
    pub value_runs: Vec<f64>,
    /// The same of the one that it is compared with.
    pub reference_runs: Vec<f64>,
    /// The comparison; `None` where it is refused.
    pub comparison: Option<Comparison>,
    /// Why it is refused.
    pub refused: Option<Reason>,
}

/// A ratio and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Figure of the side over that of the reference.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it says.
    pub outcome: Outcome,
    /// How the interval was had, or why there is none.
    pub method: Method,
    /// The same in words, with the numbers of trials and blocks.
    pub how: String,
}

/// How the interval of a ratio was had, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Over blocks that both have in common.
    Paired,
    /// From trials of both, without common blocks.
    Trials,
    /// From trials of one, and a single trial of the other in the same run.
    BorrowedSpread,
    /// At least one side was measured once and has the spread of its slices alone: that is of its own minutes.
    Slices,
    /// None: at least one side was measured once and has no spread at all.
    SingleRuns,
    /// None: percentiles of the operations of all trials together.
    PercentilesTogether,
    /// None: trials that are alike to the last digit.
    Alike,
    /// None: the spread cannot be computed, since something did nothing or differs too much.
    NoSpread,
}

impl Method {
    /// Whether one of the two was measured once, so that what differs between runs is not in the interval.
    pub fn is_of_single_runs(self) -> bool {
        matches!(self, Method::Slices | Method::SingleRuns)
    }
}

/// What a ratio says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The side is faster than its reference.
    Faster,
    /// It is slower.
    Slower,
    /// The interval holds 1; that is not "they are the same".
    Undecided,
    /// They differ by more than the scatter inside what was measured once; what differs between runs is not in that, so
    /// there is no winner.
    NotRepeated,
    /// There is no interval, so there is no winner.
    NoInterval,
}

/// Why two figures may not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Another script or job.
    OtherWorkload,
    /// Another scale of the data.
    OtherScale,
    /// Another number of clients.
    OtherClients,
    /// Another size of a write.
    OtherWriteSize,
    /// Another query mode, rate limit, or way to count the time to connect.
    OtherConditions,
    /// One of the two does not tell a condition.
    NotTold,
    /// A mean against a percentile, or one percentile against another.
    MeanAgainstPercentile,
    /// One of the two could not do it.
    NotToBeHad,
    /// A sync failed on one of the two.
    SyncFailed,
    /// The row without a sync, which versions of pg_test_fsync do differently.
    NotSyncedAcrossVersions,
    /// Files in memory against files on a device.
    MemoryAgainstDisk,
    /// Data that fit into memory against data that do not.
    DataInMemoryAgainstDisk,
    /// One of the two, or both, ran on an emulated CPU.
    EmulatedCpu,
    /// Another durability class.
    OtherDurability,
    /// One of the two did nothing.
    NothingDone,
}

/// Figures that may not be compared: one entry for each reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Pairs of sides by their places, the smaller first.
    pub sides: Vec<(usize, usize)>,
    /// Why.
    pub reason: Reason,
    /// Why, in words: "other client count: 1, 16 against 4".
    pub words: String,
    /// Which measures, as they are called on either side.
    pub measures: Vec<String>,
}

/// What only one side measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// Place of the side.
    pub side: usize,
    /// The measures.
    pub measures: Vec<String>,
}

/// A fact by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    /// Which: `host.kernel`.
    pub key: String,
    /// Its value at each side; `None` where it is not told.
    pub values: Vec<Option<String>>,
}

impl ComparisonFindings {
    /// Whether anything was compared.
    pub fn compared_anything(&self) -> bool {
        self.pairs.iter().flat_map(|pair| &pair.rows).any(|row| row.comparison.is_some())
    }
}
