//! pgbench while snapshots of the stack are made and deleted on a schedule.
//!
//! A full pool is a result: the work until then is counted, with the server's message. Not here: how a stack makes
//! snapshots, figures.

use super::capacity::of_pgbench;
use super::seconds::{LoadTally, TRANSACTIONS};
use super::{Pgbench, drive, options, reflinks, settings};
use crate::cluster::server::Server;
use crate::error::{Error, Kind, Result};
use crate::host::time::{Instant, micros, now, sleep, wall_us};
use crate::host::{files, folders, paths, threads};
use crate::parse::recovery_log;
use crate::record::counts::Counts;
use crate::record::operation::Operation;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::snapshots::{DeedKind, SnapshotCounts, SnapshotDeed};
use crate::record::stage::{StageCounts, StageKind};
use crate::units::Micros;
use crate::workload::{LoadEvent, Measuring, Place, SnapshotActions, Workload, WorkloadInfo, stage};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DEFAULT_EVERY: &str = "10s";
const DEFAULT_KEEP: i64 = 4;
const DEFAULT_DURATION: &str = "2min";
const NEVER: &str = "never";
const QUICK: [(&str, &str); 2] = [("duration", "45s"), ("warmup", "5s")];

const POLL_INTERVAL: Duration = Duration::from_millis(10);

const INFO: WorkloadInfo = WorkloadInfo {
    name: "snapshots",
    doc: "pgbench while snapshots of the stack (btrfs, lvm, zfs; xfs as reflinks) are made and deleted on a schedule",
    needs_server: true,
    options: &[
        OptionSpec::with_default("every", OptionKind::Text, DEFAULT_EVERY)
            .doc("time between two snapshots, at least 4s; `never` for the control: the same layers without snapshots"),
        OptionSpec::with_default("keep", OptionKind::Integer { min: 1 }, "4")
            .doc("snapshots that are kept; the oldest one above that is deleted half-way to the next snapshot"),
        of_pgbench("script"),
        of_pgbench("scale"),
        of_pgbench("data"),
        of_pgbench("clients"),
        of_pgbench("jobs"),
        of_pgbench("mode"),
        OptionSpec::with_default("duration", OptionKind::Span, DEFAULT_DURATION)
            .doc("duration of the measurement, in whole seconds"),
        of_pgbench("warmup"),
        of_pgbench("cache"),
    ],
    quick: &QUICK,
};

#[derive(Debug)]
pub struct SnapshotLoad;

impl Workload for SnapshotLoad {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn as_pgbench(&self, options: &Options) -> Option<Options> {
        Some(as_pgbench(options))
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        const LEAST: Micros = Micros(4_000_000);
        if let Some(text) = options.text("every").filter(|text| *text != NEVER) {
            let wrong = match Micros::parse(text) {
                Ok(every) => (every < LEAST).then(|| format!("must be at least {LEAST}")),
                Err(message) => Some(message),
            };
            if let Some(wrong) = wrong {
                let problem = OptionProblem::at("every", wrong);
                return Err(problem.help("write \"10s\", or \"never\" for the control"));
            }
        }
        Pgbench.check(&as_pgbench(options))
    }

