//! The outage: the crash, the start, and its phases in order.
//!
//! Our own clock times what precedes the server's log, and the first answer; the log times the rest, to the
//! millisecond. Each phase ends where the next begins, so that nothing is left over unless the log lacks a line.

use super::witness::{Clock, watch};
use crate::cluster::server::{DATABASE, Server};
use crate::error::{Error, Result};
use crate::host::threads;
use crate::host::time::{now, sleep};
use crate::parse::recovery_log::{self, RecoveryLog};
use crate::record::recovery::CrashKind;
use crate::record::stage::{StageCounts, StageKind};
use crate::workload::pgbench::drive;
use crate::workload::{Crash, CrashActions, GuestIsBack, Place, stage};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long the client running alongside commits before the crash, and longer while it has no answer: a stack may
/// stall, and an outage is measured from a commit.
const BEFORE: Duration = Duration::from_millis(500);

/// A server that answers us answers the client running alongside too, before and after a crash; beyond this something
/// hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

const BEFORE_CRASH: &str = "the client beside the server got no answer to a commit before the crash";
const AFTER_START: &str = "the server started after the crash, but a commit was not answered";

/// Bytes per page.
pub const BLOCK_SIZE: &str = "SELECT current_setting('block_size')";

/// Stages that a guest calls something else, or does not have.
const PROCESSES: &str = "end of the processes";
const UNMOUNT: &str = "unmount";
const DEVICES: &str = "opening the devices";
const AWAY: &str = "kill and boot of the guest";

pub struct Outage {
    /// The outage and its phases.
    pub stages: Vec<StageCounts>,
    /// Wall clock, microseconds since 1970.
    pub first_answer_us: u64,
    pub answers_apart_us: u64,
}

#[derive(Debug, Clone, Copy)]
struct Moments {
    last_answer_us: u64,
    /// When all processes were gone.
    gone_us: u64,
    /// Start and end of the mounts, if the machine crashed.
    mount_us: Option<(u64, u64)>,
    first_answer_us: u64,
}

/// Crashes the server and starts it again.
pub fn of(place: &Place<'_>, crash: CrashKind) -> Result<Outage> {
    let server = drive::server_of(place)?;
    let clock = Clock::begin();
    let block_bytes = server.connect(DATABASE)?.number(BLOCK_SIZE)?;
    let (moments, answers_apart_us) = watched(server, clock, |heard| crash_and_start(place, crash, clock, heard))?;
    let log = recovery_log::parse(&server.log_text())?;
    let stages = stages(&log, moments, block_bytes);
    Ok(Outage { stages, first_answer_us: moments.first_answer_us, answers_apart_us })
}

/// Has a client commit for a while, then calls `ask` to get the guest killed; returns if that did not happen.
pub fn await_end(place: &Place<'_>, ask: &dyn Fn(u64, u64) -> Result<()>) -> Result<()> {
    let clock = Clock::begin();
    // The client keeps committing: a server that is killed without commits would have nothing to lose.
    watched(drive::server_of(place)?, clock, |heard| {
        let mut answers = committed(place, heard, clock)?;
        answers.extend(heard.try_iter());
        let asked_us = clock.us();
        let (last_us, apart_us) = before(&answers, asked_us)?;
        ask(asked_us.saturating_sub(last_us), apart_us)
    })
}

/// Starts the server in a guest that was killed and is back with its stack open: the outage from the opening on, and
/// separately how long the guest was away.
pub fn after_guest(place: &Place<'_>, back: &GuestIsBack<'_>) -> Result<Outage> {
    let server = drive::server_of(place)?;
    let clock = Clock::begin();
    let (begun_us, opened_us) = (clock.at(back.begun), clock.at(back.opened));
    let first_answer_us = watched(server, clock, |heard| {
        server.restart(place.host, place.interrupt)?;
        answer(place, heard, AFTER_START)
    })?;
    let moments = Moments {
        last_answer_us: begun_us,
        gone_us: begun_us,
        mount_us: Some((opened_us.saturating_sub(back.mounts_us).max(begun_us), opened_us)),
        first_answer_us,
    };
    let log = recovery_log::parse(&server.log_text())?;
    let stages = of_guest(stages(&log, moments, back.before.block_bytes), back.away_us);
    Ok(Outage { stages, first_answer_us, answers_apart_us: back.answers_apart_us })
}

/// Runs `act` while a client commits; `act` receives the times of the answers.
fn watched<T>(server: &Server, clock: Clock, act: impl FnOnce(&Receiver<u64>) -> Result<T>) -> Result<T> {
    let stop = AtomicBool::new(false);
    let (answers, heard) = channel();
    std::thread::scope(|scope| {
        threads::begin(scope, || watch(server, clock, &answers, &stop))?;
        let done = act(&heard);
        stop.store(true, Ordering::SeqCst);
        done
    })
}

