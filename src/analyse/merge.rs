//! Decides which runs belong together: the blocks from several run folders that form one run, and why others do not.
//!
//! Cases are compared within a block, and a block belongs to one machine, so no pair in a merged run spans machines.
//! Runs with a different plan, order or class of machine are left out. Writing the merged folder is not done here.

use crate::analyse::findings::lists::numbered;
use crate::error::{Error, Result};
use crate::record::case::TrialKey;
use crate::record::event::Step;
use crate::record::merged::{LeftOut, MachineClass, TakenRun};
use crate::record::run::{MergedRun, RunRecord};
use crate::record::trial::{Outcome, TrialRecord};
use crate::store::folder::RunFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Debug, Clone)]
pub struct MergeCandidate {
    /// The folder as named by the user.
    pub label: String,
    /// `run.json`.
    pub record: RunRecord,
    /// True if a pgstrata process is writing to it.
    pub live: bool,
    /// Its complete trials, in the run's order.
    pub trials: Vec<TrialRecord>,
}

impl MergeCandidate {
    /// Reads a run folder.
    ///
    /// # Errors
    /// When it is not a run folder, is damaged, or was written by a newer pgstrata.
    pub fn load(folder: &RunFolder, label: &Path) -> Result<MergeCandidate> {
        let (trials, live) = (folder.whole_trials()?, folder.is_live());
        Ok(MergeCandidate { label: label.display().to_string(), record: folder.record().clone(), live, trials })
    }

    /// Properties that runs must share to be merged with it.
    pub fn class(&self) -> MachineClass {
        let version: Vec<&str> = self.record.tool_version.split('.').take(2).collect();
        let servers = self.trials.iter().filter_map(|trial| Some(trial.server.as_ref()?.version.clone()));
        let (models, firmware): (Vec<BTreeSet<String>>, Vec<BTreeSet<String>>) =
            self.trials.iter().map(storage).unzip();
        MachineClass {
            pgstrata: version.join("."),
            postgres: sorted(servers),
            models: sorted(models.into_iter().flatten()),
            firmware: sorted(firmware.into_iter().flatten()),
            emulated: self.trials.iter().any(|trial| trial.host.is_emulated()),
        }
    }

    /// Cases for which a machine lacked something, each with the reason.
    fn unmet(&self) -> impl Iterator<Item = (&str, &str)> {
        self.trials.iter().filter_map(|trial| match &trial.outcome {
            Outcome::NotRun { step: Step::Check, reason, .. } => Some((trial.case.id.as_str(), reason.as_str())),
            _ => None,
        })
    }

    /// Trials of a block that have a result.
    fn results(&self, block: u32) -> impl Iterator<Item = &TrialRecord> {
        self.trials.iter().filter(move |trial| trial.trial == block && trial.is_result())
    }

    /// Blocks that have a result.
    fn blocks(&self) -> impl Iterator<Item = u32> {
        (1..=self.record.blocks).filter(|block| self.results(*block).next().is_some())
    }

    /// True if all trials of a block ran on one machine.
    fn is_of_one_machine(&self, block: u32) -> bool {
        let mut hosts = self.trials.iter().filter(|trial| trial.trial == block).map(|trial| &trial.host);
        let Some(first) = hosts.next() else { return true };
        hosts.all(|host| first.differences(host).is_empty())
    }
}

/// Each once.
fn sorted(values: impl Iterator<Item = String>) -> Vec<String> {
    values.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Models and firmware of the disks below a trial's stack, as far as known.
pub(crate) fn storage(trial: &TrialRecord) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut models, mut firmware) = (BTreeSet::new(), BTreeSet::new());
    let Some(stack) = &trial.stack else { return (models, firmware) };
    for (_, base) in stack.ends() {
        for below in stack.devices_below(Some(base)) {
            // Devices built by the plan are described by the plan, the same everywhere.
            if below.device.stands_on_nothing == Some(true) || below.device.firmware.is_some() {
                models.extend(below.device.model.clone());
                firmware.extend(below.device.firmware.clone());
            }
        }
    }
    (models, firmware)
}

#[derive(Debug, Clone, PartialEq)]
pub struct MergeChoice {
    pub class: MachineClass,
    /// Index of each source that takes part, with its blocks.
    pub taken: Vec<(usize, BTreeSet<u32>)>,
    pub left_out: Vec<LeftOut>,
}

