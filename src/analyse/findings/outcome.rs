//! Relation of two cases after a test.

use crate::stats::sequence::SAME;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    Differs,
    /// They differ by less than [`SAME`].
    DiffersWithin,
    /// No difference was shown, and one beyond [`SAME`] is excluded.
    SameWithin,
    Undecided,
}

impl PairOutcome {
    pub fn of(differs: bool, is_within: bool) -> PairOutcome {
        match (differs, is_within) {
            (true, false) => PairOutcome::Differs,
            (true, true) => PairOutcome::DiffersWithin,
            (false, true) => PairOutcome::SameWithin,
            (false, false) => PairOutcome::Undecided,
        }
    }

    pub fn differs(self) -> bool {
        matches!(self, PairOutcome::Differs | PairOutcome::DiffersWithin)
    }

    /// [`SAME`] in words: "5 %".
    pub fn margin() -> String {
        format!("{:.0} %", (SAME - 1.0) * 100.0)
    }

    pub fn words(self) -> String {
        match self {
            PairOutcome::Differs => "differs".to_owned(),
            PairOutcome::DiffersWithin => format!("differs, by less than {}", PairOutcome::margin()),
            PairOutcome::SameWithin => format!("the same within {}", PairOutcome::margin()),
            PairOutcome::Undecided => "undecided".to_owned(),
        }
    }
}
