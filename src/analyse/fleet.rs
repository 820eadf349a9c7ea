//! Machines compared as such: hosts are the units, and cases only say what a host did.
//!
//! For each case a host has one figure, the geometric mean of its trials. How far a host stands from its siblings is the mean, over
//! cases, of the logarithm of its figure over the median of the siblings. Siblings have the same plan and the same model,
//! firmware, kernel, or whatever was asked for. A slow one is named by the rule of [`crate::stats::outliers`]; two groups are compared
//! without pairs, each host counting once. Absent on purpose: which stack is better, which is asked inside machines.

use super::findings::{Estimate, Findings, RankedBy};
use super::load;
use super::merge::storage;
use crate::error::Result;
use crate::record::facts::HostFacts;
use crate::record::run::RunRecord;
use crate::record::trial::TrialRecord;
use crate::stats::interval::TrialMean;
use crate::stats::outliers::{FEWEST, Spread, median};
use crate::stats::ratio::{BlockMean, ratio};
use crate::store::folder::{RunFolder, StoredTrial};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What hosts are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// Models of the disks below the stacks.
    Model,
    /// Firmware of these.
    Firmware,
    /// Release of the kernel.
    Kernel,
    /// Model of the CPU.
    Cpu,
    /// Version of the server.
    Postgres,
}

impl GroupBy {
    pub const ALL: [GroupBy; 5] = [GroupBy::Model, GroupBy::Firmware, GroupBy::Kernel, GroupBy::Cpu, GroupBy::Postgres];

    /// The one that is written so.
    #[must_use]
    pub fn of(word: &str) -> Option<GroupBy> {
        GroupBy::ALL.into_iter().find(|by| by.word() == word)
    }

    /// As it is written on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            GroupBy::Model => "model",
            GroupBy::Firmware => "firmware",
            GroupBy::Kernel => "kernel",
            GroupBy::Cpu => "cpu",
            GroupBy::Postgres => "postgres",
        }
    }
}

/// What is concluded of machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFindings {
    /// The answer: which hosts are slower than their siblings.
    pub answer: Vec<String>,
    pub grouped_by: Vec<GroupBy>,
    /// The largest group first.
    pub groups: Vec<HostGroup>,
    /// Each other group over the largest one.
    pub comparisons: Vec<GroupComparison>,
    /// Folders that were left out, each with the reason.
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
}

/// Two groups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupComparison {
    pub group: String,
    /// The largest group.
    pub reference: String,
    /// Speed of the first over the second; without interval where both have a single host.
    pub ratio: Estimate,
    /// Hosts of both.
    pub hosts: (usize, usize),
}

/// One host with the logarithms of its figures, more being better.
struct HostSums {
    facts: HostFacts,
    /// What it may be grouped by.
    known: BTreeMap<GroupBy, BTreeSet<String>>,
    cases: BTreeMap<String, Vec<f64>>,
}

impl HostSums {
    fn new(facts: HostFacts) -> HostSums {
        let known = [(GroupBy::Kernel, Some(facts.kernel.clone())), (GroupBy::Cpu, facts.cpu_model.clone())];
        let known = known.map(|(by, value)| (by, value.into_iter().collect())).into();
        HostSums { facts, known, cases: BTreeMap::new() }
    }

    fn learn(&mut self, trial: &TrialRecord) {
        let (models, firmware) = storage(trial);
        let postgres = trial.server.as_ref().map(|server| server.version.clone()).into_iter().collect();
        for (by, values) in [(GroupBy::Model, models), (GroupBy::Firmware, firmware), (GroupBy::Postgres, postgres)] {
            self.known.entry(by).or_default().extend(values);
        }
    }

