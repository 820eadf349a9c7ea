//! One side of a comparison: what was measured, under which conditions, and what is known of the place.

use crate::analyse::findings::Durability;
use crate::stats::ratio::BlockMean;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One side: the cases of an argument that share everything but their workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Which argument it comes from, from 0.
    pub argument: usize,
    /// What it is called: `results/x:ext4`.
    pub label: String,
    /// Its name within the argument; empty for an argument that is one side.
    pub name: String,
    /// Whose measurement it is.
    pub origin: Origin,
    /// What is known, by dotted key: `stack.filesystem` -> `ext4`.
    pub facts: BTreeMap<String, String>,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// What a reader should know.
    pub caveats: Vec<String>,
    /// Outputs that say nothing of a workload and are not compared: `iostat -x`.
    pub left_out: Vec<String>,
}

/// Values by key, both in the order in which they come.
pub(crate) fn by_key<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Whose measurement a side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Trials of a run of this program.
    Run,
    /// A probe of this program.
    Probe,
    /// Imported: someone else's output.
    Imported,
}

/// One figure with everything that decides what it may be compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// What was run: `pgbench`, `pg_test_fsync/one write`, `wal`.
    pub family: String,
    /// Under which conditions; two measures of a family have the same kinds in the same order.
    pub conditions: Vec<Condition>,
    /// What of it: `tps`, `latency`, `fdatasync`.
    pub item: String,
    /// Which figure of that.
    pub figure: Figure,
    /// Its unit, as the tool prints it: `tps`, `ops/sec`, `ms`.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Ends of its 95 % interval.
    pub ends: Option<(f64, f64)>,
    /// What its spread is known from.
    pub spread: Spread,
    /// What an operation survives; `None` where nothing has to survive (reads, writes without a sync).
    pub durability: Option<Durability>,
    /// Where what was written lay.
    pub medium: Medium,
    /// Where what was read lay; unknown where nothing was.
    pub data: Medium,
    /// Why there is no figure: the tool could not do it there. The value means nothing then.
    pub absent: Option<String>,
    /// Why the figure is no measure: a sync failed.
    pub failure: Option<String>,
    /// Whether it was measured on an emulated CPU.
    pub emulated: bool,
    /// For the row of pg_test_fsync without a sync: which form of the test it was.
    pub unsynced_form: Option<UnsyncedForm>,
}

/// A condition of a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Which.
    pub kind: ConditionKind,
    /// Its value in words; `None` where it is not told.
    pub value: Option<String>,
    /// Whether it is part of the measure's name; else only other values of it are told.
    pub named: bool,
}

/// Conditions, those that weigh most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// Script of pgbench.
    Workload,
    /// Scale of pgbench's data.
    Scale,
    /// Clients at the same time.
    Clients,
    /// Size of one write.
    WriteSize,
    /// Protocol of queries.
    QueryMode,
    /// Transactions a second aimed at.
    RateLimit,
    /// Whether the time to connect is in the figure.
    Connecting,
}

/// Which figure of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Figure {
    /// Operations a second: more is better.
    Rate,
    /// A mean time: less is better.
    Mean,
    /// A percentile of times, in words: `p99`, `max`.
    Percentile(String),
}

/// What the spread of a figure is known from.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Trials; blocks are common to the measures of one run.
    Trials {
        /// Which run.
        run: String,
        /// The trials.
        means: Vec<BlockMean>,
        /// Whether a single one of them has slices, which are its replicates.
        slices: bool,
    },
    /// A percentile of the operations of all trials together.
    Together {
        /// How many trials.
        trials: usize,
        /// The least and the greatest that one of them has alone, where that is known.
        alone: Option<(f64, f64)>,
    },
    /// A single figure.
    None,
}

/// Where data lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Medium {
    /// In memory.
    Memory,
    /// On a device.
    Disk,
    /// It is not told.
    Unknown,
}

/// Forms of the test of pg_test_fsync without a sync: until 13 it opened and closed the file for each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsyncedForm {
    /// Opens and closes the file for each write.
    OpensEachTime,
    /// Keeps the file open.
    KeepsOpen,
    /// The version does not tell.
    Unknown,
}

