//! Comparison of machines: hosts are the units, and cases only provide figures of a host.
//!
//! For each case a host has one figure, the geometric mean of its trials. A host's distance from its siblings is the
//! mean, over cases, of the logarithm of its figure over the median of the siblings. Siblings share the plan and the
//! requested facts, such as model, firmware and kernel. A slow one is named by the rule of [`crate::stats::outliers`].
//! A machine is identified by host name, CPU and memory; a change over time, such as new firmware, puts it into another
//! group, and the two states are then a pair. Absent on purpose: comparison of stacks, which happens inside machines.

mod findings;
mod groups;
pub(crate) mod shares;

pub use findings::{FleetFindings, GroupComparison, HostFinding, HostGroup, HostRunFinding};

use super::findings::groups::{item_of, place_of};
use super::findings::{Findings, names};
use super::load;
use super::merge::storage;
use crate::error::Result;
use crate::record::facts::HostFacts;
use crate::record::run::RunRecord;
use crate::record::trial::TrialRecord;
use crate::store::folder::RunFolder;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Facts that hosts can be grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupBy {
    /// Models of the disks below the stacks.
    Model,
    /// Firmware of those disks.
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

    pub fn of(word: &str) -> Option<GroupBy> {
        GroupBy::ALL.into_iter().find(|by| by.word() == word)
    }

    /// Name on the command line.
    pub fn word(self) -> String {
        names::stored(&self)
    }
}

type Facts = BTreeMap<GroupBy, BTreeSet<String>>;

/// Text of a fact.
fn value(values: Option<&BTreeSet<String>>) -> String {
    let values: Vec<&str> = values.into_iter().flatten().map(String::as_str).collect();
    if values.is_empty() { "not known".to_owned() } else { values.join(" and ") }
}

/// A machine, across boots and firmware changes.
struct Machine {
    host: HostFacts,
    host_runs: Vec<HostRun>,
}

/// Trials of one run on one machine with the same facts.
struct HostRun {
    /// Id of the run in which they were measured, which a merged folder keeps.
    run: String,
    facts: Facts,
    /// Start of the first one.
    started: String,
    /// Logarithms of the figures of each case; more is better.
    cases: BTreeMap<String, Vec<f64>>,
}

impl HostRun {
    fn group(&self, by: &[GroupBy]) -> String {
        by.iter().map(|by| format!("{} {}", by.word(), value(self.facts.get(by)))).collect::<Vec<_>>().join(", ")
    }
}

/// Compares the hosts of run folders, each with its label. An unreadable folder is left out.
///
/// # Errors
/// If no folder can be read.
pub fn compare(folders: &[(String, &Path)], by: &[GroupBy]) -> Result<FleetFindings> {
    let mut fleet = Fleet::default();
    let mut unread = None;
    for (label, path) in folders {
        if let Err(error) = fleet.read(label, path) {
            fleet.left_out.push((label.clone(), error.chain()));
            unread.get_or_insert(error);
        }
    }
    match (fleet.plan.is_some(), unread) {
        (false, Some(error)) => Err(error),
        _ => Ok(fleet.findings(by)),
    }
}

/// A trial on a machine, by the machine's index: two machines may have runs of the same id, but never the same trials.
type TrialId = (usize, String, String, u32);

#[derive(Default)]
struct Fleet {
    /// The first run's plan, and its folder.
    plan: Option<(RunRecord, String)>,
    machines: Vec<Machine>,
    /// Trials already counted: a merged run may be next to the runs that it was merged from.
    seen: BTreeSet<TrialId>,
    left_out: Vec<(String, String)>,
}

impl Fleet {
    fn read(&mut self, label: &str, path: &Path) -> Result<()> {
        let folder = RunFolder::open(path)?;
        let trials = folder.whole_trials()?;
        let findings = load::findings(path)?;
        match self.other_plan(folder.record(), label) {
            Some(reason) => self.left_out.push((label.to_owned(), reason)),
            None => self.add(label, &findings, &trials),
        }
        Ok(())
    }

    /// Reason that a run belongs to another plan than the first one.
    fn other_plan(&mut self, record: &RunRecord, label: &str) -> Option<String> {
        let (first, its_label) = self.plan.get_or_insert_with(|| (record.clone(), label.to_owned()));
        let same = first.plan_sha256 == record.plan_sha256 && first.quick.is_some() == record.quick.is_some();
        (!same).then(|| format!("it ran another plan than {its_label}"))
    }

    fn add(&mut self, label: &str, findings: &Findings, trials: &[TrialRecord]) {
        let places: Vec<usize> = trials.iter().map(|trial| self.place_of(&trial.host)).collect();
        let of_blocks = BlockFacts::of(trials, &places);
        let mut ranked: BTreeSet<&str> = BTreeSet::new();
        let (mut all, mut doubled) = (0, 0);
        for ranking in &findings.rankings {
            let sign = if ranking.by.less_is_better() { -1.0 } else { 1.0 };
            for row in ranking.rows() {
                // The first ranking of a case is its most important figure.
                if !ranked.insert(&row.case) {
                    continue;
                }
                for figure in row.trials.iter().filter(|figure| figure.rate > 0.0) {
                    let mut of_places = trials.iter().zip(&places);
                    let of = of_places.find(|(trial, _)| trial.case.id == row.case && trial.trial == figure.trial);
                    let Some((trial, &place)) = of else { continue };
                    all += 1;
                    if self.seen.insert((place, trial.run.clone(), row.case.clone(), trial.trial)) {
                        self.machines[place].add(trial, &of_blocks.facts(trial, place), sign * figure.rate.ln());
                    } else {
                        doubled += 1;
                    }
                }
            }
        }
        if doubled > 0 {
            let reason = format!("{doubled} of its {all} trials are in folders named before it, and count once");
            self.left_out.push((label.to_owned(), reason));
        }
    }

