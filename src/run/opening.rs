//! Starts a run, and each further session of it.

use super::died::{Crashed, Died};
use super::session::{Ending, RunContext, Session};
use super::trial_loop::count;
use super::{case, drives, forecast, guests, looks, repeats, share, together, undo};
use crate::cluster::install;
use crate::error::{Error, Result};
use crate::host::{Host, files, machine, time};
use crate::plan::Plan;
use crate::provision::ledger::Ledger;
use crate::record::case::CaseSpec;
use crate::record::event::{CaseLeft, Event};
use crate::record::facts::HostFacts;
use crate::record::operation::Operation;
use crate::record::run::{self, RunRecord};
use crate::store::folder::{RunFolder, StoredTrial, Writer};
use crate::units::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Starts a run of a plan.
///
/// # Errors
/// Before anything is built: if sizes don't fit, or a folder cannot be written. Later: if the run folder cannot be
/// written, or something built cannot be undone. A failed trial is not an error of the run.
pub fn start(context: &RunContext<'_>, plan: &Plan) -> Result<Ending> {
    let RunContext { host, places, .. } = *context;
    let guest = places.guest.as_deref();
    let forecast = forecast::forecast(host, plan, guest, &places.state)?;
    forecast::must_run(plan, &forecast.unmet)?;
    forecast::must_fit(&forecast)?;
    let record = RunRecord {
        format: run::FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        id: files::random_id()?,
        name: plan.name.clone(),
        plan_sha256: plan.sha256.clone(),
        seed: plan.seed,
        blocks: plan.blocks,
        baseline: plan.baseline.clone(),
        quick: plan.quick.clone(),
        turns: forecast.turns,
        at_least: plan.at_least,
        precision_percent: plan.precision_percent,
        durability: plan.durability,
        extended: Vec::new(),
        share: plan.share,
        merged: Vec::new(),
        started: time::rfc3339(time::wall_us()),
        cases: settled(host, &plan.cases, guest),
        order: plan.order.clone(),
    };
    let ledger = Ledger::create(&places.ledgers(), &record.id)
        .map_err(|e| e.hint("choose another folder for ledgers and templates with --state DIR"))?;
    let writer = match Writer::create(&places.results, record, &plan.text) {
        Ok(writer) => writer,
        Err(e) => return ledger.close().and(Err(e)),
    };
    let machine = machine::facts(host);
    let mut cases = BTreeMap::new();
    for case in &plan.cases {
        let expected_us = forecast::trial_us(case, Bytes(machine.memory_bytes), &writer.folder().record().turns)?;
        cases.insert(case.id.clone(), CaseLeft { trials: plan.blocks_here(), expected_us });
    }
    let started = Event::RunStarted {
        run: writer.folder().record().id.clone(),
        trials: count(plan.order.len()),
        expected_us: forecast.expected_us,
        most_repeats: forecast.most_repeats,
        cases,
    };
    let warnings = forecast.warnings.into_iter().map(|message| Event::Warning { message });
    let opening = std::iter::once(started).chain(warnings).collect();
    Session::open(context, machine, ledger, writer)?.run(opening, context.judge)
}

/// Resolves `auto` to the PostgreSQL found now: an installation added later does not affect this run. For other guests
/// it is resolved there.
fn settled(host: &Host, cases: &[CaseSpec], guest: Option<&str>) -> Vec<CaseSpec> {
    let mut cases = cases.to_vec();
    let mut found: BTreeMap<String, Option<String>> = BTreeMap::new();
    let here = cases.iter_mut().filter(|case| case.guest.as_deref() == guest);
    for postgres in here.filter_map(|case| case.postgres.as_mut()) {
        let bin = found.entry(postgres.bin.clone()).or_insert_with_key(|bin| {
            let install = install::find(host, bin).ok()?;
            Some(install.bin.display().to_string())
        });
        // If none is found, each of its trials reports that.
        if let Some(bin) = bin {
            postgres.bin.clone_from(bin);
        }
    }
    cases
}

