//! A case whose states are tried.

use super::cutting::Told;
use super::judged::Judged;
use super::ladder::Checker;
use crate::record::verdict::Verdict;
use crate::recorder::{State, Written};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What all states have in common.
pub struct Trying<'a> {
    pub judged: &'a Judged<'a>,
    pub checker: Checker<'a>,
    pub(super) tell: &'a dyn Fn(Told<'_>),
    pub(super) written: &'a [Written],
}

/// A state with its verdict.
pub type Weighed = (State, Verdict);

/// The state that a conviction rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub state: State,
    /// What failed while that state recovered, where it holds by itself.
    pub second: Option<Second>,
}

/// A state of a second cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondCut {
    /// Log of the recovery from the first cut.
    pub log: PathBuf,
    /// In places of that log.
    pub state: State,
}

/// What failed beyond a state of the first cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Second {
    /// Its recovery with the settings of its case, which all steps change.
    Recovery,
    /// What a second cut left of that recovery.
    Cut(SecondCut),
}
