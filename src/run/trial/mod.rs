//! One trial: its steps in their order.
//!
//! [`Trial::all_steps`] has the list. Whatever happens in a step, the trial ends with everything it made undone, and with a record:
//! either figures, or the step and the reason why there are none. Steps after `measure` find the server running and the
//! stack in place; failures there are recorded, and the figures stand.

mod age;
mod cluster;
mod crash;
mod drive;
mod full;
mod idle;
pub mod rounds;
mod settle;
mod site;
mod stack;
mod store;
mod window;
mod work;

use super::died::Died;
use super::fail_fast::TrialFailure;
use super::session::{Session, Template};
use super::window::expected_us;
use super::{case, forecast, template};
use crate::cluster::install::{self, Installation};
use crate::cluster::server::Server;
use crate::cluster::spec::ServerSpec;
use crate::error::{Error, Kind, Result};
use crate::host::command::CommandLog;
use crate::host::folders;
use crate::host::time::{self, micros, now};
use crate::provision::disk_probe::existing_folder;
use crate::provision::snapshots::StackSnapshots;
use crate::provision::stack::BuiltStack;
use crate::provision::{images, knobs};
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::event::{Event, Step};
use crate::record::trial::{self as record, StepTime, TrialRecord};
use crate::store::staging::Staging;
use crate::workload::Workload;
use std::path::{Path, PathBuf};
use window::WindowWatch;

pub use crash::come_back;

/// The action of a step.
type Act = fn(&mut Session<'_>, &mut Trial<'_>) -> Result<()>;

/// The steps that may fail, in order; tear-down and storing follow whatever happens. First what stays for later trials.
const PREPARE: &[(Step, Act)] = &[
    (Step::Check, check),
    (Step::Template, make_template),
    (Step::Images, stack::write_images),
    (Step::Precondition, drive::precondition_all),
];
const STAND: &[(Step, Act)] =
    &[(Step::Build, stack::build), (Step::Load, cluster::load), (Step::Age, age::age), (Step::Start, cluster::start)];
const SETTLE: (Step, Act) = (Step::Settle, settle::settle);
const WARM_UP: (Step, Act) = (Step::WarmUp, work::warm_up);
const MEASURE: (Step, Act) = (Step::Measure, work::measure);
const READ_BACK: (Step, Act) = (Step::ReadBack, cluster::read_back);

/// A trial in progress.
struct Trial<'s> {
    key: &'s TrialKey,
    case: &'s CaseSpec,
    record: TrialRecord,
    staging: Staging,
    workload: &'static dyn Workload,
    step: Step,
    /// When the step began; `None` while others have their turns.
    step_began: Option<time::Instant>,
    /// The step in which it failed.
    failed_in: Option<Step>,
    /// Entries of the ledger from this one on belong to the trial; `None` until it makes something.
    mark: Option<u64>,
    install: Option<Installation>,
    template: Option<Template>,
    stack: Option<BuiltStack>,
    /// Folder on the stack for the workload, or for the cluster.
    folder: Option<PathBuf>,
    /// The cluster on the stack while no server runs on it.
    cluster: Option<ServerSpec>,
    server: Option<Server>,
    /// Its checkpoints, from the start of the server.
    watch: Option<WindowWatch>,
    /// Commands run for it so far, while others stand beside it.
    commands: Vec<CommandLog>,
}

/// Outcome of a stored trial.
pub struct RanTrial {
    /// Time measured, microseconds; 0 if it was not run.
    pub measured_us: u64,
    /// Why it has no figures.
    pub failure: Option<TrialFailure>,
}

/// Runs one trial and stores it. The repeat of a disturbed one counts if it was not disturbed; otherwise the original
/// stands, which had its place in the balanced order.
///
/// # Errors
/// Interrupted; the run folder cannot be written; something cannot be undone. Not: a trial that failed.
pub fn run(session: &mut Session<'_>, case: &CaseSpec, key: &TrialKey, is_repeat: bool) -> Result<RanTrial> {
    if is_repeat {
        session.events.emit(Event::RepeatStarted { trial: key.clone() })?;
    }
    let begun = now();
    session.events.emit(Event::TrialStarted { trial: key.clone() })?;
    let mut trial = Trial::new(session, case, key)?;
    trial.record.is_repeat = is_repeat;
    let done = trial.all_steps(session);
    let done = trial.end(session, done);
    concluded(session, trial, done, micros(begun.elapsed()))
}

