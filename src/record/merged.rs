//! `merged.json`: what `pgstrata merge` took into a run folder, and what it left out.

use super::run::Share;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the file. 1: the first.
pub const FORMAT: u32 = 1;

/// One merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that merged.
    pub tool_version: String,
    /// When, RFC 3339.
    pub made: String,
    /// Id of the merged run.
    pub id: String,
    /// SHA-256 of the plan's bytes.
    pub plan_sha256: String,
    /// Seed of the order.
    pub seed: u64,
    /// Blocks of the plan.
    pub blocks: u32,
    /// What all that was merged has in common.
    pub group: MachineClass,
    /// What was merged.
    pub merged: Vec<TakenRun>,
    /// What was not: whole folders, or blocks of them.
    pub left_out: Vec<LeftOut>,
    /// Blocks of the plan that no run has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
}

/// What runs must have in common to be merged: another class of hardware or software answers another question.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MachineClass {
    /// Version of pgstrata without its last number: `0.1`.
    pub pgstrata: String,
    /// Versions of the servers, sorted.
    pub postgres: Vec<String>,
    /// Models of the devices below the stacks, sorted.
    pub models: Vec<String>,
    /// Firmware of these, sorted.
    pub firmware: Vec<String>,
    /// Whether the processor is emulated.
    pub emulated: bool,
}

impl fmt::Display for MachineClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |what: &str, values: &[String]| match values {
            [] => format!("{what} not known"),
            values => format!("{what} {}", values.join(" and ")),
        };
        write!(f, "pgstrata {}, {}, ", self.pgstrata, known("PostgreSQL", &self.postgres))?;
        write!(f, "{}, {}", known("storage", &self.models), known("firmware", &self.firmware))?;
        if self.emulated { write!(f, ", emulated CPU") } else { Ok(()) }
    }
}

/// A run that was merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRun {
    /// Its folder, as it was named.
    pub folder: String,
    /// Its id.
    pub id: String,
    /// Host names of its machines.
    pub hosts: Vec<String>,
    /// Its share of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The blocks that were taken.
    pub blocks: Vec<u32>,
    /// Trials in them.
    pub trials: u32,
}

/// Something that was not merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The folder, as it was named.
    pub folder: String,
    /// The blocks; empty: the whole folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<u32>,
    /// Why.
    pub reason: String,
}
