//! A pgbench log as a stream: counts, a histogram and seconds, in memory that does not grow with it.

use crate::parse::output::Unread;
use crate::parse::pgbench_any_log::{self, Kind, Optional, Reader};
use crate::parse::pgbench_log::{Ended, Transaction};
use crate::record::imported::{ImportedLog, ImportedOutput};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Most seconds that are kept one by one: eleven days.
const MOST_SECONDS: usize = 1_000_000;
/// A piece of a file.
const PIECE: usize = 256 * 1024;

/// Whether a text whose beginning (or all of it) is `sample` is a log of transactions: most of its lines are.
pub(super) fn is_log(sample: &[u8]) -> bool {
    if !matches!(pgbench_any_log::kind(without_mark(sample)), Some(Kind::Transactions(_))) {
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
    let mut tally = Tally::new();
    let mut reader = Reader::new();
    reader.push(without_mark(sample), |transaction| tally.take(&transaction));
    let mut piece = vec![0; PIECE];
    loop {
        let length = match rest.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        reader.push(&piece[..length], |transaction| tally.take(&transaction));
    }
    let end = reader.finish(|transaction| tally.take(&transaction));
    let mut output = ImportedOutput {
        tool: "pgbench -l".to_owned(),
        lines: (1, u32::try_from(end.lines).unwrap_or(u32::MAX)),
        unread: end.unread.into_iter().map(unread).collect(),
        ..ImportedOutput::default()
    };
    if let Some(Kind::Transactions(optional)) = end.kind {
        let columns = match optional {
            Optional::None => "none",
            Optional::Lag => "lag behind the schedule",
            Optional::Retries => "retries",
            Optional::LagAndRetries => "lag behind the schedule, retries",
            Optional::Untold => "one, lag or retries: its lines do not tell which",
        };
        output.facts.push(("further columns".to_owned(), columns.to_owned()));
    }
    let more = end.lines_unread.saturating_sub(output.unread.len() as u64);
    if more > 0 {
        output.notes.push(format!("{more} further lines could not be read"));
    }
    Ok((tally.finish(end.lines_unread, &mut output.notes), output))
}

fn unread(unread: Unread) -> (u32, String, String) {
    (unread.line, unread.text, unread.wanted)
}

/// How often each latency was, in steps of less than 1 %: the eight leading bits of it are kept. HdrHistogram does the
/// same with two digits and takes a quarter of the whole time for it.
struct Latencies(Vec<u64>);

impl Latencies {
    /// Leading bits that are kept.
    const BITS: u32 = 8;
    /// Steps between a power of two and the next.
    const STEPS: usize = 1 << (Latencies::BITS - 1);

    fn new() -> Latencies {
        let shifts = (u64::BITS - Latencies::BITS) as usize;
        Latencies(vec![0; (shifts + 2) * Latencies::STEPS])
    }

    #[inline]
    fn take(&mut self, us: u64) {
        let shift = (u64::BITS - Latencies::BITS).saturating_sub(us.leading_zeros());
        // The bits that are kept of a number with a shift are at least STEPS, so steps of different shifts do not meet.
        self.0[shift as usize * Latencies::STEPS + (us >> shift) as usize] += 1;
    }

    /// The largest latency of each step and its count, ascending.
    fn steps(&self) -> Vec<(u64, u64)> {
        let largest = |step: usize| {
            let shift = (step / Latencies::STEPS).saturating_sub(1);
            let bits = (step - shift * Latencies::STEPS) as u64;
            (bits << shift) | ((1u64 << shift) - 1)
        };
        let used = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(step, count)| (largest(step), *count)).collect()
    }
}

/// What is counted of transactions.
struct Tally {
    done: u64,
    skipped: u64,
    failed: u64,
    first_us: u64,
    last_us: u64,
    latencies: Latencies,
    seconds: BTreeMap<u64, u64>,
    /// The second that is being counted: a log mostly goes on in the same one.
    second: (u64, u64),
    beyond: u64,
}

impl Tally {
    fn new() -> Tally {
        Tally {
            done: 0,
            skipped: 0,
            failed: 0,
            first_us: u64::MAX,
            last_us: 0,
            latencies: Latencies::new(),
            seconds: BTreeMap::new(),
            second: (0, 0),
            beyond: 0,
        }
    }

