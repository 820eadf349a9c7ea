//! `merged.json`: runs that `pgstrata merge` took into a run folder, and those that it left out.

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
    /// Time of the merge, RFC 3339.
    pub made: String,
    /// Id of the merged run.
    pub id: String,
    /// SHA-256 of the plan's bytes.
    pub plan_sha256: String,
    /// Seed of the order.
    pub seed: u64,
    /// Blocks of the plan.
    pub blocks: u32,
    /// Class of machine that the merged runs share.
    pub group: MachineClass,
    /// Merged runs.
    pub merged: Vec<TakenRun>,
    /// Folders, or blocks of them, that were not merged.
    pub left_out: Vec<LeftOut>,
    /// Blocks of the plan that are in no run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
}

/// Properties that runs must share to be merged: other hardware or software answers another question.
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
    /// True if the processor is emulated.
    pub emulated: bool,
}

impl fmt::Display for MachineClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pgstrata {}", self.pgstrata)?;
        for (what, values) in [("PostgreSQL", &self.postgres), ("storage", &self.models), ("firmware", &self.firmware)]
        {
            let known = if values.is_empty() { "not known".to_owned() } else { values.join(" and ") };
            write!(f, ", {what} {known}")?;
        }
        if self.emulated { write!(f, ", emulated CPU") } else { Ok(()) }
    }
}

/// A run that was merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRun {
    /// Its folder as given.
    pub folder: String,
    /// Its id.
    pub id: String,
    /// Host names of its machines.
    pub hosts: Vec<String>,
    /// Its share of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Blocks that were merged.
    pub blocks: Vec<u32>,
    /// Trials in those blocks.
    pub trials: u32,
}

/// A folder, or some of its blocks, that was not merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The folder as given.
    pub folder: String,
    /// Blocks left out; empty for the whole folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<u32>,
    /// Reason.
    pub reason: String,
}