/// Stores a completed trial.
fn concluded(session: &mut Session<'_>, trial: Trial<'_>, done: Result<()>, wall_us: u64) -> Result<RanTrial> {
    let ran = stored(session, trial, done, wall_us)?;
    must_be_undone(session)?;
    Ok(ran)
}

fn stored(session: &mut Session<'_>, mut trial: Trial<'_>, done: Result<()>, wall_us: u64) -> Result<RanTrial> {
    let failure = match done {
        Err(e) if ends_the_run(&e) => return Err(e),
        // A full stack says nothing about the next.
        Err(e) => Some(trial.ended_early(session, &e)?).filter(|_| trial.record.full.is_none()),
        Ok(()) => None,
    };
    trial.enter(session, Step::Store)?;
    let measured_us = trial.store(session, wall_us)?;
    Ok(RanTrial { measured_us, failure })
}

/// Continuing would measure on top of the leftovers.
fn must_be_undone(session: &mut Session<'_>) -> Result<()> {
    session.undo_failure.take().map_or(Ok(()), |e| Err(e.hint("run `pgstrata clean`, then `pgstrata run --resume`")))
}

/// Stores a trial during which the guest of an earlier session died.
///
/// # Errors
/// When the run folder cannot be written.
pub fn died(session: &mut Session<'_>, case: &CaseSpec, key: &TrialKey, died: &Died) -> Result<()> {
    session.events.emit(Event::TrialStarted { trial: key.clone() })?;
    let mut trial = Trial::new(session, case, key)?;
    trial.failed_in = Some(died.step);
    trial.ended_early(session, &Error::tool(died.reason.clone()))?;
    trial.enter(session, Step::Store)?;
    trial.store(session, 0).map(drop)
}

/// True if a failure says nothing about the trial's stack, so that no more trials are run.
fn ends_the_run(e: &Error) -> bool {
    matches!(e.kind(), Kind::Interrupted | Kind::Store | Kind::Bug)
}

impl<'s> Trial<'s> {
    fn new(session: &Session<'_>, case: &'s CaseSpec, key: &'s TrialKey) -> Result<Trial<'s>> {
        let workload = case::workload(&case.workload.kind)?;
        let record = TrialRecord {
            format: record::FORMAT,
            run: session.record.id.clone(),
            trial: key.trial,
            case: case.clone(),
            operation: workload.operation(&case.workload.options)?,
            started: time::rfc3339(time::wall_us()),
            host: session.machine.clone(),
            ..TrialRecord::default()
        };
        let staging = session.events.writer().stage(key)?;
        Trial::of(case, key, record, staging)
    }

    /// A trial whose record has begun.
    fn of(case: &'s CaseSpec, key: &'s TrialKey, record: TrialRecord, staging: Staging) -> Result<Trial<'s>> {
        let workload = case::workload(&case.workload.kind)?;
        Ok(Trial {
            key,
            case,
            record,
            staging,
            workload,
            step: Step::Check,
            step_began: None,
            failed_in: None,
            mark: None,
            install: None,
            template: None,
            stack: None,
            folder: None,
            cluster: None,
            server: None,
            watch: None,
            commands: Vec::new(),
        })
    }

    /// Tears down; `done` is how the steps before went.
    fn end(&mut self, session: &mut Session<'_>, mut done: Result<()>) -> Result<()> {
        let reached = self.step;
        if let Err(e) = &done
            && self.record.counts.is_none()
            && self.record.full.is_none()
            && !ends_the_run(e)
        {
            self.note_full(session, e);
        }
        // A run folder that cannot be written must not prevent undoing.
        let entered = self.enter(session, Step::TearDown);
        self.stop_server(session);
        if let Some(mark) = self.mark {
            if self.stack.is_some() {
                self.record.notes.extend(knobs::strayed(&session.host, &session.ledger, mark));
            }
            session.undo_from(mark);
        }
        if self.record.counts.is_some() && self.record.turns.is_none() {
            // What was removed there is written by now, so that the probe does not meet what the case left.
            if let Some(folder) = existing_folder(&self.case.stack) {
                folders::sync_filesystem(folder).unwrap_or_default();
            }
            let probe = settle::probe_disk(&session.host, self);
            self.record.disk_probes.extend(probe);
        }
        if let Err(e) = &done {
            if self.record.counts.is_some() && !ends_the_run(e) {
                self.record.notes.push(format!("after the measurement, {} failed: {}", reached.doing(), e.chain()));
                done = Ok(());
            } else {
                self.failed_in = Some(reached);
            }
        }
        done.and(entered)
    }

