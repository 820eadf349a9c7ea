//! Time until a server is back after a crash: load up to a given distance of WAL, crash, recovery, load again.
//!
//! A trial is one crash. The server's log gives the phases of its start, a client running alongside the outage. Not
//! here: figures, and how filesystems are shut down.

mod outage;
mod witness;

use super::capacity::of_pgbench;
use super::seconds::{LoadTally, ScriptTally, TRANSACTIONS};
use super::shifted::{Shifted, TimeAxis};
use super::{Pgbench, drive, options, settings};
use crate::cluster::client::Client;
use crate::cluster::server::{self, CHECKPOINT_LIMIT};
use crate::error::Result;
use crate::host::threads::locked;
use crate::host::time::{Instant, micros, now};
use crate::record::counts::{Counts, Measure};
use crate::record::operation::Operation;
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::recovery::{BeforeCrash, CrashKind, RecoveryCounts};
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use crate::workload::{
    Crash, Listener, LoadEvent, Measuring, MemorySizes, Place, Until, Window, WindowProgress, Workload, WorkloadInfo,
};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const DEFAULT_CLIENTS: i64 = 8;
const DEFAULT_WAL: Bytes = Bytes(1 << 30);
const DEFAULT_LIMIT: Micros = Micros(600_000_000);
const DEFAULT_AFTER: Micros = Micros(60_000_000);
const DEFAULT_WARMUP: &str = "10s";
const QUICK: [(&str, &str); 3] = [("wal", "128MB"), ("after", "15s"), ("warmup", "3s")];

/// WAL written per second under load, conservatively. Only for the estimate.
const WAL_BYTES_PER_S: u64 = 10 << 20;
const LEAST_WAL: Bytes = Bytes(16 << 20);

/// How often the distance is checked.
const LOOK_EACH: Duration = Duration::from_millis(50);

/// WAL since the redo position of the last checkpoint.
const DISTANCE: &str =
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::bigint FROM pg_control_checkpoint()";

const INFO: WorkloadInfo = WorkloadInfo {
    name: "recovery",
    doc: "a crash after a given distance of WAL: how long until the first commit is answered, part by part, and until \
          the rate is back",
    needs_server: true,
    options: &[
    OptionSpec::with_default("crash", OptionKind::OneOf(&["process", "machine"]), "process").doc(
        "process: all processes of the server are killed, the page cache is kept. machine: in a guest, the guest is \
         killed and booted again; elsewhere the filesystems below the server are stopped too, without writing \
         anything back (ext2/3/4, xfs, f2fs; btrfs where its kernel can), then mounted again",
    ),
    OptionSpec::with_default("wal", OptionKind::Size, "1GiB").doc(
        "WAL between the last checkpoint and the crash, at least 16MiB: what recovery has to redo. The server is set \
         so that no checkpoint comes in between",
    ),
    OptionSpec::with_default("limit", OptionKind::Span, "10min").doc(
        "maximum time for writing that WAL, in whole seconds; a trial that hits it crashes with less, and its record \
         says how much",
    ),
    OptionSpec::with_default("after", OptionKind::Span, "60s").doc(
        "duration of the load after the crash, in whole seconds: in it the rate must come back to 90 % of what \
             it was",
    ),
    of_pgbench("script"),
    of_pgbench("setup"),
    of_pgbench("profile"),
    of_pgbench("scale"),
    of_pgbench("data"),
    OptionSpec::with_default("clients", OptionKind::Integer { min: 1 }, "8")
        .doc("concurrent clients, each with its own connection"),
    of_pgbench("jobs"),
    of_pgbench("mode"),
    OptionSpec::with_default("warmup", OptionKind::Span, DEFAULT_WARMUP)
        .doc("duration of the unmeasured warm-up, in whole seconds; a checkpoint follows it"),
    of_pgbench("tablespace"),
    of_pgbench("index_tablespace"),
],
    quick: &QUICK,
};

#[derive(Debug)]
pub struct Recovery;

impl Workload for Recovery {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn as_pgbench(&self, options: &Options) -> Option<Options> {
        Some(as_pgbench(options))
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        for key in ["limit", "after"] {
            options::seconds(options, key)?;
        }
        if wal(options) < LEAST_WAL {
            return Err(OptionProblem::at("wal", format!("must be at least {LEAST_WAL}")));
        }
        Pgbench.check(&as_pgbench(options))
    }

    fn connections(&self, options: &Options) -> u64 {
        // Plus the client running alongside.
        Pgbench.connections(&as_pgbench(options)) + 1
    }

