//! Trials whose guest died under them: stored as not run by the sitting that goes on, and not tried again.

use crate::record::case::TrialKey;
use crate::record::event::Step;
use serde::{Deserialize, Serialize};

/// One such trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Died {
    pub trial: TrialKey,
    /// In which step.
    pub step: Step,
    /// What was found out about it, with the console's last lines.
    pub reason: String,
}