    fn take(&mut self, transaction: &Transaction) {
        let at_us = transaction.at_us;
        if at_us > 0 {
            self.first_us = self.first_us.min(at_us);
            self.last_us = self.last_us.max(at_us);
        }
        match transaction.ended {
            Ended::Skipped => self.skipped += 1,
            Ended::Failed => self.failed += 1,
            Ended::Done(us) => {
                self.done += 1;
                self.latencies.take(us);
                let second = at_us / 1_000_000;
                if second != self.second.0 {
                    self.next_second(second);
                }
                self.second.1 += 1;
            }
        }
    }

    fn next_second(&mut self, second: u64) {
        let (before, done) = std::mem::replace(&mut self.second, (second, 0));
        if done == 0 || before == 0 {
            return;
        }
        if self.seconds.len() >= MOST_SECONDS && !self.seconds.contains_key(&before) {
            self.beyond += done;
            return;
        }
        *self.seconds.entry(before).or_default() += done;
    }

    fn finish(mut self, lines_unread: u64, notes: &mut Vec<String>) -> ImportedLog {
        self.next_second(0);
        if self.beyond > 0 {
            notes.push(format!("{} transactions lie beyond {MOST_SECONDS} seconds and in none of them", self.beyond));
        }
        let first = self.first_us / 1_000_000;
        ImportedLog {
            done: self.done,
            skipped: self.skipped,
            failed: self.failed,
            span_us: (self.last_us > 0).then_some((self.first_us, self.last_us)),
            seconds: self.seconds.into_iter().map(|(second, done)| (second.saturating_sub(first), done)).collect(),
            latencies: self.latencies.steps(),
            lines_unread,
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
    fn a_log_is_counted_by_its_endings_seconds_and_latencies() {
        let (log, output) = of("0 1 100 0 1403826720 5\n1 1 900 0 1403826720 7\n0 2 skipped 0 1403826723 9\n\
             0 3 failed 0 1403826722 1\n0 4 100 0 1403826719 2\nnonsense 5\n");
        assert_eq!((log.done, log.skipped, log.failed, log.lines_unread), (3, 1, 1, 1));
        assert_eq!(log.span_us, Some((1_403_826_719_000_002, 1_403_826_723_000_009)));
        assert_eq!(log.seconds, [(0, 1), (1, 2)]);
        assert_eq!(log.latencies, [(100, 2), (903, 1)]);
        assert_eq!((output.tool.as_str(), output.lines), ("pgbench -l", (1, 6)));
        assert_eq!((output.unread[0].0, output.unread[0].1.as_str()), (6, "nonsense 5"));
    }

    #[test]
    fn a_log_of_windows_has_no_dates() {
        let (log, _) = of("0 1 100 0 0 0\n0 2 100 0 0 0\n");
        assert_eq!((log.done, log.span_us, log.seconds.len()), (2, None, 0));
    }

    #[test]
    fn prose_with_some_lines_of_a_log_is_no_log() {
        let line = "0 1 100 0 1403826720 5\n";
        assert!(is_log(line.repeat(3).as_bytes()) && is_log(format!("\u{feff}{line}0 2 1").as_bytes()));
        assert!(!is_log(format!("a\nb\n{line}").as_bytes()) && !is_log(b"") && !is_log(b"1 2 3 4 5 6\n"));
    }

    #[test]
    fn the_smallest_and_the_largest_latency_have_a_step() {
        let mut latencies = Latencies::new();
        let all = [0, 1, 255, 256, 257, 511, 512, u64::MAX >> 1, u64::MAX];
        all.iter().for_each(|us| latencies.take(*us));
        let steps = [(0, 1), (1, 1), (255, 1), (257, 2), (511, 1), (515, 1), (u64::MAX >> 1, 1), (u64::MAX, 1)];
        assert_eq!(latencies.steps(), steps);
    }

    proptest! {
        #[test]
        fn every_latency_is_kept_within_a_percent_and_never_made_smaller(
            latencies in prop::collection::vec(0u64..10_000_000_000, 1..50)
        ) {
            let lines = latencies.iter().enumerate().map(|(n, us)| format!("0 {n} {us} 0 1403826720 5\n"));
            let (log, _) = of(&lines.collect::<String>());
            let kept: Vec<u64> =
                log.latencies.iter().flat_map(|(us, count)| std::iter::repeat_n(*us, *count as usize)).collect();
            let mut latencies = latencies;
            latencies.sort_unstable();
            prop_assert_eq!(kept.len(), latencies.len());
            for (kept, us) in kept.iter().zip(&latencies) {
                prop_assert!(kept >= us && (*kept as f64) < *us as f64 * 1.01 + 1.0, "{} {}", kept, us);
            }
        }
    }
}
