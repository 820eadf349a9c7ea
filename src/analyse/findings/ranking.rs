//! Findings about which case is better: rankings, decisions, comparisons with a baseline.

use super::Verdict;
use crate::analyse::findings::counters::CounterComparison;
use crate::analyse::findings::durability::{Durability, DurabilityClass};
use crate::analyse::findings::estimate::Estimate;
use crate::analyse::findings::outcome::PairOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineComparison {
    /// Id of the baseline case.
    pub baseline: String,
    /// Ranked figure of this case over the baseline's. Within a class, the interval is that of the test that decides
    /// all pairs together.
    pub ratio: Estimate,
    /// Within a class: as in its [`Decision`]. Across classes: whether the interval excludes 1.
    pub outcome: PairOutcome,
    /// True ratio above 1 that 80 % of such runs would detect, 1.06 for a 6 % difference; `None` if there is none.
    pub detectable_ratio: Option<f64>,
    /// How the ratio was computed: "paired over 3 blocks".
    pub method: String,
    /// Why the two are not comparable (different durability class), although the ratio is shown.
    pub caveat: Option<String>,
}

/// The figure that cases are ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankedBy {
    /// Operations per second of a closed loop.
    Rate,
    /// A latency percentile at a fixed rate; lower is better.
    Latency,
    /// Highest rate within a latency limit.
    Capacity,
    /// Duration of one-off work; lower is better.
    Time,
    /// Share of operations due at a fixed rate that completed within the latency limit.
    InTime,
}

/// Cases that differ only in the baseline's axes, ranked within their durability classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// For example "tpcb, clients=16".
    pub title: String,
    /// Name of the workload in the plan.
    pub workload: String,
    /// `transactions`, `fdatasync`.
    pub measure: String,
    /// Lower is better for a latency or a time.
    pub by: RankedBy,
    /// `tps`, `ops/s`, `ms`, `%`.
    pub unit: String,
    /// Axes with the same value in all its cases.
    pub shared: BTreeMap<String, String>,
    /// Classes that occur, safest first.
    pub classes: Vec<ClassRanking>,
    /// Cost of one operation, by counter.
    pub counters: Vec<CounterComparison>,
}

impl Ranking {
    /// Rows of all classes.
    pub fn rows(&self) -> impl Iterator<Item = &RankRow> + Clone {
        self.classes.iter().flat_map(|class| &class.rows)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRanking {
    pub class: DurabilityClass,
    /// How its ranks were decided; `None` for a single case.
    pub decision: Option<Decision>,
    /// Fastest first.
    pub rows: Vec<RankRow>,
}

/// How the ranks of a class were decided: all pairs together, with at most 5 % probability of any false difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// True ratio above 1 between any two cases that 80 % of such runs would detect; `None` if there is none.
    pub detectable_ratio: Option<f64>,
    /// The decision procedure in words.
    pub sentence: String,
    /// Where a rank and the interval of a ratio disagree, and why.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Rank within the class: one more than the number of cases shown to be faster.
    pub rank: u32,
    pub case: String,
    /// Name within this ranking, from the axes that differ: "xfs".
    pub label: String,
    /// Ranked figure, in the ranking's unit: the geometric mean over the blocks that all cases of the ranking have, so
    /// that the quotient of two rows is the ratio of the cases. The interval is of this case alone.
    pub rate: Estimate,
    pub trials: Vec<RankTrial>,
    /// 99th percentile of the ranked operation's latency, over trials; `None` if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_p99: Option<Estimate>,
    /// Comparison with the baseline, if there is one.
    pub comparison: Option<BaselineComparison>,
    pub durability: Durability,
    /// Cost of a power cut, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RankTrial {
    pub trial: u32,
    pub rate: f64,
    /// True if it is part of the figure; other cases of the ranking may lack its block.
    pub used: bool,
}
