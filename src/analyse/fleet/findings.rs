//! What is concluded of machines; also what `compare --group-by --json` prints.

use super::GroupBy;
use crate::analyse::findings::Estimate;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is concluded of machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFindings {
    /// Name of the plan that all runs have.
    pub plan: String,
    /// The answer: which hosts are slower than their siblings.
    pub answer: Vec<String>,
    pub grouped_by: Vec<GroupBy>,
    /// Machines that have a figure; one may be in several groups.
    pub hosts: usize,
    /// The largest group first.
    pub groups: Vec<HostGroup>,
    /// Other groups over the largest one.
    pub comparisons: Vec<GroupComparison>,
    /// Groups that are not compared with the largest one, each with the reason.
    pub not_compared: Vec<(String, String)>,
    /// Folders that were left out as a whole or in part, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Hosts that are alike in what was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostGroup {
    /// `INTEL SSDPE2KX, firmware VDV10131, kernel 6.1.0`.
    pub name: String,
    /// Typical distance of a host from the others, as a share: scaled MAD of the logarithms.
    pub spread: f64,
    /// How many such distances a host must be slower to be named; `None` of too few hosts.
    pub limit: Option<f64>,
    /// The same as a speed over the median: a host below it is named.
    pub limit_speed: Option<f64>,
    /// The slowest first.
    pub hosts: Vec<HostFinding>,
}

/// One host beside its siblings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostFinding {
    pub host: String,
    /// Its speed over the median of its group, over all cases: 0.85 is 15 % slower.
    pub speed: f64,
    /// How far it lies below the median, in scaled MADs; `None` where nothing varies.
    pub below: Option<f64>,
    /// Whether it is named.
    pub is_slow: bool,
    /// Trials that its figures come from.
    pub trials: usize,
    /// Its speed in each case.
    pub cases: BTreeMap<String, f64>,
    /// What it did over time, in all groups that it was in; the first first.
    pub history: Vec<Sitting>,
}

impl HostFinding {
    /// The case in which it is slowest, and its speed there.
    pub fn slowest(&self) -> Option<(&String, &f64)> {
        self.cases.iter().min_by(|one, other| one.1.total_cmp(other.1))
    }

    /// Runs in its group. A run that went on after, say, a new kernel is one, with several sittings.
    pub fn runs(&self) -> usize {
        let of_group = self.history.iter().filter(|sitting| sitting.in_group);
        of_group.map(|sitting| &sitting.run).collect::<BTreeSet<_>>().len()
    }
}

/// The trials of one run that a host ran with the same hardware and software.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sitting {
    /// Id of the run.
    pub run: String,
    /// When the first of the trials began, RFC 3339.
    pub started: String,
    /// Speed over the median of the group that the host is shown in, in the cases that the group has.
    pub speed: f64,
    pub trials: usize,
    /// Whether the host was in that group then; else it had, say, another firmware.
    pub in_group: bool,
    /// Values of each fact.
    pub facts: BTreeMap<GroupBy, BTreeSet<String>>,
    /// What changed since the sitting before: `kernel 6.1.0 to 6.12.9`.
    pub changes: Vec<String>,
}

/// Two groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupComparison {
    pub group: String,
    /// The largest group.
    pub reference: String,
    /// Speed of the first over the second; without interval where there are too few hosts.
    pub ratio: Estimate,
    /// Hosts of both.
    pub hosts: (usize, usize),
    /// How the ratio was computed: `paired over 6 hosts`, each being in both groups.
    pub method: String,
}
