//! A session of a run: its remaining trials in order, until none is left, or they all fail alike, or the next ones run
//! in another guest.

use super::fail_fast::{FailFast, TrialFailure};
use super::guests;
use super::looks::Looks;
use super::session::{Ending, Judge, Session, count_trials, give_to_person};
use super::undo::both;
use super::{case, repeats, share, trial};
use crate::error::{Kind, Result};
use crate::host::time::{micros, now};
use crate::record::case::TrialKey;
use crate::record::event::Event;
use std::path::Path;

impl Session<'_> {
    /// Reports the opening events, runs the remaining trials, then undoes everything, whatever happened.
    pub(super) fn run(mut self, opening: Vec<Event>, judge: Judge<'_>) -> Result<Ending> {
        let begun = now();
        let mut ending = Ending { folder: self.events.writer().folder().path().to_path_buf(), ..Ending::default() };
        ending.nothing_left =
            opening.iter().any(|event| matches!(event, Event::RunResumed { left: 0, most_repeats: 0, .. }));
        let trials = self.trials(opening, judge, &mut ending);
        ending.interrupted = matches!(&trials, Err(e) if e.kind() == Kind::Interrupted);
        // A run folder that cannot be written must not prevent undoing.
        let reported = if ending.interrupted { self.events.emit(Event::Interrupted) } else { Ok(()) };
        self.undo_from(0);
        let counted = count_trials(self.events.writer().folder());
        let Session { events, ledger, undo_failure, .. } = self;
        let undone = undo_failure.map_or_else(|| ledger.close(), Err);
        if let Err(e) = give_to_person(&ending.folder) {
            // A run folder that cannot be written has its own error.
            drop(events.emit(Event::Warning { message: e.to_string() }));
        }
        settle(trials, undone, &ending.folder)?;
        reported?;
        (ending.done, ending.not_run) = counted?;
        ending.wall_us = micros(begun.elapsed());
        let Ending { done, not_run, wall_us, measured_us, .. } = ending;
        match &ending.handed_over {
            Some(guest) => events.emit(Event::HandedOver { guest: guest.clone() })?,
            None if !ending.interrupted && ending.stopped.is_none() => {
                events.emit(Event::RunDone { wall_us, measured_us, done, not_run })?;
            }
            None => {}
        }
        Ok(ending)
    }

    /// Runs every trial without figures, in the run's order, until the first ones have all failed alike, or a trial of
    /// another guest is due.
    fn trials(&mut self, opening: Vec<Event>, judge: Judge<'_>, ending: &mut Ending) -> Result<()> {
        let mut fail_fast = FailFast::new(self.record.cases.len());
        for event in opening {
            self.events.emit(event)?;
        }
        if let Some(crashed) = self.crashed.take() {
            ending.measured_us += trial::come_back(self, &crashed)?.measured_us;
            // Whatever the outcome: retried, it would crash again.
            self.tried.insert(crashed.trial);
        }
        self.find_verdicts(judge)?;
        let record = self.record.clone();
        let mut looks = Looks::of(&record, self.events.writer().folder())?;
        for block in record.order.chunk_by(|one, next| one.trial == next.trial) {
            for (guest, part) in guests::parts(&record, block) {
                if guest != self.guest.as_deref() && self.is_due(part, &looks)? {
                    ending.handed_over = guest.map(str::to_owned);
                    return Ok(());
                }
                if guest == self.guest.as_deref() {
                    self.part(part, &looks, &mut fail_fast, ending)?;
                }
                if ending.stopped.is_some() {
                    return Ok(());
                }
            }
            let look = block.first().map(|key| looks.after(key.trial, &record, self.events.writer().folder()));
            if let Some(event) = look.transpose()?.flatten() {
                self.events.emit(event)?;
            }
        }
        Ok(())
    }

    fn is_missing(&self, key: &TrialKey, looks: &Looks) -> Result<bool> {
        let stands = share::stands(self.events.writer().folder(), key, &self.again, &self.machine)?;
        Ok(looks.went_on(&key.case, key.trial) && !self.tried.contains(key) && !stands)
    }

    fn is_repeat_due(&self, key: &TrialKey) -> Result<bool> {
        let died = self.died.iter().any(|died| died.trial == *key);
        Ok(!died && repeats::is_due(self.events.writer().folder(), key)?)
    }

    /// True if any work remains in a part of a block.
    fn is_due(&self, part: &[TrialKey], looks: &Looks) -> Result<bool> {
        for key in part {
            if self.is_missing(key, looks)? || self.is_repeat_due(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs the part of a block that belongs to one guest: its trials, then repeats of disturbed ones.
    fn part(&mut self, part: &[TrialKey], looks: &Looks, fail_fast: &mut FailFast, ending: &mut Ending) -> Result<()> {
        let mut together = Vec::new();
        for key in part.iter().filter(|key| self.record.turns.contains(&key.case)) {
            if self.is_missing(key, looks)? && !self.died.iter().any(|died| died.trial == *key) {
                together.push((case::of_trial(&self.record, key)?.clone(), key.clone()));
            }
        }
        if !together.is_empty() {
            self.interrupt.check()?;
            let ran = trial::rounds::run(self, &together);
            ending.cut_short = matches!(&ran, Err(e) if e.kind() == Kind::Interrupted);
            for ran in ran? {
                ending.measured_us += ran.measured_us;
                if ending.stopped.is_none() {
                    self.stop_if_all_fail(ran.failure, fail_fast, ending)?;
                }
            }
        }
        for key in part {
            if ending.stopped.is_some() {
                return Ok(());
            }
            if together.iter().any(|(_, done)| done == key) || !self.is_missing(key, looks)? {
                continue;
            }
            self.interrupt.check()?;
            let case = case::of_trial(&self.record, key)?.clone();
            if let Some(died) = self.died.iter().find(|died| died.trial == *key).cloned() {
                trial::died(self, &case, key, &died)?;
                continue;
            }
            let ran = trial::run(self, &case, key, false);
            ending.cut_short = matches!(&ran, Err(e) if e.kind() == Kind::Interrupted);
            let ran = ran?;
            ending.measured_us += ran.measured_us;
            self.stop_if_all_fail(ran.failure, fail_fast, ending)?;
        }
        for key in part {
            if ending.stopped.is_none() && self.is_repeat_due(key)? {
                self.interrupt.check()?;
                let case = case::of_trial(&self.record, key)?.clone();
                ending.measured_us += trial::run(self, &case, key, true)?.measured_us;
            }
        }
        Ok(())
    }

    /// Ends the run once the first trials have all failed alike.
    fn stop_if_all_fail(
        &self,
        failure: Option<TrialFailure>,
        fail_fast: &mut FailFast,
        ending: &mut Ending,
    ) -> Result<()> {
        let Some(why) = fail_fast.see(failure) else { return Ok(()) };
        let message = why.hint_text().map_or_else(|| why.to_string(), |hint| format!("{why}\nhint: {hint}"));
        self.events.emit(Event::Warning { message: message.clone() })?;
        ending.stopped = Some((why.kind(), message));
        Ok(())
    }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The error of a session: why it ended early, what could not be undone, or both. An interrupt is not an error.
fn settle(trials: Result<()>, undone: Result<()>, folder: &Path) -> Result<()> {
    let trials = match trials {
        Err(e) if e.kind() == Kind::Interrupted => Ok(()),
        Err(e) if e.kind() == Kind::Store && e.hint_text().is_none() => {
            Err(e.hint(format!("fix that, then: pgstrata run --resume {}", folder.display())))
        }
        other => other,
    };
    both(trials, undone)
}
