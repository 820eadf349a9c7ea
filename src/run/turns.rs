//! The turns of a trial put together as if they had followed one another without a break.
//!
//! Rows are numbered on; a counter leaves out what grew between two turns, which is kept as what an idle stack does.

use super::measure::{Measured, Measurement, client_row};
use crate::error::Result;
use crate::record::column::{Column, ColumnKind};
use crate::record::columns;
use crate::record::counts::{Counts, Reported};
use crate::record::latency::LatencyInterval;
use crate::record::seconds::{Row, Value};
use crate::record::trial::{Gap, TrialRecord};
use crate::record::turns::{TurnRecord, TurnsRecord};
use crate::store::latency;
use crate::store::seconds::SecondsWriter;
use crate::telemetry::waits::JoinedWaits;
use crate::workload::{ClientSecond, empty_histogram};
use std::collections::BTreeMap;

const SECOND_US: u64 = 1_000_000;

/// A rest of a turn shorter than this belongs to its last whole second.
const LEAST_ROW_US: u64 = 200_000;

/// Turns of a trial so far.
#[derive(Default)]
pub struct JoinedTurns {
    pub record: TurnsRecord,
    pub counts: Option<Counts>,
    columns: Vec<Column>,
    rows: Vec<Row>,
    latencies: Vec<LatencyInterval>,
    waits: JoinedWaits,
    gaps: Vec<Gap>,
    load_counts: BTreeMap<String, u64>,
    clock_step_us: i64,
    /// CPU time of telemetry, microseconds, and the parts of its samplers.
    cpu_us: u64,
    cpu_us_by: BTreeMap<String, u64>,
    /// Readings after the last turn, and after its WAL was flushed and its filesystems synced.
    last: Row,
    idle_from: Row,
    /// Growth of each counter outside the turns that count; `None` once a reading was missing.
    left_out: Vec<Option<i128>>,
    ended_us: Option<u64>,
}

impl JoinedTurns {
    /// When the first operation of the first turn that counts began, microseconds since 1970.
    pub fn began_us(&self) -> Option<u64> {
        self.record.counted().next().map(|turn| turn.began_us)
    }

    /// Adds a turn that counts.
    pub fn add(&mut self, mut turn: Measured, mut about: TurnRecord) {
        self.note_idle(&turn);
        let sum = |of: fn(&TurnRecord) -> u64| self.record.counted().map(of).sum::<u64>();
        let (before, before_us) = (sum(|turn| turn.seconds), sum(|turn| turn.whole_us));
        let began_us = self.began_us().unwrap_or(about.began_us) + before_us;
        self.end_with_turn(&mut turn);
        let rows = turn.rows.len().saturating_sub(1) as u64;
        (about.seconds, about.counts) = (rows, true);
        for (at, row) in (0..).zip(std::mem::take(&mut turn.rows)) {
            // The baseline of a later turn equals the end of the one before.
            if at > 0 || self.rows.is_empty() {
                let at_us = if at == rows { turn.counts.elapsed_us } else { at * SECOND_US };
                let row = self.rebased(row, before + at, began_us + at_us);
                self.rows.push(row);
            }
        }
        let intervals = turn.latencies.drain(..);
        self.latencies
            .extend(intervals.map(|interval| LatencyInterval { start_us: before_us + interval.start_us, ..interval }));
        self.add_telemetry(&mut turn, before, rows);
        match &mut self.counts {
            Some(counts) => add_counts(counts, turn.counts),
            None => self.counts = Some(turn.counts),
        }
        self.end(turn.telemetry.after, turn.idle_from, about);
    }

    /// Adds waits, gaps and costs of a turn of so many rows, with as many before it.
    fn add_telemetry(&mut self, turn: &mut Measured, before: u64, rows: u64) {
        let mut parts: Vec<(&str, u64)> = turn.telemetry.cpu_us_by.clone();
        self.cpu_us += turn.telemetry.cpu_us + turn.rows_cpu_us + turn.latencies_cpu_us;
        match (&turn.waits, turn.began_us) {
            (Some(Ok(waits)), Some(began_us)) => {
                self.waits.add(&waits.figures, began_us, rows);
                self.cpu_us += waits.cpu_us;
                parts.push(("waits", waits.cpu_us));
            }
            (Some(Err(e)), _) => {
                self.waits.skip(rows);
                let (source, second) = ("waits".to_owned(), Some(before + 1));
                self.gaps.push(Gap { source, second, rows, reason: e.to_string() });
            }
            _ => {}
        }
        for (part, us) in parts {
            *self.cpu_us_by.entry(part.to_owned()).or_default() += us;
        }
        let gaps = turn.telemetry.gaps.drain(..).filter(|gap| gap.second.is_none_or(|second| second <= rows));
        for gap in gaps.map(|gap| Gap { second: gap.second.map(|second| second + before), ..gap }) {
            match self.gaps.iter_mut().find(|known| gap.second.is_none() && known.source == gap.source) {
                Some(known) => known.rows += gap.rows,
                None => self.gaps.push(gap),
            }
        }
        // Counters are compared with one another: one that a turn lacks is unknown for all.
        let counts = std::mem::take(&mut turn.telemetry.load_counts);
        if self.counts.is_none() {
            self.load_counts = counts;
        } else {
            self.load_counts.retain(|column, sum| counts.get(column).map(|grown| *sum += grown).is_some());
        }
        if turn.telemetry.clock_step_us.abs() > self.clock_step_us.abs() {
            self.clock_step_us = turn.telemetry.clock_step_us;
        }
    }