/// Renames the stages for a guest: opening devices precedes the mounts, and no process has to end.
fn of_guest(mut stages: Vec<StageCounts>, away_us: u64) -> Vec<StageCounts> {
    stages.retain(|stage| stage.name != PROCESSES);
    for stage in stages.iter_mut().filter(|stage| stage.name == UNMOUNT) {
        DEVICES.clone_into(&mut stage.name);
    }
    stages.push(stage(AWAY, StageKind::Beside, away_us, None));
    stages
}

/// The crash and the start, with the longest time between two answers to the client before the crash.
fn crash_and_start(place: &Place<'_>, crash: CrashKind, clock: Clock, heard: &Receiver<u64>) -> Result<(Moments, u64)> {
    let server = drive::server_of(place)?;
    let machine = match crash {
        CrashKind::Process => None,
        CrashKind::Machine | CrashKind::Guest => Some(filesystems(place)?),
    };
    let mut answers = committed(place, heard, clock)?;
    let began_us = clock.us();
    if let Some(machine) = machine {
        (machine.stop)()?;
    }
    server.kill_all(place.host)?;
    let gone_us = clock.us();
    answers.extend(heard.try_iter());
    let mounts_us = machine.map(|machine| (machine.open)()).transpose()?;
    let ended_us = clock.us();
    let mount_us = mounts_us.map(|mounts_us| (ended_us.saturating_sub(mounts_us).max(gone_us), ended_us));
    server.restart(place.host, place.interrupt)?;
    let first_answer_us = answer(place, heard, AFTER_START)?;
    let (last_answer_us, answers_apart_us) = before(&answers, began_us)?;
    Ok((Moments { last_answer_us, gone_us, mount_us, first_answer_us }, answers_apart_us))
}

fn filesystems<'p>(place: &'p Place<'_>) -> Result<&'p CrashActions<'p>> {
    match &place.crash {
        Some(Crash::Filesystems(machine)) => Ok(machine),
        _ => Err(Error::bug("the workload may not crash the machine")),
    }
}

/// Answers before the crash, at least one. If the stack stalls the whole time, the beginning counts as an answer too,
/// so that the stall shows in the longest time between answers.
fn committed(place: &Place<'_>, heard: &Receiver<u64>, clock: Clock) -> Result<Vec<u64>> {
    let begun_us = clock.us();
    sleep(BEFORE);
    let answers: Vec<u64> = heard.try_iter().collect();
    if !answers.is_empty() {
        return Ok(answers);
    }
    let late =
        answer(place, heard, BEFORE_CRASH).map_err(|error| error.hint("the stack stalled: check the server log"))?;
    Ok(vec![begun_us, late])
}

/// The next answer to the client. `missing` begins the error if none comes.
fn answer(place: &Place<'_>, heard: &Receiver<u64>, missing: &str) -> Result<u64> {
    let begun = now();
    loop {
        if let Ok(at_us) = heard.recv_timeout(Duration::from_millis(20)) {
            return Ok(at_us);
        }
        place.interrupt.check()?;
        if begun.elapsed() > ANSWER_LIMIT {
            return Err(Error::tool(format!("{missing} within {} s", ANSWER_LIMIT.as_secs())));
        }
    }
}

/// The last answer before the crash, and the longest time between two answers, the crash included.
fn before(answers: &[u64], crash_us: u64) -> Result<(u64, u64)> {
    let last = answers.last().ok_or_else(|| Error::tool(BEFORE_CRASH))?;
    let apart = answers.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    Ok((*last, apart.max(crash_us.saturating_sub(*last))))
}