/// Chooses the runs to merge: those with the most common plan and, among these, the class of machines with the most
/// blocks; ties go to the run named first. Folders that could not be read come first in the list of what is left out.
///
/// # Errors
/// When fewer than two runs belong together.
pub fn choose(sources: &[MergeCandidate], unread: Vec<LeftOut>) -> Result<MergeChoice> {
    let mut choosing = Choosing { sources, able: (0..sources.len()).collect(), left_out: unread };
    choosing.leave(|place, _| unfit(&sources[place]));
    if let Some(first) = most(&choosing.able, |place| planned(&sources[place].record), |_| 1) {
        let (reference, label) = (planned(&sources[first].record), &sources[first].label);
        choosing.leave(|place, _| other_plan(&planned(&sources[place].record), &reference, label));
    }
    let heaviest = most(&choosing.able, |place| sources[place].class(), |place| sources[place].blocks().count());
    let common = heaviest.map(|place| sources[place].class()).unwrap_or_default();
    choosing.leave(|place, _| {
        let own = sources[place].class();
        (own != common).then(|| format!("another class of machine: {own}; merged is {common}"))
    });
    choosing.leave(|place, able| lacks(place, able, sources));
    let taken = choosing.blocks();
    if taken.len() < 2 {
        return Err(too_few(&choosing.left_out));
    }
    for (place, blocks) in &taken {
        choosing.name_lost(*place, blocks);
    }
    Ok(MergeChoice { class: common, taken: taken.into_iter().collect(), left_out: choosing.left_out })
}

/// Runs still to be merged, by index.
struct Choosing<'a> {
    sources: &'a [MergeCandidate],
    able: Vec<usize>,
    left_out: Vec<LeftOut>,
}

impl Choosing<'_> {
    /// Leaves out the runs for which `reason` gives a reason, considering those that are able.
    fn leave(&mut self, reason: impl Fn(usize, &[usize]) -> Option<String>) {
        let reasons: BTreeMap<usize, String> =
            self.able.iter().filter_map(|place| Some((*place, reason(*place, &self.able)?))).collect();
        self.able.retain(|place| !reasons.contains_key(place));
        for (place, reason) in reasons {
            self.leave_blocks(place, Vec::new(), reason);
        }
    }

    fn leave_blocks(&mut self, place: usize, blocks: Vec<u32>, reason: String) {
        self.left_out.push(LeftOut { folder: self.sources[place].label.clone(), blocks, reason });
    }

    /// Names the trials of these blocks that cannot be read or were never measured.
    fn name_lost(&mut self, place: usize, blocks: &BTreeSet<u32>) {
        let MergeCandidate { record, trials, .. } = &self.sources[place];
        let is_there =
            |key: &TrialKey| trials.iter().any(|trial| (&trial.case.id, trial.trial) == (&key.case, key.trial));
        let lost = record.order.iter().filter(|key| blocks.contains(&key.trial) && !is_there(key));
        for TrialKey { case, trial } in lost {
            self.leave_blocks(place, vec![*trial], format!("the trial of {case} is damaged, or was not measured"));
        }
    }

    /// Blocks taken from each run; each block comes from one run.
    fn blocks(&mut self) -> BTreeMap<usize, BTreeSet<u32>> {
        let sources = self.sources;
        let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
        for place in self.able.clone() {
            for block in sources[place].blocks() {
                if !sources[place].is_of_one_machine(block) {
                    let reason = "its trials ran on several machines, and cases compare only inside one".to_owned();
                    self.leave_blocks(place, vec![block], reason);
                    continue;
                }
                let (kept, other) = match owners.get(&block).copied() {
                    Some(owner) if has_more(&sources[place], &sources[owner], block) => (place, Some(owner)),
                    Some(owner) => (owner, Some(place)),
                    None => (place, None),
                };
                owners.insert(block, kept);
                if let Some(other) = other {
                    let reason = format!("taken from {}, which has more of it or was first", sources[kept].label);
                    self.leave_blocks(other, vec![block], reason);
                }
            }
        }
        let mut taken: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for (block, place) in owners {
            taken.entry(place).or_default().insert(block);
        }
        taken
    }
}

/// True if a run has more of a block than its owner, or as much and was first.
fn has_more(run: &MergeCandidate, owner: &MergeCandidate, block: u32) -> bool {
    (run.results(block).count(), &owner.record.started) > (owner.results(block).count(), &run.record.started)
}

fn too_few(left_out: &[LeftOut]) -> Error {
    let lines: Vec<String> = left_out.iter().map(line).collect();
    let message = match lines.as_slice() {
        [] => "one folder was named: there is nothing to merge it with".to_owned(),
        lines => format!("fewer than two of the folders belong together\n{}", lines.join("\n")),
    };
    Error::user(message).hint("merge run folders of one plan, each with other blocks: pgstrata run PLAN --share 1/3")
}

/// Describes one exclusion in a line.
pub fn line(left_out: &LeftOut) -> String {
    let LeftOut { folder, blocks, reason } = left_out;
    match blocks.as_slice() {
        [] => format!("{folder}: {reason}"),
        _ => format!("{folder}, {}: {reason}", numbered("block", blocks)),
    }
}

