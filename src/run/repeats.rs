//! Decides which disturbed trials to repeat, by the rule of [`crate::stats::disturbance`]. Its inputs come from the run
//! folder, so that a resumed run decides as if it had not stopped.

use crate::error::Result;
use crate::provision::disk_probe;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::disk_probe::DiskProbe;
use crate::record::facts::HostFacts;
use crate::record::run::RunRecord;
use crate::record::trial::{Outcome, TrialRecord};
use crate::stats::disturbance::{PROBES_COMPARED, against_the_last, is_off, may_repeat, most_repeats};
use crate::store::folder::{RunFolder, StoredTrial};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Probes before the turns of a block, and the rounds made again so far.
pub(super) struct EarlierProbes {
    /// Rates by folder, in order of time.
    rates: BTreeMap<PathBuf, Vec<f64>>,
    pub made_again: usize,
}

impl EarlierProbes {
    /// Of the blocks before this one, on this machine.
    ///
    /// # Errors
    /// As [`is_due`].
    pub(super) fn of(folder: &RunFolder, block: u32, here: &HostFacts) -> Result<EarlierProbes> {
        let (mut probes, mut again) = (Vec::new(), BTreeSet::new());
        for key in folder.record().order.iter().filter(|key| key.trial < block) {
            let earlier = folder.stored(key)?.measured().filter(|earlier| earlier.host.is_same_machine(here));
            for turn in earlier.and_then(|earlier| earlier.turns).into_iter().flat_map(|turns| turns.turns) {
                again.extend((!turn.counts).then_some((key.trial, turn.round)));
                probes.extend(turn.probes().cloned());
            }
        }
        probes.sort_by_key(|probe| probe.wall_us);
        let mut all = EarlierProbes { rates: BTreeMap::new(), made_again: again.len() };
        all.add(&probes);
        Ok(all)
    }

    pub(super) fn add(&mut self, probes: &[DiskProbe]) {
        for probe in probes {
            self.rates.entry(probe.folder.clone()).or_default().push(probe.rate());
        }
    }

    /// True if a probe is off the last ones.
    pub(super) fn is_off(&self, probe: &DiskProbe) -> bool {
        let rates = self.rates.get(&probe.folder).map(Vec::as_slice).unwrap_or_default();
        let last = &rates[rates.len().saturating_sub(PROBES_COMPARED)..];
        against_the_last(probe.rate(), last).is_some_and(is_off)
    }
}

/// True if a trial was disturbed, has not been repeated, and repeating is worth the time.
///
/// # Errors
/// When the run folder was written by a newer pgstrata.
pub(super) fn is_due(folder: &RunFolder, key: &TrialKey) -> Result<bool> {
    let Some(record) = folder.stored(key)?.measured() else { return Ok(false) };
    if !is_disturbed(folder, &record)? || folder.set_aside(key)? != StoredTrial::Missing {
        return Ok(false);
    }
    let made = made(folder)?;
    Ok(may_repeat(planned(folder)?, made.repeats, made.in_vain))
}

/// True if a probe of the disk before or after a trial was off.
///
/// # Errors
/// As [`is_due`].
pub(super) fn is_disturbed(folder: &RunFolder, record: &TrialRecord) -> Result<bool> {
    // Turns are made again by the round.
    let Some(own) = record.disk_probes.first().filter(|_| record.turns.is_none()) else { return Ok(false) };
    let mut before = Vec::new();
    let key = TrialKey { case: record.case.id.clone(), trial: record.trial };
    for earlier in folder.record().before(&key, record.is_repeat) {
        if before.len() >= PROBES_COMPARED {
            break;
        }
        let earlier = first_measurement(folder, earlier)?.filter(|earlier| earlier.host.is_same_machine(&record.host));
        let probes = earlier.into_iter().flat_map(|earlier| earlier.disk_probes);
        before.extend(
            probes.filter(|probe| probe.folder == own.folder && probe.wall_us <= own.wall_us).map(|probe| probe.rate()),
        );
    }
    before.truncate(PROBES_COMPARED);
    Ok(record.disk_probes.iter().any(|probe| against_the_last(probe.rate(), &before).is_some_and(is_off)))
}

/// A trial as measured in its turn, not its repeat: what is compared stays the same when a repeat takes its place.
fn first_measurement(folder: &RunFolder, key: &TrialKey) -> Result<Option<TrialRecord>> {
    let counts = folder.stored(key)?.measured();
    if counts.as_ref().is_some_and(|record| record.is_repeat) {
        return Ok(folder.set_aside(key)?.measured());
    }
    Ok(counts)
}

/// Upper limit of repeats of a run of these cases with this many trials: only what stands on an image is probed.
pub(super) fn most<'c>(mut cases: impl Iterator<Item = &'c CaseSpec>, trials: u32) -> u32 {
    if cases.any(|case| disk_probe::folder_of(&case.stack).is_some()) { most_repeats(trials) } else { 0 }
}

/// Upper limit of repeats still to come; 0 if every trial is complete and none is due.
///
/// # Errors
/// As [`is_due`].
pub(super) fn left(folder: &RunFolder) -> Result<u32> {
    let made = made(folder)?;
    let order = &folder.record().order;
    let mut open = false;
    for key in order {
        open = open || !folder.stored(key)?.is_result() || is_due(folder, key)?;
    }
    let planned = planned(folder)?;
    let goes_on = open && may_repeat(planned, made.repeats, made.in_vain);
    Ok(if goes_on { most(alone(folder.record()), planned).saturating_sub(made.repeats) } else { 0 })
}

/// Cases that are measured in trials, one after another.
fn alone(record: &RunRecord) -> impl Iterator<Item = &CaseSpec> {
    record.cases.iter().filter(|case| !record.turns.contains(&case.id))
}

/// Repeats so far, and those that did not help.
#[derive(Default)]
struct Made {
    repeats: u32,
    in_vain: u32,
}

fn made(folder: &RunFolder) -> Result<Made> {
    let mut made = Made::default();
    for key in &folder.record().order {
        match folder.set_aside(key)? {
            StoredTrial::Missing => {}
            StoredTrial::Damaged(_) => made.repeats += 1,
            StoredTrial::Whole(record) => {
                made.repeats += 1;
                // A repeat that was set aside was disturbed, too; a failed one says nothing about the machine.
                made.in_vain += u32::from(record.is_repeat && record.outcome == Outcome::Measured);
            }
        }
    }
    Ok(made)
}

/// Trials certain to be in the run. Adaptive blocks may end after any look, so only blocks already begun and those
/// before the first look count; the share of repeats then holds wherever the run ends.
fn planned(folder: &RunFolder) -> Result<u32> {
    let record = folder.record();
    let mut last = record.at_least.unwrap_or(u32::MAX);
    for key in &record.order {
        if key.trial > last && folder.stored(key)? != StoredTrial::Missing {
            last = key.trial;
        }
    }
    let events = folder.events()?;
    let due = record.due(events.iter().map(|event| &event.what));
    let alone = due.iter().filter(|key| key.trial <= last && !record.turns.contains(&key.case));
    Ok(u32::try_from(alone.count()).unwrap_or(u32::MAX))
}
