//! Reads a pgbench log as a stream into counts and a histogram, in constant memory.

use super::clean::is_digits;
use super::unpack::fill;
use crate::foreign::read::pgbench_log::{self, CUT_OFF, LogEnd, Optional, PgbenchLogReader};
use crate::foreign::read::{output::TextLine, table::unread};
use crate::parse::pgbench_log::{Transaction, TransactionOutcome};
use crate::record::imported::{ImportedLog, ImportedOutput, ImportedTimes};
use std::io::{self, Read};

/// Read size.
const PIECE: usize = 256 * 1024;

/// True if the text that begins with `sample` is a log of transactions: most of its lines are.
pub(super) fn is_log(sample: &[u8]) -> bool {
    if pgbench_log::kind(without_mark(sample)).is_none() {
        return false;
    }
    let (mut reader, mut transactions) = (PgbenchLogReader::new(), 0u64);
    reader.push(without_mark(sample), |_| transactions += 1);
    let end = reader.finish(|_| transactions += 1);
    // A sample may end in the middle of a line.
    let cut = u64::from(!sample.ends_with(b"\n"));
    transactions > end.lines_unread.saturating_sub(cut)
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Reads a log: its `sample` and the rest.
///
/// # Errors
/// Those of the reader.
pub(super) fn read(sample: &[u8], rest: &mut dyn Read) -> io::Result<(ImportedLog, ImportedOutput)> {
    let mut tally = TransactionTally::default();
    let mut reader = PgbenchLogReader::new();
    reader.push(without_mark(sample), |transaction| tally.take(&transaction));
    loop {
        let piece = fill(rest, PIECE)?;
        if piece.is_empty() {
            break;
        }
        reader.push(&piece, |transaction| tally.take(&transaction));
    }
    let end = reader.finish(|transaction| tally.take(&transaction));
    let mut output = ImportedOutput {
        tool: "pgbench -l".to_owned(),
        lines: (1, u32::try_from(end.lines).unwrap_or(u32::MAX)),
        unread: end.unread.clone(),
        ..ImportedOutput::default()
    };
    if let Some(optional) = end.kind {
        let columns = match optional {
            Optional::None => "none",
            Optional::Lag => "lag behind the schedule",
            Optional::LagAndRetries => "lag behind the schedule, retries",
            Optional::Untold => "either lag or retries: the lines do not show which",
        };
        output.facts.push(("further columns".to_owned(), columns.to_owned()));
    }
    let more = end.lines_unread.saturating_sub(output.unread.len() as u64);
    output.notes.extend((more > 0).then(|| format!("{more} further lines could not be read")));
    Ok((tally.finish(&end), output))
}

/// Histogram of times in steps below 0.1 %: keeps the eleven leading bits. HdrHistogram with three digits does the same
/// but takes a quarter of the total time of reading a log.
struct Times {
    all: ImportedTimes,
    steps: Vec<u64>,
}

impl Default for Times {
    fn default() -> Times {
        let shifts = (u64::BITS - Times::BITS) as usize;
        Times { all: ImportedTimes::default(), steps: vec![0; (shifts + 2) * Times::STEPS] }
    }
}

impl Times {
    const BITS: u32 = 11;
    /// Steps between successive powers of two.
    const STEPS: usize = 1 << (Times::BITS - 1);

    #[inline]
    fn take(&mut self, us: u64) {
        self.all.count += 1;
        self.all.sum_us = self.all.sum_us.saturating_add(us);
        self.all.most_us = self.all.most_us.max(us);
        let shift = (u64::BITS - Times::BITS).saturating_sub(us.leading_zeros());
        // The kept bits of a shifted number are at least STEPS, so steps of different shifts do not overlap.
        self.steps[shift as usize * Times::STEPS + (us >> shift) as usize] += 1;
    }

    /// Uses the largest time of each step.
    fn finish(self) -> ImportedTimes {
        let used = self.steps.iter().enumerate().filter(|(_, count)| **count > 0);
        let steps = used.map(|(step, count)| {
            let shift = (step / Times::STEPS).saturating_sub(1);
            let bits = (step - shift * Times::STEPS) as u64;
            (((bits << shift) | ((1u64 << shift) - 1)).min(self.all.most_us), *count)
        });
        ImportedTimes { steps: steps.collect(), ..self.all }
    }
}

/// Counts over transactions.
#[derive(Default)]
struct TransactionTally {
    log: ImportedLog,
    retried: (u64, u64),
    latency: Times,
    lag: Times,
}

impl TransactionTally {
    fn take(&mut self, transaction: &Transaction) {
        let at_us = transaction.at_us;
        if at_us > 0 {
            let (first, last) = self.log.span_us.unwrap_or((at_us, at_us));
            self.log.span_us = Some((first.min(at_us), last.max(at_us)));
        }
        if let Some(retries @ 1..) = transaction.retries {
            self.retried.0 += 1;
            self.retried.1 += retries;
        }
        match transaction.ended {
            TransactionOutcome::Skipped => self.log.skipped += 1,
            TransactionOutcome::Failed(_) => *self.log.failed.get_or_insert(0) += 1,
            TransactionOutcome::Done(us) => {
                self.log.done += 1;
                self.latency.take(us);
                if let Some(us) = transaction.lag_us {
                    self.lag.take(us);
                }
            }
        }
    }

    fn finish(self, end: &LogEnd) -> ImportedLog {
        let has_lag = matches!(end.kind, Some(Optional::Lag | Optional::LagAndRetries));
        let has_retries = end.kind == Some(Optional::LagAndRetries);
        ImportedLog {
            failed: self.log.failed.or(Some(0)),
            retried: has_retries.then_some(self.retried),
            latency: self.latency.finish(),
            lag: has_lag.then(|| self.lag.finish()),
            column_untold: end.kind == Some(Optional::Untold),
            lines_unread: end.lines_unread,
            ..self.log
        }
    }
}

/// Reads a log of `--aggregate-interval`, if most lines of the text are of one: start, transactions, then sum, sum of
/// squares, minimum and maximum of the latencies; with a rate the same for the lag, with a limit the number skipped.
/// Since version 15 always these plus retried, retries, serialization failures, deadlocks, since 18 more: 0 also if the
/// option was not given.
pub(super) fn aggregated(text: &str) -> Option<(ImportedLog, ImportedOutput)> {
    const MOST_NAMED: usize = 20;
    let (mut log, mut lag, mut retried) = (ImportedLog::default(), ImportedTimes::default(), (0u64, 0u64));
    let mut output = ImportedOutput { tool: "pgbench -l".to_owned(), ..ImportedOutput::default() };
    let (mut failed, mut widest, mut starts) = (0u64, 0, Vec::new());
    for (number, line) in (1..).zip(text.split_inclusive('\n')).filter(|(_, line)| !line.trim().is_empty()) {
        output.lines = (1, number);
        let is_ended = line.ends_with('\n');
        let Some(n) = interval(line).filter(|_| is_ended) else {
            log.lines_unread += 1;
            if output.unread.len() < MOST_NAMED {
                let wanted = if is_ended { "a whole interval of a log" } else { CUT_OFF };
                output.unread.push(unread(TextLine { number, text: line, indent: 0 }, wanted));
            }
            continue;
        };
        let at = |index: usize| n.get(index).map_or(0, |value| *value as u64);
        widest = widest.max(n.len());
        let sums =
            [&mut log.done, &mut log.latency.sum_us, &mut lag.sum_us, &mut log.skipped, &mut retried.0, &mut retried.1];
        for (index, sum) in [1, 2, 6, 10, 11, 12].into_iter().zip(sums) {
            *sum = sum.saturating_add(at(index));
        }
        failed = (13..16).map(at).fold(failed, u64::saturating_add);
        (log.latency.most_us, lag.most_us) = (log.latency.most_us.max(at(5)), lag.most_us.max(at(9)));
        starts.push(at(0) * 1_000_000);
    }
    log.span_us = span(&mut starts);
    (log.latency.count, lag.count) = (log.done, log.done);
    log.lag = (lag.most_us > 0 || matches!(widest, 10 | 11)).then_some(lag);
    log.retried = (retried.0 > 0).then_some(retried);
    log.failed = (widest < 15 || failed > 0).then_some(failed);
    output.notes.push("a log of intervals (--aggregate-interval): it has no percentiles".to_owned());
    if log.failed.is_none() {
        output
            .notes
            .push("failures are unknown: they are 0 in each interval, as without --failures-detailed".to_owned());
    }
    let cut = u64::from(!text.ends_with('\n'));
    (starts.len() as u64 > log.lines_unread.saturating_sub(cut)).then_some((log, output))
}

/// From the start of the first interval to the end of the last, if the others show how long an interval is.
fn span(starts: &mut [u64]) -> Option<(u64, u64)> {
    starts.sort_unstable();
    let length = starts.windows(2).map(|two| two[1] - two[0]).filter(|length| *length > 0).min().unwrap_or(0);
    Some((*starts.first()?, starts.last()? + length))
}

/// The numbers of an interval; a line whose sums do not fit its count belongs to another table.
fn interval(line: &str) -> Option<Vec<f64>> {
    let words = line.split_ascii_whitespace();
    let numbers = words.map(|word| word.parse().ok().filter(|_| word.len() < 30 && is_digits(word)));
    let mut n: Vec<f64> = numbers.collect::<Option<_>>()?;
    if n.len() == 11 {
        // Up to version 14 the count includes skipped ones.
        n[1] -= n[10];
    }
    if !matches!(n.len(), 6 | 10 | 11 | 15 | 16) || !(1e9..1e10).contains(&n[0]) || n[1] < 0.0 {
        return None;
    }
    // All values were rounded to whole microseconds.
    let (mean, slack) = (n[2] / n[1].max(1.0), n[2] + n[5] + 1.0);
    let squares = n[2] * mean * 0.999_999 - slack..=n[2] * n[5] * 1.000_001 + slack;
    let is_possible = mean <= n[5] + 1.0 && (n[4] <= mean + 1.0 || n[1] == 0.0) && squares.contains(&n[3]);
    is_possible.then_some(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn of(text: &str) -> (ImportedLog, ImportedOutput) {
        let (sample, rest) = text.as_bytes().split_at(text.len() / 2);
        read(sample, &mut &rest[..]).unwrap()
    }

    #[test]
    fn a_log_is_counted_by_its_endings_and_latencies() {
        let (log, output) = of("0 1 100 0 1403826720 5\n1 1 900 0 1403826720 7\n0 2 skipped 0 1403826723 9\n\
             0 3 failed 0 1403826722 1\n0 4 100 0 1403826719 2\nnonsense 5\n");
        assert_eq!((log.done, log.skipped, log.failed, log.lines_unread), (3, 1, Some(1), 1));
        assert_eq!(log.span_us, Some((1_403_826_719_000_002, 1_403_826_723_000_009)));
        let latency = ImportedTimes { count: 3, sum_us: 1100, most_us: 900, steps: vec![(100, 2), (900, 1)] };
        assert_eq!((log.latency, log.lag, log.retried), (latency, None, None));
        assert_eq!((output.tool.as_str(), output.lines), ("pgbench -l", (1, 6)));
        assert_eq!((output.unread[0].line, output.unread[0].text.as_str()), (6, "nonsense 5"));
    }

    #[test]
    fn lags_and_retries_are_counted_where_the_log_has_them() {
        let (log, _) = of("0 1 5000 0 1403826720 5 40 0\n1 1 9000 1 1403826720 7 4000 2\n\
             0 2 serialization 0 1403826721 9 7 3\n0 3 deadlock 1 1403826722 1 8 1\n0 4 6000 1 1403826723 2 0 0\n");
        assert_eq!((log.failed, log.retried), (Some(2), Some((3, 6))));
        let lag = log.lag.unwrap();
        assert_eq!((lag.count, lag.sum_us, lag.most_us), (3, 4040, 4000));
        assert_eq!(lag.steps, [(0, 1), (40, 1), (4000, 1)]);
    }

    #[test]
    fn a_column_of_either_lag_or_retries_is_marked_ambiguous() {
        let untold = |text: &str| of(text).0.column_untold;
        assert!(untold("0 1 100 0 1403826720 5 0\n0 2 100 0 1403826720 7 0\n"));
        assert!(!untold("0 1 100 0 1403826720 5\n0 2 100 0 1403826720 7\n"));
        assert!(!untold("0 1 100 0 1403826720 5 40 0\n0 2 100 0 1403826720 7 40 0\n"));
    }

    #[test]
    fn a_log_of_windows_has_no_dates() {
        let (log, _) = of("0 1 100 0 0 0\n0 2 100 0 0 0\n");
        assert_eq!((log.done, log.span_us), (2, None));
    }

    #[test]
    fn a_log_of_intervals_is_counted_by_its_sums() {
        let (log, output) = aggregated(include_str!("../../tests/fixtures/pgbench/18-aggregated.log")).unwrap();
        assert_eq!(
            (log.done, log.latency.most_us, log.failed, log.retried, log.lines_unread),
            (47_750, 195_400, None, None, 0)
        );
        assert_eq!((log.latency.sum_us, log.latency.count, log.latency.steps.len()), (395_724_745, 47_750, 0));
        assert_eq!((log.span_us, output.lines), (Some((1_777_879_493_000_000, 1_777_879_543_000_000)), (1, 5)));
        for (line, done, skipped, failed, retried, lag) in [
            ("1403826720 2 30 500 10 20", 2, 0, Some(0), None, None),
            ("1403826720 2 30 500 10 20 7 29 2 5", 2, 0, Some(0), None, Some(7)),
            ("1403826720 3 30 500 10 20 7 29 2 5 1", 2, 1, Some(0), None, Some(7)),
            ("1403826720 2 30 500 10 20 7 29 2 5 1 0 0 0 0", 2, 1, None, None, Some(7)),
            ("1403826720 2 30 500 10 20 0 0 0 0 0 1 4 2 1", 2, 0, Some(3), Some((1, 4)), None),
            ("1403826720 2 30 500 10 20 0 0 0 0 0 0 0 0 0 3", 2, 0, Some(3), None, None),
            ("1403826720 0 0 0 0 0", 0, 0, Some(0), None, None),
            ("1403826720 4 0 0 0 0 0 0 0 0 4", 0, 4, Some(0), None, Some(0)),
        ] {
            let (log, _) = aggregated(&format!("{line}\n")).unwrap();
            let lag_us = log.lag.map(|lag| lag.sum_us);
            assert_eq!(
                (log.done, log.skipped, log.failed, log.retried, lag_us),
                (done, skipped, failed, retried, lag),
                "{line}"
            );
        }
        for no in [
            "1403826720 2 30 500 10 9",
            "1403826720 2 30 5 10 20",
            "7 2 30 500 10 20",
            "1403826720 2 30 500 10 20 7",
            "a b",
        ] {
            assert!(aggregated(&format!("{no}\n")).is_none(), "{no}");
        }
    }

    #[test]
    fn a_truncated_last_interval_is_dropped_and_reported() {
        for whole in 1..4 {
            let lines: String = (0..whole).map(|n| format!("14038267{n}0 2 30 500 10 20\n")).collect();
            for cut in ["1403826790 2 30 500 10 2", "1403826790 2", "14"] {
                let (log, output) = aggregated(&format!("{lines}{cut}")).unwrap();
                assert_eq!((log.done, log.lines_unread), (2 * whole, 1));
                assert_eq!((output.unread.len(), u64::from(output.unread[0].line)), (1, whole + 1));
                assert!(output.unread[0].wanted.contains("cut off"));
                let end_us = if whole > 1 { whole * 10_000_000 } else { 0 };
                assert_eq!(log.span_us, Some((1_403_826_700_000_000, 1_403_826_700_000_000 + end_us)));
            }
        }
        assert!(aggregated("1403826720 2 30 500 10 20").is_none());
    }

    #[test]
    fn prose_with_some_lines_of_a_log_is_no_log() {
        let line = "0 1 100 0 1403826720 5\n";
        assert!(is_log(line.repeat(3).as_bytes()) && is_log(format!("\u{feff}{line}0 2 1").as_bytes()));
        assert!(!is_log(format!("a\nb\n{line}").as_bytes()) && !is_log(b"") && !is_log(b"1 2 3 4 5 6\n"));
    }

    #[test]
    fn the_smallest_and_the_largest_latency_have_a_step() {
        let mut latencies = Times::default();
        let all = [0, 1, 2047, 2048, 2049, 4095, 4096, u64::MAX >> 1, u64::MAX];
        all.iter().for_each(|us| latencies.take(*us));
        let steps = [(0, 1), (1, 1), (2047, 1), (2049, 2), (4095, 1), (4099, 1), (u64::MAX >> 1, 1), (u64::MAX, 1)];
        assert_eq!(latencies.finish().steps, steps);
    }

    proptest! {
        #[test]
        fn every_latency_is_kept_within_a_thousandth_and_never_reduced(
            latencies in prop::collection::vec(0u64..10_000_000_000, 1..50)
        ) {
            let lines = latencies.iter().enumerate().map(|(n, us)| format!("0 {n} {us} 0 1403826720 5\n"));
            let (log, _) = of(&lines.collect::<String>());
            let kept: Vec<u64> =
                log.latency.steps.iter().flat_map(|(us, count)| std::iter::repeat_n(*us, *count as usize)).collect();
            let mut latencies = latencies;
            latencies.sort_unstable();
            prop_assert_eq!(kept.len(), latencies.len());
            prop_assert_eq!(kept.last(), latencies.last());
            prop_assert_eq!(log.latency.sum_us, latencies.iter().sum::<u64>());
            for (kept, us) in kept.iter().zip(&latencies) {
                prop_assert!(kept >= us && (*kept as f64) < *us as f64 * 1.001 + 1.0, "{} {}", kept, us);
            }
        }
    }
}
