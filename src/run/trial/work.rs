//! The steps `warm-up` and `measure`: the workload on the stack.

use super::window::{WarmUp, WindowWatch};
use super::{Trial, crash};
use crate::cluster::server;
use crate::error::{Error, Result};
use crate::host::time::wall_us;
use crate::provision::machine_crash::StoppableStack;
use crate::record::options::Options;
use crate::record::trial::Outcome;
use crate::run::measure::Measurement;
use crate::run::session::Session;
use crate::run::window;
use crate::telemetry::SampledObjects;
use crate::units::Micros;
use crate::workload::{self, Place, Until, WindowProgress};
use std::path::Path;

pub(super) fn warm_up(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let raw = trial.staging.raw();
    let mut watch = trial.watch.take();
    let done = warm_up_with(session, trial, &raw, watch.as_mut());
    trial.watch = watch;
    done
}

fn warm_up_with(session: &Session<'_>, trial: &Trial<'_>, raw: &Path, watch: Option<&mut WindowWatch>) -> Result<()> {
    let options = &trial.case.workload.options;
    let least = trial.workload.window(options).warm_up;
    let longest = Micros(watch.as_ref().map_or(least.unwrap_or_default().0, |watch| watch.longest_warm_up_us()));
    if longest.0 == 0 {
        return Ok(());
    }
    let (place, memory) = (trial.place(session, raw)?, session.memory_of(trial.case));
    let mut warm_up = watch.map(WarmUp::of).transpose()?;
    let until = Until {
        longest,
        operations: None,
        progress: &mut || {
            let is_over = warm_up.as_mut().map_or(Ok(false), WarmUp::is_over)?;
            Ok(WindowProgress { cycles: 0, is_over })
        },
    };
    trial.workload.warm_up(&place, options, memory, until)
}

pub(super) fn measure(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    decide(session, trial)?;
    trial.record.operation = trial.workload.operation(&trial.options())?;
    let raw = trial.staging.raw();
    let mut watch = trial.watch.take();
    if let Some(watch) = &mut watch {
        watch.measure_begins(wall_us())?;
    }
    let (_, expected_us) = window::expected_us(trial.case)?;
    let longest = Micros(watch.as_ref().map_or(expected_us, WindowWatch::longest_us));
    let machine = StoppableStack::of(&session.host, &trial.case.stack, trial.stack()?);
    let crash = match &session.guest {
        Some(_) => workload::Crash::Guest,
        None => workload::Crash::Filesystems(workload::CrashActions {
            stop: Box::new(|| machine.stop()),
            open: Box::new(|| machine.open()),
        }),
    };
    let snapshots = trial.workload.makes_snapshots().then(|| trial.snapshots(session)).transpose()?;
    let actions = snapshots.as_ref().map(|all| workload::SnapshotActions {
        make: Box::new(|number| all.make(number)),
        delete: Box::new(|number| all.delete(number)),
        filled: Box::new(|number| all.filled(number)),
        copy: Box::new(|number| all.copy(number)),
        is_lost: Box::new(|number| all.is_lost(number)),
        used: Box::new(|| all.used()),
    });
    // A copy: a failed measurement leaves the record as it was.
    let mut record = trial.record.clone();
    let began_us = measurement(session, trial)?.run(
        &Place { crash: Some(crash), snapshots: actions, ..trial.place(session, &raw)? },
        Until {
            longest,
            operations: None,
            progress: &mut || watch.as_mut().map_or_else(|| Ok(WindowProgress::default()), WindowWatch::progress),
        },
        &mut record,
    )?;
    let ended_us = wall_us();
    let began_us = began_us.ok_or_else(|| {
        Error::tool("the workload ended without having done anything").hint("a longer duration or a higher rate")
    })?;
    trial.record = record;
    conclude(session, trial, began_us, ended_us, watch)
}

/// The measurement of a trial.
pub(super) fn measurement<'m>(session: &'m Session<'_>, trial: &'m Trial<'_>) -> Result<Measurement<'m>> {
    let stack = trial.stack()?;
    let target = SampledObjects {
        devices: stack.facts.devices().into_iter().map(|(name, device)| (name, device.clone())).collect(),
        pools: stack.pools(),
        server: trial.server.as_ref().map(|server| server.address(server::DATABASE)),
    };
    let Trial { key, case, workload, staging, .. } = trial;
    Ok(Measurement { session, case, key, workload: *workload, options: trial.options(), target, staging })
}

/// Records how the measurement ended. One that ends with the crash of its guest is handed over.
pub(super) fn conclude(
    session: &mut Session<'_>,
    trial: &mut Trial<'_>,
    began_us: u64,
    ended_us: u64,
    watch: Option<WindowWatch>,
) -> Result<()> {
    let ended = trial.record.counts.as_ref().and_then(|counts| counts.ended.clone());
    trial.record.full = trial.full(session, ended.as_deref(), None, began_us);
    let is_full = trial.record.full.is_some();
    let before_crash = trial.record.counts.as_mut().and_then(|counts| counts.before_crash.take());
    let answers = !is_full && before_crash.is_none();
    if let (Some(watch), Some(server)) = (watch, &trial.server) {
        trial.record.window = Some(watch.finish(answers.then_some(server), began_us, ended_us)?);
    }
    let Some(before) = before_crash else { return Ok(()) };
    // Partial counts are not a result.
    trial.record.counts = None;
    crash::hand_over(session, trial, before)
}

/// Decides the options that the plan leaves open: like an earlier trial of the case, even in an earlier session, or
/// now.
pub(super) fn decide(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    // An unreadable one is measured again, and decides nothing.
    let own = session.record.order.iter().filter(|key| key.case == trial.case.id);
    let mut records = own.filter_map(|key| session.events.writer().folder().trial(key).ok().flatten());
    let earlier = records.find(|record| record.outcome == Outcome::Measured);
    let raw = trial.staging.raw();
    trial.record.decided = match earlier {
        Some(earlier) => earlier.decided,
        None => trial.workload.decide(&trial.place(session, &raw)?, &trial.case.workload.options)?,
    };
    Ok(())
}

impl Trial<'_> {
    pub(super) fn place<'p>(&'p self, session: &'p Session<'_>, raw: &'p Path) -> Result<Place<'p>> {
        Ok(session.place(self.folder()?, self.server.as_ref(), raw))
    }

    /// The workload's options, including those decided for all trials of its case.
    pub(super) fn options(&self) -> Options {
        let mut options = self.case.workload.options.clone();
        options.0.extend(self.record.decided.0.clone());
        options
    }
}
