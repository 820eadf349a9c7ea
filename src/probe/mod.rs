//! Times synced writes in a folder, with every way to make a write durable, and counts the work of the devices below.
//!
//! Order: look at the folder ([`place`]), watch the devices while we do nothing, make the files ([`site`]), run the
//! rows ([`rows`]) in short slices in turn ([`schedule`], [`bench`]), then measure how a sync grows with the amount
//! written before it ([`growth`]). Absent on purpose: displayed rates and intervals, judgement (`analyse::probe`),
//! printing.
//!
//! Asks `provision` for the devices below a folder, so that there is only one way to find them, and `stats` if a rate
//! is known, so that it can stop; it stores neither rate nor interval. A new row is a line in `rows`, and an
//! `operation` if no row does it yet; nothing but system calls may run between two readings of the clock.

mod bench;
mod counters;
mod cpu;
mod group;
mod growth;
pub mod operation;
mod place;
mod row;
mod rows;
mod schedule;
mod site;
mod synced;
pub mod tape;
mod walk;

pub use row::DoneOperation;
pub use rows::{RowChoice, WAL_BLOCK, rows};

use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::noise::Noise;
use crate::host::signals::Interrupt;
use crate::host::ticks::Ticker;
use crate::host::time::{Instant, micros, now, rfc3339_us, sleep, wall_us};
use crate::record::probe::{FORMAT, Family, Idle, PlaceFacts, ProbeRecord};
use bench::RealBench;
use counters::Counters;
use schedule::{Bench, Goal};
use site::{FileFill, ProbeSite};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct ProbeRequest {
    pub folder: PathBuf,
    pub choice: RowChoice,
    /// Time for measuring: idle interval, slices and growth, without creating the files.
    pub budget: Duration,
    /// Relative half-width of the interval at which a row's rate is known and the row leaves its time to others; 0 to
    /// use all the time.
    pub precision: f64,
    /// Write size of the WAL rows, bytes: a power of two from 1 to 64 KiB.
    pub wal_block: u32,
    /// Writers of the group commit row.
    pub writers: u32,
    /// Free space required, as a multiple of the size of all files: 20 if the filesystem is in use, less on one of our
    /// own.
    pub free_over_files: u64,
    /// Seed for the order of slices.
    pub seed: u64,
}

/// Files never take more than 5 % of the free space on a filesystem that is in use.
pub(crate) const FREE_OVER_FILES: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Watching the devices while the probe is idle.
    Idle,
    Files,
    Rows {
        /// Rows whose rate is known, or that have ended.
        known: usize,
        all: usize,
    },
    /// Syncing after growing amounts.
    Growth,
}

/// Receives the events of a running probe.
pub trait Observer {
    fn stage(&self, _stage: Stage) {}
    /// The first slice begins at this wall-clock time, microseconds since 1970.
    fn began(&self, _wall_us: u64) {}
    /// A slice of a row of this family is over; its operations are in the order of their ends.
    ///
    /// # Errors
    /// The observer's own, which end the probe.
    fn slice(&self, _family: Family, _done: &[DoneOperation]) -> Result<()> {
        Ok(())
    }
    /// An operation failed, nanoseconds after the start of the first slice.
    ///
    /// # Errors
    /// The observer's own, which end the probe.
    fn failed(&self, _at_ns: u64) -> Result<()> {
        Ok(())
    }
}

/// Divisor of the budget for watching idle devices, and the limits of that time.
const IDLE_SHARE: u32 = 20;
const IDLE_LEAST: Duration = Duration::from_millis(50);
const IDLE_MOST: Duration = Duration::from_secs(2);
/// Divisor of the budget for growth.
const GROWTH_SHARE: u32 = 20;
/// Polling interval for an interrupt during a wait.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Seed of the bytes that are written; a chunk of them is as long as the largest write of a group.
const NOISE_SEED: u64 = 2;

