//! Synced writes without PostgreSQL: the probe of `pgstrata probe`, on each stack of a plan.
//!
//! Its measures are the `wal_sync_method` values used the way a server writes its WAL; all other rows of the probe are
//! kept with them. A failed sync ends its row and is reported as such: it never counts as a fast success.

use super::{
    ClientSecond, Listener, LoadEvent, Measuring, MemorySizes, Place, Until, Window, Workload, WorkloadInfo,
    empty_histogram,
};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::probe::{self, DoneOperation, Observer, ProbeRequest, RowChoice, WAL_BLOCK};
use crate::record::counts::{Counts, Measure, MeasureSlice};
use crate::record::latency::LatencyInterval;
use crate::record::operation::{Operation, Writes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::probe::{Family, ProbeRecord, RowRecord, SecondLatencies, Segment};
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

const DEFAULT_DURATION: Micros = Micros(10_000_000);
const DEFAULT_WRITERS: u32 = 8;

/// Same order of slices in every trial, so that order is not a difference between stacks.
const SEED: u64 = 1;

const INFO: WorkloadInfo = WorkloadInfo {
    name: "sync",
    doc: "synced writes with each method to make them durable, measured like `pgstrata probe`, on the filesystem of \
          `pg_wal`; no server",
    needs_server: false,
    options: &[
        OptionSpec::with_default("duration", OptionKind::Span, "10s")
            .doc("measuring time, shared by all rows in short slices"),
        OptionSpec::with_default("warmup", OptionKind::Span, "0s").doc("duration of the unmeasured warm-up"),
        OptionSpec::with_default(
            "wal_block",
            OptionKind::OneOf(&["1kB", "2kB", "4kB", "8kB", "16kB", "32kB", "64kB"]),
            "8kB",
        )
        .doc("write size for the rows that write as the server writes WAL"),
        OptionSpec::with_default("writers", OptionKind::Integer { min: 2 }, "8")
            .doc("number of writers in the group commit row"),
    ],
    quick: &[],
};

#[derive(Debug)]
pub struct Sync;

impl Workload for Sync {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        const MOST_WRITERS: i64 = 256;
        if options.integer("writers").is_some_and(|writers| writers > MOST_WRITERS) {
            return Err(OptionProblem::at("writers", format!("must be at most {MOST_WRITERS}")));
        }
        options.positive_span("duration")?;
        options.checked_span("warmup").map(drop)
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let settings = options.given(&["duration", "warmup"]).collect();
        Ok(Operation { settings, ..Operation::new("sync", "ops/s", Writes::Always) })
    }

    fn window(&self, options: &Options) -> Window {
        let span_us = options.span("duration").unwrap_or(DEFAULT_DURATION).0;
        Window { warm_up: Some(options.span("warmup").unwrap_or_default()), extent: Extent::Span { span_us } }
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, _memory: MemorySizes, until: Until<'_>) -> Result<()> {
        probed(place.host, &request(place.folder, options, until.longest), place.interrupt, &drop).map(drop)
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, until, listener, .. } = run;
        probed(place.host, &request(place.folder, options, until.longest), place.interrupt, listener)
    }
}

fn request(folder: &Path, options: &Options, span: Micros) -> ProbeRequest {
    let wal_block = options.text("wal_block").and_then(|text| Bytes::parse(text).ok());
    let wal_block = wal_block.and_then(|Bytes(bytes)| u32::try_from(bytes).ok());
    let writers = options.integer("writers").and_then(|writers| u32::try_from(writers).ok());
    ProbeRequest {
        folder: folder.to_owned(),
        choice: RowChoice::All,
        budget: Duration::from_micros(span.0),
        // The plan fixes the duration of a trial.
        precision: 0.0,
        wal_block: wal_block.unwrap_or(WAL_BLOCK),
        writers: writers.unwrap_or(DEFAULT_WRITERS),
        // The stack belongs to the run, or is a folder provided for it.
        free_over_files: 2,
        seed: SEED,
    }
}

/// Rows that write as a server does by default: buffered, into recycled segments, one writer.
fn as_the_server(record: &ProbeRecord) -> impl Iterator<Item = &RowRecord> {
    record.rows.iter().filter(|row| {
        let spec = &row.spec;
        spec.family == Family::Wal && spec.segment == Some(Segment::Recycled) && !spec.direct && spec.writers == 1
    })
}

