//! One trial: requirements checked, stack built, cluster made, warm-up, measurement, tear-down, stored.
//!
//! Whatever happens in between, the trial ends with everything undone that it made, and with a record: of figures, or
//! of the stage and the reason that there are none.

use super::forecast;
use super::measure::Measurement;
use super::session::{KeptStack, Session};
use super::template::{self, Template};
use super::undo;
use crate::cluster::install::{self, Installation};
use crate::cluster::server::{self, Server, ServerSpec};
use crate::error::{Context, Error, Kind, Result};
use crate::host::command::CommandLog;
use crate::host::files;
use crate::host::time::{self, micros, now};
use crate::provision::Site;
use crate::provision::stack::{self, BuiltStack};
use crate::record::case::{CaseSpec, PostgresSpec, StackSpec, TrialKey};
use crate::record::event::{Event, Stage};
use crate::record::facts::{DataFacts, Fits, ServerFacts};
use crate::record::operation::CacheState;
use crate::record::trial::{self as record, Outcome, StageTime, TrialRecord};
use crate::store::staging::Staging;
use crate::telemetry::{ServerAddress, Target};
use crate::workload::{Place, Workload};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A checkpoint of freshly copied data writes little, but a stack may be slow; beyond this it hangs.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(3600);

/// Bytes that must be free for the results of a trial: a few pages for the record and what the tools said.
const LEAST_ROOM: u64 = 64 << 10;

/// A trial on its way.
struct Draft<'a> {
    key: &'a TrialKey,
    case: &'a CaseSpec,
    record: TrialRecord,
    stage: Stage,
    stage_began: time::Instant,
}

/// The grounds that a trial stands on.
struct Grounds {
    data: BuiltStack,
    wal: Option<BuiltStack>,
}

/// Runs one trial and stores it. Returns the microseconds that were measured (0 for one not run).
///
/// # Errors
/// Interrupted; the run folder cannot be written; something cannot be undone. Not: a trial that failed.
pub fn run(session: &mut Session<'_>, case: &CaseSpec, key: &TrialKey) -> Result<u64> {
    let begun = now();
    session.events.emit(Event::TrialStarted { trial: key.clone() })?;
    let staging = session.events.writer().stage(key)?;
    let mut draft = Draft::new(session, case, key)?;
    let outcome = attempt(session, &mut draft, &staging);
    match outcome {
        Ok(()) => {}
        Err(e) if matches!(e.kind(), Kind::Interrupted | Kind::Store | Kind::Bug) => return Err(e),
        Err(e) => {
            refuse_full_store(session, &e)?;
            draft.record.outcome =
                Outcome::NotRun { stage: draft.stage, reason: e.chain(), hint: e.hint_text().map(str::to_owned) };
        }
    }
    draft.enter(session, Stage::Store)?;
    let measured_us = finish(session, draft, staging, micros(begun.elapsed()))?;
    match session.stuck.take() {
        // Going on would measure on top of what is left.
        Some(e) => Err(e.hint("`pgstrata clean` tries again; then go on with --resume")),
        None => Ok(measured_us),
    }
}

/// A trial that failed while the run folder's own disk was full says nothing about its stack: the tools could not write
/// their output.
fn refuse_full_store(session: &Session<'_>, failure: &Error) -> Result<()> {
    let folder = session.events.writer().folder().path().to_path_buf();
    if files::free_bytes(&folder)? >= LEAST_ROOM {
        return Ok(());
    }
    Err(Error::store(format!("no space is left for results in {}; the trial ended with: {failure}", folder.display())))
}

/// Stores a trial and tells how it ended.
fn finish(session: &Session<'_>, mut draft: Draft<'_>, staging: Staging, wall_us: u64) -> Result<u64> {
    draft.end_stage();
    write_commands(&staging, &session.host.take_command_log())?;
    let trial = draft.key.clone();
    staging.commit(&draft.record)?;
    if let Outcome::NotRun { stage, reason, .. } = draft.record.outcome {
        session.events.emit(Event::TrialNotRun { trial, stage, reason })?;
        return Ok(0);
    }
    let counts = draft.record.counts.unwrap_or_default();
    let rate = counts
        .measures
        .first()
        .and_then(|m| m.done.filter(|_| m.elapsed_us > 0).map(|done| done as f64 * 1e6 / m.elapsed_us as f64));
    session.events.emit(Event::TrialDone { trial, wall_us, measured_us: counts.elapsed_us, rate })?;
    Ok(counts.elapsed_us)
}

