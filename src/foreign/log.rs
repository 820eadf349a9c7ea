//! A pgbench log as a stream: counts and a histogram, in memory that does not grow with it.

use super::unpack::fill;
use crate::foreign::read::pgbench_log::{self, End, Optional, Reader};
use crate::parse::pgbench_log::{Ended, Transaction};
use crate::record::imported::{ImportedLog, ImportedOutput, ImportedTimes};
use std::io::{self, Read};

/// A piece of a file.
const PIECE: usize = 256 * 1024;

/// Whether a text whose beginning (or all of it) is `sample` is a log of transactions: most of its lines are.
pub(super) fn is_log(sample: &[u8]) -> bool {
    if pgbench_log::kind(without_mark(sample)).is_none() {
        return false;
    }
    let (mut reader, mut transactions) = (Reader::new(), 0u64);
    reader.push(without_mark(sample), |_| transactions += 1);
    let end = reader.finish(|_| transactions += 1);
    // A sample ends anywhere.
    let cut = u64::from(!sample.ends_with(b"\n"));
    transactions > end.lines_unread.saturating_sub(cut)
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Reads a log: its `sample` and what follows it.
///
/// # Errors
/// Of the reader.
pub(super) fn read(sample: &[u8], rest: &mut dyn Read) -> io::Result<(ImportedLog, ImportedOutput)> {
    let mut tally = Tally::default();
    let mut reader = Reader::new();
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
    if more > 0 {
        output.notes.push(format!("{more} further lines could not be read"));
    }
    Ok((tally.finish(&end), output))
}

/// How often each time was, in steps of less than 0.1 %: the eleven leading bits of it are kept. HdrHistogram does the
/// same with three digits and takes a quarter of the whole time of reading a log for it.
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
    /// Leading bits that are kept.
    const BITS: u32 = 11;
    /// Steps between a power of two and the next.
    const STEPS: usize = 1 << (Times::BITS - 1);

    #[inline]
    fn take(&mut self, us: u64) {
        self.all.count += 1;
        self.all.sum_us = self.all.sum_us.saturating_add(us);
        self.all.most_us = self.all.most_us.max(us);
        let shift = (u64::BITS - Times::BITS).saturating_sub(us.leading_zeros());
        // The bits that are kept of a number with a shift are at least STEPS, so steps of different shifts do not meet.
        self.steps[shift as usize * Times::STEPS + (us >> shift) as usize] += 1;
    }

    /// With the largest time of each step.
    fn finish(self) -> ImportedTimes {
        let largest = |step: usize| {
            let shift = (step / Times::STEPS).saturating_sub(1);
            let bits = (step - shift * Times::STEPS) as u64;
            ((bits << shift) | ((1u64 << shift) - 1)).min(self.all.most_us)
        };
        let used = self.steps.iter().enumerate().filter(|(_, count)| **count > 0);
        let steps = used.map(|(step, count)| (largest(step), *count)).collect();
        ImportedTimes { steps, ..self.all }
    }
}

/// What is counted of transactions.
#[derive(Default)]
struct Tally {
    log: ImportedLog,
    retried: (u64, u64),
    latency: Times,
    lag: Times,
}

impl Tally {
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
            Ended::Skipped => self.log.skipped += 1,
            Ended::Failed(_) => self.log.failed += 1,
            Ended::Done(us) => {
                self.log.done += 1;
                self.latency.take(us);
                if let Some(us) = transaction.lag_us {
                    self.lag.take(us);
                }
            }
        }
    }

    fn finish(self, end: &End) -> ImportedLog {
        let has_lag = matches!(end.kind, Some(Optional::Lag | Optional::LagAndRetries));
        let has_retries = end.kind == Some(Optional::LagAndRetries);
        ImportedLog {
            retried: has_retries.then_some(self.retried),
            latency: self.latency.finish(),
            lag: has_lag.then(|| self.lag.finish()),
            column_untold: end.kind == Some(Optional::Untold),
            lines_unread: end.lines_unread,
            ..self.log
        }
    }
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
        assert_eq!((log.done, log.skipped, log.failed, log.lines_unread), (3, 1, 1, 1));
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
        assert_eq!((log.failed, log.retried), (2, Some((3, 6))));
        let lag = log.lag.unwrap();
        assert_eq!((lag.count, lag.sum_us, lag.most_us), (3, 4040, 4000));
        assert_eq!(lag.steps, [(0, 1), (40, 1), (4000, 1)]);
    }

    #[test]
    fn a_further_column_that_may_be_lag_or_retries_is_said_to_be_untold() {
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
        fn every_latency_is_kept_within_a_thousandth_and_never_made_smaller(
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
