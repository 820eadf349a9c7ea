//! The step `store`: the trial's folder, whole or not at all; and how a trial without figures is recorded.

use super::Trial;
use crate::error::{Context, Error, Result};
use crate::host::command::CommandLog;
use crate::host::files;
use crate::record::event::Event;
use crate::record::trial::Outcome;
use crate::run::fail_fast::TrialFailure;
use crate::run::repeats::is_disturbed;
use crate::run::session::Session;
use crate::store::staging::Staging;

/// Free space needed for the results of a trial, bytes: a few pages for the record and the output of tools.
const LEAST_ROOM: u64 = 64 << 10;

impl Trial<'_> {
    /// Records why there are no figures.
    ///
    /// # Errors
    /// When the run folder was gone or its own disk was full: then the trial's failure says nothing about its stack,
    /// because the tools could not write their output.
    pub(super) fn ended_early(&mut self, session: &Session<'_>, failure: &Error) -> Result<TrialFailure> {
        let folder = session.events.writer().folder().path().to_path_buf();
        session.events.writer().folder().must_be_there()?;
        if files::free_bytes(&folder)? < LEAST_ROOM {
            let message =
                format!("no space is left for results in {}; the trial ended with: {failure}", folder.display());
            return Err(Error::store(message));
        }
        let hint = failure.hint_text().map(str::to_owned);
        let (step, reason) = (self.failed_in.unwrap_or(self.step), failure.chain());
        self.record.outcome = Outcome::NotRun { step, reason: reason.clone(), hint: hint.clone() };
        Ok(TrialFailure { step, kind: failure.kind(), reason, hint })
    }

    /// Stores the trial and emits its outcome. Returns the microseconds measured.
    ///
    /// # Errors
    /// When the run folder cannot be written.
    pub(super) fn store(mut self, session: &mut Session<'_>, wall_us: u64) -> Result<u64> {
        self.end_step();
        self.commands.extend(session.host.take_command_log());
        write_commands(&self.staging, "commands.jsonl", &self.commands)?;
        let trial = self.key.clone();
        let full_after_us = self.record.full.as_ref().map(|full| full.after_us);
        if self.record.is_repeat {
            let disturbed = is_disturbed(session.events.writer().folder(), &self.record)?;
            let counts = self.record.outcome == Outcome::Measured && !disturbed;
            self.staging.commit_repeat(&self.record, counts)?;
        } else {
            self.staging.commit(&self.record)?;
        }
        if let Outcome::NotRun { step, reason, .. } = self.record.outcome {
            session.events.emit(Event::TrialNotRun { trial, step, reason, full_after_us })?;
            return Ok(0);
        }
        let of_turns = self.record.rate_of_turns();
        let counts = self.record.counts.unwrap_or_default();
        let of_measure = counts.measures.first().and_then(|m| {
            let done = m.done.filter(|_| m.elapsed_us > 0)?;
            Some(done as f64 * 1e6 / m.elapsed_us as f64)
        });
        let rate = of_turns.or(of_measure);
        let measured_us = counts.elapsed_us;
        session.events.emit(Event::TrialDone { trial, wall_us, measured_us, rate, full_after_us })?;
        Ok(counts.elapsed_us)
    }
}

pub(super) fn write_commands(staging: &Staging, name: &str, log: &[CommandLog]) -> Result<()> {
    let mut text = String::new();
    for command in log {
        text.push_str(&serde_json::to_string(command).or_store(|| "write the log of commands".to_owned())?);
        text.push('\n');
    }
    files::write_whole(&staging.raw().join(name), text.as_bytes())
}
