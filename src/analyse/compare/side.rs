//! One side of a comparison: what was measured, under which conditions, and what is known about the system.

use crate::analyse::findings::Durability;
use crate::stats::ratio::BlockMean;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One side: the cases of an argument that share everything except their workload.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// Index of the argument it comes from.
    pub argument: usize,
    /// Display name: `results/x:ext4`.
    pub label: String,
    /// Name within the argument; empty if the argument is a single side.
    pub name: String,
    pub origin: SideOrigin,
    /// Known facts by dotted key: `stack.filesystem` -> `ext4`.
    pub facts: BTreeMap<String, String>,
    pub measures: Vec<SideMeasure>,
    /// The first trial of its cases that was tried and failed, or whose stack was full, with the reason.
    pub failed: Option<String>,
    /// What to know about this side.
    pub caveats: Vec<String>,
    /// Outputs without information about a workload, which are not compared: `iostat -x`.
    pub left_out: Vec<String>,
}

/// Source of a side's measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideOrigin {
    /// Trials of a pgstrata run.
    #[default]
    Run,
    /// A pgstrata probe.
    Probe,
    /// Imported output of another tool.
    Imported,
}

/// One figure with everything that decides which figures it may be compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SideMeasure {
    /// Id of the case of a run; empty for others.
    pub case: String,
    /// Benchmark: `pgbench`, `pg_test_fsync/one write`, `wal`.
    pub family: String,
    /// Conditions of the measurement; measures of one family have the same kinds in the same order.
    pub conditions: Vec<MeasureCondition>,
    /// Item within the benchmark: `tps`, `latency`, `fdatasync`.
    pub item: String,
    /// Kind of figure.
    pub figure: FigureKind,
    /// Unit as printed by the tool: `tps`, `ops/sec`, `ms`.
    pub unit: String,
    pub value: f64,
    /// Ends of the 95 % interval.
    pub ends: Option<(f64, f64)>,
    /// Source of its spread.
    pub spread: MeasureSpread,
    /// What an operation survives; `None` if nothing has to survive (reads, unsynced writes).
    pub durability: Option<Durability>,
    /// Storage of the data written.
    pub medium: Medium,
    /// Storage of the data read; unknown if nothing was read.
    pub data: Medium,
    /// Why there is no figure: the tool could not run the test there. The value is then meaningless.
    pub absent: Option<String>,
    /// Why the figure is not valid: a sync failed.
    pub failure: Option<String>,
    /// True if measured on an emulated CPU.
    pub emulated: bool,
    /// For pg_test_fsync's row without a sync: the form of the test.
    pub unsynced_form: Option<UnsyncedForm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureCondition {
    pub kind: ConditionKind,
    /// `None` if unknown.
    pub value: Option<String>,
    /// True if part of the measure's name; otherwise only unusual values are shown.
    pub named: bool,
}

/// Conditions in descending order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// pgbench script.
    Workload,
    /// pgbench scale factor.
    Scale,
    /// Concurrent clients.
    Clients,
    /// Size of one write.
    WriteSize,
    /// Query protocol.
    QueryMode,
    /// Target rate, transactions per second.
    RateLimit,
    /// Whether the figure includes the connection time.
    Connecting,
    /// Further options of the workload in which cases of one side differ.
    Options,
}

/// Kind of figure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FigureKind {
    /// Operations per second; more is better.
    #[default]
    Rate,
    /// Mean time; less is better.
    Mean,
    /// A percentile of times, by name: `p99`, `max`.
    Percentile(String),
    /// What an operation costs, by our own counters; less is better.
    Counter,
}

/// Source of a figure's spread.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum MeasureSpread {
    /// Trials; the measures of one run have blocks in common.
    Trials {
        /// Id of the run.
        run: String,
        /// One mean per trial.
        means: Vec<BlockMean>,
        /// True if there is a single trial and its slices are its replicates.
        slices: bool,
    },
    /// A percentile of the operations of all trials together.
    Together {
        /// Number of trials.
        trials: usize,
        /// Smallest and largest value of a single trial, if known.
        alone: Option<(f64, f64)>,
    },
    /// A single figure.
    #[default]
    None,
}

/// Kind of storage that data are on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// Memory.
    Memory,
    /// A device.
    Disk,
    #[default]
    Unknown,
}

/// Forms of pg_test_fsync's test without a sync: until version 13 it opened and closed the file for each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsyncedForm {
    /// Opens and closes the file for each write.
    OpensEachTime,
    /// Keeps the file open.
    KeepsOpen,
    /// The version is not known precisely enough.
    Unknown,
}

impl UnsyncedForm {
    /// Derives the form from the version as an output shows it (`9.3 or 9.4`, `11 or newer`), else as somebody stated
    /// it (`11, by the name of the host`). Version 14 changed the test: the source of 13.9 opens the file for each
    /// write, that of 14.10 does not. If the version is only a lower bound below 14, the form is unknown.
    pub fn of(printed: Option<&str>, stated: Option<&str>) -> UnsyncedForm {
        let stated = stated.map(|version| version.split(',').next().unwrap_or(version));
        match UnsyncedForm::of_version(printed) {
            UnsyncedForm::Unknown => UnsyncedForm::of_version(stated),
            known => known,
        }
    }

