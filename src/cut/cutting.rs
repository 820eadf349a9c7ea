//! What is asked of a cut, and what is known of a case after it.

use super::history::Loss;
use super::pages::PageWrites;
use crate::record::case::CaseSpec;
use crate::record::verdict::{DeviceVerdict, Verdict};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How thoroughly cases are cut.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    pub clients: u16,
    /// How long they commit.
    pub time: Duration,
    /// Whether a share of their transactions commits asynchronously.
    pub asynchronous_share: bool,
    /// Whether the case's own workload runs beside them.
    pub workload: bool,
    /// States of each case whose WAL is read to its end; 0 for the arithmetic alone.
    pub states: usize,
    pub seed: u64,
    /// How the recorded disks are attached.
    pub attachment: Attachment,
    /// Whether the recording of a convicted case is kept.
    pub keeps_evidence: bool,
}

impl Cutting {
    /// How many of the states go through all steps: one of twenty, but no fewer than [`LEAST_WHOLE`].
    pub fn wholes(&self) -> usize {
        (self.states / 20).clamp(LEAST_WHOLE, MOST_WHOLE).min(self.states)
    }
}

/// So that each class of states has one or two.
const LEAST_WHOLE: usize = 12;

/// Beyond it, time is better spent on reading WAL.
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

/// What is told while it goes on.
pub enum Told<'a> {
    Recording {
        case: &'a str,
        /// What runs beside the clients, by its name in the plan.
        workload: Option<&'a str>,
    },
    Checking {
        case: &'a str,
        states: usize,
    },
    /// A state of the step is checked.
    State {
        case: &'a str,
        step: &'a str,
        done: usize,
        of: usize,
    },
}

/// What is known of a case.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    pub verdict: Verdict,
    /// Acknowledged commits.
    pub commits: usize,
    /// Of these, how many were asynchronous.
    #[serde(default)]
    pub asynchronous: usize,
    /// What ran beside the clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Ran>,
    /// Requests while they were made.
    pub writes: usize,
    pub flushes: usize,
    pub bytes: u64,
    /// How pages of data reached the disks, the stop of the server included.
    pub page_writes: PageWrites,
    pub classes: Vec<Tried>,
    /// States whose WAL was read to its end.
    pub tails: Pass,
    /// States that went through all steps.
    pub wholes: Pass,
    /// States with a write torn at 4 KiB that failed.
    pub torn_pages: usize,
    /// States with a write torn at 512 bytes that failed: outside what filesystems promise.
    pub torn_sectors: usize,
    /// Steps that nothing could be said of, with the reason.
    pub left_out: Vec<String>,
    /// What each model of the device would make of it, the honest one first: by states where they were tried, else by
    /// arithmetic.
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, of a conviction.
    pub evidence: Option<PathBuf>,
}

impl CaseResult {
    /// A verdict that rests on no recording.
    pub fn of(case: &CaseSpec, verdict: Verdict) -> CaseResult {
        CaseResult { case: case.id.clone(), verdict, ..CaseResult::default() }
    }
}

/// States that went through a check, and what it took.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Pass {
    pub states: usize,
    /// Microseconds for all of them.
    pub us: u64,
}

/// States of one class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tried {
    pub class: String,
    pub tried: usize,
    /// How many there are; of samples and torn writes, how many were drawn.
    pub of: usize,
    /// Whether one that fails convicts nothing.
    pub may_fail: bool,
}
/// How recorded disks are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Attachment {
    /// Loop devices on files shown through FUSE: without FUA.
    #[default]
    Loop,
    /// The kernel's NBD client: with FUA.
    Nbd,
}

/// What ran beside the clients, for whoever reads the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Commits in WAL that are not the clients': the workload's, and a few of the sessions that move files.
    pub commits: usize,
}

/// How a state came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Every acknowledged commit, and nothing that cannot be.
    Whole,
    /// Some acknowledged commits are not there; what is there is consistent.
    Lost(Loss),
    /// The recovered database contradicts itself, in words.
    Torn(String),
    /// The stack cannot be opened as it is, or its filesystem is damaged.
    Unmountable(String),
}

impl Finding {
    pub fn is_whole(&self) -> bool {
        *self == Finding::Whole
    }
}
