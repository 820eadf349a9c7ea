//! Definition of one operation, as the workload describes it before it runs.
//!
//! Readers of a record use this instead of the options: their names and defaults are private to the workload.

use super::facts::FoundSetting;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Operations of a trial as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Noun for one: `transaction`, `sync`. One that is known to write and runs on a server is a commit.
    pub noun: String,
    /// Unit of its rates: `tps`, `ops/s`.
    pub unit: String,
    /// Durable writes of each operation.
    pub writes: Writes,
    /// Concurrent clients or writers.
    pub clients: u64,
    /// Target operations per second, all clients together; `None` for a closed loop.
    pub rate: Option<f64>,
    /// Commits a second of the server whose profile the load is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_rate: Option<f64>,
    /// True if the workload searches for the highest rate within the latency limit, in steps of one rate each.
    #[serde(default)]
    pub is_searched: bool,
    /// Latency above which an operation counts as late, microseconds.
    pub latency_limit_us: Option<u64>,
    /// Share of operations whose latency is logged individually, 1 for all; `None` if sampling is impossible. Counts
    /// always include all operations.
    pub log_sample: Option<f64>,
    /// State of the page cache at the start of the warm-up; `None` for a workload without data.
    pub cache: Option<CacheState>,
    /// Scripts as the plan names them, with weights; a file by its name and the start of the SHA-256 of its text. Empty if
    /// there is no choice.
    pub scripts: Vec<String>,
    /// Size of the data as the plan gives it: `100`, `50% of RAM`.
    pub scale: Option<String>,
    /// Query protocol.
    pub query_mode: Option<String>,
    /// Settings that decide what a commit means, as set in the text of the scripts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script_settings: Vec<FoundSetting>,
    /// Other options of the plan that may affect figures, by name: `duration`, `jobs`.
    pub settings: BTreeMap<String, String>,
}

impl Operation {
    /// A closed loop of a single client, without data, scripts or settings.
    pub(crate) fn new(noun: &str, unit: &str, writes: Writes) -> Operation {
        Operation { noun: noun.to_owned(), unit: unit.to_owned(), writes, clients: 1, ..Operation::default() }
    }
}

/// Frequency of durable writes: WAL of a server, or a synced write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// Every operation writes.
    Always,
    /// No operation writes.
    Never,
    /// Unknown beforehand: a user's script, or a mix.
    #[default]
    Unknown,
}

/// State of the page cache for the data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Every file has been read once.
    Warm,
    /// All pages of the files have been dropped.
    Cold,
}
