//! The rows on real files: opens each, runs its slices, keeps what they did.

use super::counters::{Counters, growth};
use super::group::WriterGroup;
use super::operation::{FILE, RowOperation};
use super::row::{Done, RowBuilder};
use super::schedule::{self, Work};
use super::site::ProbeSite;
use super::tape::{Failed, Tape};
use super::walk::RECYCLED;
use super::{AlignedNoise, Observer, Request, rows};
use crate::error::Result;
use crate::host::signals::Interrupt;
use crate::host::syncs;
use crate::host::ticks::Ticker;
use crate::host::time::{Instant, micros, now, sleep};
use crate::record::facts::DeviceFacts;
use crate::record::probe::{DeviceCounts, Failure, Idle, PlaceFacts, RowRecord, RowSpec, Segment, Slice, Way};
use std::time::Duration;

/// How much of the file a mapping covers: a huge page where the filesystem has those (its files are whole ones), else
/// enough for one write on any page size.
const MAPPED_LEAST: u64 = 64 << 10;

/// A pause after each round. Long enough to see a neighbour that writes all the time, a thousandth of a probe of 10 s.
const PAUSE: Duration = Duration::from_millis(10);

/// The rows and what they run on.
pub struct RealBench<'a> {
    rows: Vec<RowBuilder>,
    runners: Vec<Option<Runner<'a>>>,
    site: &'a ProbeSite,
    bytes: &'a [u8],
    mapped_bytes: usize,
    devices: &'a [DeviceFacts],
    counters: &'a mut Counters,
    ticker: Ticker,
    tape: Tape,
    done: Vec<Done>,
    pauses: Idle,
    begun: Instant,
    interrupt: &'a Interrupt,
    observer: &'a dyn Observer,
}

enum Runner<'a> {
    One(RowOperation<'a>),
    WriterGroup(WriterGroup<'a>),
}

/// What everything that is measured shares.
pub struct Setting<'a> {
    /// Where the files are.
    pub site: &'a ProbeSite,
    pub place: &'a PlaceFacts,
    pub noise: &'a AlignedNoise,
    /// Whether the filesystem has write(2).
    pub writable: bool,
    /// What operations are timed by.
    pub ticker: Ticker,
    /// When the first slice begins.
    pub begun: Instant,
    /// Whether somebody asked to stop.
    pub interrupt: &'a Interrupt,
    /// Who hears of it.
    pub observer: &'a dyn Observer,
}