/// Opens a stopped run. The remaining work comes from its record: the plan is not read again, since another pgstrata,
/// or another working directory, could give a different result. `given` is a plan file that must be identical.
///
/// # Errors
/// When `folder` is not a run folder, or its copy of the plan or `given` is not the plan that the run began with.
pub fn stored(folder: &Path, given: Option<&Path>) -> Result<RunFolder> {
    let stored = RunFolder::open(folder)?;
    must_be_its_plan(&stored, "the plan in the run folder", stored.plan_text()?.as_bytes())?;
    if let Some(path) = given {
        let what = format!("the plan {}", path.display());
        must_be_its_plan(&stored, &what, &files::read_given(path, u64::MAX, || format!("read {what}"))?)?;
    }
    Ok(stored)
}

fn must_be_its_plan(stored: &RunFolder, what: &str, bytes: &[u8]) -> Result<()> {
    if files::sha256(bytes) == stored.record().plan_sha256 {
        return Ok(());
    }
    Err(Error::user(format!("{what} is not the one that {} began with", stored.path().display()))
        .hint("a run keeps its plan to its end; start a new run for the changed plan"))
}

/// How a run continues.
#[derive(Debug, Default)]
pub struct Continuing {
    /// Extends the run to this many blocks.
    pub blocks: Option<u32>,
    /// Automatic continuation after these trials, during which a guest died: the next guest was booted. `None`: a
    /// person resumes the run.
    pub died: Option<Vec<Died>>,
    /// Continues within a trial that requested the crash of its guest.
    pub crashed: Option<Crashed>,
}

impl Continuing {
    /// The ledger, with everything in it undone, or unchanged if a trial continues.
    fn ledger(&self, host: &Host, folder: &Path, run: &str) -> Result<Ledger> {
        let ledger = Ledger::open_for_resume(folder, run)?;
        if self.crashed.is_none() {
            undo::undo(&ledger, 0, host)?;
        }
        Ok(ledger)
    }
}

/// Continues a run opened by [`stored`].
///
/// # Errors
/// As [`start`].
pub fn resume(context: &RunContext<'_>, stored: &RunFolder, more: Continuing) -> Result<Ending> {
    let RunContext { host, places, .. } = *context;
    forecast::recheck(&stored.record().cases)?;
    must_run_the_same(stored, more.blocks.is_some())?;
    let mut writer = Writer::resume(stored.path(), more.crashed.as_ref().map(|crashed| &crashed.trial))?;
    let extended = more.blocks.map(|blocks| looks::extend(&mut writer, blocks)).transpose()?;
    let machine = machine::facts(host);
    let (mut done, mut left, mut expected_us) = (0, 0, 0);
    let mut cases: BTreeMap<String, CaseLeft> = BTreeMap::new();
    let mut elsewhere = Elsewhere::default();
    let (mut damaged, mut waiting, mut whole) = (Vec::new(), BTreeMap::new(), Vec::new());
    let record = writer.folder().record();
    let events = writer.folder().events()?;
    let next_guest = places.guest.clone().filter(|_| more.died.is_some());
    let tried = if next_guest.is_some() { guests::tried(&events) } else { BTreeSet::new() };
    let again = share::begun_elsewhere(writer.folder(), &machine)?;
    // Trials reopened by the extension are due, too.
    let due = record.due(events.iter().map(|event| &event.what).chain(&extended));
    for key in &due {
        let stored = writer.folder().stored(key)?;
        match &stored {
            StoredTrial::Whole(_) => whole.push(key),
            StoredTrial::Damaged(why) => {
                let message = format!("trial {} of {} is measured again: {why}", key.trial, key.case);
                damaged.push(Event::Warning { message });
            }
            StoredTrial::Missing => {}
        }
        match &stored {
            StoredTrial::Whole(trial) if trial.is_result() && !again.contains(key) => {
                done += 1;
                // Another guest is another machine on purpose, and another whole block of a share may be.
                if trial.case.guest == places.guest && record.share.is_none() {
                    elsewhere.add(&trial.host, &machine);
                }
            }
            _ if tried.contains(key) => {}
            _ => {
                left += 1;
                let case = case::of_trial(record, key)?;
                let trial_us = forecast::trial_us(case, Bytes(machine.memory_bytes), &record.turns)?;
                expected_us += trial_us;
                let of_case = CaseLeft { trials: 0, expected_us: trial_us };
                cases.entry(key.case.clone()).or_insert(of_case).trials += 1;
                if case.guest == places.guest {
                    waiting.insert(&case.id, case);
                }
            }
        }
    }
    let lost = RunFolder::lost_events(&events, whole.into_iter()).map(|message| Event::Warning { message });
    // Images go with a session: the remaining trials need them again.
    expected_us += forecast::images_us(&together::stands(waiting.values().copied(), &record.turns));
    expected_us += drives::expected_us(host, waiting.into_values().map(|case| &case.stack), &drives::earlier(&events))?;
    let most_repeats = repeats::left(writer.folder())?;
    let resumed =
        Event::RunResumed { run: record.id.clone(), done, left, expected_us, most_repeats, cases, next_guest };
    damaged.extend(share::warning(&again));
    let ledger = more.ledger(host, &places.ledgers(), &record.id)?;
    let opening = extended.into_iter().chain([resumed]).chain(elsewhere.warning()).chain(lost).chain(damaged).collect();
    let mut session = Session::open(context, machine, ledger, writer)?;
    (session.died, session.tried, session.crashed) = (more.died.unwrap_or_default(), tried, more.crashed);
    (session.again, session.earlier_drives) = (again, drives::earlier(&events));
    session.run(opening, context.judge)
}

