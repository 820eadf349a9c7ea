//! Trials during which a guest died: the next session stores them as not run and does not retry them.

use crate::record::case::TrialKey;
use crate::record::event::Step;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    pub trial: TrialKey,
    pub step: Step,
    /// Diagnosis, with the last lines of the console.
    pub reason: String,
}