impl<'a> RealBench<'a> {
    /// The rows of a request, none of them open.
    ///
    /// # Errors
    /// Never in practice (histograms).
    pub fn new(request: &Request, setting: &Setting<'a>, counters: &'a mut Counters) -> Result<RealBench<'a>> {
        let specs = rows::rows(&request.choice, request.wal_block, request.writers);
        let mut rows = specs.into_iter().map(RowBuilder::new).collect::<Result<Vec<_>>>()?;
        for row in &mut rows {
            match row.spec().way {
                Way::FsyncWritethrough if !syncs::HAS_WRITETHROUGH => {
                    row.cannot_be_had("only macOS has it".to_owned());
                }
                _ if row.spec().direct && syncs::DIRECT.is_none() => {
                    row.cannot_be_had("this system has no O_DIRECT".to_owned());
                }
                Way::Msync => {}
                _ if !setting.writable => {
                    row.cannot_be_had("this filesystem has no write(2), only mmap(2)".to_owned());
                }
                _ => {}
            }
        }
        let on_huge_pages = setting.place.mount.as_ref().is_some_and(|mount| mount.fstype == "hugetlbfs");
        let mapped = if on_huge_pages { setting.site.segment_bytes() } else { MAPPED_LEAST };
        Ok(RealBench {
            runners: rows.iter().map(|_| None).collect(),
            rows,
            site: setting.site,
            bytes: setting.noise.bytes(),
            mapped_bytes: usize::try_from(mapped).unwrap_or(usize::MAX),
            devices: &setting.place.devices,
            counters,
            tape: Tape::new(setting.ticker.clone()),
            ticker: setting.ticker.clone(),
            done: Vec::new(),
            pauses: Idle::default(),
            begun: setting.begun,
            interrupt: setting.interrupt,
            observer: setting.observer,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// What they measured, and what the devices did in the pauses.
    pub fn close(self) -> (Vec<RowRecord>, Idle) {
        let mut rows = self.rows;
        for row in rows.iter_mut().filter(|row| !row.has_ended() && row.operations() == 0) {
            row.cannot_be_had("time ran out before its turn".to_owned());
        }
        (rows.into_iter().map(RowBuilder::close).collect(), self.pauses)
    }

    fn open(&self, row: usize) -> Result<Runner<'a>, Failed> {
        let spec = self.rows[row].spec();
        match spec.writers {
            1 => RowOperation::open(spec, self.site, self.bytes, self.mapped_bytes).map(Runner::One),
            _ => WriterGroup::open(spec, self.site, self.bytes, &self.ticker).map(Runner::WriterGroup),
        }
    }

    /// Opens the row if need be, runs it, keeps what it did. The failure is not yet in the row.
    fn ran(&mut self, row: usize, span: Duration) -> Result<Result<Work, Failed>> {
        let mut runner = match self.runners[row].take().map_or_else(|| self.open(row), Ok) {
            Ok(runner) => runner,
            Err(failed) => return Ok(Err(failed)),
        };
        let first = runner.prepare().and_then(|()| runner.first(&mut self.tape, self.interrupt));
        if let Err(failed) = first.and_then(|()| runner.prepare()) {
            return Ok(Err(failed));
        }
        let before = self.counters.read();
        let outcome = runner.run(&mut self.tape, span, self.interrupt);
        let devices = growth(self.devices, &before, &self.counters.read());
        let (began, ended) = self.collect(&runner);
        let elapsed = ended.saturating_duration_since(began);
        let operations = self.done.len() as u64;
        for done in &self.done {
            self.rows[row].done(*done)?;
        }
        self.observer.slice(self.rows[row].spec().family, &self.done)?;
        let record = self.rows[row].record();
        record.segments_us.extend(runner.take_segments_us());
        if operations > 0 {
            record.slices.push(Slice {
                at_us: micros(began.duration_since(self.begun)),
                elapsed_ns: nanos(elapsed),
                operations,
                syncs: outcome.as_ref().ok().copied().flatten(),
                device_operations: runner.all_operations(),
                devices,
            });
        }
        let work = Work { operations, seconds: elapsed.as_secs_f64() };
        self.runners[row] = Some(runner);
        Ok(outcome.map(|_| work))
    }

    /// After a failed sync the kernel may have dropped the pages of the file and calls them clean: what any row says of it
    /// from then on is worth nothing, and a fast success above all.
    fn end_rows_of_the_same_file(&mut self, failed: usize, failure: &Failure) {
        const EIO: i32 = 5;
        if !(failure.call.contains("sync") || failure.errno == Some(EIO)) {
            return;
        }
        let label = self.rows[failed].spec().label.trim().to_owned();
        let file = file_of(self.rows[failed].spec()).to_owned();
        for row in 0..self.rows.len() {
            if row != failed && !self.rows[row].has_ended() && file_of(self.rows[row].spec()) == file {
                self.rows[row].cannot_be_had(format!(
                    "ended with \"{label}\", whose {} failed on the same file: {}",
                    failure.call, failure.message
                ));
                self.runners[row] = None;
            }
        }
    }

    /// Puts the operations of the slice into `done`, in the order of their ends; from when to when they ran.
    fn collect(&mut self, runner: &Runner<'_>) -> (Instant, Instant) {
        let done = |(ended, took): (Instant, Duration)| Done {
            ended_ns: nanos(ended.duration_since(self.begun)),
            latency_ns: nanos(took),
        };
        self.done.clear();
        match runner {
            Runner::One(_) => {
                self.done.extend(self.tape.operations().map(done));
                (self.tape.begun(), self.tape.begun() + self.tape.elapsed())
            }
            Runner::WriterGroup(group) => {
                let (began, left) = group.steady();
                let all = group.tapes().iter().flat_map(Tape::operations);
                self.done.extend(all.filter(|(ended, _)| *ended > began && *ended <= left).map(done));
                self.done.sort_unstable_by_key(|done| done.ended_ns);
                (began, left)
            }
        }
    }
}

/// Name of the file that a row writes.
fn file_of(spec: &RowSpec) -> &str {
    match spec.segment {
        None => FILE,
        Some(Segment::Recycled) => RECYCLED,
        Some(_) => &spec.id,
    }
}

impl schedule::Bench for RealBench<'_> {
    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn pause(&mut self) {
        let before = self.counters.read();
        let begun = now();
        sleep(PAUSE);
        self.pauses.elapsed_us += micros(begun.elapsed());
        let grown = growth(self.devices, &before, &self.counters.read());
        if self.pauses.devices.is_empty() {
            self.pauses.devices = grown;
        } else {
            let sums = self.pauses.devices.iter_mut().zip(grown);
            sums.for_each(|(sum, grown)| *sum = sum.zip(grown).map(|(sum, grown)| added(sum, grown)));
        }
    }

