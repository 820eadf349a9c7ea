//! The ticker: one row of all sources per second, on one thread, aligned to the start of the measurement.
//!
//! Tick `k` is due at start + `k` seconds; `k` = 0 is the baseline for the counters. Deadlines are absolute, so nothing
//! drifts. A tick that would be more than [`LATE`] late is skipped: its row is missing, and a gap of [`CLOCK`] records
//! that. A failing source leaves its columns empty in that row, with a gap that gives the reason. Not here: rates, and
//! where the rows go.

use super::{Reading, SampledObjects, Sampler};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::time::{Instant, micros, now, sleep, thread_cpu_us, wall_us};
use crate::record::column::Column;
use crate::record::columns;
use crate::record::seconds::{Row, Value};
use crate::record::trial::Gap;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Source name of gaps that concern all sources: a missed tick.
pub const CLOCK: &str = "clock";

/// Largest delay of a tick.
pub const LATE: Duration = Duration::from_millis(500);

/// If a measurement stops this close before a tick, that tick is still awaited: a workload of 60 s ends just before or
/// after its 60th second, and that second should have its row.
const LAST_TICK_WITHIN: Duration = Duration::from_millis(250);

/// How far in the future an operation may seem to have begun.
const CLOCKS_DIFFER_US: u64 = 500_000;

/// How long backends may take to exit after their clients, and to report their counts.
const BACKENDS_END_WITHIN: Duration = Duration::from_millis(100);

/// How often the stop flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Start of the measurement, on both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Began {
    /// Wall clock, microseconds since 1970-01-01 UTC.
    pub wall_us: u64,
    /// The same moment on the monotonic clock.
    pub at: Instant,
}

