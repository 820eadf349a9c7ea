//! The rows on real files: opens each, runs its slices, keeps the results.

use super::counters::{Counters, growth};
use super::operation::{FILE, RowOperation};
use super::row::{DoneOperation, RowBuilder};
use super::tape::{FailedCall, Tape, nanos};
use super::walk::RECYCLED;
use super::{Surroundings, rows, schedule};
use crate::error::Result;
use crate::host::syncs;
use crate::host::time::{Instant, micros, now, sleep};
use crate::record::probe::{Failure, Idle, RowRecord, RowSpec, Segment, Slice, Way};
use std::time::Duration;

/// Bytes of the file that a mapping covers: a huge page if the filesystem has them (its files consist of whole ones),
/// else enough for one write on any page size.
const MAPPED_LEAST: u64 = 64 << 10;

/// Pause after each round. Long enough to notice a neighbour that writes all the time, and a thousandth of a probe of
/// 10 s.
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct RealBench<'a> {
    around: &'a Surroundings<'a>,
    rows: Vec<RowBuilder>,
    operations: Vec<Option<RowOperation<'a>>>,
    mapped_bytes: usize,
    counters: &'a mut Counters,
    tape: Tape,
    done: Vec<DoneOperation>,
    pauses: Idle,
}

impl<'a> RealBench<'a> {
    /// The rows of a request, none of them open.
    ///
    /// # Errors
    /// Never in practice (histograms).
    pub fn new(around: &'a Surroundings<'a>, writable: bool, counters: &'a mut Counters) -> Result<RealBench<'a>> {
        let Surroundings { request, place, site, .. } = around;
        let specs = rows::rows(&request.choice, request.wal_block, request.writers);
        let mut rows = specs.into_iter().map(RowBuilder::new).collect::<Result<Vec<_>>>()?;
        for row in &mut rows {
            let lacking = match row.record.spec.way {
                Way::FsyncWritethrough if !syncs::HAS_WRITETHROUGH => Some("only macOS has it"),
                _ if row.record.spec.direct && syncs::DIRECT.is_none() => Some("this system has no O_DIRECT"),
                Way::Msync => None,
                _ if !writable => Some("this filesystem has no write(2), only mmap(2)"),
                _ => None,
            };
            row.record.unavailable = lacking.map(str::to_owned);
        }
        let on_huge_pages = place.mount.as_ref().is_some_and(|mount| mount.fstype == "hugetlbfs");
        let mapped = if on_huge_pages { site.segment_bytes } else { MAPPED_LEAST };
        Ok(RealBench {
            around,
            operations: rows.iter().map(|_| None).collect(),
            rows,
            mapped_bytes: usize::try_from(mapped).unwrap_or(usize::MAX),
            counters,
            tape: Tape::new(around.ticker.clone()),
            done: Vec::new(),
            pauses: Idle::default(),
        })
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The rows' results, and the devices' work during the pauses.
    pub fn close(self) -> (Vec<RowRecord>, Idle) {
        let mut rows = self.rows;
        for row in rows.iter_mut().filter(|row| !row.has_ended() && row.operations() == 0) {
            row.record.unavailable = Some("time ran out before its turn".to_owned());
        }
        (rows.into_iter().map(RowBuilder::close).collect(), self.pauses)
    }

    fn open(&self, row: usize) -> Result<RowOperation<'a>, FailedCall> {
        let Surroundings { site, noise, ticker, .. } = self.around;
        RowOperation::open(&self.rows[row].record.spec, site, noise.bytes(), self.mapped_bytes, ticker)
    }

    /// Opens the row if needed, runs it, keeps its results. The failure is not yet in the row.
    fn ran(&mut self, row: usize, span: Duration) -> Result<Result<(u64, f64), FailedCall>> {
        let mut operation = match self.operations[row].take().map_or_else(|| self.open(row), Ok) {
            Ok(operation) => operation,
            Err(failed) => return Ok(Err(failed)),
        };
        let interrupt = self.around.interrupt;
        let first = operation.prepare().and_then(|()| operation.first(&mut self.tape, interrupt));
        if let Err(failed) = first.and_then(|()| operation.prepare()) {
            return Ok(Err(failed));
        }
        let before = self.counters.read();
        let outcome = operation.run(&mut self.tape, span, usize::MAX, interrupt);
        let devices = growth(&self.around.place.devices, &before, &self.counters.read());
        let (began, ended) = self.collect(&operation);
        let elapsed = ended.saturating_duration_since(began);
        let operations = self.done.len() as u64;
        for done in &self.done {
            self.rows[row].done(*done)?;
        }
        self.around.observer.slice(self.rows[row].record.spec.family, &self.done)?;
        let record = &mut self.rows[row].record;
        if let RowOperation::Walk(walk) = &mut operation {
            record.segments_us.append(&mut walk.made_us);
        }
        if operations > 0 {
            record.slices.push(Slice {
                at_us: micros(began.duration_since(self.around.begun)),
                elapsed_ns: nanos(elapsed),
                operations,
                syncs: outcome.as_ref().ok().copied().flatten(),
                device_operations: operation.all_operations(),
                devices,
            });
        }
        self.operations[row] = Some(operation);
        Ok(outcome.map(|_| (operations, elapsed.as_secs_f64())))
    }

    /// After a failed sync the kernel may have dropped the file's dirty pages and marked them clean: from then on no
    /// row of this file can be trusted, least of all a fast success.
    fn end_rows_of_the_same_file(&mut self, failed: usize, failure: &Failure) {
        const EIO: i32 = 5;
        if !(failure.call.contains("sync") || failure.errno == Some(EIO)) {
            return;
        }
        let label = self.rows[failed].record.spec.label.trim().to_owned();
        let file = file_of(&self.rows[failed].record.spec).to_owned();
        for row in 0..self.rows.len() {
            if row != failed && !self.rows[row].has_ended() && file_of(&self.rows[row].record.spec) == file {
                self.rows[row].record.unavailable = Some(format!(
                    "ended with \"{label}\", whose {} failed on the same file: {}",
                    failure.call, failure.message
                ));
                self.operations[row] = None;
            }
        }
    }

    /// Puts the operations of the slice into `done`, in the order of their ends; returns start and end of the time that
    /// counts.
    fn collect(&mut self, operation: &RowOperation<'_>) -> (Instant, Instant) {
        let done = |(ended, took): (Instant, Duration)| DoneOperation {
            ended_ns: nanos(ended.duration_since(self.around.begun)),
            latency_ns: nanos(took),
        };
        self.done.clear();
        match operation {
            RowOperation::Group(group) => {
                let (began, left) = group.steady();
                let all = group.tapes().iter().flat_map(Tape::operations);
                self.done.extend(all.filter(|(ended, _)| *ended > began && *ended <= left).map(done));
                self.done.sort_unstable_by_key(|done| done.ended_ns);
                (began, left)
            }
            _ => {
                self.done.extend(self.tape.operations().map(done));
                (self.tape.begun(), self.tape.begun() + self.tape.elapsed())
            }
        }
    }
}

fn file_of(spec: &RowSpec) -> &str {
    match spec.segment {
        None => FILE,
        Some(Segment::Recycled) => RECYCLED,
        Some(_) => &spec.id,
    }
}

impl schedule::Bench for RealBench<'_> {
    fn elapsed(&self) -> Duration {
        self.around.begun.elapsed()
    }

    fn pause(&mut self) {
        let before = self.counters.read();
        let begun = now();
        sleep(PAUSE);
        self.pauses.elapsed_us += micros(begun.elapsed());
        let grown = growth(&self.around.place.devices, &before, &self.counters.read());
        if self.pauses.devices.is_empty() {
            self.pauses.devices = grown;
        } else {
            for (sum, grown) in self.pauses.devices.iter_mut().zip(grown) {
                *sum = sum.zip(grown).map(|(sum, grown)| sum.combined(&grown, u64::wrapping_add));
            }
        }
    }

    fn slice(&mut self, row: usize, span: Duration) -> Result<Option<(u64, f64)>> {
        self.around.interrupt.check()?;
        if self.rows[row].has_ended() {
            return Ok(None);
        }
        match self.ran(row, span)? {
            Ok(work) => Ok(Some(work)),
            Err(failed) => {
                let at = now().duration_since(self.around.begun);
                self.rows[row].failed(&failed, micros(at));
                self.operations[row] = None;
                if let Some(failure) = self.rows[row].record.failure.clone() {
                    self.around.observer.failed(nanos(at))?;
                    self.end_rows_of_the_same_file(row, &failure);
                }
                Ok(None)
            }
        }
    }
}
