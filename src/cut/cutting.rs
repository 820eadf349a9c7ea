//! Settings of a cut, and the result for a case.

use super::history::Loss;
use std::time::Duration;

/// How thoroughly cases are cut.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    pub clients: u16,
    /// How long clients commit.
    pub time: Duration,
    /// True if a share of the clients' transactions commits asynchronously.
    pub asynchronous_share: bool,
    /// True if the case's own workload runs beside the clients.
    pub workload: bool,
    /// States of each case whose WAL is read to its end; 0 for arithmetic only.
    pub states: usize,
    pub seed: u64,
    pub attachment: Attachment,
    /// True if the recording of a convicted case is kept.
    pub keeps_evidence: bool,
}

impl Cutting {
    /// How many of the states go through all steps: one in twenty, but at least [`LEAST_WHOLE`].
    pub fn wholes(&self) -> usize {
        (self.states / 20).clamp(LEAST_WHOLE, MOST_WHOLE).min(self.states)
    }
}

/// Gives each class of states one or two.
const LEAST_WHOLE: usize = 12;

/// Beyond this, time is better spent on reading WAL.
const MOST_WHOLE: usize = 100;

impl Default for Cutting {
    fn default() -> Cutting {
        Cutting {
            clients: 4,
            time: Duration::from_secs(3),
            asynchronous_share: true,
            workload: false,
            states: 0,
            seed: 1,
            attachment: Attachment::default(),
            keeps_evidence: true,
        }
    }
}

/// What a cut reports while it runs.
pub enum CutEvent<'a> {
    Recording {
        case: &'a str,
        /// The workload beside the clients, by its name in the plan.
        workload: Option<&'a str>,
    },
    Checking {
        case: &'a str,
        states: usize,
    },
    /// A state of the current step has been checked.
    State {
        case: &'a str,
        step: &'a str,
        done: usize,
        of: usize,
    },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attachment {
    /// Loop devices on files shown through FUSE: without FUA.
    #[default]
    Loop,
    /// The kernel's NBD client: with FUA.
    Nbd,
}

/// Result of the check of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Every acknowledged commit is there, and nothing that cannot be.
    Whole,
    /// Some acknowledged commits are missing; the rest is consistent.
    Lost(Loss),
    /// The recovered database contradicts itself, as described.
    Torn(String),
    /// The stack cannot be opened as it is, or its filesystem is damaged.
    Unmountable(String),
}

impl Finding {
    pub fn is_whole(&self) -> bool {
        *self == Finding::Whole
    }
}