    fn server_settings(&self, options: &Options) -> BTreeMap<String, String> {
        // A checkpoint starts when about half of max_wal_size is written (CalculateCheckpointSegments).
        let most = wal(options).0.saturating_mul(4) >> 20;
        [("checkpoint_timeout", "1d".to_owned()), ("max_wal_size", format!("{most}MB"))]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn crashes_machine(&self, options: &Options) -> bool {
        crash(options) == CrashKind::Machine
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let mut operation = Pgbench.operation(&as_pgbench(options))?;
        operation.settings.remove("duration");
        operation.settings.extend(options.given(&["crash", "wal", "limit", "after"]));
        Ok(operation)
    }

    fn window(&self, options: &Options) -> Window {
        let Window { warm_up, .. } = Pgbench.window(&as_pgbench(options));
        let writing_us = wal(options).0 / WAL_BYTES_PER_S * 1_000_000;
        Window { warm_up, extent: Extent::Span { span_us: writing_us.max(1_000_000) + after(options).0 } }
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, memory, listener, .. } = run;
        let crash = crash(options);
        if let Some(Crash::GuestIsBack(back)) = &place.crash {
            let outage = outage::after_guest(place, back)?;
            return CrashLoad { place, options, memory, listener }.after(CrashKind::Guest, back.before, outage);
        }
        let load = CrashLoad { place, options, memory, listener };
        let before = load.before()?;
        if crash == CrashKind::Machine && matches!(place.crash, Some(Crash::Guest)) {
            return Ok(Counts { before_crash: Some(before), ..Counts::default() });
        }
        let outage = outage::of(place, crash)?;
        load.after(crash, &before, outage)
    }

    fn await_end(&self, place: &Place<'_>, ask: &dyn Fn(u64, u64) -> Result<()>) -> Result<()> {
        outage::await_end(place, ask)
    }
}

struct CrashLoad<'a> {
    place: &'a Place<'a>,
    options: &'a Options,
    memory: MemorySizes,
    listener: &'a Listener<'a>,
}