    /// Stores the turns of a trial, as [`Measurement::run`] stores one measurement.
    ///
    /// # Errors
    /// Of the store.
    pub fn store(self, measurement: &Measurement<'_>, record: &mut TrialRecord) -> Result<()> {
        let (began_us, staging) = (self.began_us(), measurement.staging);
        let mut writer = SecondsWriter::create(&staging.seconds(), self.columns.clone())?;
        self.rows.into_iter().try_for_each(|row| writer.push(row))?;
        writer.finish()?;
        latency::write(&staging.latencies(), measurement.expected_us()?, || began_us, self.latencies.into_iter())?;
        record.counts = self.counts;
        (record.columns, record.gaps) = (self.columns, self.gaps);
        (record.load_counts, record.clock_step_us) = (self.load_counts, Some(self.clock_step_us));
        (record.telemetry_cpu_us, record.telemetry_cpu_us_by) = (Some(self.cpu_us), self.cpu_us_by);
        if let Some(figures) = self.waits.figures() {
            measurement.store_waits(figures, began_us, record)?;
        }
        record.turns = Some(self.record);
        Ok(())
    }

    /// Leaves a turn out, since its round is made again: what it did is no idle work either.
    pub fn leave_out(&mut self, turn: Measured, about: TurnRecord) {
        self.note_idle(&turn);
        if let Some(first) = turn.rows.first().filter(|_| !self.rows.is_empty()) {
            for (at, left_out) in self.left_out.iter_mut().enumerate() {
                *left_out = left_out.zip(grown(&first[at], &turn.telemetry.after[at])).map(|(sum, by)| sum + by);
            }
        }
        self.end(turn.telemetry.after, turn.idle_from, TurnRecord { counts: false, seconds: 0, ..about });
    }

    fn end(&mut self, after: Row, idle_from: Row, about: TurnRecord) {
        (self.last, self.idle_from) = (after, idle_from);
        self.ended_us = Some(about.began_us + about.whole_us);
        self.record.turns.push(about);
    }

    /// Counts what grew between the turn before and this one.
    fn note_idle(&mut self, turn: &Measured) {
        if self.columns.is_empty() {
            self.columns.clone_from(&turn.telemetry.columns);
            self.left_out = vec![Some(0); self.columns.len()];
        }
        let Some(first) = turn.rows.first().filter(|_| !self.last.is_empty()) else { return };
        self.record.between_us +=
            turn.began_us.zip(self.ended_us).map_or(0, |(began, ended)| began.saturating_sub(ended));
        let has_rows = !self.rows.is_empty();
        for (at, column) in self.columns.iter().enumerate().filter(|(_, column)| column.kind == ColumnKind::Counter) {
            if has_rows {
                let by = grown(&self.last[at], &first[at]);
                self.left_out[at] = self.left_out[at].zip(by).map(|(sum, by)| sum + by);
            }
            let by = self.idle_from.get(at).and_then(|before| grown(before, &first[at]));
            if let Some(by) =
                by.and_then(|by| u64::try_from(by).ok()).filter(|_| columns::DEVICE_WRITE_BYTES.includes(&column.name))
            {
                *self.record.between.entry(column.name.clone()).or_default() += by;
            }
        }
    }

