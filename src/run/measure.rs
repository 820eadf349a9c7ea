//! One measurement: runs the workload, ticks telemetry, samples waits, and joins the rows second by second.
//!
//! Memory does not grow with the length of a measurement: a row is written as soon as both its halves are there, the
//! latencies of a second as soon as it is complete.

use super::cpu_taken::CpuCounter;
use super::disturbance::Others;
use super::events::Events;
use crate::error::{Error, Result};
use crate::host::time::thread_cpu_us;
use crate::host::{Host, threads};
use crate::record::case::TrialKey;
use crate::record::column::Column;
use crate::record::columns;
use crate::record::event::Event;
use crate::record::latency::LatencyInterval;
use crate::record::options::Options;
use crate::record::seconds::{Row, Value, client_columns, key_columns};
use crate::record::trial::{CpuTaken, Gap, TrialRecord};
use crate::store::seconds::SecondsWriter;
use crate::store::staging::Staging;
use crate::store::{self, latency};
use crate::telemetry::recorder::{Began, Recorder, Recording, Tick};
use crate::telemetry::waits::{self, Waits};
use crate::telemetry::{self, Target};
use crate::units::Micros;
use crate::workload::{ClientSecond, LoadEvent, Measuring, MemorySizes, Place, Until, Workload};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

pub struct Measurement<'a> {
    pub host: &'a Host,
    pub key: &'a TrialKey,
    pub run: &'a str,
    /// Position of its case in the matrix.
    pub axes: &'a BTreeMap<String, String>,
    pub workload: &'a dyn Workload,
    pub options: &'a Options,
    pub memory: MemorySizes,
    /// Expected duration.
    pub expected: Micros,
    pub target: &'a Target,
    pub events: &'a Events<'a>,
    pub staging: &'a Staging,
}

/// When the measurement began, once known, and whether it is over.
#[derive(Default)]
struct Gate {
    began_us: OnceLock<u64>,
    over: AtomicBool,
}

enum RowHalf {
    Client(ClientSecond),
    Telemetry(Tick),
}