/// Why a run cannot be merged at all.
fn unfit(source: &MergeCandidate) -> Option<String> {
    let record = &source.record;
    let reasons = [
        (source.live, "a pgstrata is still writing to it"),
        (!record.merged.is_empty(), "it was merged itself: name the runs that it was merged from"),
        (
            record.at_least.is_some() || !record.extended.is_empty(),
            "its number of blocks was decided while it ran, by its own trials",
        ),
        (!source.trials.iter().any(TrialRecord::is_result), "it has no trial with a result"),
    ];
    reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, reason)| reason.to_owned())
}

/// What a run's machine lacked for a case that another run's machine has: its blocks would lack that case. A case that
/// no machine can run is missing in every block, and the merged run reports it as each of its sources does.
fn lacks(place: usize, able: &[usize], sources: &[MergeCandidate]) -> Option<String> {
    let others = || able.iter().filter(|other| **other != place).flat_map(|other| &sources[*other].trials);
    let has = |case: &str| others().any(|trial| trial.case.id == case && trial.is_result());
    let (case, reason) = sources[place].unmet().find(|(case, _)| has(case))?;
    Some(format!("its machine does not meet the plan's requirements: {case}: {reason}"))
}

/// What two runs of one plan have in common: its name and value.
fn planned(record: &RunRecord) -> [(&'static str, String); 8] {
    let cases: Vec<&str> = record.cases.iter().map(|case| case.id.as_str()).collect();
    let loads = sorted(record.cases.iter().filter_map(|case| case.load_of_profile().map(str::to_owned)));
    let length = if record.quick.is_some() { "quick run" } else { "whole run" };
    [
        ("plan", record.plan_sha256.clone()),
        ("seed", record.seed.to_string()),
        ("length", length.to_owned()),
        ("number of blocks", record.blocks.to_string()),
        ("format of the run folder", record.format.to_string()),
        ("set of cases", cases.join(", ")),
        ("set of cases in turns", record.turns.join(", ")),
        ("load of a profile", loads.join(", ")),
    ]
}

/// Why a run is of another plan than the one with this label; `None` if it is not.
fn other_plan(own: &[(&str, String); 8], other: &[(&str, String); 8], label: &str) -> Option<String> {
    let ((what, own), (_, others)) = own.iter().zip(other).find(|(own, other)| own != other)?;
    let shown = if *what == "plan" { 12 } else { usize::from(u16::MAX) };
    let [own, others] = [own, others].map(|value| if value.is_empty() { "none" } else { value });
    Some(format!("another {what} than {label}: {own:.shown$}, there {others:.shown$}"))
}

/// First item among those sharing the key with the most weight.
fn most<K: Ord>(places: &[usize], key: impl Fn(usize) -> K, weight: impl Fn(usize) -> usize) -> Option<usize> {
    let mut weights: BTreeMap<K, usize> = BTreeMap::new();
    for place in places {
        *weights.entry(key(*place)).or_default() += weight(*place);
    }
    let heaviest = weights.values().max().copied()?;
    places.iter().copied().find(|place| weights.get(&key(*place)) == Some(&heaviest))
}

impl MergeChoice {
    /// Entries of `merged.json` for the merged runs.
    pub fn taken_runs(&self, sources: &[MergeCandidate]) -> Vec<TakenRun> {
        let taken = self.taken.iter().map(|(place, blocks)| {
            let source = &sources[*place];
            let trials: Vec<_> = source.trials.iter().filter(|trial| blocks.contains(&trial.trial)).collect();
            TakenRun {
                folder: source.label.clone(),
                id: source.record.id.clone(),
                hosts: sorted(trials.iter().map(|trial| trial.host.hostname.clone())),
                share: source.record.share,
                blocks: blocks.iter().copied().collect(),
                trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
            }
        });
        taken.collect()
    }

    /// Record of the merged run, in the plan's order.
    ///
    /// # Errors
    /// When nothing is merged, which is a bug.
    pub fn record(&self, sources: &[MergeCandidate], id: String) -> Result<RunRecord> {
        let (first, _) = self.taken.first().ok_or_else(|| Error::bug("a merge of nothing"))?;
        let mut order: BTreeMap<u32, Vec<TrialKey>> = BTreeMap::new();
        for (place, blocks) in &self.taken {
            for key in sources[*place].record.order.iter().filter(|key| blocks.contains(&key.trial)) {
                order.entry(key.trial).or_default().push(key.clone());
            }
        }
        let merged = self.taken_runs(sources).into_iter();
        let merged = merged.map(|TakenRun { id, share, hosts, blocks, .. }| MergedRun { id, share, hosts, blocks });
        let started = self.taken.iter().map(|(place, _)| &sources[*place].record.started).min();
        let first = &sources[*first].record;
        Ok(RunRecord {
            id,
            share: None,
            merged: merged.collect(),
            started: started.unwrap_or(&first.started).clone(),
            order: order.into_values().flatten().collect(),
            ..first.clone()
        })
    }
}
