//! Findings about a publication: its cases, the support of its conclusions by its own figures, and remarks on the
//! figures.

use crate::record::imported::Origin;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON form. 1: the first.
pub const FORMAT: u32 = 1;

/// All findings about a publication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShelfFindings {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that analysed it.
    pub analysed_by: String,
    /// Its folder on the shelf.
    pub name: String,
    /// Difference between the cases.
    pub varied: String,
    /// Measurement procedure.
    pub procedure: String,
    pub origin: Origin,
    pub cases: Vec<PublishedCase>,
    /// Its conclusions, in order.
    pub conclusions: Vec<ConclusionFinding>,
    /// Remarks of the rules, gravest first.
    pub remarks: Vec<RuleRemark>,
    pub caveats: Vec<String>,
    /// Relevant facts that are not reported.
    pub unknown: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCase {
    pub name: String,
    /// Known facts, by dotted key.
    pub facts: BTreeMap<String, String>,
    /// Number of figures.
    pub figures: usize,
    /// Main figures.
    pub main: Vec<MainFigure>,
    pub caveats: Vec<String>,
}

/// A main figure of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainFigure {
    /// Short name: `tps`, `fsync`.
    pub name: String,
    pub unit: String,
    /// Mean over the trials.
    pub value: f64,
}

/// Support of a conclusion by the publication's own figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// The figures show the opposite.
    Contradicted,
    /// No published figure can answer it.
    CannotBeTold,
    /// The difference may be chance.
    NotShown,
    /// The difference exceeds the usual scatter of runs, but each case was measured once.
    PointsThatWay,
    /// The figures support it.
    Shown,
}

/// A conclusion and its support.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConclusionFinding {
    /// The conclusion.
    pub says: String,
    pub support: Support,
    /// Comparisons that it rests on.
    pub comparisons: Vec<ClaimComparison>,
    /// Reasons, as sentences.
    pub because: Vec<String>,
}

/// Comparison of one figure between two cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimComparison {
    /// Case with the higher figure, as claimed.
    pub case: String,
    /// Case with the lower figure, as claimed.
    pub over: String,
    /// Compared figure: `pgbench: tps_excluding_connecting`.
    pub what: String,
    /// Unit of both values.
    pub unit: String,
    /// Mean over the trials of `case`.
    pub value: f64,
    /// Mean over the trials of `over`.
    pub over_value: f64,
    /// `value` over `over_value`.
    pub ratio: f64,
    /// Number of trials of each.
    pub trials: (usize, usize),
    /// 95 % interval of the ratio, if there are enough trials.
    pub interval: Option<(f64, f64)>,
    pub support: Support,
    /// Text of the comparison.
    pub sentence: String,
}

/// Gravity of a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkWeight {
    /// Two stated or printed facts contradict each other.
    Contradiction,
    /// The figure does not mean what it seems to.
    Suspicion,
    /// Worth knowing.
    Information,
}

/// Remark of a rule on figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleRemark {
    /// Name of the rule.
    pub rule: String,
    pub weight: RemarkWeight,
    /// Name of the case.
    pub case: String,
    /// Source of the threshold or the rule.
    pub source: String,
    /// Text.
    pub sentence: String,
    /// Location of the figures: file and line.
    pub at: Vec<(String, u32)>,
}