    fn slice(&mut self, row: usize, span: Duration) -> Result<Option<Work>> {
        self.interrupt.check()?;
        if self.rows[row].has_ended() {
            return Ok(None);
        }
        match self.ran(row, span)? {
            Ok(work) => Ok(Some(work)),
            Err(failed) => {
                let at = now().duration_since(self.begun);
                self.rows[row].failed(&failed, micros(at));
                self.runners[row] = None;
                if let Some(failure) = self.rows[row].record().failure.clone() {
                    self.observer.failed(nanos(at))?;
                    self.end_rows_of_the_same_file(row, &failure);
                }
                Ok(None)
            }
        }
    }
}

impl Runner<'_> {
    fn prepare(&mut self) -> Result<(), Failed> {
        match self {
            Runner::One(operation) => operation.prepare(),
            Runner::WriterGroup(_) => Ok(()),
        }
    }

    /// The operation before the first that counts. A group's own beginning does not count already.
    fn first(&mut self, tape: &mut Tape, stop: &Interrupt) -> Result<(), Failed> {
        match self {
            Runner::One(operation) => operation.run(tape, Duration::ZERO, 1, stop),
            Runner::WriterGroup(_) => Ok(()),
        }
    }

    /// Runs for `span`; gives the number of syncs where it is not that of the operations.
    fn run(&mut self, tape: &mut Tape, span: Duration, stop: &Interrupt) -> Result<Option<u64>, Failed> {
        match self {
            Runner::One(operation) => operation.run(tape, span, usize::MAX, stop).map(|()| None),
            Runner::WriterGroup(group) => group.run(span, usize::MAX, stop).map(Some),
        }
    }

    /// Operations of the whole run, where only part of them counts.
    fn all_operations(&self) -> Option<u64> {
        match self {
            Runner::One(_) => None,
            Runner::WriterGroup(group) => Some(group.tapes().iter().map(|tape| tape.operations().count() as u64).sum()),
        }
    }

    fn take_segments_us(&mut self) -> Vec<u64> {
        match self {
            Runner::One(operation) => operation.take_segments_us(),
            Runner::WriterGroup(_) => Vec::new(),
        }
    }
}

fn added(one: DeviceCounts, other: DeviceCounts) -> DeviceCounts {
    DeviceCounts {
        writes: one.writes + other.writes,
        write_bytes: one.write_bytes + other.write_bytes,
        flushes: one.flushes.zip(other.flushes).map(|(one, other)| one + other),
        reads: one.reads + other.reads,
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