    fn place_of(&mut self, host: &HostFacts) -> usize {
        let new = || Machine { host: host.clone(), host_runs: Vec::new() };
        place_of(&mut self.machines, |known| known.host.is_same_machine(host), new)
    }

    fn findings(self, by: &[GroupBy]) -> FleetFindings {
        let members = groups::of(&self.machines, by);
        let groups: Vec<HostGroup> = members.iter().map(|group| groups::finding(group, by)).collect();
        let (mut comparisons, mut not_compared) = (Vec::new(), Vec::new());
        for other in members.iter().skip(1) {
            let found = groups::comparisons(other, &members[0]);
            if found.is_empty() {
                let reason = format!("no case is common to all hosts of it and of {}", members[0].0);
                not_compared.push((other.0.clone(), reason));
            }
            comparisons.extend(found);
        }
        let hosts = self.machines.iter().filter(|machine| !machine.host_runs.is_empty()).count();
        let answer = groups.iter().map(groups::sentence).collect();
        let plan = self.plan.map(|(record, _)| record.name).unwrap_or_default();
        let left_out = self.left_out;
        FleetFindings { plan, answer, grouped_by: by.to_vec(), hosts, groups, comparisons, not_compared, left_out }
    }
}

impl Machine {
    fn add(&mut self, trial: &TrialRecord, facts: &Facts, log: f64) {
        let (run, started) = (trial.run.clone(), trial.started.clone());
        let is_known = |known: &HostRun| known.run == trial.run && known.facts == *facts;
        let new = || HostRun { run, facts: facts.clone(), started, cases: BTreeMap::new() };
        let host_run = item_of(&mut self.host_runs, is_known, new);
        if trial.started < host_run.started {
            host_run.started.clone_from(&trial.started);
        }
        host_run.cases.entry(trial.case.id.clone()).or_default().push(log);
    }
}

/// Facts that the trials of each block share. A machine's disks and servers are those of all its cases: a case on tmpfs
/// has no disk, and cases on two disks or two servers do not make two machines of one. A case without facts in a block,
/// such as one that failed before its stack was built, takes those of the previous block, else of the next one that has
/// them.
struct BlockFacts(BTreeMap<(usize, String, u32), Facts>);

/// Facts from the trials of one case in each block.
type ByBlock = BTreeMap<u32, BTreeSet<String>>;

impl BlockFacts {
    fn of(trials: &[TrialRecord], places: &[usize]) -> BlockFacts {
        let mut reported: BTreeMap<(usize, &str, &str, GroupBy), ByBlock> = BTreeMap::new();
        let mut blocks: BTreeMap<(usize, String, u32), Facts> = BTreeMap::new();
        for (trial, place) in trials.iter().zip(places) {
            blocks.entry((*place, trial.run.clone(), trial.trial)).or_default();
            for (by, values) in facts_of(trial).into_iter().filter(|(_, values)| !values.is_empty()) {
                reported.entry((*place, &trial.run, &trial.case.id, by)).or_default().insert(trial.trial, values);
            }
        }
        for ((place, run, block), facts) in &mut blocks {
            let of_run = reported.iter().filter(|((its_place, its_run, ..), _)| its_place == place && its_run == run);
            for ((.., by), by_block) in of_run {
                let nearest = by_block.range(..=*block).next_back().or_else(|| by_block.range(*block..).next());
                let known = facts.entry(*by).or_default();
                known.extend(nearest.into_iter().flat_map(|(_, values)| values.iter().cloned()));
            }
        }
        BlockFacts(blocks)
    }

    /// Facts of a trial. The kernel is the trial's own, since a run may be resumed after a boot, and in guests the plan
    /// varies it.
    fn facts(&self, trial: &TrialRecord, place: usize) -> Facts {
        let mut facts = self.0.get(&(place, trial.run.clone(), trial.trial)).cloned().unwrap_or_default();
        if trial.case.guest.is_none() {
            facts.insert(GroupBy::Kernel, BTreeSet::from([trial.host.kernel.clone()]));
        }
        facts
    }
}

/// Facts from one trial about its machine, disks and server.
fn facts_of(trial: &TrialRecord) -> [(GroupBy, BTreeSet<String>); 5] {
    let (models, firmware) = storage(trial);
    [
        (GroupBy::Model, models),
        (GroupBy::Firmware, firmware),
        (GroupBy::Postgres, trial.server.iter().map(|server| server.version.clone()).collect()),
        (GroupBy::Kernel, BTreeSet::from([trial.host.kernel.clone()])),
        (GroupBy::Cpu, trial.host.cpu_model.iter().cloned().collect()),
    ]
}