impl Measurement<'_> {
    /// Runs the workload until then and writes `seconds.parquet`, `latency.hist` and, with a server, `waits.parquet`;
    /// all other results go into the record. Returns when the first operation began, microseconds since 1970, or `None`
    /// if there was none.
    ///
    /// # Errors
    /// Of the workload or the store.
    pub fn run(&self, place: &Place<'_>, until: Until<'_>, record: &mut TrialRecord) -> Result<Option<u64>> {
        let staging = self.staging;
        let recorder = Recorder::open(telemetry::ALL, self.host, self.target);
        let telemetry = recorder.columns().to_vec();
        let axes = columns::axes(self.axes).into_iter().map(|(column, _)| column);
        let after_key = axes.chain(client_columns()).chain(recorder.columns().iter().cloned());
        let columns: Vec<Column> = key_columns().into_iter().chain(after_key).collect();
        let writer = SecondsWriter::create(&staging.seconds(), columns.clone())?;
        let Until { longest, progress } = until;
        let gate = Gate::default();
        let (halves, joined) = channel();
        let ticks = halves.clone();
        let (intervals, received) = channel();
        let (counts, rows, latencies, recording, waits) = std::thread::scope(|scope| {
            let begun = (|| {
                let rows = threads::begin(scope, || self.join(joined, writer, &telemetry))?;
                let latencies = threads::begin(scope, || self.write_latencies(&staging.latencies(), &gate, received))?;
                let recording = threads::begin(scope, || tick(recorder, &gate, ticks))?;
                Ok((rows, latencies, recording, threads::begin(scope, || self.waits(&gate))?))
            })();
            let (rows, latencies, recording, waits) = begun.inspect_err(|_| gate.over.store(true, Ordering::SeqCst))?;
            let gate = &gate;
            let counts = self.workload.measure(Measuring {
                place,
                options: self.options,
                memory: self.memory,
                until: Until { longest, progress },
                // The writer only goes away if writing failed; its error is reported when it is joined.
                listener: &move |event| match event {
                    LoadEvent::Began(wall_us) => drop(gate.began_us.set(wall_us)),
                    LoadEvent::Second(second) => drop(halves.send(RowHalf::Client(second))),
                    LoadEvent::Latencies(interval) => drop(intervals.send(interval)),
                },
            });
            gate.over.store(true, Ordering::SeqCst);
            Ok((counts, rows.join(), latencies.join(), recording.join(), waits.join()))
        })?;
        record.counts = Some(counts?);
        let (joining_cpu_us, cpu_taken) = rows.map_err(panicked)??;
        let latencies_cpu_us = latencies.map_err(panicked)??;
        let Recording { gaps, cpu_us, cpu_us_by: mut parts, load_counts, clock_step_us, .. } =
            recording.map_err(panicked)?;
        let began_us = gate.began_us.get().copied();
        record.columns = columns;
        record.gaps = gaps;
        record.cpu_taken = cpu_taken;
        record.load_counts = load_counts;
        record.clock_step_us = Some(clock_step_us);
        let waits_cpu_us = self.note_waits(waits.map_err(panicked)?, &staging.waits(), began_us, record)?;
        parts.extend([("rows", joining_cpu_us), ("latencies", latencies_cpu_us)]);
        parts.extend(waits_cpu_us.map(|cpu_us| ("waits", cpu_us)));
        record.telemetry_cpu_us = Some(cpu_us + joining_cpu_us + latencies_cpu_us + waits_cpu_us.unwrap_or(0));
        record.telemetry_cpu_us_by = parts.into_iter().map(|(part, us)| (part.to_owned(), us)).collect();
        Ok(began_us)
    }

    /// Stores the backends' waits, or why they are unknown. Returns the CPU time spent sampling, microseconds.
    fn note_waits(
        &self,
        waits: Option<Result<Waits>>,
        path: &Path,
        began_us: Option<u64>,
        record: &mut TrialRecord,
    ) -> Result<Option<u64>> {
        record.waits = None;
        match waits {
            None => Ok(None),
            Some(Ok(waits)) => {
                store::waits::write(path, &self.key_of_waits(), began_us, &waits.figures)?;
                record.waits = Some(waits.figures);
                Ok(Some(waits.cpu_us))
            }
            Some(Err(e)) => {
                record.gaps.push(Gap { source: "waits".to_owned(), second: None, rows: 0, reason: e.to_string() });
                Ok(None)
            }
        }
    }

    /// First columns of every row of `waits.parquet`.
    fn key_of_waits(&self) -> Vec<(Column, Value)> {
        let mut key = vec![
            (columns::RUN.column(), Value::Text(self.run.to_owned())),
            (columns::CASE.column(), Value::Text(self.key.case.clone())),
            (columns::TRIAL.column(), Value::Count(u64::from(self.key.trial))),
        ];
        let axes = columns::axes(self.axes).into_iter();
        key.extend(axes.map(|(column, value)| (column, Value::Text(value.to_owned()))));
        key
    }

    fn waits(&self, gate: &Gate) -> Option<Result<Waits>> {
        let server = self.target.server.as_ref()?;
        Some(waits::sample(server, &gate.over))
    }

    /// Writes latencies as they are reported. Returns the CPU time this cost, microseconds.
    fn write_latencies(&self, path: &Path, gate: &Gate, intervals: Receiver<LatencyInterval>) -> Result<u64> {
        let cpu_before = thread_cpu_us();
        latency::write(path, self.expected.0, || gate.began_us.get().copied(), intervals.into_iter())?;
        Ok(thread_cpu_us().saturating_sub(cpu_before))
    }

    /// Joins the halves of each second into rows, in order. Returns the CPU time this cost, microseconds, and the CPU
    /// time taken by others during these rows.
    fn join(
        &self,
        halves: Receiver<RowHalf>,
        mut writer: SecondsWriter,
        telemetry: &[Column],
    ) -> Result<(u64, Option<CpuTaken>)> {
        let cpu_before = thread_cpu_us();
        let (mut counter, mut others) = (CpuCounter::of(telemetry), Others::among(telemetry));
        let mut joiner = Joiner::new(telemetry.len());
        for half in halves.into_iter().map(Some).chain([None]) {
            let ended = half.is_none();
            match half {
                Some(RowHalf::Telemetry(tick)) => {
                    if let Some(warning) = others.warning(tick.wall_us, &tick.values) {
                        let message = format!("{} #{}: {warning}", self.key.case, self.key.trial);
                        self.events.emit(Event::Warning { message })?;
                    }
                    joiner.ticks.push_back(tick);
                }
                Some(RowHalf::Client(second)) => {
                    self.events.emit(second_event(self.key, &second))?;
                    joiner.clients.push_back(second);
                }
                None => {}
            }
            while let Some(row) = joiner.next(ended) {
                if let Some(wall_us) = row.wall_us {
                    counter.add(wall_us, &row.telemetry);
                }
                writer.push(self.keyed(row))?;
            }
        }
        writer.finish()?;
        Ok((thread_cpu_us().saturating_sub(cpu_before), counter.taken()))
    }

    fn keyed(&self, row: Joined) -> Row {
        let mut key: Row = self.key_of_waits().into_iter().map(|(_, value)| Some(value)).collect();
        // Behind the trial.
        key.splice(3..3, [Some(Value::Count(row.second)), row.wall_us.map(Value::Count)]);
        [key, row.client, row.telemetry].concat()
    }
}