/// The outage, its phases in order, and the remainder. Phases missing from the log are left out.
fn stages(log: &RecoveryLog, moments: Moments, block_bytes: u64) -> Vec<StageCounts> {
    let (redo_began, redo_ended) = (log.redo_began.map(|mark| mark.at_us), log.redo_ended.map(|mark| mark.at_us));
    let redone = log.redo_began.zip(log.redo_ended).map(|(from, to)| to.lsn.saturating_sub(from.lsn));
    let (checkpoint_began, checkpoint_ended) =
        log.checkpoint.as_ref().map(|(from, done)| (*from, done.ended_us)).unzip();
    let written = log.checkpoint.as_ref().map(|(_, done)| done.buffers * block_bytes);
    let gone = Some(moments.gone_us);
    let (mount_began, mount_ended) = moments.mount_us.unzip();
    let parts = [
        (PROCESSES, Some(moments.last_answer_us), gone, None),
        (UNMOUNT, mount_began.and(gone), mount_began, None),
        ("mount with journal replay", mount_began, mount_ended, None),
        ("start of the server", mount_ended.or(gone), log.interrupted_us, None),
        ("fsync pass", log.interrupted_us, log.recovering_us, None),
        ("preparing redo", log.recovering_us, redo_began, None),
        ("redo", redo_began, redo_ended, redone),
        ("ending redo", redo_ended, checkpoint_began, None),
        ("end-of-recovery checkpoint", checkpoint_began, checkpoint_ended, written),
        ("checkpoint to ready", checkpoint_ended, log.ready_us, None),
        ("ready to first answer", log.ready_us, Some(moments.first_answer_us), None),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(name, from, to, bytes)| Some(stage(name, StageKind::Part, to?.saturating_sub(from?), bytes)));
    let parts: Vec<StageCounts> = parts.collect();
    let whole_us = moments.first_answer_us.saturating_sub(moments.last_answer_us);
    let rest_us = whole_us.saturating_sub(parts.iter().map(|part| part.length_us).sum());
    let mut stages = vec![stage("outage", StageKind::Ranked, whole_us, None)];
    stages.extend(parts);
    stages.push(stage("rest of the outage", StageKind::Part, rest_us, None));
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(version: u32) -> RecoveryLog {
        let path = format!("{}/tests/fixtures/recovery_log/{version}.log", env!("CARGO_MANIFEST_DIR"));
        recovery_log::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn the_parts_and_the_rest_add_up_to_the_outage() {
        for (version, parts) in [(15, [450_000, 185_000, 198_000]), (18, [1_352_000, 234_000, 246_000])] {
            let log = log(version);
            let began = log.interrupted_us.unwrap();
            let moments = Moments {
                last_answer_us: began - 60_000,
                gone_us: began - 40_000,
                mount_us: (version == 18).then_some((began - 32_000, began - 25_000)),
                first_answer_us: log.ready_us.unwrap() + 3_000,
            };
            let stages = stages(&log, moments, 8192);
            let of = |name: &str| stages.iter().find(|stage| stage.name == name).map(|stage| stage.length_us);
            let found = ["fsync pass", "redo", "end-of-recovery checkpoint"].map(|name| of(name).unwrap());
            assert_eq!((found, of("end of the processes")), (parts, Some(20_000)), "{version}");
            let machine = ["unmount", "mount with journal replay"].map(of);
            assert_eq!(machine, if version == 18 { [Some(8_000), Some(7_000)] } else { [None; 2] });
            let sum: u64 = stages[1..].iter().map(|stage| stage.length_us).sum();
            assert_eq!(Some(sum), of("outage"), "{version}");
            let own =
                ["start of the server", "ready to first answer", "rest of the outage"].map(|name| of(name).unwrap());
            assert_eq!(own, [if version == 18 { 25_000 } else { 40_000 }, 3_000, 0], "{version}");
        }
    }

    #[test]
    fn what_the_log_does_not_tell_is_the_rest() {
        let whole = log(18);
        let log = RecoveryLog { checkpoint: None, ..whole.clone() };
        let first_answer_us = whole.ready_us.unwrap();
        let began = whole.interrupted_us.unwrap();
        let moments = Moments { last_answer_us: began, gone_us: began, mount_us: None, first_answer_us };
        let stages = stages(&log, moments, 8192);
        let missing = whole.ready_us.unwrap() - whole.redo_ended.unwrap().at_us;
        assert_eq!(stages.last().map(|rest| rest.length_us), Some(missing));
        assert!(stages.iter().all(|stage| stage.name != "ending redo"));
    }

    #[test]
    fn redo_has_its_wal_and_the_checkpoint_its_pages() {
        let log = log(15);
        let first_answer_us = log.ready_us.unwrap();
        let moments = Moments { last_answer_us: 0, gone_us: 0, mount_us: None, first_answer_us };
        let stages = stages(&log, moments, 8192);
        let bytes = |name: &str| stages.iter().find(|stage| stage.name == name).and_then(|stage| stage.bytes);
        assert_eq!((bytes("redo"), bytes("end-of-recovery checkpoint")), (Some(128_900_584), Some(15_126 * 8192)));
    }

    #[test]
    fn an_outage_begins_with_the_last_answer() {
        assert_eq!(before(&[1_000, 4_000, 5_000], 5_500).unwrap(), (5_000, 3_000));
        assert_eq!(before(&[1_000, 2_000], 9_000).unwrap(), (2_000, 7_000));
        assert!(before(&[], 9_000).is_err());
    }

    #[test]
    fn guest_boot_time_is_listed_beside_the_outage() {
        let log = log(18);
        let began = log.interrupted_us.unwrap();
        let moments = Moments {
            last_answer_us: began - 90_000,
            gone_us: began - 90_000,
            mount_us: Some((began - 60_000, began - 10_000)),
            first_answer_us: log.ready_us.unwrap() + 1_000,
        };
        let stages = of_guest(stages(&log, moments, 8192), 7_000_000);
        let of = |name: &str| stages.iter().find(|stage| stage.name == name).map(|stage| (stage.kind, stage.length_us));
        assert_eq!(of("opening the devices"), Some((StageKind::Part, 30_000)));
        assert_eq!(of("mount with journal replay"), Some((StageKind::Part, 50_000)));
        assert_eq!(of("kill and boot of the guest"), Some((StageKind::Beside, 7_000_000)));
        assert_eq!((of("end of the processes"), of("unmount")), (None, None));
        let parts: u64 = stages.iter().filter(|it| it.kind == StageKind::Part).map(|it| it.length_us).sum();
        assert_eq!(of("outage"), Some((StageKind::Ranked, parts)));
    }
}
