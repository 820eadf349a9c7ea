//! `run.json`: what a run is: tool, seed, cases and their order. The machine is a fact of each trial.

use super::case::{CaseSpec, TrialKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the run folder. 1: the first.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that wrote it.
    pub tool_version: String,
    /// Unique id: eight hex digits. Part of the name of everything that the run makes.
    pub id: String,
    /// The plan's name.
    pub name: String,
    /// SHA-256 of the plan's bytes; a resumed run must have the same.
    pub plan_sha256: String,
    /// Seed of the order.
    pub seed: u64,
    /// Number of blocks = trials of a case.
    pub blocks: u32,
    /// What the baseline cases have in their axes: `{stack: ext4}`. Empty = no comparison.
    pub baseline: BTreeMap<String, String>,
    /// Whether windows were made short ones (`--quick`).
    pub quick: bool,
    /// When it began, RFC 3339.
    pub started: String,
    /// The cases.
    pub cases: Vec<CaseSpec>,
    /// Every trial in the order of execution.
    pub order: Vec<TrialKey>,
}
