//! One measurement: runs the workload, ticks telemetry, samples waits, and joins the rows second by second.
//!
//! Memory does not grow with the length of a measurement: a row is written as soon as both its halves are there, the
//! latencies of a second as soon as it is complete.

use super::disturbance::Others;
use super::session::Session;
use super::window;
use crate::error::{Error, Result};
use crate::host::threads;
use crate::host::time::thread_cpu_us;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::column::Column;
use crate::record::columns;
use crate::record::counts::Counts;
use crate::record::event::Event;
use crate::record::latency::LatencyInterval;
use crate::record::options::Options;
use crate::record::seconds::{Row, Value, client_columns, key_columns};
use crate::record::trial::{Gap, TrialRecord, WaitFigures};
use crate::store::seconds::SecondsWriter;
use crate::store::staging::Staging;
use crate::store::{self, latency};
use crate::telemetry::recorder::{Began, SampledSecond, TelemetryTicker, TickerTotals};
use crate::telemetry::waits::{self, Waits};
use crate::telemetry::{self, SampledObjects};
use crate::workload::{ClientSecond, LoadEvent, Measuring, Place, Until, Workload};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

pub struct Measurement<'a> {
    pub session: &'a Session<'a>,
    pub case: &'a CaseSpec,
    pub key: &'a TrialKey,
    pub workload: &'a dyn Workload,
    pub options: Options,
    pub target: SampledObjects,
    pub staging: &'a Staging,
}

/// One measurement, or one turn of it.
pub struct Measured {
    pub counts: Counts,
    /// When its first operation began, microseconds since 1970.
    pub began_us: Option<u64>,
    /// Rows of a turn, the baseline first; those of a whole measurement are in its files, as are its latencies.
    pub rows: Vec<Row>,
    pub latencies: Vec<LatencyInterval>,
    pub waits: Option<Result<Waits>>,
    pub telemetry: TickerTotals,
    /// Readings when the turn's writes were written back.
    pub idle_from: Row,
    /// CPU time spent on rows and latencies, microseconds.
    pub rows_cpu_us: u64,
    pub latencies_cpu_us: u64,
}

/// When the measurement began, once known, and whether it is over.
#[derive(Default)]
struct Gate {
    began_us: OnceLock<u64>,
    over: AtomicBool,
}

enum RowHalf {
    Client(ClientSecond),
    Telemetry(SampledSecond),
}

/// Takes the next row to where rows are stored.
type PushRow<'p> = dyn FnMut(Row) -> Result<()> + Send + 'p;