/// Probes a folder.
///
/// # Errors
/// [`crate::error::Kind::User`] if there is no such folder, [`crate::error::Kind::Host`] if it cannot be written, has
/// too little free space or vanishes; interrupted. A failed sync is not an error but part of the record. Nothing is
/// left in the folder in any case.
pub fn measure(
    host: &Host,
    request: &ProbeRequest,
    interrupt: &Interrupt,
    observer: &dyn Observer,
) -> Result<ProbeRecord> {
    let (place, folder) = place::facts(host, &request.folder)?;
    let files = if request.choice == RowChoice::Compat { 1 } else { place::FILES };
    let segment_bytes = place::segment_bytes(&place, files, request.free_over_files)?;
    let left = |stray: PathBuf| format!("{} was left behind by a killed probe: remove it with rm -r", stray.display());
    let notes = site::strays(&folder).into_iter().map(left).collect();
    let mut counters = Counters::of(host, &place.devices);
    observer.stage(Stage::Idle);
    let idle = idle(&place, &mut counters, request.budget, interrupt)?;
    observer.stage(Stage::Files);
    let mut site = ProbeSite::make(&folder)?;
    site.segment_bytes = segment_bytes;
    let (noise, ticker) = (&Noise::new(NOISE_SEED), Ticker::of(host));
    let around =
        Surroundings { host, request, place: &place, site: &site, noise, ticker, begun: now(), interrupt, observer };
    let measured = on_site(around, &mut counters, Duration::from_micros(idle.elapsed_us));
    let is_there = site.is_there();
    let left = site.close().err();
    let left_behind = left.as_ref().map(ToString::to_string);
    let measured = match (measured, left) {
        (Ok(measured), _) => measured,
        (Err(error), None) => return Err(error),
        (Err(error), Some(left)) => {
            let hint = error.hint_text().map_or_else(String::new, |hint| format!("{hint}; "));
            return Err(error.hint(format!("{hint}{left}")));
        }
    };
    if !is_there {
        let left = left_behind.map_or_else(String::new, |left| format!("; {left}"));
        return Err(Error::host(format!("{} disappeared during the probe{left}", place.folder))
            .hint("the results are not valid: probe again"));
    }
    Ok(ProbeRecord {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: request.seed,
        precision: request.precision,
        budget_us: micros(request.budget),
        place,
        file_bytes: segment_bytes,
        segment_bytes,
        idle,
        left_behind,
        notes,
        ..measured
    })
}

/// Everything needed to measure the rows and the growth of a sync.
struct Surroundings<'a> {
    host: &'a Host,
    request: &'a ProbeRequest,
    place: &'a PlaceFacts,
    site: &'a ProbeSite,
    noise: &'a Noise,
    ticker: Ticker,
    /// Start of the first slice.
    begun: Instant,
    interrupt: &'a Interrupt,
    observer: &'a dyn Observer,
}

/// Creates the files and runs everything on them; returns the measurements, without the place and the request.
fn on_site(mut around: Surroundings<'_>, counters: &mut Counters, idle: Duration) -> Result<ProbeRecord> {
    let Surroundings { host, request, place, site, observer, .. } = around;
    let before = counters.read();
    let writable = make_files(site, &request.choice, site.segment_bytes)?;
    let test_sync = counters::growth(&place.devices, &before, &counters.read());
    let started = wall_us();
    around.begun = now();
    observer.began(started);
    let mut bench = RealBench::new(&around, writable, counters)?;
    let before = cpu::look(host);
    // The remaining time is for growth.
    let until = bench.elapsed() + request.budget.saturating_sub(idle + request.budget / GROWTH_SHARE);
    let goal = Goal { until, precision: request.precision, seed: request.seed };
    let rows = bench.rows();
    observer.stage(Stage::Rows { known: 0, all: rows });
    schedule::run(&mut bench, rows, goal, |known, all| observer.stage(Stage::Rows { known, all }))?;
    let cpu = cpu::since(&before, host);
    let (rows, pauses) = bench.close();
    observer.stage(Stage::Growth);
    let any_failed = rows.iter().any(|row| row.failure.is_some());
    let (growth, growth_failure) = match writable && !any_failed && request.choice != RowChoice::Compat {
        true => growth::measure(&around, counters, request.budget / GROWTH_SHARE)?,
        false => (Vec::new(), None),
    };
    let elapsed_us = micros(around.begun.elapsed());
    let started = rfc3339_us(started);
    Ok(ProbeRecord {
        started,
        elapsed_us,
        test_sync,
        cpu,
        rows,
        pauses,
        growth,
        growth_failure,
        ..ProbeRecord::default()
    })
}

/// Watches the devices while the probe is idle.
fn idle(place: &PlaceFacts, counters: &mut Counters, budget: Duration, interrupt: &Interrupt) -> Result<Idle> {
    let span = (budget / IDLE_SHARE).clamp(IDLE_LEAST, IDLE_MOST);
    let before = counters.read();
    let begun = now();
    while begun.elapsed() < span {
        interrupt.check()?;
        sleep(POLL_INTERVAL.min(span.saturating_sub(begun.elapsed())));
    }
    let elapsed_us = micros(begun.elapsed());
    Ok(Idle { elapsed_us, devices: counters::growth(&place.devices, &before, &counters.read()) })
}

/// Creates the files shared by several rows. Returns true if the filesystem supports write(2).
fn make_files(site: &ProbeSite, choice: &RowChoice, bytes: u64) -> Result<bool> {
    let refused = |name: &'static str| {
        move |e: io::Error| site.refused(&e, format!("write {}", site.folder().join(name).display()))
    };
    match site.fill(operation::FILE, bytes, FileFill::Noise) {
        // hugetlbfs: files can be mapped but not written.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
            let remade = site.remove(operation::FILE).and_then(|()| site.fill(operation::FILE, bytes, FileFill::Hole));
            remade.map_err(refused(operation::FILE)).map(|()| false)
        }
        other => {
            other.map_err(refused(operation::FILE))?;
            if *choice != RowChoice::Compat {
                site.fill(walk::RECYCLED, bytes, FileFill::Noise).map_err(refused(walk::RECYCLED))?;
            }
            Ok(true)
        }
    }
}
