//! `pull.json`: pulls of a machine's plug, round by round.

use super::facts::DeviceFacts;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `pull.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// All pulls on one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PullRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that created it.
    pub tool_version: String,
    /// Unique id: eight hex digits.
    pub id: String,
    /// The folder under test, absolute.
    pub folder: String,
    /// Location of the acknowledgements: a file on another filesystem, or `host:port`.
    pub witness: String,
    /// Folder of PostgreSQL's programs.
    pub bin: String,
    /// Committing clients.
    pub clients: u16,
    /// Devices below the folder, the filesystem's own first.
    pub devices: Vec<DeviceFacts>,
    /// Firmware of the devices that report it, by name.
    pub firmware: BTreeMap<String, String>,
    /// Rounds, in order.
    pub rounds: Vec<Round>,
}

/// Commits until the power was cut or a user stopped them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// Start, RFC 3339.
    pub started: String,
    /// Kernel boot id at the start.
    pub boot: String,
    /// Id of the ledger of what it created.
    pub session: String,
    /// Outcome; `None`: the power was cut, and nothing was judged yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RoundEnd>,
}

/// Outcome of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum RoundEnd {
    /// A user stopped the clients: no power cut.
    Stopped,
    /// Recovery was tried and every acknowledged commit was looked for.
    Judged {
        /// Time, RFC 3339.
        at: String,
        /// True if the boot id is unchanged: only the drive lost power.
        drive_only: bool,
        /// Commits that the witness holds.
        acknowledged: u64,
        /// Verdict of this round.
        verdict: Verdict,
        /// Checks that could not be made, with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
    },
}

impl PullRecord {
    /// Verdicts of all rounds in which the power was cut.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.rounds.iter().filter_map(|round| match &round.end {
            Some(RoundEnd::Judged { verdict, .. }) => Some(verdict),
            _ => None,
        })
    }
}