impl Measurement<'_> {
    /// Runs the workload until then and writes `seconds.parquet`, `latency.hist` and, with a server, `waits.parquet`;
    /// all other results go into the record. Returns when the first operation began, microseconds since 1970, or `None`
    /// if there was none.
    ///
    /// # Errors
    /// Of the workload or the store.
    pub fn run(&self, place: &Place<'_>, until: Until<'_>, record: &mut TrialRecord) -> Result<Option<u64>> {
        let (staging, expected_us) = (self.staging, self.expected_us()?);
        let recorder = self.recorder();
        let mut writer = SecondsWriter::create(&staging.seconds(), recorder.columns().to_vec())?;
        let found = self.gather(recorder, place, until, &mut |row| writer.push(row), |began_us, intervals| {
            latency::write(&staging.latencies(), expected_us, began_us, intervals.into_iter())
        })?;
        writer.finish()?;
        let began_us = found.began_us;
        self.note(found, record)?;
        Ok(began_us)
    }

    /// Runs the workload for one turn, whose rows and latencies stay in memory.
    ///
    /// # Errors
    /// Of the workload.
    pub fn turn(&self, place: &Place<'_>, until: Until<'_>) -> Result<Measured> {
        let (mut rows, mut latencies) = (Vec::new(), Vec::new());
        let mut push = |row| {
            rows.push(row);
            Ok(())
        };
        let found = self.gather(self.recorder(), place, until, &mut push, |_, intervals| {
            latencies.extend(intervals);
            Ok(())
        })?;
        let idle_from = found.telemetry.after.clone();
        Ok(Measured { rows, latencies, idle_from, ..found })
    }

    /// Stores waits in the record, and their seconds in a file.
    pub fn store_waits(&self, figures: WaitFigures, began_us: Option<u64>, record: &mut TrialRecord) -> Result<()> {
        let key: Vec<_> = self.lead().into_iter().filter_map(|(column, it)| Some((column, it?))).collect();
        store::waits::write(&self.staging.waits(), &key, began_us, &figures)?;
        record.waits = Some(figures);
        Ok(())
    }

    /// Expected duration, microseconds.
    pub(super) fn expected_us(&self) -> Result<u64> {
        Ok(window::expected_us(self.case)?.1)
    }

    /// The columns of a row, read now.
    pub fn reading(&self) -> Row {
        self.recorder().row_after()
    }

    fn recorder(&self) -> TelemetryTicker {
        TelemetryTicker::open(telemetry::ALL, &self.session.host, &self.target, self.lead())
    }

    /// Runs the workload until then, with rows and latencies going where they are stored, as they arrive.
    fn gather(
        &self,
        recorder: TelemetryTicker,
        place: &Place<'_>,
        until: Until<'_>,
        push: &mut PushRow<'_>,
        keep: impl FnOnce(&dyn Fn() -> Option<u64>, Receiver<LatencyInterval>) -> Result<()> + Send,
    ) -> Result<Measured> {
        let columns = recorder.columns().to_vec();
        let Until { longest, operations, progress } = until;
        let gate = Gate::default();
        let (halves, joined) = channel();
        let ticks = halves.clone();
        let (intervals, received) = channel();
        let (counts, rows, latencies, recording, waits) = std::thread::scope(|scope| {
            let begun = (|| {
                let rows = threads::begin(scope, || self.join(joined, push, &columns))?;
                let latencies = threads::begin(scope, || {
                    let cpu_before = thread_cpu_us();
                    keep(&|| gate.began_us.get().copied(), received)?;
                    Ok(thread_cpu_us().saturating_sub(cpu_before))
                })?;
                let recording = threads::begin(scope, || tick(recorder, &gate, ticks))?;
                Ok((rows, latencies, recording, threads::begin(scope, || self.waits(&gate))?))
            })();
            let (rows, latencies, recording, waits) = begun.inspect_err(|_| gate.over.store(true, Ordering::SeqCst))?;
            let gate = &gate;
            let counts = self.workload.measure(Measuring {
                place,
                options: &self.options,
                memory: self.session.memory_of(self.case),
                until: Until { longest, operations, progress },
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
        Ok(Measured {
            counts: counts?,
            rows: Vec::new(),
            latencies: Vec::new(),
            idle_from: Row::new(),
            rows_cpu_us: rows.map_err(panicked)??,
            latencies_cpu_us: latencies.map_err(panicked)??,
            began_us: gate.began_us.get().copied(),
            telemetry: recording.map_err(panicked)?,
            waits: waits.map_err(panicked)?,
        })
    }

    /// Puts the results into the record, and the waits, or why they are unknown, into it and their file.
    fn note(&self, found: Measured, record: &mut TrialRecord) -> Result<()> {
        let Measured { counts, began_us, waits, telemetry, rows_cpu_us, latencies_cpu_us, .. } = found;
        record.counts = Some(counts);
        record.columns = telemetry.columns;
        record.gaps = telemetry.gaps;
        record.load_counts = telemetry.load_counts;
        record.clock_step_us = Some(telemetry.clock_step_us);
        let mut parts = telemetry.cpu_us_by;
        let waits = waits.transpose().unwrap_or_else(|e| {
            record.gaps.push(Gap { source: "waits".to_owned(), second: None, rows: 0, reason: e.to_string() });
            None
        });
        let waits_cpu_us = waits.as_ref().map(|waits| waits.cpu_us);
        if let Some(waits) = waits {
            self.store_waits(waits.figures, began_us, record)?;
        }
        parts.extend([("rows", rows_cpu_us), ("latencies", latencies_cpu_us)]);
        parts.extend(waits_cpu_us.map(|cpu_us| ("waits", cpu_us)));
        let cpu_us = telemetry.cpu_us + rows_cpu_us + latencies_cpu_us + waits_cpu_us.unwrap_or(0);
        record.telemetry_cpu_us = Some(cpu_us);
        record.telemetry_cpu_us_by = parts.into_iter().map(|(part, us)| (part.to_owned(), us)).collect();
        Ok(())
    }

    /// Columns before those of telemetry, with what every row begins with; second, time and the client's half are filled
    /// in by the joiner.
    fn lead(&self) -> Vec<(Column, Option<Value>)> {
        let [run, case] = [&self.session.record.id, &self.key.case].map(|text| Some(Value::Text(text.to_owned())));
        let key = [run, case, Some(Value::Count(u64::from(self.key.trial))), None, None];
        let axes = columns::axes(&self.case.axes).into_iter();
        let axes = axes.map(|(column, value)| (column, Some(Value::Text(value.to_owned()))));
        let client = client_columns().into_iter().map(|column| (column, None));
        key_columns().into_iter().zip(key).chain(axes).chain(client).collect()
    }

    fn waits(&self, gate: &Gate) -> Option<Result<Waits>> {
        let server = self.target.server.as_ref()?;
        Some(waits::sample(server, &gate.over))
    }

    /// Joins the halves of each second into rows, in order. Returns the CPU time this cost, microseconds.
    fn join(&self, halves: Receiver<RowHalf>, push: &mut PushRow<'_>, columns: &[Column]) -> Result<u64> {
        let cpu_before = thread_cpu_us();
        let mut joiner = Joiner::new(self.lead().into_iter().map(|(_, value)| value).collect(), columns.len());
        let mut others = Others::among(columns);
        for half in halves.into_iter().map(Some).chain([None]) {
            let ended = half.is_none();
            match half {
                Some(RowHalf::Telemetry(tick)) => {
                    if let Some(warning) = others.warning(tick.wall_us, &tick.row) {
                        let message = format!("{} #{}: {warning}", self.key.case, self.key.trial);
                        self.session.events.emit(Event::Warning { message })?;
                    }
                    joiner.ticks.push_back(tick);
                }
                Some(RowHalf::Client(second)) => {
                    self.session.events.emit(second_event(self.key, &second))?;
                    joiner.clients.push_back(second);
                }
                None => {}
            }
            while let Some(row) = joiner.next(ended) {
                push(row)?;
            }
        }
        Ok(thread_cpu_us().saturating_sub(cpu_before))
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
fn tick(recorder: TelemetryTicker, gate: &Gate, ticks: Sender<RowHalf>) -> TickerTotals {
    // The joiner only goes away if writing failed; its error is reported when it is joined.
    let mut sink = |tick| drop(ticks.send(RowHalf::Telemetry(tick)));
    recorder.record(Began::now(), &|| gate.began_us.get().copied(), &gate.over, &mut sink)
}

/// Places of second and time in a row: [`columns::KEY`].
const SECOND_AT: usize = 3;
const TIME_AT: usize = 4;

/// Waits for both halves of each second. The telemetry of a second may be missing (a missed tick), and so may a client
/// second that the workload leaves out; telemetry after the client's last whole second is dropped.
struct Joiner {
    ticks: VecDeque<SampledSecond>,
    clients: VecDeque<ClientSecond>,
    next: u64,
    /// A row of a second without a tick, and the places of the client's half in every row.
    blank: Row,
    client: Range<usize>,
}

impl Joiner {
    /// For rows that begin with `lead`, whose end is the client's half.
    fn new(lead: Row, columns: usize) -> Joiner {
        let client = lead.len() - columns::CLIENT.len()..lead.len();
        let mut blank = lead;
        blank.resize(columns, None);
        Joiner { ticks: VecDeque::new(), clients: VecDeque::new(), next: 0, blank, client }
    }

    /// The next row, once both halves are there or no more are coming (`ended`).
    fn next(&mut self, ended: bool) -> Option<Row> {
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
        let wall_us = tick.as_ref().map(|tick| tick.wall_us);
        let mut row = tick.map_or_else(|| self.blank.clone(), |tick| tick.row);
        row[SECOND_AT] = Some(Value::Count(second));
        row[TIME_AT] = wall_us.map(Value::Count);
        if let Some(client) = client {
            row[self.client.clone()].clone_from_slice(&client_row(&client));
        }
        Some(row)
    }
}

/// The client's half, in the order of [`client_columns`].
pub(super) fn client_row(client: &ClientSecond) -> Row {
    let ClientSecond { done, failed, skipped, late, latencies, .. } = client;
    let sum = (latencies.mean() * *done as f64).round();
    let sum = if sum.is_finite() { sum as u64 } else { 0 };
    let mut row: Row = [*done, *failed, *skipped, *late, sum].map(|count| Some(Value::Count(count))).into();
    row.extend(
        [0.5, 0.95, 0.99, 0.999].map(|q| (!latencies.is_empty()).then(|| Value::Count(latencies.value_at_quantile(q)))),
    );
    row.extend([(!latencies.is_empty()).then(|| Value::Count(latencies.max())), client.idle_us.map(Value::Count)]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    /// Columns before those of telemetry.
    const LEAD: usize = columns::KEY.len() + columns::CLIENT.len();

    fn tick(second: u64) -> SampledSecond {
        let mut row = vec![None; LEAD];
        row.push(Some(Value::Count(second * 10)));
        SampledSecond { second, wall_us: 1_000_000 * second, row }
    }

    fn client(second: u64, latencies: &[u64]) -> ClientSecond {
        let mut histogram = Histogram::new(3).unwrap();
        for latency in latencies {
            histogram.record(*latency).unwrap();
        }
        let done = latencies.len() as u64;
        ClientSecond { second, done, failed: 0, skipped: 0, late: 0, idle_us: Some(0), latencies: histogram }
    }

    fn rows(joiner: &mut Joiner, ended: bool) -> Vec<(u64, bool, bool)> {
        let row = |row: Row| match row[SECOND_AT] {
            Some(Value::Count(second)) => (second, row[columns::KEY.len()].is_some(), row[LEAD].is_some()),
            _ => panic!("{row:?}"),
        };
        std::iter::from_fn(|| joiner.next(ended)).map(row).collect()
    }

    #[test]
    fn a_row_waits_for_both_its_halves() {
        let mut joiner = Joiner::new(vec![None; LEAD], LEAD + 1);
        joiner.ticks.extend([tick(0), tick(1)]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true)]);
        joiner.clients.extend([client(1, &[5]), client(2, &[])]);
        assert_eq!(rows(&mut joiner, false), [(1, true, true)]);
        joiner.ticks.push_back(tick(2));
        assert_eq!(rows(&mut joiner, false), [(2, true, true)]);
    }

    #[test]
    fn a_second_missing_from_the_workload_is_absent_not_zero() {
        let mut joiner = Joiner::new(vec![None; LEAD], LEAD + 1);
        joiner.ticks.extend([tick(0), tick(1), tick(2), tick(3)]);
        joiner.clients.extend([client(1, &[5]), client(3, &[5])]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true), (1, true, true), (2, false, true), (3, true, true)]);
    }

    #[test]
    fn a_missed_tick_drops_its_telemetry_but_keeps_the_client() {
        let mut joiner = Joiner::new(vec![None; LEAD], LEAD + 1);
        joiner.ticks.extend([tick(0), tick(2)]);
        joiner.clients.extend([client(1, &[5]), client(2, &[5])]);
        assert_eq!(rows(&mut joiner, false), [(0, false, true), (1, true, false), (2, true, true)]);
    }

    #[test]
    fn trailing_seconds_are_kept_and_trailing_ticks_are_dropped() {
        let mut joiner = Joiner::new(vec![None; LEAD], LEAD + 1);
        joiner.ticks.push_back(tick(0));
        joiner.clients.extend([client(1, &[5]), client(2, &[5])]);
        assert_eq!(rows(&mut joiner, true), [(0, false, true), (1, true, false), (2, true, false)]);
        let mut joiner = Joiner::new(vec![None; LEAD], LEAD + 1);
        joiner.ticks.extend([tick(0), tick(1), tick(2)]);
        joiner.clients.push_back(client(1, &[5]));
        assert_eq!(rows(&mut joiner, true), [(0, false, true), (1, true, true)]);
    }

    #[test]
    fn a_sampled_second_has_percentiles_and_its_slowest() {
        let second = ClientSecond { done: 200, ..client(1, &[5, 7]) };
        let row = client_row(&second);
        assert_eq!(
            (&row[4], &row[5], &row[9]),
            (&Some(Value::Count(1200)), &Some(Value::Count(5)), &Some(Value::Count(7)))
        );
    }

    #[test]
    fn an_idle_second_has_no_latency_rather_than_zero() {
        let row = client_row(&client(1, &[]));
        assert_eq!(row[0], Some(Value::Count(0)));
        assert_eq!(row.len(), client_columns().len());
        assert!(row[5..10].iter().all(Option::is_none));
    }
}
