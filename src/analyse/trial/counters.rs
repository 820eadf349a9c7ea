//! Growth of counters over the usable part of a trial, and the client operations it covers.

use crate::analyse::trial::input::Seconds;
use crate::record::columns;
use crate::store::seconds::CountColumn;

/// Cumulative client operations by row, so that any range of rows can be queried.
#[derive(Debug, Clone, Default)]
pub struct Operations {
    done: Vec<u64>,
    holes: Vec<u32>,
}

impl Operations {
    /// From the client's column; without it, every range is unknown.
    pub fn of(seconds: &Seconds) -> Operations {
        let Some(column) = seconds.counts(&columns::CLIENT_DONE) else { return Operations::default() };
        let (mut done, mut holes) = (Vec::with_capacity(column.rows()), Vec::with_capacity(column.rows()));
        let (mut sum, mut missing) = (0u64, 0u32);
        for row in 0..column.rows() {
            match column.at(row) {
                Some(in_second) => sum += in_second,
                // Row 0 is the start and has no operations.
                None if row > 0 => missing += 1,
                None => {}
            }
            done.push(sum);
            holes.push(missing);
        }
        Operations { done, holes }
    }

    /// Operations after row `first` up to row `last`; `None` if a second in between is unknown.
    pub fn between(&self, first: usize, last: usize) -> Option<u64> {
        if self.holes.get(last)? != self.holes.get(first)? {
            return None;
        }
        self.done.get(last)?.checked_sub(*self.done.get(first)?)
    }
}

/// Growth between the first and the last reading; `None` with fewer than two readings, or if the counter fell: it was
/// reset, and the missing growth is unknown.
pub fn growth(column: &CountColumn) -> Option<u64> {
    let (first, last) = growing_rows(column)?;
    column.at(last)?.checked_sub(column.at(first)?)
}

/// First and last row with a reading, under the conditions of [`growth`].
fn growing_rows(column: &CountColumn) -> Option<(usize, usize)> {
    let mut readings = (0..column.rows()).filter_map(|row| Some((row, column.at(row)?)));
    let (first, mut before) = readings.next()?;
    let mut last = first;
    for (row, now) in readings {
        if now < before {
            return None;
        }
        (last, before) = (row, now);
    }
    (last > first).then_some((first, last))
}

/// Growth of a counter, summed over trials: the total with its time span, and the part for which the client's
/// operations are known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    grown: f64,
    pub seconds: f64,
    /// Growth over known operations.
    pub amount: f64,
    pub operations: f64,
}

impl Flow {
    /// Adds the growth of a column of `seconds` in one trial.
    pub fn add(&mut self, seconds: &Seconds, column: Option<&CountColumn>, operations: &Operations) {
        let Some(column) = column else { return };
        let Some((first, last)) = growing_rows(column) else { return };
        let grown = column.at(last).zip(column.at(first)).map_or(0.0, |(last, first)| (last - first) as f64);
        self.grown += grown;
        self.seconds += span_s(seconds.counts(&columns::TIME_US), first, last);
        if let Some(done) = operations.between(first, last) {
            self.amount += grown;
            self.operations += done as f64;
        }
    }

    /// Total growth, whether or not the operations are known.
    pub fn grown(&self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.grown)
    }

    pub fn per_second(&self) -> Option<f64> {
        self.grown().map(|grown| grown / self.seconds)
    }

    /// Growth per unit of another counter's growth, such as milliseconds per write; `None` if that did not grow.
    pub fn per_grown(&self, other: &Flow) -> Option<f64> {
        self.grown().filter(|_| other.grown > 0.0).map(|grown| grown / other.grown)
    }

    /// This flow less the given share of its amount, which belongs to others.
    pub fn without(&self, part: f64) -> Flow {
        Flow { amount: (self.amount - part).max(0.0), ..*self }
    }

    /// Adds the flow of another trial or device; `operations` combines the two numbers of operations.
    pub fn merge(&mut self, other: &Flow, operations: fn(f64, f64) -> f64) {
        self.grown += other.grown;
        self.seconds += other.seconds;
        self.amount += other.amount;
        self.operations = operations(self.operations, other.operations);
    }

    /// Amount per operation; `None` without operations.
    pub fn per_operation(&self) -> Option<f64> {
        (self.operations > 0.0).then(|| self.amount / self.operations)
    }
}

