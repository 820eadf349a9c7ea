//! `verdicts/*.json`: the cost of a power cut for the cases of a run, with the evidence.
//!
//! One file per stack and set of server settings: the commits are pgstrata's own, so cases that differ only in workload
//! share it. Counts are stored, figures per commit are computed from them.

use crate::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of these files. 1: the first.
pub const FORMAT: u32 = 1;

/// How a run determines the cost of a power cut for its cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityCheck {
    /// By arithmetic alone, before the first trial.
    Quick,
}

impl DurabilityCheck {
    /// All ways.
    pub const ALL: [DurabilityCheck; 1] = [DurabilityCheck::Quick];

    /// Name in plans.
    pub fn word(self) -> &'static str {
        match self {
            DurabilityCheck::Quick => "quick",
        }
    }
}

/// The verdict on the cases that share a stack and a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that made it.
    pub tool_version: String,
    /// Creation time, RFC 3339.
    pub made: String,
    /// Ids of the cases it applies to; the stack of the first one was built.
    pub cases: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Clients that committed.
    pub clients: u16,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Part of these that was asynchronous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asynchronous: Option<u64>,
    /// The plan's workload on the same server, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<RanBeside>,
    /// Writes to the recorded disks until the last acknowledgement.
    pub writes: u64,
    /// Flushes until then.
    pub flushes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// How pages of data reached the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_writes: Option<PageWrites>,
    /// States tried, by class; empty if found by arithmetic alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StatesTried>,
    /// States whose WAL was read to its end.
    #[serde(default)]
    pub wal_ends_read: u64,
    /// Microseconds for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_ends_us: Option<u64>,
    /// States that went through recovery and all checks.
    #[serde(default)]
    pub recovered: u64,
    /// Microseconds for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_us: Option<u64>,
    /// States with a write torn at 4 KiB that failed.
    #[serde(default)]
    pub torn_pages: u64,
    /// States with a write torn at 512 bytes that failed: outside what filesystems promise.
    #[serde(default)]
    pub torn_sectors: u64,
    /// Checks without a result, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Results under each device model, the honest one first; empty if nothing was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, if kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The state that a conviction rests on, in words: moment, class, writes in flight that it keeps. `None` if arithmetic
    /// alone convicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// Pages of data that were written, by how they reached the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageWrites {
    /// All of them.
    pub pages: usize,
    /// Part of these not contained in one request: a power cut tears them on any disk.
    pub split: usize,
    /// Part of these that does not begin at a multiple of its size on the disk: even a disk with atomic page writes
    /// tears them.
    pub misaligned: usize,
}

/// The workload that ran beside the clients, for the reader of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanBeside {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Commits in WAL other than the clients': the workload's, and a few of the sessions that move files.
    pub commits: usize,
}

/// States of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatesTried {
    /// `floor`, `ceiling`, `torn at 4 KiB`.
    pub class: String,
    /// Number tried.
    pub tried: u64,
    /// Number available; for samples and torn writes, the number drawn.
    pub of: u64,
    /// True if a failure does not convict: filesystems rely on disks that write 4 KiB atomically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_fail: bool,
}

impl VerdictRecord {
    /// Upper end of the 95 % interval of the share of failing states, among states chosen like these, if none failed
    /// (rule of three: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983).
    pub fn failing_share_max(&self) -> Option<f64> {
        let Verdict::Holds { states } = self.verdict else { return None };
        let may_fail: u64 = self.states.iter().filter(|class| class.may_fail).map(|class| class.tried).sum();
        // If the end of WAL was unknown, only the sample was checked.
        let looked_at = if self.wal_ends_read == 0 { self.recovered } else { states as u64 };
        let counted = looked_at.saturating_sub(may_fail);
        (counted > 0).then(|| (3.0 / counted as f64).min(1.0))
    }
}

/// The result of the same recording on another device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceVerdict {
    /// `flush ignored`.
    pub device: String,
    /// From states if they were tried, else from arithmetic.
    pub verdict: Verdict,
}