impl UnsyncedForm {
    /// The form by the version as an output tells it (`9.3 or 9.4`, `11 or newer`), else as somebody told it (`11, by the
    /// name of the host`). The change came with 14: the source of 13.9 opens the file for each write, that of 14.10 does
    /// not. Where the version is a lower bound below that, it is not known.
    pub fn of(printed: Option<&str>, told: Option<&str>) -> UnsyncedForm {
        let told = told.map(|version| version.split(',').next().unwrap_or(version));
        match UnsyncedForm::of_version(printed) {
            UnsyncedForm::Unknown => UnsyncedForm::of_version(told),
            known => known,
        }
    }

    fn of_version(version: Option<&str>) -> UnsyncedForm {
        const FIRST_NEW: u32 = 14;
        let Some(version) = version else { return UnsyncedForm::Unknown };
        let open_ended = version.contains("or newer");
        let major = |text: &str| text.split('.').next().and_then(|major| major.trim().parse::<u32>().ok());
        let majors: Option<Vec<u32>> = version
            .trim_end_matches(" or newer")
            .split(" or ")
            .map(|one| one.split_whitespace().next().and_then(major))
            .collect();
        match majors {
            Some(all) if all.iter().all(|major| *major >= FIRST_NEW) => UnsyncedForm::KeepsOpen,
            Some(all) if all.iter().all(|major| *major < FIRST_NEW) && !open_ended => UnsyncedForm::OpensEachTime,
            _ => UnsyncedForm::Unknown,
        }
    }
}

impl Measure {
    /// A figure of unknown spread, durability and place.
    pub fn new(family: &str, conditions: Vec<Condition>, item: &str, figure: Figure, unit: &str, value: f64) -> Self {
        Measure {
            family: family.to_owned(),
            conditions,
            item: item.to_owned(),
            figure,
            unit: unit.to_owned(),
            value,
            ends: None,
            spread: Spread::None,
            durability: None,
            medium: Medium::Unknown,
            data: Medium::Unknown,
            absent: None,
            failure: None,
            emulated: false,
            unsynced_form: None,
        }
    }

    /// What it is called: `pgbench/tpcb-like/scale 100/clients 4/tps`.
    pub fn key(&self) -> String {
        let conditions = self.conditions.iter().filter_map(Condition::words);
        let figure = match &self.figure {
            Figure::Rate => self.item.clone(),
            Figure::Mean => format!("{} mean", self.item),
            Figure::Percentile(which) => format!("{} {which}", self.item),
        };
        [self.family.clone()].into_iter().chain(conditions).chain([figure]).collect::<Vec<_>>().join("/")
    }

    /// What it speaks of, whatever the conditions.
    pub fn subject(&self) -> (&str, &str) {
        (&self.family, &self.item)
    }

    /// Whether more of it is better.
    pub fn more_is_better(&self) -> bool {
        self.figure == Figure::Rate
    }
}

impl Condition {
    /// A condition that is part of the measure's name.
    pub fn named(kind: ConditionKind, value: Option<String>) -> Condition {
        Condition { kind, value, named: true }
    }

    /// A condition that is told only where it differs from `usual`.
    pub fn usual(kind: ConditionKind, value: Option<String>, usual: &str) -> Condition {
        let named = value.as_deref().is_some_and(|value| value != usual);
        Condition { kind, value, named }
    }

    /// As it stands in a measure's name.
    fn words(&self) -> Option<String> {
        let value = self.value.as_ref().filter(|_| self.named)?;
        Some(match self.kind {
            ConditionKind::Scale | ConditionKind::Clients | ConditionKind::QueryMode | ConditionKind::RateLimit => {
                format!("{} {value}", self.kind.words())
            }
            ConditionKind::Workload | ConditionKind::WriteSize | ConditionKind::Connecting => value.clone(),
        })
    }
}

impl ConditionKind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            ConditionKind::Workload => "workload",
            ConditionKind::Scale => "scale",
            ConditionKind::Clients => "clients",
            ConditionKind::WriteSize => "write size",
            ConditionKind::QueryMode => "query mode",
            ConditionKind::RateLimit => "rate limit",
            ConditionKind::Connecting => "time to connect",
        }
    }
}