    fn of_version(version: Option<&str>) -> UnsyncedForm {
        const FIRST_NEW: u32 = 14;
        let Some(version) = version else { return UnsyncedForm::Unknown };
        let each = version.trim_end_matches(" or newer").split(" or ");
        let majors: Option<Vec<u32>> =
            each.map(|one| one.split_whitespace().next()?.split('.').next()?.parse().ok()).collect();
        match majors {
            Some(all) if all.iter().all(|major| *major >= FIRST_NEW) => UnsyncedForm::KeepsOpen,
            Some(all) if all.iter().all(|major| *major < FIRST_NEW) && !version.contains("or newer") => {
                UnsyncedForm::OpensEachTime
            }
            _ => UnsyncedForm::Unknown,
        }
    }
}

impl SideMeasure {
    /// A figure whose spread, durability and storage are unknown.
    pub fn new(
        family: &str,
        conditions: Vec<MeasureCondition>,
        item: &str,
        figure: FigureKind,
        unit: &str,
        value: f64,
    ) -> Self {
        let [family, item, unit] = [family, item, unit].map(str::to_owned);
        SideMeasure { family, conditions, item, figure, unit, value, ..SideMeasure::default() }
    }

    /// Full name: `pgbench/tpcb-like/scale 100/clients 4/tps`.
    pub fn key(&self) -> String {
        let conditions = self.conditions.iter().filter_map(MeasureCondition::words);
        let figure = match &self.figure {
            FigureKind::Rate | FigureKind::Counter => self.item.clone(),
            FigureKind::Mean => format!("{} mean", self.item),
            FigureKind::Percentile(which) => format!("{} {which}", self.item),
        };
        [self.family.clone()].into_iter().chain(conditions).chain([figure]).collect::<Vec<_>>().join("/")
    }

    /// Family and item, without conditions.
    pub fn subject(&self) -> (&str, &str) {
        (&self.family, &self.item)
    }

    /// True if another is of the same case of a plan, in the same run or in another.
    pub fn is_of_case_of(&self, other: &SideMeasure) -> bool {
        !self.case.is_empty() && self.case == other.case
    }

    /// True if higher is better.
    pub fn more_is_better(&self) -> bool {
        self.figure == FigureKind::Rate
    }
}

impl MeasureCondition {
    /// A condition that is part of the measure's name.
    pub fn named(kind: ConditionKind, value: Option<String>) -> MeasureCondition {
        MeasureCondition { kind, value, named: true }
    }

    /// A condition that is shown only if it differs from `usual`.
    pub fn usual(kind: ConditionKind, value: Option<String>, usual: &str) -> MeasureCondition {
        let named = value.as_deref().is_some_and(|value| value != usual);
        MeasureCondition { kind, value, named }
    }

    /// Form used in a measure's name.
    fn words(&self) -> Option<String> {
        let value = self.value.as_ref().filter(|_| self.named)?;
        Some(match self.kind {
            ConditionKind::Scale | ConditionKind::Clients | ConditionKind::QueryMode | ConditionKind::RateLimit => {
                format!("{} {value}", self.kind.words())
            }
            ConditionKind::Workload => without_hashes(value),
            ConditionKind::WriteSize | ConditionKind::Connecting | ConditionKind::Options => value.clone(),
        })
    }
}

/// A workload without the hashes of its files, which tell two sides apart and are shown where these differ.
fn without_hashes(workload: &str) -> String {
    let (first, rest) = workload.split_once(" (").unwrap_or((workload, ""));
    rest.split(" (").fold(first.to_owned(), |text, part| match part.split_once(')') {
        Some((hash, after)) if hash.len() == 8 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => text + after,
        _ if part.is_empty() => text,
        _ => format!("{text} ({part}"),
    })
}

impl ConditionKind {
    pub fn words(self) -> &'static str {
        match self {
            ConditionKind::Workload => "workload",
            ConditionKind::Scale => "scale",
            ConditionKind::Clients => "clients",
            ConditionKind::WriteSize => "write size",
            ConditionKind::QueryMode => "query mode",
            ConditionKind::RateLimit => "rate limit",
            ConditionKind::Connecting => "time to connect",
            ConditionKind::Options => "options of the workload",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_hashes_and_conditions_keep_them() {
        let of = |workload: &str| {
            let condition = MeasureCondition::named(ConditionKind::Workload, Some(workload.to_owned()));
            SideMeasure::new("pgbench", vec![condition], "tps", FigureKind::Rate, "tps", 1.0)
        };
        let own = "mine.sql (0c1d2e3f), set up by a.sql (4a5b6c7d)";
        assert_eq!(of(own).key(), "pgbench/mine.sql, set up by a.sql/tps");
        assert_eq!(of(own).conditions[0].value.as_deref(), Some(own));
        assert_eq!(of("orders").key(), "pgbench/orders/tps");
        assert_eq!(of("a (copy).sql (0c1d2e3f)").key(), "pgbench/a (copy).sql/tps");
    }
}