fn write_commands(staging: &Staging, log: &[CommandLog]) -> Result<()> {
    let mut text = String::new();
    for command in log {
        text.push_str(&serde_json::to_string(command).or_store(|| "write the log of commands".to_owned())?);
        text.push('\n');
    }
    files::write_whole(&staging.raw().join("commands.jsonl"), text.as_bytes())
}

/// Everything up to the tear-down, and the tear-down.
fn attempt(session: &mut Session<'_>, draft: &mut Draft<'_>, staging: &Staging) -> Result<()> {
    draft.enter(session, Stage::Check)?;
    let unmet = forecast::case_unmet(&session.host, draft.case, &|stack| session.stands(stack));
    if let Some(missing) = unmet.first() {
        return Err(Error::host(format!("a requirement is not met: {}", missing.what)).hint(missing.hint.clone()));
    }
    let workload = forecast::workload(&draft.case.workload.kind)?;
    let server = match &draft.case.postgres {
        None => None,
        Some(postgres) => {
            let install = install::find(&session.host, &postgres.bin)?;
            draft.enter(session, Stage::Template)?;
            let template = template::template(session, draft.case, postgres, &install, workload, &staging.raw())?;
            Some((postgres.clone(), install, template))
        }
    };
    keep_stacks(session, draft)?;
    let mark = session.ledger.mark();
    let measured = on_stack(session, draft, staging, workload, server);
    let failed_in = draft.stage;
    // A run folder that takes no more must keep nothing from being undone.
    let told = draft.enter(session, Stage::TearDown);
    session.undo_from(mark);
    if measured.is_err() {
        draft.stage = failed_in;
    }
    measured.and(told)
}

/// Builds the stacks of the case that are kept for the whole run and are not there yet.
fn keep_stacks(session: &mut Session<'_>, draft: &mut Draft<'_>) -> Result<()> {
    for spec in [Some(&draft.case.stack), draft.case.wal_stack.as_ref()].into_iter().flatten() {
        if !spec.reuse || session.stands(spec) {
            continue;
        }
        draft.enter(session, Stage::Build)?;
        let mark = session.ledger.mark();
        match build(session, spec, "kept") {
            Ok(built) => {
                session.kept.insert(spec.name.clone(), KeptStack { built, made: now(), trials: 0 });
            }
            Err(e) => {
                session.undo_from(mark);
                return Err(e);
            }
        }
    }
    Ok(())
}

fn build(session: &Session<'_>, spec: &StackSpec, trial: &str) -> Result<BuiltStack> {
    let site = Site {
        host: &session.host,
        ledger: &session.ledger,
        name: format!("pgstrata-{}-{trial}-{}", session.record.id, spec.name),
        folder: session.folder.clone(),
        interrupt: &session.interrupt,
    };
    stack::build_stack(&site, spec).map_err(|e| e.while_doing(format!("build the stack {}", spec.name)))
}

/// The stack of a trial: fresh, or the one that is kept, with its age.
fn ground(session: &mut Session<'_>, spec: &StackSpec, key: &TrialKey) -> Result<BuiltStack> {
    match session.kept.get_mut(&spec.name) {
        Some(kept) if spec.reuse => {
            let mut built = kept.built.clone();
            built.facts.trials_before = kept.trials;
            built.facts.age_s = Some(kept.made.elapsed().as_secs_f64());
            kept.trials += 1;
            Ok(built)
        }
        _ => build(session, spec, &key.trial.to_string()),
    }
}

