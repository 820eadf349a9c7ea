//! What one operation of a workload is, as the workload itself describes it before it runs.
//!
//! Whoever reads a record takes it from here: the options of a workload, with their names and defaults, are its own.

use super::facts::FoundSetting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a trial's operations were to be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// What a person calls one: `transaction`, `sync`. One that is known to write and runs on a server is a commit.
    pub noun: String,
    /// Unit of its rates: `tps`, `ops/s`.
    pub unit: String,
    /// Whether each one writes what has to survive.
    pub writes: Writes,
    /// Clients, or writers, at the same time.
    pub clients: u64,
    /// Operations a second that all clients together keep to; `None` where each does as many as it can.
    pub rate: Option<f64>,
    /// Whether the rate is searched for: steps that keep to one rate each, the highest within the latency limit is wanted.
    #[serde(default)]
    pub is_searched: bool,
    /// Slower ones count as late, microseconds.
    pub latency_limit_us: Option<u64>,
    /// Share of the operations whose latency is recorded one by one, 1 for all; `None` where nothing is left out ever.
    /// Counts are of all operations all the same.
    pub log_sample: Option<f64>,
    /// State of the page cache when the warm-up begins; `None` for a workload without data.
    pub cache: Option<CacheState>,
    /// What is done, in the plan's words: names or paths of scripts, with weights. Empty where there is no choice.
    pub scripts: Vec<String>,
    /// Size of the data, in the plan's words: `100`, `50% of RAM`.
    pub scale: Option<String>,
    /// Protocol that queries are sent with.
    pub query_mode: Option<String>,
    /// Settings that decide what a commit means, as the scripts' own text sets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script_settings: Vec<FoundSetting>,
    /// What else the plan gave that figures may depend on, by the option's name: `duration`, `jobs`.
    pub settings: BTreeMap<String, String>,
}

impl Operation {
    /// One of a single client that does as many as it can, without data, scripts or settings.
    pub(crate) fn new(noun: &str, unit: &str, writes: Writes) -> Operation {
        Operation { noun: noun.to_owned(), unit: unit.to_owned(), writes, clients: 1, ..Operation::default() }
    }
}

/// Whether an operation writes what has to survive: WAL of a server, or a synced write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Each one does.
    Always,
    /// None does.
    Never,
    /// Not known beforehand: a script of the user's own, a mix.
    #[default]
    Unknown,
}

/// State of the page cache for the files of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Every file was read once.
    Warm,
    /// Every file's pages were dropped.
    Cold,
}