fn measure(row: &RowRecord) -> Measure {
    let failed = row.failure.as_ref();
    let unavailable = row.unavailable.clone().or_else(|| {
        failed.map(|f| format!("{} failed after {} operations: {}", f.call, f.after_operations, f.message))
    });
    // Results from before a lost write do not count as a measurement.
    let slices = if unavailable.is_none() { row.slices.as_slice() } else { &[] };
    let elapsed_ns: u64 = slices.iter().map(|slice| slice.elapsed_ns).sum();
    Measure {
        name: row.spec.label.clone(),
        done: unavailable.is_none().then(|| slices.iter().map(|slice| slice.operations).sum()),
        failed: u64::from(failed.is_some()),
        elapsed_us: elapsed_ns / 1000,
        latency_us_sum: elapsed_ns / 1000,
        unavailable,
        slices: slices.iter().map(|s| MeasureSlice { operations: s.operations, elapsed_ns: s.elapsed_ns }).collect(),
        ..Measure::default()
    }
}

/// Reports the latencies of the measures, second by second.
fn report_latencies(record: &ProbeRecord, listener: &Listener<'_>) -> Result<()> {
    let measured = as_the_server(record).filter(|row| row.unavailable.is_none() && row.failure.is_none());
    let mut seconds: Vec<(&SecondLatencies, &str)> =
        measured.flat_map(|row| row.seconds.iter().map(|second| (second, row.spec.label.as_str()))).collect();
    seconds.sort_by_key(|(second, _)| second.second);
    for (second, measure) in seconds {
        let start_us = u64::from(second.second) * 1_000_000;
        listener(LoadEvent::Latencies(LatencyInterval {
            measure: measure.to_owned(),
            start_us,
            length_us: record.elapsed_us.saturating_sub(start_us).min(1_000_000),
            latencies: histogram(second)?,
        }));
    }
    Ok(())
}

fn histogram(second: &SecondLatencies) -> Result<Histogram<u64>> {
    let mut histogram = empty_histogram()?;
    for (latency_ns, count) in &second.latencies {
        let recorded = histogram.record_n(latency_ns.div_ceil(1000), *count);
        recorded.map_err(|e| Error::bug(format!("cannot record a latency of {latency_ns} ns: {e}")))?;
    }
    Ok(histogram)
}

/// Turns slices into seconds over all rows.
struct SecondReporter<'a> {
    listener: &'a Listener<'a>,
    /// The open second, from 1.
    open: RefCell<ClientSecond>,
}

impl SecondReporter<'_> {
    /// Reports every second that lies wholly before `at_ns`.
    fn pass(&self, open: &mut ClientSecond, at_ns: u64) -> Result<()> {
        let second = at_ns / 1_000_000_000 + 1;
        while open.second < second {
            let next = ClientSecond::empty(open.second + 1)?;
            (self.listener)(LoadEvent::Second(std::mem::replace(open, next)));
        }
        Ok(())
    }
}

impl Observer for SecondReporter<'_> {
    fn began(&self, wall_us: u64) {
        (self.listener)(LoadEvent::Began(wall_us));
    }

    fn slice(&self, family: Family, done: &[DoneOperation]) -> Result<()> {
        let open = &mut *self.open.borrow_mut();
        for done in done {
            self.pass(open, done.ended_ns)?;
            // A write without a sync is not an operation that reaches the devices.
            if family != Family::NotSynced {
                open.done += 1;
                let latency_us = done.latency_ns.div_ceil(1000);
                let recorded = open.latencies.record(latency_us);
                recorded.map_err(|e| Error::bug(format!("cannot record a latency of {latency_us} us: {e}")))?;
            }
        }
        Ok(())
    }

    fn failed(&self, at_ns: u64) -> Result<()> {
        let open = &mut *self.open.borrow_mut();
        self.pass(open, at_ns)?;
        open.failed += 1;
        Ok(())
    }
}

fn probed(host: &Host, request: &ProbeRequest, interrupt: &Interrupt, listener: &Listener<'_>) -> Result<Counts> {
    let seconds = SecondReporter { listener, open: RefCell::new(ClientSecond::empty(1)?) };
    let record = probe::measure(host, request, interrupt, &seconds)?;
    seconds.pass(&mut seconds.open.borrow_mut(), record.elapsed_us * 1000)?;
    report_latencies(&record, listener)?;
    // The main measure is PostgreSQL's default on Linux.
    let mut measures: Vec<Measure> = as_the_server(&record).map(measure).collect();
    measures.sort_by_key(|measure| measure.name != "fdatasync");
    Ok(Counts { elapsed_us: record.elapsed_us, measures, probe: Some(Box::new(record)), ..Counts::default() })
}

#[cfg(test)]
mod tests;
