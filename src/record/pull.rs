//! `pull.json`: pulling the plug of a machine, round by round.

use super::facts::DeviceFacts;
use super::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of `pull.json`. 1: the first.
pub const FORMAT: u32 = 1;

/// Everything that is known of the pulls of one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PullRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that began.
    pub tool_version: String,
    /// Unique id: eight hex digits.
    pub id: String,
    /// The folder under test, absolute.
    pub folder: String,
    /// Who keeps what was acknowledged: a file on another filesystem, or `host:port`.
    pub witness: String,
    /// Folder of PostgreSQL's programs.
    pub bin: String,
    /// Clients that commit.
    pub clients: u16,
    /// The devices below the folder, the filesystem's own first.
    pub devices: Vec<DeviceFacts>,
    /// Firmware of these that tell it, by name.
    pub firmware: BTreeMap<String, String>,
    /// One for each time that clients began to commit.
    pub rounds: Vec<Round>,
}

/// Commits until the power was cut, or until somebody stopped them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// From 1.
    pub number: u32,
    /// When, RFC 3339.
    pub started: String,
    /// The kernel's id of the boot in which it began.
    pub boot: String,
    /// Id of the ledger of what it had built.
    pub session: String,
    /// How it ended; `None`: the power was cut, and nothing was judged yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<RoundEnd>,
}

/// How a round ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum RoundEnd {
    /// Somebody stopped the clients: no power cut.
    Stopped,
    /// PostgreSQL recovered, or did not, and every acknowledged commit was looked for.
    Judged {
        /// When, RFC 3339.
        at: String,
        /// Whether the same boot went on: the drive alone lost its power.
        drive_only: bool,
        /// Commits that the witness kept.
        acknowledged: u64,
        /// What came of it.
        verdict: Verdict,
        /// Checks that could not be made, with the reason.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
    },
}

impl PullRecord {
    /// The verdicts of all rounds in which the power was cut.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.rounds.iter().filter_map(|round| match &round.end {
            Some(RoundEnd::Judged { verdict, .. }) => Some(verdict),
            _ => None,
        })
    }
}
