//! The machine crash of a trial in a guest, which takes this program down: what is handed to the next one, and how that
//! one continues ([ADR 30](../../../docs/adr/0030-killing-the-guest.md)). Not here: killing the guest, which the host
//! does.

use super::{RanTrial, Trial, cluster, concluded};
use crate::cluster::install;
use crate::cluster::server::Server;
use crate::cluster::spec::ServerSpec;
use crate::error::{Context, Error, Result};
use crate::host::command::CommandLog;
use crate::host::processes;
use crate::host::time::{self, Instant, micros, now, sleep};
use crate::provision::facts::Bases;
use crate::provision::images::Images;
use crate::provision::stack::reopen_stack;
use crate::provision::{guest_disk, knobs};
use crate::record::case::TrialKey;
use crate::record::event::{Event, Step};
use crate::record::recovery::BeforeCrash;
use crate::record::stack::End;
use crate::record::trial::{Gap, StepTime, TrialRecord};
use crate::run::case;
use crate::run::died::{Crashed, Died};
use crate::run::measure::second_event;
use crate::run::session::{Session, Templates};
use crate::units::Micros;
use crate::workload::{Crash, GuestIsBack, LoadEvent, Measuring, Place, Until, WindowProgress};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The host kills the guest as soon as it is asked. Beyond this it won't.
const KILL_LIMIT: Duration = Duration::from_secs(120);
const TURN: Duration = Duration::from_millis(100);

/// State of the trial and the session for the program that continues.
#[derive(Serialize, Deserialize)]
struct HandOver {
    record: TrialRecord,
    before: BeforeCrash,
    /// Image files of the stack, by node.
    images_of_stack: BTreeMap<String, PathBuf>,
    /// Folder of the cluster on the stack.
    folder: PathBuf,
    /// Folder of pg_wal, if separate.
    wal: Option<PathBuf>,
    settings: BTreeMap<String, String>,
    images: Images,
    templates: Templates,
}

/// Stores the first half of the trial, with its counts in the record, and asks for the guest to be killed. Returns only
/// if that does not happen.
pub(super) fn hand_over(session: &mut Session<'_>, trial: &mut Trial<'_>, before: BeforeCrash) -> Result<()> {
    let server = trial.server.as_ref();
    let spec = &server.ok_or_else(|| Error::bug("a guest was to be killed before its server ran"))?.spec;
    let mut record = trial.record.clone();
    record.counts = None;
    record
        .steps
        .push(StepTime { step: Step::Measure, wall_us: trial.step_began.map_or(0, |began| micros(began.elapsed())) });
    // In the second half the counters would start anew.
    record.gaps.push(Gap {
        source: "telemetry after the crash".to_owned(),
        second: None,
        rows: 0,
        reason: "the guest was killed; latencies and waits are of the load before it, too".to_owned(),
    });
    let hand_over = HandOver {
        record,
        before,
        images_of_stack: images_of_stack(session, trial)?,
        folder: trial.folder()?.to_path_buf(),
        wal: spec.wal.clone(),
        settings: spec.settings.clone(),
        images: session.images.clone(),
        templates: session.templates.clone(),
    };
    super::store::write_commands(&trial.staging, "commands-before-crash.jsonl", &session.host.take_command_log())?;
    let content = serde_json::to_vec(&hand_over).or_store(|| "write the first half of the trial".to_owned())?;
    trial.staging.hand_over(&content)?;
    let raw = trial.staging.raw();
    trial.workload.await_end(&trial.place(session, &raw)?, &|since_answer_us, answers_apart_us| {
        let key = trial.key.clone();
        session.events.emit(Event::CrashAsked { trial: key, since_answer_us, answers_apart_us })?;
        let asked = now();
        while asked.elapsed() < KILL_LIMIT {
            session.interrupt.check()?;
            sleep(TURN);
        }
        let message = format!("the guest was to be killed, and still runs after {} s", KILL_LIMIT.as_secs());
        Err(Error::tool(message).hint("`pgstrata run --guest` does that; is it of the same version?"))
    })
}

/// Images below the stack by node, including those made for this trial alone, and serial numbers of the guest's own
/// disks.
fn images_of_stack(session: &Session<'_>, trial: &Trial<'_>) -> Result<BTreeMap<String, PathBuf>> {
    let mut images = session.images.by_node(&trial.case.stack);
    for node in &trial.stack()?.facts.nodes {
        let Some(layer) = &node.layer else { continue };
        let serial = node.details.get(guest_disk::SERIAL).filter(|_| layer == guest_disk::NAME);
        if let Some(image) = node.details.get("image").or(serial) {
            images.entry(node.name.clone()).or_insert_with(|| PathBuf::from(image));
        }
    }
    Ok(images)
}