    fn all_steps(&mut self, session: &mut Session<'_>) -> Result<()> {
        for steps in [PREPARE, STAND, &[SETTLE, WARM_UP, MEASURE, READ_BACK]] {
            self.steps(session, steps)?;
        }
        Ok(())
    }

    fn steps(&mut self, session: &mut Session<'_>, steps: &[(Step, Act)]) -> Result<()> {
        for (step, act) in steps.iter().copied() {
            // Measured figures are kept: a trial interrupted after its measurement runs to its end, and is the last.
            session.host = if self.record.counts.is_none() {
                session.interrupt.check()?;
                session.host.heeding(&session.interrupt)
            } else {
                session.host.heeding_none()
            };
            if self.has_no(session, step)? {
                continue;
            }
            self.enter(session, step)?;
            act(session, self)?;
        }
        Ok(())
    }

    /// True if a step has nothing to do.
    fn has_no(&self, session: &Session<'_>, step: Step) -> Result<bool> {
        Ok(match step {
            Step::Images => images::of_stack(&self.case.stack).is_empty(),
            Step::Precondition => drive::lacking(session, &self.case.stack)?.is_empty(),
            Step::Age => self.case.age.is_empty(),
            Step::Start => self.case.postgres.is_none(),
            // A server on a full stack may be unable to answer, or be dead.
            Step::ReadBack => self.record.full.is_some(),
            _ => false,
        })
    }

    /// Ends the previous step and begins this one.
    fn enter(&mut self, session: &Session<'_>, step: Step) -> Result<()> {
        let (warm_up_us, measure_us) = expected_us(self.case)?;
        let expected_us = match step {
            Step::WarmUp => Some(warm_up_us),
            Step::Measure => Some(measure_us),
            _ => None,
        };
        self.enter_for(session, step, expected_us)
    }

    /// The same for a step that is expected to take so long.
    fn enter_for(&mut self, session: &Session<'_>, step: Step, expected_us: Option<u64>) -> Result<()> {
        self.end_step();
        (self.step, self.step_began) = (step, Some(now()));
        session.events.emit(Event::StepStarted { trial: self.key.clone(), step, expected_us })
    }

    /// Records the duration of the step.
    fn end_step(&mut self) {
        let Some(wall_us) = self.step_began.take().map(|began| micros(began.elapsed())) else { return };
        match self.record.steps.last_mut().filter(|last| last.step == self.step) {
            Some(last) => last.wall_us += wall_us,
            None => self.record.steps.push(StepTime { step: self.step, wall_us }),
        }
    }

    fn stack(&self) -> Result<&BuiltStack> {
        self.stack.as_ref().ok_or_else(|| Error::bug("a step that needs the stack came before it"))
    }

    fn folder(&self) -> Result<&Path> {
        self.folder.as_deref().ok_or_else(|| Error::bug("a step that needs the folder on the stack came before it"))
    }

    /// The snapshots of the stack, for a workload or an ageing that makes some.
    fn snapshots<'a>(&'a self, session: &'a Session<'_>) -> Result<StackSnapshots<'a>> {
        StackSnapshots::of(&session.host, &session.ledger, &self.case.stack, self.stack()?)
    }
}

/// Checks that the machine meets the requirements of the case.
fn check(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let unmet = forecast::case_unmet(&session.host, trial.case, &session.images, &|stack| session.stands(stack));
    let Some(missing) = unmet.first() else { return Ok(()) };
    // It also ends the programs that are asked, which then look as if they were missing.
    session.interrupt.check()?;
    Err(Error::host(format!("a requirement is not met: {}", missing.what)).hint(missing.hint.clone()))
}

/// Makes the data for the case, if this is the first trial that needs them.
fn make_template(session: &mut Session<'_>, trial: &mut Trial<'_>) -> Result<()> {
    let Some(postgres) = &trial.case.postgres else { return Ok(()) };
    let install = install::find(&session.host, &postgres.bin)?;
    let raw = trial.staging.raw();
    let made = template::template(session, trial.case, &install, &raw)?;
    (trial.template, trial.install) = (Some(made), Some(install));
    Ok(())
}