impl Began {
    pub fn now() -> Began {
        Began { wall_us: wall_us(), at: now() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SampledSecond {
    /// Seconds since the measurement began; 0 is the baseline.
    pub second: u64,
    /// Actual time of the reading: start plus monotonic time, so that steps of the wall clock do not show.
    pub wall_us: u64,
    /// One value, or none, for each column of [`TelemetryTicker::columns`].
    pub row: Row,
}

/// Results of the ticker besides the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TickerTotals {
    /// The columns of every [`SampledSecond::row`].
    pub columns: Vec<Column>,
    /// Gaps by source, in the order of the sources, the clock last.
    pub gaps: Vec<Gap>,
    /// Growth of the counters of [`of_load`] from the first reading to the one after the load.
    pub load_counts: BTreeMap<String, u64>,
    /// A reading after the load, when backends have reported all that they did.
    pub after: Row,
    /// How far the wall clock was set meanwhile, microseconds.
    pub clock_step_us: i64,
    /// CPU time spent ticking, microseconds.
    pub cpu_us: u64,
    /// The part of each source in that.
    pub cpu_us_by: Vec<(&'static str, u64)>,
}

pub struct TelemetryTicker {
    /// What every row begins with.
    lead: Row,
    sources: Vec<OpenSource>,
    columns: Vec<Column>,
}

struct OpenSource {
    name: &'static str,
    width: usize,
    /// The reading, or why there is none.
    reading: Result<Reading>,
    gaps: Gaps,
    /// CPU time spent on it, microseconds.
    cpu_us: u64,
}

/// Gaps of one source, with runs of missing rows merged.
#[derive(Default)]
struct Gaps(Vec<Gap>);

impl TelemetryTicker {
    /// Opens the sources. One that cannot be opened is absent: its columns stay empty and a gap gives the reason.
    /// `lead`: the columns before those of the sources, with what every row begins with.
    pub fn open(
        samplers: &[&dyn Sampler],
        host: &Host,
        target: &SampledObjects,
        lead: Vec<(Column, Option<Value>)>,
    ) -> TelemetryTicker {
        let (mut columns, lead): (Vec<Column>, Row) = lead.into_iter().unzip();
        let mut sources = Vec::with_capacity(samplers.len());
        for sampler in samplers {
            let ((name, _), own) = (sampler.about(), sampler.columns(target));
            let (width, reading) = (own.len(), sampler.open(host, target));
            sources.push(OpenSource { name, width, reading, gaps: Gaps::default(), cpu_us: 0 });
            columns.extend(own);
        }
        TelemetryTicker { lead, sources, columns }
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Ticks until `stop` is set, passing each row to `sink`. Blocks; run it on a thread of its own.
    ///
    /// Ticks begin at `began`, before the workload starts. The start of its first operation may become known late
    /// (pgbench buffers its log; files are prepared first): until `first_operation_us` returns it (wall clock), ticks
    /// are held. Then the last tick at or before it is the baseline, second 0; earlier ones are dropped, and further
    /// ticks are due whole seconds after it, like the client's seconds.
    pub fn record(
        mut self,
        began: Began,
        first_operation_us: &dyn Fn() -> Option<u64>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(SampledSecond),
    ) -> TickerTotals {
        let cpu_before = thread_cpu_us();
        let mut clock = Gaps::default();
        let (mut held, mut first_row) = (Vec::new(), None);
        let mut number = 0;
        // A first operation in the future was timed by another clock, or the clock was set: assume that it begins now.
        let assumed = OnceCell::new();
        let delay_us = || {
            let first_us = first_operation_us()?;
            let elapsed_us = micros(now().duration_since(began.at));
            let delay_us = first_us.saturating_sub(began.wall_us);
            Some(*assumed.get_or_init(|| if delay_us > elapsed_us + CLOCKS_DIFFER_US { 0 } else { delay_us }))
        };
        let due = |number: u64| {
            let delay_us = delay_us().unwrap_or_default();
            match number.checked_sub(whole_seconds(delay_us)) {
                None | Some(0) => began.at + Duration::from_secs(number),
                Some(second) => began.at + Duration::from_micros(delay_us) + Duration::from_secs(second),
            }
        };
        while wait_until(&|| due(number), stop) {
            let since = now().duration_since(began.at);
            let late = now().saturating_duration_since(due(number));
            if late > LATE {
                // Few distinct reasons, so that runs of missing rows merge.
                clock.add(CLOCK, number, format!("the reading was more than {} ms late", LATE.as_millis()));
            } else {
                let row = self.row(number);
                first_row.get_or_insert_with(|| row.clone());
                held.push(SampledSecond { second: number, wall_us: began.wall_us.saturating_add(micros(since)), row });
            }
            if let Some(delay_us) = delay_us() {
                hand_over(&mut held, whole_seconds(delay_us), sink);
            }
            number += 1;
        }
        sleep(BACKENDS_END_WITHIN);
        let last = self.row_after();
        let load_counts = self.grown(&first_row.unwrap_or_default(), &last);
        let ended = Began::now();
        let clock_step_us = clock_step_us(began, ended, first_operation_us());
        let dropped = whole_seconds(delay_us().unwrap_or_default()).min(number);
        hand_over(&mut held, dropped, sink);
        let rows = number - dropped;
        let absent = self.sources.iter().filter_map(|source| Some((source.name, source.reading.as_ref().err()?)));
        let mut gaps: Vec<Gap> = absent
            .map(|(name, error)| Gap { source: name.to_owned(), second: None, rows, reason: reason(error) })
            .collect();
        let cpu_us_by = self.sources.iter().map(|source| (source.name, source.cpu_us)).collect();
        let of_sources = self.sources.into_iter().flat_map(|source| source.gaps.0);
        gaps.extend(of_sources.chain(clock.0).filter_map(|gap| after(gap, dropped)));
        let cpu_us = thread_cpu_us().saturating_sub(cpu_before);
        TickerTotals { columns: self.columns, gaps, load_counts, after: last, clock_step_us, cpu_us, cpu_us_by }
    }

    /// Growth of the counters of [`of_load`], without those that could not be read, or fell.
    fn grown(&self, first: &[Option<Value>], last: &[Option<Value>]) -> BTreeMap<String, u64> {
        let readings = self.columns.iter().zip(first.iter().zip(last)).filter(|(column, _)| of_load(&column.name));
        let grown = readings.filter_map(|(column, readings)| match readings {
            (Some(Value::Count(first)), Some(Value::Count(last))) => {
                Some((column.name.clone(), last.checked_sub(*first)?))
            }
            _ => None,
        });
        grown.collect()
    }

    /// A row after the load: a source that no longer answers leaves no gap.
    pub fn row_after(&mut self) -> Row {
        let mut row = self.lead.clone();
        for source in &mut self.sources {
            let reading = source.reading.as_mut().ok().and_then(|reading| reading().ok());
            row.extend(reading.filter(|values| values.len() == source.width).unwrap_or(vec![None; source.width]));
        }
        row
    }

    fn row(&mut self, second: u64) -> Row {
        let mut row = Vec::with_capacity(self.columns.len());
        row.extend_from_slice(&self.lead);
        for source in &mut self.sources {
            let cpu_before = thread_cpu_us();
            row.extend(source.sample(second));
            source.cpu_us += thread_cpu_us().saturating_sub(cpu_before);
        }
        row
    }
}

/// True if a counter is compared with another over the whole load: flushes with the syncs behind them, WAL with
/// commits.
fn of_load(column: &str) -> bool {
    let of_server = [columns::PG_WAL_SYNCS, columns::PG_WAL_RECORDS, columns::PG_XIDS];
    of_server.iter().any(|known| known.name == column) || columns::DEVICE_FLUSHES.includes(column)
}

/// How far the wall clock was set between beginning and end; or how far another clock is ahead, if the first operation
/// lies outside.
fn clock_step_us(began: Began, ended: Began, first_operation_us: Option<u64>) -> i64 {
    let [began_us, ended_us] = [began, ended].map(|it| i128::from(it.wall_us));
    let step_us = ended_us - began_us - i128::from(micros(ended.at.duration_since(began.at)));
    let first_us = first_operation_us.map(i128::from);
    let ahead_us = first_us.map(|first| (first - ended_us.max(began_us)).max(0) + (first - began_us).min(0));
    let is_set = step_us.unsigned_abs() > u128::from(CLOCKS_DIFFER_US);
    let furthest_us =
        ahead_us.filter(|ahead| !is_set && ahead.unsigned_abs() > u128::from(CLOCKS_DIFFER_US)).unwrap_or(step_us);
    i64::try_from(furthest_us).unwrap_or(if furthest_us < 0 { i64::MIN } else { i64::MAX })
}

fn whole_seconds(us: u64) -> u64 {
    us / 1_000_000
}

/// Passes on the held ticks, numbered from the baseline; drops earlier ones.
fn hand_over(held: &mut Vec<SampledSecond>, baseline: u64, sink: &mut dyn FnMut(SampledSecond)) {
    for tick in held.drain(..) {
        if let Some(second) = tick.second.checked_sub(baseline) {
            sink(SampledSecond { second, ..tick });
        }
    }
}

/// A gap, numbered from the baseline; `None` if it ended before that.
fn after(gap: Gap, baseline: u64) -> Option<Gap> {
    let Some(first) = gap.second else { return Some(gap) };
    let rows = (first + gap.rows).checked_sub(baseline.max(first)).filter(|rows| *rows > 0)?;
    Some(Gap { second: Some(first.saturating_sub(baseline)), rows, ..gap })
}

impl OpenSource {
    /// One value or none for each column of this source, even after errors.
    fn sample(&mut self, second: u64) -> Vec<Option<Value>> {
        let Ok(reading) = &mut self.reading else { return vec![None; self.width] };
        let error = match reading() {
            Ok(values) if values.len() == self.width => return values,
            Ok(values) => Error::bug(format!("{} values for {} columns", values.len(), self.width)),
            Err(error) => error,
        };
        self.gaps.add(self.name, second, reason(&error));
        vec![None; self.width]
    }
}

impl Gaps {
    fn add(&mut self, source: &str, second: u64, reason: String) {
        match self.0.last_mut() {
            Some(last) if last.second.map(|first| first + last.rows) == Some(second) && last.reason == reason => {
                last.rows += 1;
            }
            _ => self.0.push(Gap { source: source.to_owned(), second: Some(second), rows: 1, reason }),
        }
    }
}

fn reason(error: &Error) -> String {
    let hint = error.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
    error.chain() + &hint
}

/// Waits for a moment; `false` if stopped well before. Past moments are never skipped, so that missed ones are counted.
fn wait_until(moment: &dyn Fn() -> Instant, stop: &AtomicBool) -> bool {
    loop {
        let left = moment().saturating_duration_since(now());
        if left.is_zero() {
            return true;
        }
        if stop.load(Ordering::SeqCst) && left > LAST_TICK_WITHIN {
            return false;
        }
        sleep(left.min(POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns;
    use crate::telemetry::{ALL, count};
    use std::sync::atomic::AtomicU64;

    /// A source whose reading number `n` (from 0) is computed by the function.
    struct Fake {
        name: &'static str,
        sample: fn(u64) -> Result<Row>,
    }

    impl Sampler for Fake {
        fn about(&self) -> (&'static str, &'static str) {
            (self.name, self.name)
        }
        fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
            vec![Column { name: self.name.to_owned(), ..columns::CPU_COUNT.column() }]
        }
        fn open(&self, _host: &Host, _target: &SampledObjects) -> Result<Reading> {
            if self.name == "absent" {
                return Err(Error::host("no such file").hint("make one"));
            }
            let (sample, mut numbers) = (self.sample, 0..);
            Ok(Box::new(move || sample(numbers.next().unwrap())))
        }
    }

    fn good(n: u64) -> Result<Row> {
        Ok(vec![count(n)])
    }

    fn gap(source: &str, second: Option<u64>, rows: u64, reason: &str) -> Gap {
        Gap { source: source.to_owned(), second, rows, reason: reason.to_owned() }
    }

    /// Records a measurement that began `ago` and stops with the row `last`, or a later one if a busy machine missed
    /// that.
    fn run(samplers: &[&dyn Sampler], host: &Host, ago: Duration, last: u64) -> (Vec<SampledSecond>, TickerTotals) {
        let stop = AtomicBool::new(false);
        let at = now().checked_sub(ago).unwrap();
        let began = Began { wall_us: 1_000_000_000, at };
        let mut ticks = Vec::new();
        let recorder = TelemetryTicker::open(samplers, host, &SampledObjects::default(), Vec::new());
        let recording = recorder.record(began, &|| Some(began.wall_us), &stop, &mut |tick| {
            stop.store(tick.second >= last, Ordering::SeqCst);
            ticks.push(tick);
        });
        (ticks, recording)
    }

    #[test]
    fn a_changed_system_clock_is_reported_as_a_step() {
        const DAY: i64 = 86_400_000_000;
        let at = now();
        let step_us = |ended_us: u64, elapsed_s: u64, first_us: u64| {
            let began = Began { wall_us: 1_000_000_000_000, at };
            let ended = Began { wall_us: ended_us, at: at + Duration::from_secs(elapsed_s) };
            clock_step_us(began, ended, Some(first_us))
        };
        let (began, day) = (1_000_000_000_000, DAY as u64);
        for (ended, elapsed_s, first, step) in [
            (began + 9_000_000, 9, began + 20_000, 0),
            (began + 9_001_000, 9, began + 20_000, 1_000),
            (began + 9_000_000 + day, 9, began + 20_000, DAY),
            (began + 9_000_000 - day, 9, began + 20_000, -DAY),
            (began + 9_000_000 - 3_000_000, 9, began + 20_000, -3_000_000),
            (began + 9_000_000 + 3650 * day, 9, began + 20_000, 3650 * DAY),
            // Set before: the client's clock is right.
            (began + 9_000_000, 9, began + day, DAY - 9_000_000),
            (began + 9_000_000, 9, began - day, -DAY),
            (began + 9_000_000, 9, began - 20_000, 0),
            (began + 9_000_000, 9, began + 9_300_000, 0),
        ] {
            assert_eq!(step_us(ended, elapsed_s, first), step, "{ended} {elapsed_s} {first}");
        }
        let fine = Fake { name: "fine", sample: good };
        let stop = AtomicBool::new(false);
        let began = Began { wall_us: 1_000_000_000, at: now() };
        let (mut ticks, recorder) =
            (Vec::new(), TelemetryTicker::open(&[&fine], &Host::this(), &SampledObjects::default(), Vec::new()));
        recorder.record(began, &|| Some(began.wall_us + day), &stop, &mut |tick| {
            stop.store(true, Ordering::SeqCst);
            ticks.push(tick.second);
        });
        assert_eq!(ticks.first(), Some(&0), "a day ahead: no second was ever told");
    }

    #[test]
    fn counters_of_the_load_are_read_again_after_it() {
        let name = columns::PG_WAL_SYNCS.name;
        let counted = Fake { name, sample: good };
        let fallen = Fake { name: "dev_a_flushes", sample: |n| good(100 - n) };
        let absent =
            Fake { name: "dev_b_flushes", sample: |n| if n == 0 { good(n) } else { Err(Error::host("gone")) } };
        let other = Fake { name: "other", sample: good };
        let (ticks, recording) = run(&[&counted, &fallen, &absent, &other], &Host::this(), Duration::ZERO, 0);
        let grown: Vec<(&str, u64)> = recording.load_counts.iter().map(|(name, by)| (name.as_str(), *by)).collect();
        assert_eq!(grown, [(name, ticks.len() as u64)]);
    }

    #[test]
    fn consecutive_failures_of_a_source_form_one_gap() {
        let failing = Fake {
            name: "failing",
            sample: |n| match n {
                1 | 2 => Err(Error::host("gone")),
                3 => Err(Error::host("odd")),
                _ => good(n),
            },
        };
        let short = Fake { name: "short", sample: |n| if n == 0 { Ok(vec![]) } else { good(n) } };
        let absent = Fake { name: "absent", sample: good };
        let fine = Fake { name: "fine", sample: good };
        let mut recorder = TelemetryTicker::open(
            &[&failing, &short, &absent, &fine],
            &Host::this(),
            &SampledObjects::default(),
            Vec::new(),
        );
        let rows: Vec<Row> = (0..5).map(|second| recorder.row(second)).collect();
        assert_eq!(rows[0], [count(0), None, None, count(0)]);
        assert_eq!(rows[1], [None, count(1), None, count(1)]);
        assert_eq!(rows[4], [count(4), count(4), None, count(4)]);
        let gaps: Vec<Gap> = recorder.sources.into_iter().flat_map(|source| source.gaps.0).collect();
        let wanted = [
            gap("failing", Some(1), 2, "gone"),
            gap("failing", Some(3), 1, "odd"),
            gap("short", Some(0), 1, "0 values for 1 columns"),
        ];
        assert_eq!(gaps, wanted);
    }

    #[test]
    fn ticks_missed_by_a_blocking_source_are_marked_as_gaps() {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        let blocking = Fake {
            name: "blocking",
            sample: |n| {
                TAKEN.fetch_add(1, Ordering::SeqCst);
                if n == 0 {
                    sleep(Duration::from_millis(2100));
                }
                good(n)
            },
        };
        let absent = Fake { name: "absent", sample: good };
        let (ticks, recording) = run(&[&blocking, &absent], &Host::this(), Duration::ZERO, 2);
        // Row 0 slept past the moments of rows 1 and 2; row 1 is hopeless, row 2 can be taken 100 ms late.
        assert_eq!(ticks[0].second, 0);
        assert!(ticks.iter().all(|tick| tick.second != 1));
        assert_eq!(
            TAKEN.load(Ordering::SeqCst),
            ticks.len() as u64 + 1,
            "one for each row that is taken, one after the load"
        );
        let rows = ticks.last().unwrap().second + 1;
        let clock: Vec<&Gap> = recording.gaps.iter().filter(|gap| gap.source == CLOCK).collect();
        assert_eq!((clock[0].second, clock[0].reason.as_str()), (Some(1), "the reading was more than 500 ms late"));
        assert_eq!(clock.iter().map(|gap| gap.rows).sum::<u64>() + ticks.len() as u64, rows);
        assert_eq!(recording.gaps[0], gap("absent", None, rows, "no such file (make one)"));
        assert!(ticks[1].wall_us >= 1_000_000_000 + 2_000_000, "{}", ticks[1].wall_us);
    }

    /// Ticks of a measurement whose first operation begins after `delay_us` and is known after `reported` readings,
    /// until tick `last`: second, and microseconds since the measurement began.
    fn reported_late(delay_us: u64, reported: u64, last: u64) -> (Vec<(u64, u64)>, TickerTotals) {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        TAKEN.store(0, Ordering::SeqCst);
        let counting = Fake {
            name: "counting",
            sample: |n| {
                TAKEN.store(n + 1, Ordering::SeqCst);
                if n == 1 { Err(Error::host("gone")) } else { good(n) }
            },
        };
        let stop = AtomicBool::new(false);
        let began = Began { wall_us: 1_000_000_000, at: now() };
        let mut ticks = Vec::new();
        let recorder = TelemetryTicker::open(&[&counting], &Host::this(), &SampledObjects::default(), Vec::new());
        let first = || (TAKEN.load(Ordering::SeqCst) >= reported).then_some(began.wall_us + delay_us);
        let recording = recorder.record(began, &first, &stop, &mut |tick| {
            stop.store(tick.second == last, Ordering::SeqCst);
            ticks.push((tick.second, tick.wall_us - began.wall_us));
        });
        (ticks, recording)
    }

    #[test]
    fn ticks_follow_the_first_operation_at_whole_seconds() {
        let (ticks, recording) = reported_late(300_000, 2, 2);
        assert_eq!(ticks.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(ticks[1].1 >= 1_000_000 && ticks[2].1 >= 2_300_000, "{ticks:?}");
        assert_eq!(recording.gaps, [gap("counting", Some(1), 1, "gone")]);
        // The first operation came after the readings of two seconds: the last of these is the baseline.
        let (ticks, recording) = reported_late(2_300_000, 4, 2);
        assert_eq!(ticks.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(ticks[0].1 >= 2_000_000 && ticks[0].1 < 2_300_000 + 500_000, "{ticks:?}");
        assert!(ticks[2].1 >= 4_300_000, "{ticks:?}");
        assert_eq!(recording.gaps, [], "what was missed before the baseline is no hole");
    }

    #[test]
    fn a_gap_across_the_baseline_is_trimmed_to_its_rest() {
        assert_eq!(after(gap("a", Some(1), 4, "gone"), 3), Some(gap("a", Some(0), 2, "gone")));
        assert_eq!(after(gap("a", Some(5), 4, "gone"), 3), Some(gap("a", Some(2), 4, "gone")));
        assert_eq!(after(gap("a", Some(1), 2, "gone"), 3), None);
        assert_eq!(after(gap("a", None, 2, "gone"), 3), Some(gap("a", None, 2, "gone")));
    }

    #[test]
    fn a_recorder_that_comes_late_marks_the_baseline_missed() {
        let fine = Fake { name: "fine", sample: good };
        let (ticks, recording) = run(&[&fine], &Host::this(), Duration::from_millis(2700), 3);
        let first = ticks[0].second;
        assert!(first >= 3);
        assert_eq!(recording.gaps[0], gap(CLOCK, Some(0), first, "the reading was more than 500 ms late"));
    }

    #[test]
    fn a_stop_just_before_a_tick_waits_for_it() {
        let stopped = AtomicBool::new(true);
        let begun = now();
        assert!(wait_until(&|| begun + Duration::from_millis(60), &stopped));
        assert!(!wait_until(&|| begun + Duration::from_secs(3600), &stopped));
    }

    #[test]
    fn each_source_delivers_two_seconds_or_a_gap_here() {
        let (ticks, recording) = run(ALL, &Host::this(), Duration::ZERO, 2);
        let missed: u64 = recording.gaps.iter().filter(|gap| gap.source == CLOCK).map(|gap| gap.rows).sum();
        let rows = ticks.last().unwrap().second + 1;
        assert!(rows >= 3);
        assert_eq!(ticks.len() as u64 + missed, rows);
        for tick in &ticks {
            assert_eq!(tick.row.len(), recording.columns.len());
        }
        let last = ticks.last().unwrap();
        let at = |name: &str| recording.columns.iter().position(|column| column.name == name).unwrap();
        assert!(matches!(last.row[at(columns::CPU_USER_NS.name)], Some(Value::Count(1..))));
        assert!(matches!(last.row[at(columns::MEM_AVAILABLE_BYTES.name)], Some(Value::Count(1..))));
        // Without stack and server these two must be marked absent, with their reasons.
        for source in ["diskstats", "postgres"] {
            let gap = recording.gaps.iter().find(|gap| gap.source == source).unwrap();
            assert_eq!((gap.second, gap.rows), (None, rows), "{gap:?}");
        }
        let cost = recording.cpu_us / ticks.len() as u64;
        println!("a tick of all sources but PostgreSQL costs {cost} us of CPU here");
        assert!(recording.cpu_us > 0);
    }
}