    /// Lets the rows end with the turn: its last one, or one for the rest of it, has the counters as read when all
    /// backends had reported, and the operations after the last whole second.
    fn end_with_turn(&self, turn: &mut Measured) {
        let Some(lead) = self.columns.iter().position(|column| column.name == columns::CLIENT_DONE.name) else {
            return;
        };
        let whole = turn.rows.len().saturating_sub(1) as u64;
        let rest_us = turn.counts.elapsed_us.saturating_sub(whole * SECOND_US);
        let done = turn.counts.measures.first().and_then(|measure| measure.done).unwrap_or(0);
        let in_seconds = turn.rows.iter().map(|row| count(row.get(lead)).unwrap_or(0)).sum();
        let rest = done.saturating_sub(in_seconds);
        let Some(mut last) = turn.rows.last().cloned() else { return };
        for (at, _) in self.columns.iter().enumerate().filter(|(_, column)| column.kind == ColumnKind::Counter) {
            last[at].clone_from(&turn.telemetry.after[at]);
        }
        if whole > 0 && rest_us < LEAST_ROW_US {
            last[lead] = count(last.get(lead)).map(|in_second| Value::Count(in_second + rest));
            turn.rows.pop();
        } else {
            let main = turn.counts.measures.first().map(|measure| &measure.name);
            let mut rest_of_it = turn.latencies.iter().filter(|interval| interval.start_us >= whole * SECOND_US);
            let own = rest_of_it.find(|interval| Some(&interval.measure) == main);
            let latencies = own.map(|interval| interval.latencies.clone()).or_else(|| empty_histogram().ok());
            if let Some(latencies) = latencies {
                let client = client_row(&ClientSecond { done: rest, ..ClientSecond::of(whole + 1, latencies) });
                last[lead..lead + client.len()].clone_from_slice(&client);
            }
            let telemetry = lead + columns::CLIENT.len();
            last[telemetry..].clone_from_slice(&turn.telemetry.after[telemetry..]);
        }
        turn.rows.push(last);
    }

    /// A row with this number and time, its counters without what grew outside the turns.
    fn rebased(&self, mut row: Row, second: u64, at_us: u64) -> Row {
        for (at, column) in self.columns.iter().enumerate() {
            if column.name == columns::SECOND.name {
                row[at] = Some(Value::Count(second));
            } else if column.name == columns::TIME_US.name {
                row[at] = Some(Value::Count(at_us));
            } else if column.kind == ColumnKind::Counter
                && let Some(Value::Count(reading)) = row[at]
            {
                let reading = self.left_out[at].and_then(|left_out| u64::try_from(i128::from(reading) - left_out).ok());
                row[at] = reading.map(Value::Count);
            }
        }
        row
    }
}

fn grown(before: &Option<Value>, after: &Option<Value>) -> Option<i128> {
    Some(i128::from(count(Some(after))?) - i128::from(count(Some(before))?))
}

fn count(value: Option<&Option<Value>>) -> Option<u64> {
    if let Some(Some(Value::Count(count))) = value { Some(*count) } else { None }
}

/// Adds the counts of a further turn.
fn add_counts(sum: &mut Counts, turn: Counts) {
    sum.elapsed_us += turn.elapsed_us;
    sum.out_of_order += turn.out_of_order;
    sum.ended = sum.ended.take().or(turn.ended);
    sum.reported = sum.reported.take().zip(turn.reported).map(|(sum, turn)| both_reported(sum, &turn));
    for (sum, turn) in sum.measures.iter_mut().zip(turn.measures) {
        sum.done = sum.done.zip(turn.done).map(|(sum, turn)| sum + turn);
        sum.failed += turn.failed;
        sum.skipped += turn.skipped;
        sum.late += turn.late;
        sum.elapsed_us += turn.elapsed_us;
        sum.latency_us_sum += turn.latency_us_sum;
        sum.unavailable = sum.unavailable.take().or(turn.unavailable);
        sum.unsent.extend(turn.unsent);
    }
}

