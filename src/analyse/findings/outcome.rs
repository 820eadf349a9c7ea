//! Relation of two cases after a test.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    Differs,
    /// They differ by less than the run's precision, per cent.
    DiffersWithin(u32),
    /// No difference was shown, and one beyond the run's precision, per cent, is excluded.
    SameWithin(u32),
    Undecided,
}

impl PairOutcome {
    /// `within`: the precision, per cent, if the two are within it.
    pub fn of(differs: bool, within: Option<u32>) -> PairOutcome {
        match (differs, within) {
            (true, None) => PairOutcome::Differs,
            (true, Some(percent)) => PairOutcome::DiffersWithin(percent),
            (false, Some(percent)) => PairOutcome::SameWithin(percent),
            (false, None) => PairOutcome::Undecided,
        }
    }

    pub fn differs(self) -> bool {
        matches!(self, PairOutcome::Differs | PairOutcome::DiffersWithin(_))
    }

    pub fn words(self) -> String {
        match self {
            PairOutcome::Differs => "differs".to_owned(),
            PairOutcome::DiffersWithin(percent) => format!("differs, by less than {percent} %"),
            PairOutcome::SameWithin(percent) => format!("the same within {percent} %"),
            PairOutcome::Undecided => "undecided".to_owned(),
        }
    }
}
