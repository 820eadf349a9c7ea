//! Settings of a cut, and the result for a case.

use super::history::Loss;
use super::pages::PageWrites;
use crate::record::case::CaseSpec;
use crate::record::verdict::{DeviceVerdict, StatesTried, Verdict};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
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

/// Result for a case.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    pub verdict: Verdict,
    pub commits: usize,
    /// Part of these that was asynchronous.
    #[serde(default)]
    pub asynchronous: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<RanBeside>,
    /// Number of requests, by kind.
    pub writes: usize,
    pub flushes: usize,
    pub bytes: u64,
    /// How pages of data reached the disks, including the shutdown of the server.
    pub page_writes: PageWrites,
    pub classes: Vec<StatesTried>,
    /// States whose WAL was read to its end.
    pub tails: CheckedStates,
    /// States that went through all steps.
    pub wholes: CheckedStates,
    /// States with a write torn at 4 KiB that failed.
    pub torn_pages: usize,
    /// States with a write torn at 512 bytes that failed: beyond what filesystems promise.
    pub torn_sectors: usize,
    /// Steps that gave no result, with the reason.
    pub left_out: Vec<String>,
    /// Verdict under each model of the device, the honest one first: by states if they were tried, else by arithmetic.
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, for a conviction.
    pub evidence: Option<PathBuf>,
}

impl CaseResult {
    /// A result without a recording.
    pub fn of(case: &CaseSpec, verdict: Verdict) -> CaseResult {
        CaseResult { case: case.id.clone(), verdict, ..CaseResult::default() }
    }
}

/// States that went through a check, and the time it took.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct CheckedStates {
    pub states: usize,
    /// Microseconds for all of them.
    pub us: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attachment {
    /// Loop devices on files shown through FUSE: without FUA.
    #[default]
    Loop,
    /// The kernel's NBD client: with FUA.
    Nbd,
}

/// The workload that ran beside the clients, for the reader of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanBeside {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Commits in WAL other than the clients': the workload's, and a few of the sessions that move files.
    pub commits: usize,
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