fn on_stack(
    session: &mut Session<'_>,
    draft: &mut Draft<'_>,
    staging: &Staging,
    workload: &dyn Workload,
    server: Option<(PostgresSpec, Installation, Template)>,
) -> Result<()> {
    draft.enter(session, Stage::Build)?;
    let data = ground(session, &draft.case.stack, draft.key)?;
    draft.record.stack = Some(data.facts.clone());
    let wal = match &draft.case.wal_stack {
        Some(spec) => Some(ground(session, spec, draft.key)?),
        None => None,
    };
    draft.record.wal_stack = wal.as_ref().map(|wal| wal.facts.clone());
    let grounds = Grounds { data, wal };
    session.interrupt.check()?;
    draft.enter(session, Stage::Load)?;
    let folder = folder_on(session, &draft.case.stack, &grounds.data.folder.join("pgstrata-data"))?;
    let Some((postgres, install, template)) = server else {
        return run_workload(session, draft, staging, workload, &folder, None, &grounds);
    };
    let spec = server_spec(session, draft.case, &postgres, install, &folder, &grounds, staging)?;
    let running = load(session, draft, &template, spec)?;
    run_workload(session, draft, staging, workload, &folder, Some(&running), &grounds)?;
    // The measurement is complete: what fails from here on is noted, and the figures stand.
    if let Err(e) = draft.data_size(&running, session) {
        draft.record.notes.push(format!("the size of the data after the measurement is not known: {}", e.chain()));
    }
    draft.enter(session, Stage::TearDown)?;
    if let Err(e) = running.stop(&session.host) {
        draft.record.notes.push(format!("after the measurement the server did not stop in good order: {}", e.chain()));
    }
    Ok(())
}

/// A folder on a stack for the server's user. On a stack that is kept the ledger has it too: it goes before the stack.
fn folder_on(session: &Session<'_>, spec: &StackSpec, path: &Path) -> Result<PathBuf> {
    if spec.reuse {
        return undo::make_folder_for(&session.ledger, path, &session.user);
    }
    files::make_folder(path, 0o700)?;
    files::give_to(path, &session.user)?;
    Ok(path.to_path_buf())
}

fn server_spec(
    session: &Session<'_>,
    case: &CaseSpec,
    postgres: &PostgresSpec,
    install: Installation,
    folder: &Path,
    grounds: &Grounds,
    staging: &Staging,
) -> Result<ServerSpec> {
    let wal = match (&case.wal_stack, &grounds.wal) {
        (Some(spec), Some(wal)) => Some(folder_on(session, spec, &wal.folder.join("pgstrata-wal"))?.join("pg_wal")),
        _ => None,
    };
    Ok(ServerSpec {
        install,
        user: session.user.clone(),
        data: folder.join("cluster"),
        wal,
        socket_folder: undo::make_folder_for(&session.ledger, &session.folder.join("pgstrata-socket"), &session.user)?,
        log: staging.raw().join("server.log"),
        settings: postgres.settings.clone(),
        initdb: postgres.initdb.clone(),
    })
}

/// Copies the data in, starts the server and reads back what it is.
fn load(session: &Session<'_>, draft: &mut Draft<'_>, template: &Template, spec: ServerSpec) -> Result<Server> {
    let begun = now();
    let bytes = server::copy(&session.host, &template.data, &spec, &session.interrupt)?;
    let copy_s = begun.elapsed().as_secs_f64();
    let cache = draft.record.operation.cache.unwrap_or(CacheState::Warm);
    template::set_cache(&spec.data, cache)?;
    session.ledger.enter(undo::server_thing(&spec)?)?;
    let server = Server::start(&session.host, spec, &session.interrupt)?;
    let mut client = server.connect(server::DATABASE)?;
    client.set_limit(CHECKPOINT_LIMIT)?;
    client.query("CHECKPOINT")?;
    let facts = server.facts()?;
    draft.record.data = Some(DataFacts {
        database_bytes: template.database_bytes,
        fits: fits(template.database_bytes, &facts, session.memory.0),
        cache_state: template::described(cache).to_owned(),
        origin: format!("{bytes} bytes copied as files from a template made in this run, then synced, then CHECKPOINT"),
        copy_s: Some(copy_s),
        template_s: Some(template.seconds),
    });
    draft.record.server = Some(facts);
    Ok(server)
}

fn fits(bytes: u64, facts: &ServerFacts, memory: u64) -> Fits {
    if bytes <= facts.shared_buffers_bytes {
        Fits::SharedBuffers
    } else if bytes <= memory {
        Fits::Memory
    } else {
        Fits::Neither
    }
}

