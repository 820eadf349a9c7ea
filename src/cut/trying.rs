//! A case whose states are being tried.

use super::cutting::CutEvent;
use super::judged::Judged;
use super::ladder::Checker;
use crate::record::verdict::Verdict;
use crate::recorder::{State, Written};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub struct Trying<'a> {
    pub judged: &'a Judged<'a>,
    pub checker: Checker<'a>,
    pub(super) report: &'a dyn Fn(CutEvent<'_>),
    pub(super) written: &'a [Written],
}

/// A state with its verdict.
pub type Weighed = (State, Verdict);

/// The state that a conviction rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    pub state: State,
    /// The failure during recovery of that state, if the state itself holds.
    pub second: Option<SecondFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondCut {
    /// Log of the recovery from the first cut.
    pub log: PathBuf,
    /// In positions of that log.
    pub state: State,
}

/// A failure beyond a state of the first cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondFailure {
    /// Its recovery with the settings of its case, which the steps override.
    Recovery,
    /// The state left by a second cut of that recovery.
    Cut(SecondCut),
}