    fn group(&self, by: &[GroupBy]) -> String {
        let part = |by: &GroupBy| {
            let values = self.known.get(by).into_iter().flatten().cloned().collect::<Vec<_>>().join(" and ");
            let value = if values.is_empty() { "not known" } else { &values };
            format!("{} {value}", by.word())
        };
        by.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    fn figure(&self, case: &str) -> Option<f64> {
        let logs = self.cases.get(case)?;
        Some(logs.iter().sum::<f64>() / logs.len() as f64)
    }
}

/// Compares the hosts of run folders.
///
/// # Errors
/// When a folder is none, or is damaged.
pub fn compare(folders: &[&Path], by: &[GroupBy]) -> Result<FleetFindings> {
    let mut fleet = Fleet { by: by.to_vec(), plan: None, hosts: Vec::new(), left_out: Vec::new() };
    for path in folders {
        let folder = RunFolder::open(path)?;
        let label = path.display().to_string();
        if let Some(reason) = fleet.other_plan(folder.record(), &label) {
            fleet.left_out.push((label, reason));
            continue;
        }
        let mut trials = Vec::new();
        for key in &folder.record().order {
            if let StoredTrial::Whole(trial) = folder.stored(key)? {
                trials.push(*trial);
            }
        }
        fleet.add(&load::findings(path)?, &trials);
    }
    Ok(fleet.findings())
}

struct Fleet {
    by: Vec<GroupBy>,
    /// The first run's plan, and its folder.
    plan: Option<(RunRecord, String)>,
    hosts: Vec<HostSums>,
    left_out: Vec<(String, String)>,
}

impl Fleet {
    /// Why a run is of another plan than the first one.
    fn other_plan(&mut self, record: &RunRecord, label: &str) -> Option<String> {
        let (first, its_label) = self.plan.get_or_insert_with(|| (record.clone(), label.to_owned()));
        let same = first.plan_sha256 == record.plan_sha256 && first.quick.is_some() == record.quick.is_some();
        (!same).then(|| format!("it ran another plan than {its_label}"))
    }

    fn add(&mut self, findings: &Findings, trials: &[TrialRecord]) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for ranking in &findings.rankings {
            let sign = match ranking.by {
                RankedBy::Latency | RankedBy::Time => -1.0,
                RankedBy::Rate | RankedBy::Capacity | RankedBy::InTime => 1.0,
            };
            for row in ranking.classes.iter().flat_map(|class| &class.rows) {
                // The first ranking of a case is its most important figure.
                if !seen.insert(&row.case) {
                    continue;
                }
                for figure in row.trials.iter().filter(|figure| figure.rate > 0.0) {
                    let is_it = |trial: &&TrialRecord| trial.case.id == row.case && trial.trial == figure.trial;
                    if let Some(trial) = trials.iter().find(is_it) {
                        self.host_of(trial).cases.entry(row.case.clone()).or_default().push(sign * figure.rate.ln());
                    }
                }
            }
        }
    }

    fn host_of(&mut self, trial: &TrialRecord) -> &mut HostSums {
        let place = self.hosts.iter().position(|known| known.facts.differences(&trial.host).is_empty());
        let place = place.unwrap_or_else(|| {
            self.hosts.push(HostSums::new(trial.host.clone()));
            self.hosts.len() - 1
        });
        let host = &mut self.hosts[place];
        host.learn(trial);
        host
    }

    fn findings(self) -> FleetFindings {
        let mut members: BTreeMap<String, Vec<&HostSums>> = BTreeMap::new();
        for host in &self.hosts {
            members.entry(host.group(&self.by)).or_default().push(host);
        }
        let mut members: Vec<(String, Vec<&HostSums>)> = members.into_iter().collect();
        members.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
        let groups: Vec<HostGroup> = members.iter().map(|(name, hosts)| group(name, hosts)).collect();
        let compared = |other: &(String, Vec<&HostSums>)| comparison(other, members.first()?);
        let comparisons = members.iter().skip(1).filter_map(compared).collect();
        let answer = groups.iter().map(sentence).collect();
        FleetFindings { answer, grouped_by: self.by, groups, comparisons, left_out: self.left_out }
    }
}