/// # Errors
/// If a case of which trials are left has stored ones whose scripts have another text now: their figures would be mixed.
fn must_run_the_same(stored: &RunFolder, is_extended: bool) -> Result<()> {
    let (mut open, mut trials) = (BTreeSet::new(), Vec::new());
    for key in &stored.record().order {
        match stored.stored(key)? {
            StoredTrial::Whole(trial) if trial.is_result() => trials.push(trial),
            _ => drop(open.insert(&key.case)),
        }
    }
    let setup = |operation: &Operation| operation.settings.get("setup").cloned();
    for trial in trials.iter().filter(|trial| is_extended || open.contains(&trial.case.id)) {
        let (workload, then) = (&trial.case.workload, &trial.operation);
        let now = case::workload(&workload.kind)?.operation(&workload.options)?;
        if (&then.scripts, setup(then)) != (&now.scripts, setup(&now)) {
            let named = |it: &Operation| [it.scripts.clone(), setup(it).into_iter().collect()].concat().join(", ");
            let (name, then, now) = (&workload.name, named(then), named(&now));
            return Err(Error::user(format!(
                "the scripts of {name} have changed since its trials: now {now}, then {then}"
            ))
            .hint("restore their text to resume this run, or begin a new one"));
        }
    }
    Ok(())
}

/// Trials of earlier sessions that ran on another machine.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    trials: u32,
    /// How those machines differ from this one.
    differences: BTreeSet<String>,
}

impl Elsewhere {
    fn add(&mut self, there: &HostFacts, here: &HostFacts) {
        let differences = there.differences(here);
        self.trials += u32::from(!differences.is_empty());
        self.differences.extend(differences);
    }

    fn warning(self) -> Option<Event> {
        let differences = self.differences.into_iter().collect::<Vec<_>>().join("; ");
        let trials = self.trials;
        let what = format!("{trials} of the trials there already differ from what follows in {differences}");
        let message = format!("resumed on another machine: {what}");
        (trials > 0).then_some(Event::Warning { message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_resumed_elsewhere_reports_what_differs() {
        let here = HostFacts {
            hostname: "old".to_owned(),
            kernel: "6.1.0".to_owned(),
            cpus: 4,
            memory_bytes: 8 << 30,
            ..HostFacts::default()
        };
        let warning = |there: &[HostFacts]| {
            let mut elsewhere = Elsewhere::default();
            there.iter().for_each(|host| elsewhere.add(host, &here));
            elsewhere.warning()
        };
        let rebooted = HostFacts { memory_bytes: (8 << 30) - 4096, swap_used_bytes: Some(1), ..here.clone() };
        assert_eq!(warning(&[here.clone(), rebooted]), None);
        let other = HostFacts { kernel: "6.12.9".to_owned(), memory_bytes: 16 << 30, ..here.clone() };
        let message = "resumed on another machine: 2 of the trials there already differ from what follows in kernel 6.12.9 \
                       and 6.1.0; memory 16 GiB and 8 GiB";
        assert_eq!(
            warning(&[other.clone(), here.clone(), other]),
            Some(Event::Warning { message: message.to_owned() })
        );
    }
}