/// Continues a trial after the crash of its guest, and stores it.
///
/// # Errors
/// As [`super::run`].
pub fn come_back(session: &mut Session<'_>, crashed: &Crashed) -> Result<RanTrial> {
    let begun = now();
    let own_age_us = processes::own_age_us(&session.host).unwrap_or(0);
    let away_us = crashed.since_answer_us + crashed.down_us + own_age_us;
    let key: &TrialKey = &crashed.trial;
    session.events.emit(Event::CrashSurvived { trial: key.clone(), away_us })?;
    let case = case::of_trial(&session.record, key)?.clone();
    let staging = session.events.writer().staged(key);
    let read = staging.and_then(|staging| {
        let content = staging.take_over()?;
        let hand_over: HandOver =
            serde_json::from_slice(&content).or_store(|| "read what was handed over".to_owned())?;
        Ok((staging, hand_over))
    });
    let (staging, hand_over) = match read {
        Ok(read) => read,
        Err(e) => {
            let died = Died { trial: key.clone(), step: Step::Measure, reason: e.chain() };
            super::died(session, &case, key, &died)?;
            return Ok(RanTrial { measured_us: 0, failure: None });
        }
    };
    session.images = hand_over.images.clone();
    session.templates = hand_over.templates.clone();
    // Earlier entries are the run's folder and processes of this session, then whatever the trial made before the
    // crash: that is undone with the session.
    let mark = session.ledger.mark();
    let mut trial = Trial::of(&case, key, hand_over.record.clone(), staging)?;
    (trial.step, trial.step_began, trial.mark) = (Step::Measure, Some(begun), Some(mark));
    let done = measure_on(session, &mut trial, &hand_over, crashed, away_us).and_then(|()| {
        trial.enter(session, Step::ReadBack)?;
        cluster::read_back(session, &mut trial)
    });
    let done = trial.end(session, done);
    let before_us = hand_over.record.steps.iter().map(|step| step.wall_us).sum::<u64>();
    concluded(session, trial, done, before_us + micros(begun.elapsed()))
}

/// Opens the stack, lets the workload watch the server start, and measures what follows.
fn measure_on(
    session: &mut Session<'_>,
    trial: &mut Trial<'_>,
    hand_over: &HandOver,
    crashed: &Crashed,
    away_us: u64,
) -> Result<()> {
    session.interrupt.check()?;
    let begun = trial.step_began.unwrap_or_else(now);
    let (opened, mounts_us) = open(session, trial, hand_over)?;
    trial.folder = Some(hand_over.folder.clone());
    let bin = trial.case.postgres.as_ref().map(|postgres| &postgres.bin);
    trial.install = bin.map(|bin| install::find(&session.host, bin)).transpose()?;
    trial.server = Some(Server::crashed(server_spec(session, trial, hand_over)?));
    let (before, answers_apart_us) = (&hand_over.before, crashed.answers_apart_us);
    let crash = Some(Crash::GuestIsBack(GuestIsBack { before, away_us, answers_apart_us, begun, opened, mounts_us }));
    let raw = trial.staging.raw();
    let counts = trial.workload.measure(Measuring {
        place: &Place { crash, ..trial.place(session, &raw)? },
        options: &trial.options(),
        memory: session.memory_of(trial.case),
        until: Until { longest: Micros(0), operations: None, progress: &mut || Ok(WindowProgress::default()) },
        // The seconds of the second half are shown, but stored only in the counts of the recovery.
        listener: &|event| {
            if let LoadEvent::Second(second) = event {
                // A run folder that cannot be written is reported when the trial is stored.
                drop(session.events.emit(second_event(trial.key, &second)));
            }
        },
    })?;
    if let Some(window) = &mut trial.record.window {
        window.ended_us = time::wall_us();
    }
    trial.record.counts = Some(counts);
    Ok(())
}

/// Opens the stack in the state left by the crash. Returns when it was open, and the total time of the mounts,
/// microseconds.
fn open(session: &mut Session<'_>, trial: &mut Trial<'_>, hand_over: &HandOver) -> Result<(Instant, u64)> {
    let spec = &trial.case.stack;
    knobs::set_machine(&session.host, &session.ledger, &trial.case.machine)
        .map_err(|e| e.while_doing("set the knobs of the kernel"))?;
    let name = super::site::name_of(session, spec, &trial.key.trial.to_string());
    let site = super::site::site(session, name, &hand_over.images_of_stack);
    let before = session.host.command_log().len();
    let built = reopen_stack(&site, spec, Bases::new())
        .map_err(|e| e.while_doing(format!("open the stack {} after the crash", spec.name)))?;
    let opened = now();
    let mounts_us = session.host.command_log().iter().skip(before).filter_map(mount_us).sum();
    trial.stack = Some(built);
    Ok((opened, mounts_us))
}

/// Duration of a command, if it mounts.
fn mount_us(command: &CommandLog) -> Option<u64> {
    let mut words = command.command.split_whitespace();
    let is_mount = match words.next().map(|program| program.rsplit('/').next().unwrap_or(program)) {
        Some("mount") => true,
        Some("zpool") => words.next() == Some("import"),
        Some("zfs") => words.next() == Some("mount"),
        _ => false,
    };
    command.wall_us.filter(|_| is_mount)
}

/// The server as before, on the same existing folders.
fn server_spec(session: &Session<'_>, trial: &Trial<'_>, hand_over: &HandOver) -> Result<ServerSpec> {
    // Its files refer to it by that path: tablespaces, and pg_wal.
    let data = trial.stack()?.folders.get(&End::Data).filter(|folder| hand_over.folder.starts_with(folder));
    data.ok_or_else(|| Error::bug(format!("{} is not where it was before the crash", hand_over.folder.display())))?;
    let spec = cluster::server_spec(session, trial, hand_over.wal.clone())?;
    Ok(ServerSpec { settings: hand_over.settings.clone(), ..spec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_time_is_that_of_the_mount_commands_alone() {
        let us = |command: &str| {
            let (user, at_us, wall_us, exit_code) = (None, 0, Some(7), Some(0));
            mount_us(&CommandLog { command: command.to_owned(), user, at_us, wall_us, exit_code })
        };
        for command in ["mount -t ext4 /dev/loop0 /run/x", "/usr/sbin/zpool import -N p", "zfs mount p/d"] {
            assert_eq!(us(command), Some(7), "{command}");
        }
        for command in ["mountpoint /run/x", "losetup --show -f mount", "zpool get all p", "zfs set mountpoint=/x p"] {
            assert_eq!(us(command), None, "{command}");
        }
    }
}