/// What the tool reports for both; its rates and means weighted by the operations.
fn both_reported(mut sum: Reported, turn: &Reported) -> Reported {
    let [of_sum, of_turn] = [sum.done, turn.done].map(|done| done as f64 / (sum.done + turn.done).max(1) as f64);
    let mean = |sum: Option<f64>, turn: Option<f64>| Some(sum? * of_sum + turn? * of_turn);
    let both = |sum: Option<u64>, turn: Option<u64>| Some(sum? + turn?);
    // Time a unit of work took, weighted by the work, is the inverse of the rate.
    sum.tps = mean(sum.tps.map(f64::recip), turn.tps.map(f64::recip)).map(f64::recip);
    sum.latency_ms_mean = mean(sum.latency_ms_mean, turn.latency_ms_mean);
    sum.connection_ms = sum.connection_ms.zip(turn.connection_ms).map(|(sum, turn)| sum + turn);
    for (one, other) in sum.statements.iter_mut().zip(&turn.statements) {
        one.latency_us_mean = one.latency_us_mean * of_sum + other.latency_us_mean * of_turn;
        one.failures = both(one.failures, other.failures);
    }
    sum.failed = both(sum.failed, turn.failed);
    sum.skipped = both(sum.skipped, turn.skipped);
    sum.late = both(sum.late, turn.late);
    sum.done += turn.done;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::{
        CLIENT_DONE, CPU_COUNT, ColumnDef, DEVICE_WRITE_BYTES, PG_WAL_BYTES, SECOND, TIME_US,
    };
    use crate::record::counts::Measure;
    use crate::telemetry::recorder::TickerTotals;

    /// Columns of a row: second, time, the client's, WAL, one device, a gauge.
    fn columns() -> Vec<Column> {
        let of_client = columns::CLIENT.iter().map(ColumnDef::column);
        let rest = [PG_WAL_BYTES.column(), DEVICE_WRITE_BYTES.column("dev_a"), CPU_COUNT.column()];
        [SECOND.column(), TIME_US.column()].into_iter().chain(of_client).chain(rest).collect()
    }

    fn row(second: u64, done: Option<u64>, counters: [u64; 3]) -> Row {
        let mut row = vec![None; columns().len() - 3];
        row[0] = Some(Value::Count(second));
        row[2] = done.map(Value::Count);
        row.extend(counters.map(|count| Some(Value::Count(count))));
        row
    }

    /// A turn of 1.5 s with 15 operations, 5 of them after its last whole second, from these counters on.
    fn turn(wal: u64, written: u64) -> Measured {
        let measure = Measure { name: "transactions".into(), done: Some(15), ..Measure::default() };
        Measured {
            counts: Counts { elapsed_us: 1_500_000, measures: vec![measure], ..Counts::default() },
            began_us: Some(1_000),
            rows: vec![row(0, None, [wal, written, 2]), row(1, Some(10), [wal + 90, written + 900, 2])],
            latencies: Vec::new(),
            waits: None,
            telemetry: TickerTotals {
                columns: columns(),
                gaps: Vec::new(),
                load_counts: BTreeMap::from([("pg_wal_syncs".to_owned(), 15)]),
                after: row(0, None, [wal + 150, written + 1500, 2]),
                clock_step_us: 0,
                cpu_us: 10,
                cpu_us_by: Vec::new(),
            },
            // What its sync wrote is no idle work.
            idle_from: row(0, None, [wal + 150, written + 1700, 2]),
            rows_cpu_us: 0,
            latencies_cpu_us: 0,
        }
    }

    fn about(round: u32, began_us: u64) -> TurnRecord {
        TurnRecord { round, began_us, whole_us: 1_500_000, ..TurnRecord::default() }
    }

    fn counted(turns: &JoinedTurns, column: &str) -> Vec<Option<u64>> {
        let at = turns.columns.iter().position(|known| known.name == column).unwrap();
        turns.rows.iter().map(|row| count(row.get(at))).collect()
    }

    #[test]
    fn turns_follow_one_another_without_what_lies_between() {
        let mut turns = JoinedTurns::default();
        turns.add(turn(1_000, 0), about(1, 1_000));
        turns.add(turn(1_160, 2_500), about(2, 9_501_000));
        assert_eq!(counted(&turns, CLIENT_DONE.name), [None, Some(10), Some(5), Some(10), Some(5)]);
        assert_eq!(counted(&turns, SECOND.name), [0, 1, 2, 3, 4].map(Some));
        assert_eq!(counted(&turns, TIME_US.name), [1_000, 1_001_000, 1_501_000, 2_501_000, 3_001_000].map(Some));
        assert_eq!(counted(&turns, PG_WAL_BYTES.name), [1_000, 1_090, 1_150, 1_240, 1_300].map(Some));
        assert_eq!(counted(&turns, "dev_a_write_bytes").last(), Some(&Some(3_000)));
        assert_eq!(turns.record.between, BTreeMap::from([("dev_a_write_bytes".to_owned(), 800)]));
        let counts = turns.counts.unwrap();
        assert_eq!((counts.elapsed_us, counts.measures[0].done), (3_000_000, Some(30)));
        assert_eq!(turns.load_counts["pg_wal_syncs"], 30);
    }

    #[test]
    fn a_round_made_again_is_neither_counted_nor_idle() {
        let mut turns = JoinedTurns::default();
        turns.add(turn(1_000, 0), about(1, 1_000));
        turns.leave_out(turn(1_150, 1_700), about(2, 2_000_000));
        turns.add(turn(1_300, 3_400), about(3, 4_000_000));
        assert_eq!(counted(&turns, PG_WAL_BYTES.name), [1_000, 1_090, 1_150, 1_240, 1_300].map(Some));
        assert_eq!(turns.record.between["dev_a_write_bytes"], 0);
        assert_eq!(
            (turns.record.turns.iter().filter(|turn| !turn.counts).count(), turns.counts.unwrap().measures[0].done),
            (1, Some(30))
        );
        assert!(turns.record.turns.iter().map(|turn| turn.counts).eq([true, false, true]));
    }
}