/// Cost of a power cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Every acknowledged commit survived in each state.
    Holds {
        /// States tried; 0: by arithmetic alone.
        states: usize,
    },
    /// Acknowledged commits are lost.
    Loses {
        /// Worst-case number.
        commits: usize,
        /// From the first of their acknowledgements to the cut, microseconds.
        us: u64,
    },
    /// The whole database is lost.
    LosesAll {
        /// The layer that loses it.
        why: String,
    },
    /// The database is damaged, or PostgreSQL does not recover.
    Torn {
        /// Finding.
        what: String,
        /// Granularity at which a write must tear to cause it, bytes; `None` if whole writes suffice.
        unit: Option<u32>,
    },
    /// The filesystem cannot be mounted without a repair.
    Unmountable {
        /// Message of the kernel.
        what: String,
    },
    /// Loses commits that asynchronous commit may lose: the server had not reported their WAL as flushed.
    ExpectedLoss {
        /// Worst-case number.
        commits: usize,
        /// From the first of their acknowledgements to the cut, microseconds.
        us: u64,
    },
    /// The stack cannot be recorded, or a check did not finish.
    NotMeasured {
        /// The layer, or the problem.
        why: String,
    },
    /// The recording or the clients failed: this says nothing about the stack.
    HarnessBroken {
        /// The problem.
        why: String,
    },
}

/// Nothing is acquitted by default.
impl Default for Verdict {
    fn default() -> Verdict {
        Verdict::NotMeasured { why: String::new() }
    }
}

impl Verdict {
    /// True if a power cut costs more than it may.
    pub fn convicts(&self) -> bool {
        use Verdict::{Loses, LosesAll, Torn, Unmountable};
        matches!(self, Loses { .. } | LosesAll { .. } | Torn { .. } | Unmountable { .. })
    }

    /// True if it says anything about the stack.
    pub fn is_known(&self) -> bool {
        !matches!(self, Verdict::NotMeasured { .. } | Verdict::HarnessBroken { .. })
    }

    /// Ranks verdicts on states of one case: the higher one counts. A failure that needs torn writes ranks below one
    /// that does not.
    pub fn weight(&self) -> (u8, usize) {
        match self {
            Verdict::Holds { .. } => (0, 0),
            Verdict::ExpectedLoss { commits, .. } => (1, *commits),
            Verdict::NotMeasured { .. } => (2, 0),
            Verdict::Torn { unit: Some(_), .. } => (3, 0),
            Verdict::Loses { commits, .. } => (4, *commits),
            Verdict::Torn { unit: None, .. } => (5, 0),
            Verdict::Unmountable { .. } => (6, 0),
            Verdict::LosesAll { .. } => (7, 0),
            Verdict::HarnessBroken { .. } => (8, 0),
        }
    }

    /// Without the cause: `holds (120 states)`, `loses 4 commits / 2 ms`.
    pub fn short(&self) -> String {
        match self {
            Verdict::Holds { states: 0 } => "holds (arithmetic alone)".to_owned(),
            Verdict::Holds { states: 1 } => "holds (1 state)".to_owned(),
            Verdict::Holds { states } => format!("holds ({states} states)"),
            Verdict::Loses { commits, us } => format!("loses {}", lost(*commits, *us)),
            Verdict::LosesAll { .. } => "loses all commits".to_owned(),
            Verdict::Torn { unit: None, .. } => "torn".to_owned(),
            Verdict::Torn { unit: Some(unit), .. } => format!("torn (writes torn at {})", Bytes(u64::from(*unit))),
            Verdict::Unmountable { .. } => "unmountable".to_owned(),
            Verdict::ExpectedLoss { commits, us } => format!("expected loss ({})", lost(*commits, *us)),
            Verdict::NotMeasured { .. } => "not measured".to_owned(),
            Verdict::HarnessBroken { .. } => "harness broken".to_owned(),
        }
    }

    /// The cause; empty if the verdict itself states it.
    pub fn why(&self) -> &str {
        use Verdict::{HarnessBroken, LosesAll, NotMeasured, Torn, Unmountable};
        match self {
            LosesAll { why } | NotMeasured { why } | HarnessBroken { why } => why,
            Torn { what, .. } | Unmountable { what } => what,
            Verdict::Holds { .. } | Verdict::Loses { .. } | Verdict::ExpectedLoss { .. } => "",
        }
    }
}

fn lost(commits: usize, us: u64) -> String {
    format!("{commits} {} / {}", if commits == 1 { "commit" } else { "commits" }, Micros(us))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        if self.why().is_empty() { Ok(()) } else { write!(f, ": {}", self.why()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_states_forbidden_after_a_power_cut_convict() {
        let (why, what) = (String::new(), String::new());
        let wrong = [
            Verdict::Loses { commits: 1, us: 0 },
            Verdict::LosesAll { why: why.clone() },
            Verdict::Torn { what: what.clone(), unit: None },
            Verdict::Unmountable { what },
        ];
        let right = [
            Verdict::Holds { states: 1 },
            Verdict::ExpectedLoss { commits: 1, us: 0 },
            Verdict::NotMeasured { why: why.clone() },
            Verdict::HarnessBroken { why },
        ];
        assert!(wrong.iter().all(Verdict::convicts) && !right.iter().any(Verdict::convicts));
    }
}
