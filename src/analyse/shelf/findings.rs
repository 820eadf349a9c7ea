//! What is found of a publication: its cases, its conclusions with what its own figures support, what its figures say.

use crate::record::imported::Origin;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the JSON form. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that is found of a publication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShelfFindings {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that found it.
    pub analysed_by: String,
    /// Its folder on the shelf.
    pub name: String,
    /// What varied.
    pub varied: String,
    /// How it was measured.
    pub procedure: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Its cases.
    pub cases: Vec<CaseFinding>,
    /// What it concluded, in its order.
    pub conclusions: Vec<ConclusionFinding>,
    /// What its figures say without being asked, the gravest first.
    pub remarks: Vec<Remark>,
    /// What a reader should know.
    pub caveats: Vec<String>,
    /// What is not told.
    pub unknown: Vec<String>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseFinding {
    /// Its name.
    pub name: String,
    /// What is known of it, by dotted key.
    pub facts: BTreeMap<String, String>,
    /// Trials with figures.
    pub trials: usize,
    /// Tools whose output was read, in order.
    pub tools: Vec<String>,
    /// How many numbers were read.
    pub figures: usize,
    /// The numbers that it is about.
    pub main: Vec<MainFigure>,
    /// What a reader should know of it.
    pub caveats: Vec<String>,
}

/// A number that a case is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainFigure {
    /// Its short name: `tps`, `fsync`.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Mean over the trials.
    pub value: f64,
}

/// What a publication's own figures say of one of its conclusions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// They say the opposite.
    Contradicted,
    /// Nothing that was published can answer it.
    CannotBeTold,
    /// What they differ by may be chance.
    NotShown,
    /// They differ by more than runs are known to scatter, but each was measured once.
    PointsThatWay,
    /// They carry it.
    Shown,
}

/// A conclusion and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConclusionFinding {
    /// What was concluded.
    pub says: String,
    /// What its figures say of it.
    pub support: Support,
    /// Each comparison that it rests on.
    pub comparisons: Vec<Comparison>,
    /// Why, in sentences.
    pub because: Vec<String>,
}

/// One figure of two cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Where it should be higher.
    pub case: String,
    /// Where it should be lower.
    pub over: String,
    /// What is compared: `pgbench: tps_excluding_connecting`.
    pub what: String,
    /// Unit of both values.
    pub unit: String,
    /// Mean over the trials of `case`.
    pub value: f64,
    /// Mean over the trials of `over`.
    pub over_value: f64,
    /// One over the other.
    pub ratio: f64,
    /// Trials of both.
    pub trials: (usize, usize),
    /// Interval of the ratio with 95 %, where trials carry one.
    pub interval: Option<(f64, f64)>,
    /// What it says of the conclusion.
    pub support: Support,
    /// In a sentence.
    pub sentence: String,
}

/// How grave a remark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Two things that were told or printed cannot both be so.
    Contradiction,
    /// The figure does not mean what it seems to.
    Suspicion,
    /// Worth knowing.
    Information,
}

/// What a rule says of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remark {
    /// The rule.
    pub rule: String,
    /// How grave.
    pub weight: Weight,
    /// Which case.
    pub case: String,
    /// Where the threshold or the rule comes from.
    pub source: String,
    /// In words.
    pub sentence: String,
    /// Where the figures stand: file and line.
    pub at: Vec<(String, u32)>,
}