/// Rows are at least this part of a second long on average, and longer than one by at most this part.
const LEAST_ROWS: f64 = 0.5;
const LATE_ROWS: f64 = 0.2;

/// Wall-clock seconds between two rows; the number of rows if the clock is absent or stepped.
pub fn span_s(clock: Option<&CountColumn>, first: usize, last: usize) -> f64 {
    let nominal = last.saturating_sub(first) as f64;
    let read = clock.and_then(|clock| Some(clock.at(last)?.checked_sub(clock.at(first)?)? as f64 / 1e6));
    // A row is read late by a fraction of a second at most; any larger difference is a clock step. The last row of a turn
    // may be short.
    read.filter(|read| *read - nominal <= 0.9 + LATE_ROWS * nominal && *read >= LEAST_ROWS * nominal).unwrap_or(nominal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::columns::ColumnDef;

    fn seconds(columns: &[(ColumnDef, &[Option<u64>])]) -> Seconds {
        let mut seconds = Seconds::new(columns[0].1.len());
        for (column, values) in columns {
            let present: Vec<bool> = values.iter().map(Option::is_some).collect();
            seconds.push_counts(column.name, values.iter().map(|v| v.unwrap_or(0)).collect(), &present);
        }
        seconds
    }

    #[test]
    fn growth_spans_the_first_to_the_last_reading_across_gaps() {
        let s = seconds(&[(columns::PG_WAL_BYTES, &[None, Some(10), None, Some(25), None])]);
        let column = s.counts(&columns::PG_WAL_BYTES).unwrap();
        assert_eq!((growth(column), growing_rows(column)), (Some(15), Some((1, 3))));
    }

    #[test]
    fn resets_and_single_readings_of_a_counter_give_no_growth() {
        let s = seconds(&[
            (columns::PG_WAL_FPI, &[Some(10), Some(5), Some(20)]),
            (columns::PG_WAL_SYNCS, &[None, Some(5), None]),
        ]);
        assert_eq!(growth(s.counts(&columns::PG_WAL_FPI).unwrap()), None);
        assert_eq!(growth(s.counts(&columns::PG_WAL_SYNCS).unwrap()), None);
    }

    #[test]
    fn operations_are_counted_over_the_same_rows_as_the_counter() {
        let s = seconds(&[
            (columns::CLIENT_DONE, &[None, Some(100), Some(50), Some(50)]),
            (columns::PG_WAL_RECORDS, &[None, Some(10), Some(60), Some(110)]),
        ]);
        let mut flow = Flow::default();
        flow.add(&s, s.counts(&columns::PG_WAL_RECORDS), &Operations::of(&s));
        assert_eq!((flow.per_operation(), flow.operations), (Some(1.0), 100.0));
    }

    #[test]
    fn an_unknown_second_of_the_client_makes_the_flow_unknown() {
        let s = seconds(&[
            (columns::CLIENT_DONE, &[None, Some(100), None, Some(50)]),
            (columns::PG_WAL_BYTES, &[Some(0), Some(1), Some(2), Some(3)]),
        ]);
        let mut flow = Flow::default();
        flow.add(&s, s.counts(&columns::PG_WAL_BYTES), &Operations::of(&s));
        // This column is absent.
        flow.add(&s, s.counts(&columns::PG_BLKS_READ), &Operations::of(&s));
        assert_eq!(flow.per_operation(), None);
    }

    #[test]
    fn a_stepped_clock_is_not_believed() {
        let s = seconds(&[(columns::TIME_US, &[Some(1_000_000), Some(2_200_000), Some(900_000_000)])]);
        let clock = s.counts(&columns::TIME_US);
        assert_eq!(span_s(clock, 0, 1), 1.2);
        assert_eq!(span_s(clock, 0, 2), 2.0);
    }
}
