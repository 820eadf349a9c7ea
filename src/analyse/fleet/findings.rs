//! Findings about machines; also the output of `compare --group-by --json`.

use super::GroupBy;
use crate::analyse::findings::Estimate;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Findings about machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFindings {
    /// Name of the plan of all runs.
    pub plan: String,
    /// The answer: hosts that are slower than their siblings.
    pub answer: Vec<String>,
    pub grouped_by: Vec<GroupBy>,
    /// Machines with a figure; one may be in several groups.
    pub hosts: usize,
    /// Groups, largest first.
    pub groups: Vec<HostGroup>,
    /// Ratios of other groups to the largest one.
    pub comparisons: Vec<GroupComparison>,
    /// Groups not compared with the largest one, each with the reason.
    pub not_compared: Vec<(String, String)>,
    /// Folders left out as a whole or in part, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Hosts that share the requested facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostGroup {
    /// `INTEL SSDPE2KX, firmware VDV10131, kernel 6.1.0`.
    pub name: String,
    /// Typical distance of a host from the others, as a share: scaled MAD of the logarithms.
    pub spread: f64,
    /// Number of such distances below the median at which a host is named; `None` with too few hosts.
    pub limit: Option<f64>,
    /// The same as a speed over the median: hosts below it are named.
    pub limit_speed: Option<f64>,
    /// Hosts, slowest first.
    pub hosts: Vec<HostFinding>,
}

/// One host compared with its siblings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostFinding {
    pub host: String,
    /// Its speed over the median of its group, over all cases: 0.85 is 15 % slower.
    pub speed: f64,
    /// Distance below the median, in scaled MADs; `None` without variation.
    pub below: Option<f64>,
    /// True if it is named.
    pub is_slow: bool,
    /// Trials behind its figures.
    pub trials: usize,
    /// Its speed in each case.
    pub cases: BTreeMap<String, f64>,
    /// Its history, in all groups that it was in, oldest first.
    pub history: Vec<HostRunFinding>,
}

impl HostFinding {
    /// The case in which it is slowest, and its speed there.
    pub fn slowest(&self) -> Option<(&String, &f64)> {
        self.cases.iter().min_by(|one, other| one.1.total_cmp(other.1))
    }

    /// Runs in its group. A run resumed after, say, a kernel update is one, with several parts.
    pub fn runs(&self) -> usize {
        let of_group = self.history.iter().filter(|host_run| host_run.in_group);
        of_group.map(|host_run| &host_run.run).collect::<BTreeSet<_>>().len()
    }
}

/// Trials of one run that a host ran with the same hardware and software.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostRunFinding {
    /// Id of the run.
    pub run: String,
    /// Start of the first trial, RFC 3339.
    pub started: String,
    /// Speed over the median of the host's displayed group, in the cases that the group has.
    pub speed: f64,
    pub trials: usize,
    /// True if the host was in that group then; otherwise it had, say, other firmware.
    pub in_group: bool,
    /// Values of each fact.
    pub facts: BTreeMap<GroupBy, BTreeSet<String>>,
    /// Changes since the previous entry: `kernel 6.1.0 to 6.12.9`.
    pub changes: Vec<String>,
}

/// Comparison of two groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupComparison {
    pub group: String,
    /// The largest group.
    pub reference: String,
    /// Speed of the first over the second; without interval if there are too few hosts.
    pub ratio: Estimate,
    /// Number of hosts in each.
    pub hosts: (usize, usize),
    /// Computation of the ratio: `paired over 6 hosts`, each in both groups.
    pub method: String,
}
