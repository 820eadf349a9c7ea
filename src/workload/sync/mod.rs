//! What a durable write costs without PostgreSQL: one 8 kB write and its sync, by each of the methods that
//! `wal_sync_method` knows, as pg_test_fsync does, but every operation timed, every return value checked, and the
//! methods in turn in short slices, so that a drift of the device does not look like a difference between methods.
//!
//! A failed sync ends its method and is told as such: it is never a fast success. Each method has a file of its own, so
//! that direct writes do not pay for throwing out the pages that a buffered method left in the cache.

mod turn;

use super::{ClientSecond, DataSet, Listener, Place, Raw, Workload, empty_histogram};
use crate::error::{Context, Error, Result};
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now, wall_us};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::trial::{Figures, Measure};
use crate::units::{Bytes, Micros};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use turn::{METHODS, Turn, noise};

/// One write: a page of WAL (`XLOG_BLCKSZ`).
const WRITE_BYTES: usize = 8192;

/// Direct writes want memory aligned to the device's logical block, which is at most a page.
const ALIGNMENT: usize = 4096;

/// How long one method runs before the next one's turn.
const SLICE: Duration = Duration::from_millis(200);

const DEFAULT_DURATION: Micros = Micros(10_000_000);

const SPECS: &[OptionSpec] = &[
    OptionSpec {
        key: "duration",
        kind: OptionKind::Span,
        axis: false,
        required: false,
        default: Some("10s"),
        doc: "how long it is measured; the methods share it in slices of 0.2 s",
    },
    OptionSpec {
        key: "warmup",
        kind: OptionKind::Span,
        axis: false,
        required: false,
        default: Some("0s"),
        doc: "how long the same runs unmeasured before",
    },
];

/// The workload `sync`.
#[derive(Debug)]
pub struct Sync;

impl Workload for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn doc(&self) -> &'static str {
        "one 8 kB write and its sync, by each of the five methods of wal_sync_method; no server"
    }

    fn options(&self) -> &'static [OptionSpec] {
        SPECS
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        match span(options, "duration")? {
            Some(Micros(0)) => Err(OptionProblem::at("duration", "must be above 0")),
            _ => span(options, "warmup").map(drop),
        }
    }

    fn needs_server(&self) -> bool {
        false
    }

    fn data_set(&self, _options: &Options, _memory: Bytes) -> Option<DataSet> {
        None
    }

    fn spans(&self, options: &Options) -> (Micros, Micros) {
        let of = |key| span(options, key).ok().flatten();
        (of("warmup").unwrap_or_default(), of("duration").unwrap_or(DEFAULT_DURATION))
    }

    fn load(&self, _place: &Place<'_>, _options: &Options, _memory: Bytes) -> Result<()> {
        Ok(())
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, _memory: Bytes) -> Result<()> {
        match self.spans(options).0 {
            Micros(0) => Ok(()),
            warmup => run(place.folder, warmup, place.interrupt, &Nobody).map(drop),
        }
    }

    fn measure(&self, place: &Place<'_>, options: &Options, _memory: Bytes, listener: &dyn Listener) -> Result<Raw> {
        run(place.folder, self.spans(options).1, place.interrupt, listener)
    }

    fn read(&self, _options: &Options, raw: &Raw) -> Result<Figures> {
        let counts: Counts =
            serde_json::from_value(raw.counts.clone()).or_store(|| "read what sync counted".to_owned())?;
        Ok(Figures { elapsed_us: counts.elapsed_us, measures: counts.measures, ..Figures::default() })
    }
}

/// What is kept with the raw output.
#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    elapsed_us: u64,
    measures: Vec<Measure>,
}

/// Hears a warm-up.
struct Nobody;

impl Listener for Nobody {
    fn began(&self, _wall_us: u64) {}
    fn second(&self, _second: ClientSecond) {}
}

fn span(options: &Options, key: &'static str) -> Result<Option<Micros>, OptionProblem> {
    match options.text(key) {
        Some(text) => Micros::parse(text).map(Some).map_err(|message| OptionProblem::at(key, message)),
        None => Ok(None),
    }
}

/// The seconds of all methods together.
struct Seconds<'a> {
    listener: &'a dyn Listener,
    begun: Instant,
    /// The second that is open, from 1.
    open: ClientSecond,
}

impl Seconds<'_> {
    fn done(&mut self, at: Instant, latency_us: u64) -> Result<()> {
        self.pass(at)?;
        self.open.done += 1;
        record(&mut self.open.latencies, latency_us)
    }

    fn failed(&mut self, at: Instant) -> Result<()> {
        self.pass(at)?;
        self.open.failed += 1;
        Ok(())
    }

    /// Tells every second that lies wholly before `at`.
    fn pass(&mut self, at: Instant) -> Result<()> {
        let second = at.duration_since(self.begun).as_secs() + 1;
        while self.open.second < second {
            let next = new_second(self.open.second + 1)?;
            self.listener.second(std::mem::replace(&mut self.open, next));
        }
        Ok(())
    }
}

fn new_second(second: u64) -> Result<ClientSecond> {
    let latencies = empty_histogram()?;
    Ok(ClientSecond { second, done: 0, failed: 0, skipped: 0, late: 0, retries: 0, latencies })
}

fn record(latencies: &mut Histogram<u64>, latency_us: u64) -> Result<()> {
    latencies.record(latency_us).map_err(|e| Error::bug(format!("recording a latency of {latency_us} us: {e}")))
}

fn run(folder: &Path, span: Micros, interrupt: &Interrupt, listener: &dyn Listener) -> Result<Raw> {
    let memory = noise(WRITE_BYTES + ALIGNMENT);
    let aligned = memory.as_ptr().align_offset(ALIGNMENT);
    let page = &memory[aligned..aligned + WRITE_BYTES];
    let mut turns = METHODS.iter().map(|method| Turn::new(folder, method)).collect::<Result<Vec<_>>>()?;
    let begun = now();
    let end = begun + Duration::from_micros(span.0);
    listener.began(wall_us());
    let mut seconds = Seconds { listener, begun, open: new_second(1)? };
    while now() < end && turns.iter().any(|turn| turn.file.is_some()) {
        for turn in &mut turns {
            if now() < end {
                turn.slice(page, (now() + SLICE).min(end), &mut seconds, interrupt)?;
            }
        }
    }
    let elapsed = begun.elapsed();
    seconds.pass(begun + elapsed)?;
    let counts = Counts { elapsed_us: micros(elapsed), measures: turns.iter().map(Turn::measure).collect() };
    let measured = turns.into_iter().filter(|turn| turn.unavailable.is_none());
    Ok(Raw {
        latencies: measured.map(|turn| (turn.method.name.to_owned(), turn.latencies)).collect(),
        counts: serde_json::to_value(counts).or_store(|| "keep what sync counted".to_owned())?,
        ..Raw::default()
    })
}

#[cfg(test)]
mod tests;