    fn makes_snapshots(&self) -> bool {
        true
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let mut operation = Pgbench.operation(&as_pgbench(options))?;
        operation.settings.extend(options.given(&["every", "keep"]));
        Ok(operation)
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, memory, until, listener } = run;
        let settings = settings(&as_pgbench(options))?;
        let units = settings.units(memory);
        let actions = place.snapshots.as_ref().ok_or_else(|| Error::bug("the workload may make no snapshots"))?;
        let began = OnceLock::new();
        let (every, keep) = (every(options), keep(options));
        let server = drive::server_of(place)?;
        let mut schedule = Schedule {
            make: &|number| {
                (actions.make)(number)?;
                (actions.filled)(number).map_or(Ok(()), |folder| reflinks::copy(server, &folder))
            },
            delete: &*actions.delete,
            is_lost: &*actions.is_lost,
            every,
            keep,
            deeds: Vec::new(),
            lost: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let used_before = (actions.used)()?;
        let (load, deeds) = std::thread::scope(|scope| {
            let acting = threads::begin(scope, || {
                schedule.run(&began, &stop);
                (schedule.deeds, schedule.lost)
            })?;
            let load = drive::measure(place, &settings, TRANSACTIONS, units, until, &|event| {
                if let LoadEvent::Began(wall_us) = event {
                    // Reported once.
                    began.set(wall_us).ok();
                }
                listener(event);
            });
            stop.store(true, Ordering::SeqCst);
            Ok((load, acting.join()))
        })?;
        let (tally, failed) = load?;
        let (deeds, mut lost) = deeds.map_err(|_| Error::bug("a thread of the workload panicked"))?;
        lost.extend(left(&deeds).into_iter().filter(|number| (actions.is_lost)(*number).unwrap_or(false)));
        // A full pool may not report its usage.
        let used_bytes = (actions.used)().ok().map(|after| (used_before, after));
        let ended = drive::ended(server, failed)?;
        let snapshots =
            SnapshotCounts { every_us: every.map(micros), keep, deeds, lost, copy_failure: None, used_bytes };
        let mut counted = Counts { ended, ..counts(&tally, snapshots)? };
        if counted.ended.is_none() {
            match first_start(place, actions, counted.snapshots.as_ref()) {
                Ok(stages) => counted.stages = stages,
                Err(e) if e.kind() == Kind::Interrupted => return Err(e),
                // The counts of the load stand.
                Err(e) => {
                    counted.snapshots.iter_mut().for_each(|snapshots| snapshots.copy_failure = Some(e.chain()));
                }
            }
        }
        Ok(counted)
    }
}

/// The first start of a server on a copy of the last snapshot, while the original runs: it recovers from a crash.
/// `None` if the stack cannot make such copies, no snapshot is left, or `pg_wal` is not in the data directory.
fn first_start(
    place: &Place<'_>,
    actions: &SnapshotActions<'_>,
    snapshots: Option<&SnapshotCounts>,
) -> Result<Vec<StageCounts>> {
    let mut deeds = snapshots.iter().flat_map(|all| &all.deeds).filter(|deed| deed.failure.is_none());
    let last = deeds.rfind(|deed| deed.kind == DeedKind::Make);
    let server = drive::server_of(place)?;
    let (Some(last), None) = (last, &server.spec.wal) else { return Ok(Vec::new()) };
    let begun = now();
    let mut spec = server.spec.clone();
    let filled = (actions.filled)(last.number);
    match (&filled, (actions.copy)(last.number)?) {
        // Its files are its own and writable.
        (Some(snapshot), _) => spec.data = reflinks::data_in(snapshot, &spec.data),
        (None, Some((origin, copy))) => {
            let below = spec.data.strip_prefix(&origin).map_err(|_| Error::bug("the data are not on their stack"))?;
            spec.data = copy.join(below);
        }
        (None, None) => return Ok(Vec::new()),
    }
    let copy_us = filled.is_none().then(|| micros(begun.elapsed()));
    spec.socket_folder = spec.socket_folder.join("c");
    spec.log = place.raw.join("copy.log");
    // It names the server that runs on the original.
    let pid_file = spec.data.join("postmaster.pid");
    if paths::exists(&pid_file) {
        files::remove(&pid_file)?;
    }
    let (socket_folder, log) = (spec.socket_folder.clone(), spec.log.clone());
    let begun = now();
    let started = Server::start(place.host, spec, place.interrupt)?;
    let start_us = micros(begun.elapsed());
    started.stop(place.host)?;
    folders::remove_all(&socket_folder)?;
    let redo = recovery_log::parse(&files::read_text(&log)?)?;
    let redo = redo.redo_began.zip(redo.redo_ended);
    let mut stages: Vec<StageCounts> =
        copy_us.map(|copy_us| stage("copy of a snapshot", StageKind::Beside, copy_us, None)).into_iter().collect();
    stages.push(stage("first start of a copy", StageKind::Beside, start_us, None));
    stages.extend(redo.map(|(from, to)| {
        let (length_us, bytes) = (to.at_us.saturating_sub(from.at_us), to.lsn.saturating_sub(from.lsn));
        stage("redo", StageKind::Part, length_us, Some(bytes))
    }));
    Ok(stages)
}

