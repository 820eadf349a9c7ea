//! `verdicts/*.json`: what a power cut costs the cases of a run, and what that was concluded from.
//!
//! One file for each stack with one set of server settings: the commits are pgstrata's own, so cases that differ in their
//! workload share it. Counts are stored, figures per commit are computed from them.

use crate::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of these files. 1: the first.
pub const FORMAT: u32 = 1;

/// How a run is to find out what a power cut would cost its cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurabilityCheck {
    /// By arithmetic alone, before the first trial.
    Quick,
}

impl DurabilityCheck {
    /// Every way.
    pub const ALL: [DurabilityCheck; 1] = [DurabilityCheck::Quick];

    /// As a plan has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            DurabilityCheck::Quick => "quick",
        }
    }
}

/// The verdict on the cases that share a stack and a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of pgstrata that made it.
    pub tool_version: String,
    /// When, RFC 3339.
    pub made: String,
    /// Ids of the cases that it holds for; the first is the one whose stack was built.
    pub cases: Vec<String>,
    /// What it is.
    pub verdict: Verdict,
    /// Clients that committed.
    pub clients: u16,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Writes to the recorded disks up to the last acknowledgement.
    pub writes: u64,
    /// Flushes until then.
    pub flushes: u64,
    /// Bytes of these writes.
    pub bytes: u64,
    /// States that were tried, by class; empty for arithmetic alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<StatesTried>,
    /// States whose WAL was read to its end.
    #[serde(default)]
    pub wal_ends_read: u64,
    /// States that went through recovery and all checks.
    #[serde(default)]
    pub recovered: u64,
    /// States with a write torn at 4 KiB that failed.
    #[serde(default)]
    pub torn_pages: u64,
    /// States with a write torn at 512 bytes that failed: outside what filesystems promise.
    #[serde(default)]
    pub torn_sectors: u64,
    /// Checks that nothing could be said of, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What each model of the device would make of it, the honest one first; empty where nothing was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceVerdict>,
    /// Folder of the evidence, where it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// States of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatesTried {
    /// `floor`, `ceiling`, `torn at 4 KiB`.
    pub class: String,
    /// How many were tried.
    pub tried: u64,
    /// How many there are; of samples and torn writes, how many were drawn.
    pub of: u64,
    /// Whether one that fails convicts nothing: filesystems rely on disks that write 4 KiB whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_fail: bool,
}

impl VerdictRecord {
    /// Upper end of the 95 % interval of the share of states that fail, of states chosen as these were, where none did (rule of
    /// three: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983).
    #[must_use]
    pub fn failing_share_max(&self) -> Option<f64> {
        let Verdict::Holds { states } = self.verdict else { return None };
        let may_fail: u64 = self.states.iter().filter(|class| class.may_fail).map(|class| class.tried).sum();
        // Where the end of WAL was not known, only the sample was looked at.
        let looked_at = if self.wal_ends_read == 0 { self.recovered } else { states as u64 };
        let counted = looked_at.saturating_sub(may_fail);
        (counted > 0).then(|| (3.0 / counted as f64).min(1.0))
    }
}

/// What the same recording would have come to on another device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceVerdict {
    /// `flush ignored`.
    pub device: String,
    /// By states where they were tried, else by arithmetic.
    pub verdict: Verdict,
}

/// What a power cut costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Every acknowledged commit was there on each state.
    Holds {
        /// States that were tried; 0: by arithmetic alone.
        states: usize,
    },
    /// Acknowledged commits are lost.
    Loses {
        /// How many, at worst.
        commits: usize,
        /// From the first of their acknowledgements to the cut, microseconds.
        us: u64,
    },
    /// All of the database is lost.
    LosesAll {
        /// The layer that loses it.
        why: String,
    },
    /// The database is damaged, or PostgreSQL does not recover.
    Torn {
        /// What was found.
        what: String,
        /// Where a write must be torn for it: at multiples of so many bytes; `None` where whole writes suffice.
        #[serde(default)]
        unit: Option<u32>,
    },
    /// The filesystem cannot be mounted without a repair.
    Unmountable {
        /// What the kernel said.
        what: String,
    },
    /// Commits are lost that asynchronous commit may lose: the server had not said that their WAL is flushed.
    ExpectedLoss {
        /// How many, at worst.
        commits: usize,
        /// From the first of their acknowledgements to the cut, microseconds.
        us: u64,
    },
    /// What stands below is not recorded, or a check did not end.
    NotMeasured {
        /// The layer, or what went wrong.
        why: String,
    },
    /// The recording or the clients were at fault: nothing is said of the stack.
    HarnessBroken {
        /// What was wrong.
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
    /// Whether a power cut costs more than it may.
    #[must_use]
    pub fn convicts(&self) -> bool {
        use Verdict::{Loses, LosesAll, Torn, Unmountable};
        matches!(self, Loses { .. } | LosesAll { .. } | Torn { .. } | Unmountable { .. })
    }

    /// Whether it says anything of the stack.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Verdict::NotMeasured { .. } | Verdict::HarnessBroken { .. })
    }

    /// Which of two verdicts on states of one case counts: the higher one. What takes torn writes is less than what does not.
    #[must_use]
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

    /// Without what led to it: `holds (120 states)`, `loses 4 commits / 2 ms`.
    #[must_use]
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

    /// What led to it; empty where the verdict says it.
    #[must_use]
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
    fn what_may_not_be_after_a_power_cut_convicts_and_what_may_be_or_is_unknown_does_not() {
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