impl CrashLoad<'_> {
    /// Runs the load from a checkpoint until the requested distance of WAL is written.
    fn before(&self) -> Result<BeforeCrash> {
        let wal_asked = wal(self.options).0;
        let block_bytes = drive::server_of(self.place)?.connect(server::DATABASE)?.number(outage::BLOCK_SIZE)?;
        let mut distance = Distance::from_checkpoint(self.place)?;
        let until = Until {
            longest: limit(self.options),
            operations: None,
            progress: &mut || Ok(WindowProgress { cycles: 0, is_over: distance.look()? >= wal_asked }),
        };
        let (tally, seconds) = self.drive("pgbench-before", &TimeAxis::default(), until)?;
        let (wal_bytes, ended_us) = (distance.now()?, tally.last_us);
        let began_us = tally.began_us.unwrap_or(ended_us);
        let ScriptTally { done, failed, latency_us_sum, .. } = tally.total();
        Ok(BeforeCrash { wal_asked, wal_bytes, seconds, began_us, ended_us, done, failed, latency_us_sum, block_bytes })
    }

    /// Runs the load after the crash, and returns the counts of everything.
    fn after(&self, crash: CrashKind, before: &BeforeCrash, outage: outage::Outage) -> Result<Counts> {
        // Its seconds follow those before the crash, and none is reported twice.
        let axis = TimeAxis { origin: before.began_us.into(), last: AtomicU64::new(before.seconds.len() as u64) };
        let until =
            Until { longest: after(self.options), operations: None, progress: &mut || Ok(WindowProgress::default()) };
        let (tally, seconds) = self.drive("pgbench-after", &axis, until)?;
        let recovery = RecoveryCounts {
            crash,
            wal_asked: before.wal_asked,
            wal_bytes: before.wal_bytes,
            before: before.seconds.clone(),
            after: seconds,
            after_begins_us: tally.began_us.unwrap_or(outage.first_answer_us).saturating_sub(outage.first_answer_us),
            answers_apart_us: outage.answers_apart_us,
        };
        Ok(counts(before, &tally, recovery, outage))
    }

    /// Runs one pgbench, with its events shifted onto this time axis. Returns its tally and the counts of its whole
    /// seconds.
    fn drive(&self, name: &str, axis: &TimeAxis, until: Until<'_>) -> Result<(LoadTally, Vec<u64>)> {
        let settings = settings(&as_pgbench(self.options))?;
        let units = settings.units(self.memory);
        let shifted = Shifted::new(self.listener, axis, TRANSACTIONS);
        let seconds = Mutex::new(Vec::new());
        let (tally, failed) = drive::measure(self.place, &settings, name, units, until, &|event| {
            if let LoadEvent::Second(second) = &event {
                locked(&seconds).push(second.done);
            }
            shifted.report(event);
        })?;
        failed.map_or(Ok(()), Err)?;
        Ok((tally, seconds.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The transactions of both loads, without the outage, and the crash.
fn counts(before: &BeforeCrash, after: &LoadTally, recovery: RecoveryCounts, outage: outage::Outage) -> Counts {
    let length = after.began_us.map_or(0, |began_us| after.last_us.saturating_sub(began_us));
    let total = after.total();
    let main = Measure {
        name: TRANSACTIONS.to_owned(),
        elapsed_us: before.ended_us.saturating_sub(before.began_us) + length,
        done: Some(before.done + total.done),
        failed: before.failed + total.failed,
        latency_us_sum: before.latency_us_sum + total.latency_us_sum,
        ..Measure::default()
    };
    let elapsed_us = after.last_us.saturating_sub(before.began_us);
    Counts { elapsed_us, measures: vec![main], stages: outage.stages, recovery: Some(recovery), ..Counts::default() }
}

/// WAL since the checkpoint, updated now and then.
struct Distance {
    client: Client,
    looked: Instant,
    bytes: u64,
}

impl Distance {
    /// Makes a checkpoint and measures from there.
    fn from_checkpoint(place: &Place<'_>) -> Result<Distance> {
        let mut client = drive::server_of(place)?.connect_with_limit(CHECKPOINT_LIMIT)?;
        client.query("CHECKPOINT")?;
        Ok(Distance { client, looked: now(), bytes: 0 })
    }

    fn look(&mut self) -> Result<u64> {
        if micros(self.looked.elapsed()) >= micros(LOOK_EACH) {
            self.looked = now();
            self.bytes = self.now()?;
        }
        Ok(self.bytes)
    }

    fn now(&mut self) -> Result<u64> {
        self.client.number(DISTANCE)
    }
}

fn crash(options: &Options) -> CrashKind {
    if options.text("crash") == Some("machine") { CrashKind::Machine } else { CrashKind::Process }
}

fn wal(options: &Options) -> Bytes {
    options.size("wal").unwrap_or(DEFAULT_WAL)
}

fn limit(options: &Options) -> Micros {
    options.span("limit").unwrap_or(DEFAULT_LIMIT)
}

fn after(options: &Options) -> Micros {
    options.span("after").unwrap_or(DEFAULT_AFTER)
}

/// Options of a pgbench that runs as long as both loads may.
fn as_pgbench(options: &Options) -> Options {
    let mut plain = options::logging_all(options, &["crash", "wal", "limit", "after"]);
    let span = (limit(options).0 + after(options).0) / 1_000_000;
    plain.0.entry("clients".to_owned()).or_insert(OptionValue::Integer(DEFAULT_CLIENTS));
    plain.set_where_absent(&[("warmup", DEFAULT_WARMUP)]);
    plain.set("duration", OptionValue::Text(format!("{span}s")));
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        pairs.iter().for_each(|(key, value)| options.set(key, OptionValue::Text((*value).to_owned())));
        options
    }

    #[test]
    fn no_checkpoint_comes_before_the_distance_is_written() {
        let settings = Recovery.server_settings(&options(&[("wal", "2GiB")]));
        assert_eq!((settings["max_wal_size"].as_str(), settings["checkpoint_timeout"].as_str()), ("8192MB", "1d"));
        assert_eq!(crash(&options(&[])), CrashKind::Process);
        assert_eq!(crash(&options(&[("crash", "machine")])), CrashKind::Machine);
    }

    #[test]
    fn too_short_distances_are_refused_with_their_key() {
        assert_eq!(Recovery.check(&options(&[])), Ok(()));
        for (key, value) in [("wal", "8MiB"), ("limit", "0s"), ("after", "1500ms")] {
            assert_eq!(Recovery.check(&options(&[(key, value)])).unwrap_err().key.as_deref(), Some(key));
        }
    }

    #[test]
    fn a_quick_run_writes_less_but_respects_the_plan() {
        let mut quick = options(&[("after", "20s")]);
        Recovery.make_quick(&mut quick);
        assert_eq!((wal(&quick).0, after(&quick).0), (128 << 20, 20_000_000));
        assert_eq!(Recovery.window(&quick).warm_up, Some(Micros(3_000_000)));
    }

    #[test]
    fn the_operation_keeps_what_figures_depend_on() {
        let operation = Recovery.operation(&options(&[("crash", "machine"), ("wal", "64MiB")])).unwrap();
        let kept: Vec<(&str, &str)> = operation.settings.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(kept, [("crash", "machine"), ("wal", "64MiB"), ("warmup", "10s")]);
        assert_eq!((operation.clients, operation.rate), (8, None));
    }
}