fn counts(tally: &LoadTally, snapshots: SnapshotCounts) -> Result<Counts> {
    let began_us = tally.began_us.ok_or_else(|| Error::tool("no transaction was completed"))?;
    let elapsed_us = tally.last_us.saturating_sub(began_us);
    let main = tally.total().measure(TRANSACTIONS, elapsed_us);
    let out_of_order = tally.out_of_order;
    Ok(Counts { elapsed_us, measures: vec![main], out_of_order, snapshots: Some(snapshots), ..Counts::default() })
}

/// Numbers of the snapshots that exist at the end.
fn left(deeds: &[SnapshotDeed]) -> BTreeSet<u64> {
    let mut left = BTreeSet::new();
    for deed in deeds.iter().filter(|deed| deed.failure.is_none()) {
        match deed.kind {
            DeedKind::Make => left.insert(deed.number),
            DeedKind::Delete => left.remove(&deed.number),
        };
    }
    left
}

/// Makes and deletes snapshots at fixed times.
struct Schedule<'a> {
    make: &'a (dyn Fn(u64) -> Result<()> + Sync),
    delete: &'a (dyn Fn(u64) -> Result<()> + Sync),
    every: Option<Duration>,
    keep: u64,
    is_lost: &'a (dyn Fn(u64) -> Result<bool> + Sync),
    deeds: Vec<SnapshotDeed>,
    /// Numbers of those found invalid when they were to be deleted.
    lost: Vec<u64>,
}

impl Schedule<'_> {
    /// Runs until `stop` is set, or something fails.
    fn run(&mut self, began_us: &OnceLock<u64>, stop: &AtomicBool) {
        let Some(every) = self.every else { return };
        let begun = now();
        for number in 1.. {
            let due = begun + every * u32::try_from(number).unwrap_or(u32::MAX);
            let goes_on = wait_until(due, stop)
                && self.act(DeedKind::Make, number, began_us)
                && (number <= self.keep
                    || (wait_until(due + every / 2, stop) && self.act(DeedKind::Delete, number - self.keep, began_us)));
            if !goes_on {
                return;
            }
        }
    }

    /// Returns true on success.
    fn act(&mut self, kind: DeedKind, number: u64, began_us: &OnceLock<u64>) -> bool {
        // If the stack cannot tell, the snapshot is not known to be lost.
        if kind == DeedKind::Delete && (self.is_lost)(number).unwrap_or(false) {
            self.lost.push(number);
        }
        let (at_us, begun) = (wall_us(), now());
        let done = match kind {
            DeedKind::Make => (self.make)(number),
            DeedKind::Delete => (self.delete)(number),
        };
        let start_us = at_us.saturating_sub(*began_us.get().unwrap_or(&at_us));
        let failure = done.err().map(|e| e.chain());
        let is_done = failure.is_none();
        self.deeds.push(SnapshotDeed { number, kind, start_us, length_us: micros(begun.elapsed()), failure });
        is_done
    }
}

/// False if interrupted before the due time.
fn wait_until(due: Instant, stop: &AtomicBool) -> bool {
    while now() < due {
        if stop.load(Ordering::SeqCst) {
            return false;
        }
        sleep(POLL_INTERVAL);
    }
    !stop.load(Ordering::SeqCst)
}

fn every(options: &Options) -> Option<Duration> {
    let text = options.text("every").unwrap_or(DEFAULT_EVERY);
    Micros::parse(text).ok().map(|every| Duration::from_micros(every.0))
}