fn panicked<E>(_: E) -> Error {
    Error::bug("a thread of the measurement panicked")
}

pub fn second_event(trial: &TrialKey, second: &ClientSecond) -> Event {
    let latency_us_p99 = (second.done > 0).then(|| second.latencies.value_at_quantile(0.99));
    Event::Second { trial: trial.clone(), second: second.second, done: second.done, latency_us_p99 }
}

/// Ticks from just before the measurement to its end.
#[expect(clippy::needless_pass_by_value, reason = "the channel must end with the ticking: the joiner waits for that")]
fn tick(recorder: Recorder, gate: &Gate, ticks: Sender<RowHalf>) -> Recording {
    recorder.record(Began::now(), &|| gate.began_us.get().copied(), &gate.over, &mut |tick| {
        // The joiner only goes away if writing failed; its error is reported when it is joined.
        drop(ticks.send(RowHalf::Telemetry(tick)));
    })
}

/// One row without its key.
#[derive(Debug, PartialEq)]
struct Joined {
    second: u64,
    wall_us: Option<u64>,
    client: Row,
    telemetry: Row,
}

/// Waits for both halves of each second. The telemetry of a second may be missing (a missed tick), and so may a client
/// second that the workload leaves out; telemetry after the client's last whole second is dropped.
struct Joiner {
    ticks: VecDeque<Tick>,
    clients: VecDeque<ClientSecond>,
    next: u64,
    telemetry_columns: usize,
}

impl Joiner {
    fn new(telemetry_columns: usize) -> Joiner {
        Joiner { ticks: VecDeque::new(), clients: VecDeque::new(), next: 0, telemetry_columns }
    }

    /// The next row, once both halves are there or no more are coming (`ended`).
    fn next(&mut self, ended: bool) -> Option<Joined> {
        let second = self.next;
        let has_client = match self.clients.front() {
            _ if second == 0 => false,
            Some(client) if client.second == second => true,
            // Left out by the workload: between two steps there is no load to count.
            Some(client) if client.second > second => false,
            _ => return None,
        };
        let tick = self.ticks.front().map(|tick| tick.second);
        // A later tick means that this second's was missed.
        if tick.is_none() && !ended {
            return None;
        }
        if second == 0 && tick.is_none() && self.clients.is_empty() {
            return None;
        }
        let tick = if tick == Some(second) { self.ticks.pop_front() } else { None };
        let client = if has_client { self.clients.pop_front() } else { None };
        self.next += 1;
        Some(Joined {
            second,
            wall_us: tick.as_ref().map(|tick| tick.wall_us),
            client: client.map_or_else(|| vec![None; client_columns().len()], |client| client_row(&client)),
            telemetry: tick.map_or_else(|| vec![None; self.telemetry_columns], |tick| tick.values),
        })
    }
}