/// The hosts of a group beside each other.
fn group(name: &str, members: &[&HostSums]) -> HostGroup {
    let cases: BTreeSet<&String> = members.iter().flat_map(|host| host.cases.keys()).collect();
    let middle = |case: &String| {
        let figures: Vec<f64> = members.iter().filter_map(|host| host.figure(case)).collect();
        median(&figures).unwrap_or(0.0)
    };
    let middles: BTreeMap<&String, f64> = cases.into_iter().map(|case| (case, middle(case))).collect();
    let beside = |host: &&HostSums| -> BTreeMap<String, f64> {
        middles.iter().filter_map(|(case, middle)| Some(((*case).clone(), host.figure(case)? - middle))).collect()
    };
    let of_cases: Vec<BTreeMap<String, f64>> = members.iter().map(beside).collect();
    let means: Vec<f64> = of_cases.iter().map(|logs| logs.values().sum::<f64>() / logs.len().max(1) as f64).collect();
    let spread = Spread::of(&means);
    let named = spread.as_ref().map(Spread::named).unwrap_or_default();
    let middle = spread.as_ref().map_or(0.0, |spread| spread.median);
    let mut hosts: Vec<HostFinding> = (0..members.len())
        .map(|place| HostFinding {
            host: members[place].facts.hostname.clone(),
            speed: (means[place] - middle).exp(),
            below: spread.as_ref().and_then(|spread| spread.below.get(place).copied()),
            is_slow: named.contains(&place),
            trials: members[place].cases.values().map(Vec::len).sum(),
            cases: of_cases[place].iter().map(|(case, log)| (case.clone(), log.exp())).collect(),
        })
        .collect();
    hosts.sort_by(|one, other| one.speed.total_cmp(&other.speed));
    let (deviation, limit) = spread.map_or((0.0, None), |spread| (spread.deviation, spread.limit));
    HostGroup { name: name.to_owned(), spread: deviation, limit, hosts }
}

/// A group over another one, over the cases that hosts of both have.
fn comparison(
    (group, members): &(String, Vec<&HostSums>),
    (reference, others): &(String, Vec<&HostSums>),
) -> Option<GroupComparison> {
    let has = |hosts: &[&HostSums], case: &String| hosts.iter().all(|host| host.cases.contains_key(case));
    let cases: Vec<&String> =
        others.first()?.cases.keys().filter(|case| has(members, case) && has(others, case)).collect();
    if cases.is_empty() {
        return None;
    }
    // A host counts once, however many trials it has. Numbers differ, so that nothing is taken for a pair.
    let means = |hosts: &[&HostSums], from: u32| -> Vec<BlockMean> {
        let log =
            |host: &&HostSums| cases.iter().filter_map(|case| host.figure(case)).sum::<f64>() / cases.len() as f64;
        let mean = |(block, host)| BlockMean { block, trial: TrialMean { mean: f64::exp(log(host)), within: None } };
        (from..).zip(hosts).map(mean).collect()
    };
    let count = |hosts: &[&HostSums]| u32::try_from(hosts.len()).unwrap_or(u32::MAX);
    let found = ratio(&means(members, 1 + count(others)), &means(others, 1))?;
    let ratio = Estimate {
        value: found.value,
        low: found.interval.map(|(low, _)| low),
        high: found.interval.map(|(_, high)| high),
        trials: count(members) + count(others),
    };
    let hosts = (members.len(), others.len());
    Some(GroupComparison { group: group.clone(), reference: reference.clone(), ratio, hosts })
}

/// `node7 is 15 % slower than the median of its 19 siblings (5.1 MADs; limit 3.6)`.
fn sentence(group: &HostGroup) -> String {
    let siblings = group.hosts.len().saturating_sub(1);
    let slow: Vec<String> = group
        .hosts
        .iter()
        .filter(|host| host.is_slow)
        .map(|host| {
            let share = 100.0 * (1.0 - host.speed);
            let below = host.below.unwrap_or_default();
            format!(
                "{} is {share:.0} % slower than the median of its {siblings} siblings, by {below:.1} MADs",
                host.host
            )
        })
        .collect();
    match group.limit {
        None if group.hosts.len() < FEWEST => {
            let hosts = if group.hosts.len() == 1 { "host" } else { "hosts" };
            format!("{}: {} {hosts}; no outlier can be named among fewer than {FEWEST}", group.name, group.hosts.len())
        }
        None => format!("{}: the figures of its hosts do not vary", group.name),
        Some(limit) if slow.is_empty() => {
            let spread = 100.0 * group.spread;
            format!(
                "{}: none of {} hosts is slower than its siblings (limit {limit:.1} MADs of {spread:.1} % each)",
                group.name,
                group.hosts.len()
            )
        }
        Some(limit) => format!("{}: {} (limit {limit:.1} MADs)", group.name, slow.join("; ")),
    }
}