fn keep(options: &Options) -> u64 {
    u64::try_from(options.integer("keep").unwrap_or(DEFAULT_KEEP)).unwrap_or(1).max(1)
}

fn as_pgbench(options: &Options) -> Options {
    // A gap shows only in the transactions that wait in it.
    let mut plain = options::logging_all(options, &["every", "keep"]);
    plain.set_where_absent(&[("duration", DEFAULT_DURATION)]);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;
    use std::sync::Mutex;

    fn options(every: &str) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        options.set("every", OptionValue::Text(every.to_owned()));
        options
    }

    #[test]
    fn a_time_or_never_is_taken_and_all_else_refused() {
        for good in ["10s", "never", "1min"] {
            assert_eq!(SnapshotLoad.check(&options(good)), Ok(()));
        }
        for bad in ["none", "1s", "10"] {
            let problem = SnapshotLoad.check(&options(bad)).unwrap_err();
            assert_eq!((problem.key.as_deref(), problem.help.is_some()), (Some("every"), true), "{bad}");
        }
        assert_eq!((every(&options("never")), every(&options("4s"))), (None, Some(Duration::from_secs(4))));
    }

    /// Runs the first six actions of a schedule; returns what was made and deleted, and the record of it.
    fn scheduled(keep: u64, fails_at: u64) -> (Vec<(char, u64)>, Vec<SnapshotDeed>) {
        let (stop, began) = (AtomicBool::new(false), OnceLock::from(wall_us()));
        let seen = Mutex::new(Vec::new());
        let note = |kind: char, number: u64| {
            let mut seen = seen.lock().unwrap();
            seen.push((kind, number));
            stop.store(seen.len() == 6, Ordering::SeqCst);
            if number == fails_at { Err(Error::tool("No space left on device")) } else { Ok(()) }
        };
        let (make, delete) = (|number| note('+', number), |number| note('-', number));
        let every = Some(Duration::from_millis(20));
        let mut schedule = Schedule {
            make: &make,
            delete: &delete,
            is_lost: &|_| Ok(false),
            every,
            keep,
            deeds: Vec::new(),
            lost: Vec::new(),
        };
        schedule.run(&began, &stop);
        let seen = seen.lock().unwrap().clone();
        (seen, schedule.deeds)
    }

    #[test]
    fn the_oldest_snapshot_goes_half_way_to_the_next() {
        let (seen, deeds) = scheduled(2, u64::MAX);
        assert_eq!(seen, [('+', 1), ('+', 2), ('+', 3), ('-', 1), ('+', 4), ('-', 2)]);
        let starts: Vec<u64> = deeds.iter().map(|deed| deed.start_us).collect();
        assert!(starts.is_sorted() && starts[5] >= 80_000, "no deed before it is due: {starts:?}");
    }

    #[test]
    fn remaining_snapshots_exclude_failed_and_deleted_ones() {
        let deed = |kind, number, failure: Option<&str>| SnapshotDeed {
            number,
            kind,
            start_us: 0,
            length_us: 1,
            failure: failure.map(str::to_owned),
        };
        let deeds = [
            deed(DeedKind::Make, 1, None),
            deed(DeedKind::Make, 2, None),
            deed(DeedKind::Delete, 1, None),
            deed(DeedKind::Make, 3, None),
            deed(DeedKind::Delete, 2, Some("busy")),
            deed(DeedKind::Make, 4, Some("No space left on device")),
        ];
        assert_eq!(left(&deeds), BTreeSet::from([2, 3]));
    }

    #[test]
    fn the_snapshot_schedule_stops_at_the_first_failure() {
        let (seen, deeds) = scheduled(4, 2);
        assert_eq!(seen, [('+', 1), ('+', 2)]);
        assert!(deeds[1].failure.as_deref().unwrap().contains("No space left on device"));
    }
}
