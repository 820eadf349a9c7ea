//! `cut.json`: what `pgstrata cut` found out about the cases of a plan.

use super::facts::HostFacts;
use super::verdict::VerdictRecord;
use serde::{Deserialize, Serialize};

/// Version of `cut.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// The cases of a plan, cut in one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CutRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that cut.
    pub tool_version: String,
    /// End, RFC 3339.
    pub made: String,
    /// Name of the plan.
    pub name: String,
    /// The plan as it was given.
    pub plan: String,
    /// The commands that repeat it, and that check the state of each conviction again.
    pub commands: Vec<String>,
    /// Attachment of the recorded disks: `loop` or `nbd`.
    pub disks: String,
    /// Seconds for which the clients committed.
    pub seconds: u64,
    /// Suite of the guest; `None` for the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// The machine; with a guest, its host.
    pub host: HostFacts,
    /// One for each stack and server; with the plan's workload, one for each case.
    pub verdicts: Vec<VerdictRecord>,
    /// Cases without a verdict, since something ended the cut.
    pub left: u64,
}
