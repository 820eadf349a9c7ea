//! Findings about which case is the better one: rankings, their decisions, comparisons with a baseline.

use super::Verdict;
use crate::analyse::findings::counters::CounterComparison;
use crate::analyse::findings::durability::{Durability, DurabilityClass};
use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::outcome::PairOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A comparison with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineComparison {
    /// Id of the baseline case.
    pub baseline: String,
    /// What is ranked, of this case over that of the baseline. Inside a class its interval is that of the test which decides
    /// all pairs together.
    pub ratio: Estimate,
    /// Inside a class: as its [`Decision`] says. Of two classes: whether the interval excludes 1.
    pub outcome: PairOutcome,
    /// The true ratio above 1 that 80 % of such runs would find: 1.06 is a difference of 6 %; `None` where none is.
    pub detectable_ratio: Option<f64>,
    /// How it was had: "paired over 3 blocks".
    pub method: String,
    /// Why the two cannot be compared (another durability class), although the ratio is shown.
    pub caveat: Option<String>,
}

/// What cases are ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankedBy {
    /// Operations a second, where each client does as many as it can.
    Rate,
    /// A percentile of the latency at a fixed rate: the less, the better.
    Latency,
    /// The highest rate within a latency limit.
    Capacity,
    /// How long something took that is done once: the less, the better.
    Time,
    /// Share of the operations due at a fixed rate that were done within the latency limit.
    InTime,
}

/// Cases that differ in the baseline's axes alone, ranked inside their durability classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// What it ranks: "tpcb, clients=16".
    pub title: String,
    /// Name of the workload in the plan.
    pub workload: String,
    /// Measure: `transactions`, `fdatasync`.
    pub measure: String,
    /// What it ranks by; where that is a latency or a time, lower is better.
    pub by: RankedBy,
    /// Unit of what it ranks by: `tps`, `ops/s`, `ms`, `%`.
    pub unit: String,
    /// The axes that all its cases share.
    pub shared: BTreeMap<String, String>,
    /// The classes that occur, the safest first.
    pub classes: Vec<ClassRanking>,
    /// What one operation cost, counter by counter.
    pub counters: Vec<CounterComparison>,
}

/// One class of a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRanking {
    pub class: DurabilityClass,
    /// How its ranks were decided; `None` of a single case.
    pub decision: Option<Decision>,
    /// Its cases, the fastest first.
    pub rows: Vec<RankRow>,
}

/// How the ranks of a class were decided: all pairs together, with at most 5 % for any false difference among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub procedure: ProcedureKind,
    /// Blocks that all its cases have; `None` where each pair has its own.
    pub blocks: Option<u32>,
    /// Pairs that were decided.
    pub pairs: u32,
    /// The true ratio above 1 between any two of them that 80 % of such runs would find; `None` where none is.
    pub detectable_ratio: Option<f64>,
    /// How, in words.
    pub sentence: String,
    /// Where a rank and the interval of a ratio say different things, and why.
    pub remarks: Vec<String>,
}

/// What told cases of a class apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcedureKind {
    /// Nothing could: single trials.
    Nothing,
    /// The interval of the ratio of the only two.
    Pair,
    /// Tukey's test on complete blocks.
    Tukey,
    /// The ratio of each pair, with Holm's correction.
    Holm,
    /// Tukey's test after each block, all looks together.
    Looks,
    /// E-values: the run was extended.
    EValues,
}

/// One row of a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Rank inside the class: one more than the number of cases shown to be faster.
    pub rank: u32,
    pub case: String,
    /// How it is called in this ranking (what differs): "xfs".
    pub label: String,
    /// What it is ranked by, in the ranking's unit: the geometric mean over the blocks that all cases of the ranking have, so
    /// that the quotient of two is the ratio of the cases. Its interval is of this case alone.
    pub rate: Estimate,
    /// Its trials.
    pub trials: Vec<RankTrial>,
    /// 99th percentile of the latency of what is ranked, over trials; `None` where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_p99: Option<Estimate>,
    /// Against the baseline, where there is one.
    pub comparison: Option<BaselineComparison>,
    /// Durability and its reason.
    pub durability: Durability,
    /// What a power cut would cost, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// One trial of a ranked case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTrial {
    pub trial: u32,
    pub rate: f64,
    /// Whether it is in the figure: other cases of the ranking may lack its block.
    pub used: bool,
}