/// The client's half, in the order of [`client_columns`].
fn client_row(client: &ClientSecond) -> Row {
    let ClientSecond { done, failed, skipped, late, latencies, .. } = client;
    let sum = (latencies.mean() * *done as f64).round();
    let sum = if sum.is_finite() { sum as u64 } else { 0 };
    let mut row: Row = [*done, *failed, *skipped, *late, sum].map(|count| Some(Value::Count(count))).into();
    row.extend(
        [0.5, 0.95, 0.99, 0.999].map(|q| (!latencies.is_empty()).then(|| Value::Count(latencies.value_at_quantile(q)))),
    );
    // The slowest of a sample is not the slowest overall.
    let has_slowest = !latencies.is_empty() && client.log_sample >= 1.0;
    row.extend([has_slowest.then(|| Value::Count(latencies.max())), client.idle_us.map(Value::Count)]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    fn tick(second: u64) -> Tick {
        Tick { second, wall_us: 1_000_000 * second, values: vec![Some(Value::Count(second * 10))] }
    }

    fn client(second: u64, latencies: &[u64]) -> ClientSecond {
        let mut histogram = Histogram::new(3).unwrap();
        for latency in latencies {
            histogram.record(*latency).unwrap();
        }
        let done = latencies.len() as u64;
        ClientSecond {
            second,
            done,
            failed: 0,
            skipped: 0,
            late: 0,
            idle_us: Some(0),
            log_sample: 1.0,
            latencies: histogram,
        }
    }

    fn rows(joiner: &mut Joiner, ended: bool) -> Vec<(u64, bool, bool)> {
        std::iter::from_fn(|| joiner.next(ended))
            .map(|row| (row.second, row.client[0].is_some(), row.telemetry[0].is_some()))
            .collect()
    }

    #[test]
    fn a_row_waits_for_both_its_halves() {
        let mut joiner = Joiner::new(1);
        joiner.ticks.extend([tick(0), tick(1)]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true)]);
        joiner.clients.extend([client(1, &[5]), client(2, &[])]);
        assert_eq!(rows(&mut joiner, false), [(1, true, true)]);
        joiner.ticks.push_back(tick(2));
        assert_eq!(rows(&mut joiner, false), [(2, true, true)]);
    }

    #[test]
    fn a_second_missing_from_the_workload_is_absent_not_zero() {
        let mut joiner = Joiner::new(1);
        joiner.ticks.extend([tick(0), tick(1), tick(2), tick(3)]);
        joiner.clients.extend([client(1, &[5]), client(3, &[5])]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true), (1, true, true), (2, false, true), (3, true, true)]);
    }

    #[test]
    fn a_missed_tick_drops_its_telemetry_but_keeps_the_client() {
        let mut joiner = Joiner::new(1);
        joiner.ticks.extend([tick(0), tick(2)]);
        joiner.clients.extend([client(1, &[5]), client(2, &[5])]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true), (1, true, false), (2, true, true)]);
    }

    #[test]
    fn trailing_seconds_are_kept_and_trailing_ticks_are_dropped() {
        let mut joiner = Joiner::new(1);
        joiner.ticks.push_back(tick(0));
        joiner.clients.extend([client(1, &[5]), client(2, &[5])]);
        assert_eq!(rows(&mut joiner, true), [(0, false, true), (1, true, false), (2, true, false)]);
        let mut joiner = Joiner::new(1);
        joiner.ticks.extend([tick(0), tick(1), tick(2)]);
        joiner.clients.push_back(client(1, &[5]));
        assert_eq!(rows(&mut joiner, true), [(0, false, true), (1, true, true)]);
    }

    #[test]
    fn a_sampled_log_has_percentiles_but_no_maximum() {
        let second = ClientSecond { done: 200, log_sample: 0.01, ..client(1, &[5, 7]) };
        let row = client_row(&second);
        assert_eq!((&row[4], &row[5], &row[9]), (&Some(Value::Count(1200)), &Some(Value::Count(5)), &None));
    }

    #[test]
    fn an_idle_second_has_no_latency_rather_than_zero() {
        let row = client_row(&client(1, &[]));
        assert_eq!(row[0], Some(Value::Count(0)));
        assert_eq!(row.len(), client_columns().len());
        assert!(row[5..10].iter().all(Option::is_none));
    }
}