fn run_workload(
    session: &Session<'_>,
    draft: &mut Draft<'_>,
    staging: &Staging,
    workload: &dyn Workload,
    folder: &Path,
    server: Option<&Server>,
    grounds: &Grounds,
) -> Result<()> {
    let options = &draft.case.workload.options;
    let raw_folder = staging.raw();
    let place = Place {
        host: &session.host,
        folder,
        server,
        user: &session.user,
        interrupt: &session.interrupt,
        raw: &raw_folder,
    };
    draft.enter(session, Stage::Warmup)?;
    workload.warm_up(&place, options, session.memory)?;
    session.interrupt.check()?;
    draft.enter(session, Stage::Measure)?;
    let target = Target {
        data_devices: grounds.data.facts.devices.clone(),
        wal_devices: grounds.wal.as_ref().map(|wal| wal.facts.devices.clone()).unwrap_or_default(),
        server: server.map(|server| ServerAddress {
            socket: server.spec.socket(),
            database: server::DATABASE.to_owned(),
            user: server::ROLE.to_owned(),
        }),
    };
    let measured = Measurement {
        host: &session.host,
        key: draft.key,
        run: &session.record.id,
        workload,
        options,
        memory: session.memory,
        target: &target,
        events: &session.events,
    }
    .run(&place, &staging.seconds(), &staging.latencies())?;
    if measured.began_us.is_none() {
        return Err(
            Error::tool("the workload ended without having done anything").hint("a longer duration or a higher rate")
        );
    }
    draft.record.counts = Some(measured.counts);
    draft.record.waits = measured.waits;
    draft.record.columns = measured.columns;
    draft.record.gaps = measured.gaps;
    draft.record.telemetry_cpu_us = Some(measured.telemetry_cpu_us);
    Ok(())
}

impl<'a> Draft<'a> {
    fn new(session: &Session<'_>, case: &'a CaseSpec, key: &'a TrialKey) -> Result<Draft<'a>> {
        let operation = forecast::workload(&case.workload.kind)?.operation(&case.workload.options)?;
        let record = TrialRecord {
            format: record::FORMAT,
            run: session.record.id.clone(),
            trial: key.trial,
            case: case.clone(),
            operation,
            outcome: Outcome::Measured,
            started: time::rfc3339(time::wall_us()),
            stages: Vec::new(),
            stack: None,
            wal_stack: None,
            server: None,
            data: None,
            counts: None,
            waits: None,
            columns: Vec::new(),
            gaps: Vec::new(),
            telemetry_cpu_us: None,
            notes: Vec::new(),
        };
        Ok(Draft { key, case, record, stage: Stage::Check, stage_began: now() })
    }

    /// Ends the stage before and begins this one (nothing to do when it is this one already).
    fn enter(&mut self, session: &Session<'_>, stage: Stage) -> Result<()> {
        if self.stage == stage && !self.record.stages.is_empty() {
            return Ok(());
        }
        if stage != Stage::Check {
            self.end_stage();
        }
        (self.stage, self.stage_began) = (stage, now());
        let workload = forecast::workload(&self.case.workload.kind)?;
        let (warm_up, measure) = workload.spans(&self.case.workload.options);
        let expected_us = match stage {
            Stage::Warmup => Some(warm_up.0),
            Stage::Measure => Some(measure.0),
            _ => None,
        };
        session.events.emit(Event::StageStarted { trial: self.key.clone(), stage, expected_us })
    }

    /// Notes how long the stage took; a stage entered twice adds up.
    fn end_stage(&mut self) {
        let wall_us = micros(self.stage_began.elapsed());
        match self.record.stages.iter_mut().find(|time| time.stage == self.stage) {
            Some(time) => time.wall_us += wall_us,
            None => self.record.stages.push(StageTime { stage: self.stage, wall_us }),
        }
        self.stage_began = now();
    }

    /// The data have grown: what counts is their size at the end.
    fn data_size(&mut self, server: &Server, session: &Session<'_>) -> Result<()> {
        let bytes = template::database_bytes(server)?;
        if let (Some(data), Some(facts)) = (&mut self.record.data, &self.record.server) {
            data.database_bytes = bytes;
            data.fits = fits(bytes, facts, session.memory.0);
        }
        Ok(())
    }
}
