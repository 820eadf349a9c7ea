//! `latency.hist`: the latency distribution of each measure of a trial, interval by interval.
//!
//! The file is an HdrHistogram log (format 1.3), which HdrHistogram's own tools can read: one line per measure and
//! interval with an operation, the measure's name as the tag, times in seconds since the first operation began, values
//! in microseconds. Merging the intervals of a measure gives its whole distribution.

use super::staging::LATENCIES;
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::latency::LatencyInterval;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Most intervals of a measure that runs as long as planned: one per second up to an hour, longer ones in a longer
/// measurement, so that a file has a few MB at most and is read in a few dozen milliseconds.
const MOST_INTERVALS: u64 = 3600;

/// Name of a measure and its latencies in microseconds.
pub type Distribution = (String, Histogram<u64>);

/// Writes the intervals of a measurement of about `expected_us`, each as it arrives. `began_us` is called with the
/// first interval for the wall clock at which the first operation began, microseconds since 1970.
///
/// # Errors
/// With the path; when a measure's name is not a valid tag: it has a comma, a blank or a line end.
pub fn write(
    path: &Path,
    expected_us: u64,
    began_us: impl FnOnce() -> Option<u64>,
    intervals: impl Iterator<Item = LatencyInterval>,
) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let mut file = BufWriter::new(File::create(path).or_store(doing)?);
    let mut intervals = Merged { step_us: step_us(expected_us), intervals, open: Vec::new() }.peekable();
    let began_us = intervals.peek().and_then(|_| began_us()).unwrap_or(0);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("latencies in microseconds; the tag is the measure")
        .with_start_time(UNIX_EPOCH + Duration::from_micros(began_us))
        .with_max_value_divisor(1000.0)
        .begin_log_with(&mut file, &mut serializer)
        .or_store(doing)?;
    for interval in intervals {
        let LatencyInterval { measure, start_us, length_us, latencies } = interval?;
        let tag = Tag::new(&measure).ok_or_else(|| format!("the measure name `{measure}` is not a valid tag"));
        let tag = tag.or_store(doing)?;
        log.write_histogram(&latencies, Duration::from_micros(start_us), Duration::from_micros(length_us), Some(tag))
            .map_err(|e| format!("{e:?}"))
            .or_store(doing)?;
    }
    file.flush().or_store(doing)
}

/// Interval length for a measurement of about this duration: whole seconds.
fn step_us(expected_us: u64) -> u64 {
    expected_us.div_ceil(MOST_INTERVALS * 1_000_000).max(1) * 1_000_000
}

/// Merges intervals of a measure that begin in the same step of `step_us`.
struct Merged<I> {
    step_us: u64,
    intervals: I,
    /// The last interval of each measure, which may still grow.
    open: Vec<LatencyInterval>,
}

impl<I: Iterator<Item = LatencyInterval>> Iterator for Merged<I> {
    type Item = Result<LatencyInterval>;

    fn next(&mut self) -> Option<Result<LatencyInterval>> {
        for next in self.intervals.by_ref() {
            let Some(open) = self.open.iter_mut().find(|open| open.measure == next.measure) else {
                self.open.push(next);
                continue;
            };
            if open.start_us / self.step_us != next.start_us / self.step_us {
                return Some(Ok(std::mem::replace(open, next)));
            }
            open.length_us = next.start_us + next.length_us - open.start_us;
            if let Err(e) = open.latencies.add(&next.latencies) {
                return Some(Err(Error::bug(format!("cannot add latencies: {e}"))));
            }
        }
        (!self.open.is_empty()).then(|| Ok(self.open.remove(0)))
    }
}

/// Calls `each` for every interval in file order: its measure, its start and length in microseconds, its latencies.
/// Holds only one line of the file in memory. Does nothing if the file does not exist.
///
/// # Errors
/// With the path, if the file is damaged; errors of `each`.
pub fn visit(trial: &Path, each: impl FnMut(&str, u64, u64, Histogram<u64>) -> Result<()>) -> Result<()> {
    let Some(file) = files::open_within(trial, LATENCIES)? else { return Ok(()) };
    intervals(BufReader::new(file), each)
        .map_err(|e| e.while_doing(format!("read {}", trial.join(LATENCIES).display())))
}

/// Adds latencies to the distribution of a name.
///
/// # Errors
/// When a count overflows.
pub fn merge(distributions: &mut Vec<Distribution>, name: &str, latencies: &Histogram<u64>) -> Result<()> {
    match distributions.iter_mut().find(|(known, _)| known == name) {
        Some((_, whole)) => whole.add(latencies).map_err(|e| damaged(&e.to_string())),
        None => {
            let mut whole = None;
            add(&mut whole, latencies)?;
            distributions.extend(whole.map(|whole| (name.to_owned(), whole)));
            Ok(())
        }
    }
}

/// Adds latencies to a distribution, which resizes as needed.
///
/// # Errors
/// When a count overflows.
pub fn add(whole: &mut Option<Histogram<u64>>, latencies: &Histogram<u64>) -> Result<()> {
    match whole {
        Some(whole) => whole.add(latencies).map_err(|e| damaged(&e.to_string())),
        None => {
            whole.insert(latencies.clone()).auto(true);
            Ok(())
        }
    }
}

fn damaged(what: &str) -> Error {
    Error::store(format!("not an HdrHistogram log: {what}"))
}

fn intervals(mut log: impl BufRead, mut each: impl FnMut(&str, u64, u64, Histogram<u64>) -> Result<()>) -> Result<()> {
    let mut deserializer = Deserializer::new();
    let mut text = Vec::new();
    while log.read_until(b'\n', &mut text).map_err(|e| damaged(&e.to_string()))? > 0 {
        for entry in IntervalLogIterator::new(&text) {
            let LogEntry::Interval(line) = entry.map_err(|e| damaged(&format!("{e:?}")))? else { continue };
            let tag = line.tag().ok_or_else(|| damaged("a line without its tag"))?;
            let encoded = STANDARD.decode(line.encoded_histogram()).map_err(|e| damaged(&e.to_string()))?;
            let latencies: Histogram<u64> =
                deserializer.deserialize(&mut encoded.as_slice()).map_err(|e| damaged(&format!("{e:?}")))?;
            let [start_us, length_us] = [line.start_timestamp(), line.duration()]
                .map(|span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
            each(tag.as_str(), start_us, length_us, latencies)?;
        }
        text.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(measure: &str, second: u64, values: &[u64]) -> LatencyInterval {
        let mut latencies = Histogram::new(3).unwrap();
        for value in values {
            latencies.record(*value).unwrap();
        }
        LatencyInterval { measure: measure.to_owned(), start_us: second * 1_000_000, length_us: 1_000_000, latencies }
    }

    fn written(expected_s: u64, intervals: &[LatencyInterval]) -> (tempfile::TempDir, String) {
        let trial = tempfile::tempdir().unwrap();
        let began_us = || Some(1_700_000_000_000_000);
        let path = trial.path().join("latency.hist");
        write(&path, expected_s * 1_000_000, began_us, intervals.iter().cloned()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        (trial, text)
    }

    fn whole(intervals: &[LatencyInterval], measure: &str) -> Histogram<u64> {
        let mut whole: Histogram<u64> = Histogram::new(3).unwrap();
        for interval in intervals.iter().filter(|interval| interval.measure == measure) {
            whole.add(&interval.latencies).unwrap();
        }
        whole
    }

    fn read(trial: &Path) -> Vec<Distribution> {
        let mut distributions = Vec::new();
        visit(trial, |measure, _, _, latencies| merge(&mut distributions, measure, &latencies)).unwrap();
        distributions
    }

    /// Start, length and measure of each line.
    fn lines(text: &str) -> Vec<(&str, &str, &str)> {
        let fields = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect::<Vec<_>>());
        fields.map(|fields| (fields[1], fields[2], fields[0].trim_start_matches("Tag="))).collect()
    }

    #[test]
    fn merged_per_second_histograms_equal_the_whole() {
        let mut intervals = vec![
            interval("transactions", 0, &[1, 250, 4_000_000]),
            interval("own", 0, &[250]),
            interval("transactions", 1, &[70]),
            interval("transactions", 4, &[3_000_000, 7_000_000_000]),
        ];
        intervals[3].length_us = 250_000;
        let (trial, text) = written(60, &intervals);
        assert!(text.contains("#[StartTime: 1700000000"));
        let mut seen = lines(&text);
        seen.sort_unstable();
        let expected = [
            ("0.000", "1.000", "own"),
            ("0.000", "1.000", "transactions"),
            ("1.000", "1.000", "transactions"),
            ("4.000", "0.250", "transactions"),
        ];
        assert_eq!(seen, expected);
        let names = ["transactions", "own"];
        let expected: Vec<Distribution> = names.map(|name| (name.to_owned(), whole(&intervals, name))).to_vec();
        assert_eq!(read(trial.path()), expected);
    }

    #[test]
    fn intervals_are_handed_over_with_their_place() {
        let written_as =
            [interval("transactions", 0, &[1, 2]), interval("own", 0, &[9]), interval("transactions", 3, &[5])];
        let (trial, _) = written(60, &written_as);
        let mut seen = Vec::new();
        visit(trial.path(), |measure, start_us, length_us, latencies| {
            seen.push((measure.to_owned(), start_us, length_us, latencies.len()));
            Ok(())
        })
        .unwrap();
        seen.sort();
        let expected =
            [("own", 0, 1_000_000, 1), ("transactions", 0, 1_000_000, 2), ("transactions", 3_000_000, 1_000_000, 1)];
        assert_eq!(seen, expected.map(|(measure, start, length, count)| (measure.to_owned(), start, length, count)));
    }

    #[test]
    fn a_measurement_of_days_gets_longer_intervals_with_equal_total() {
        // The first hour determines the length; a whole day of histograms would be 4 GB.
        let (hour, day) = (3600, 86_400);
        let intervals: Vec<LatencyInterval> =
            (0..hour).filter(|second| second % 7 != 0).map(|second| interval("fsync", second, &[second + 1])).collect();
        let (trial, text) = written(day, &intervals);
        let lines = lines(&text);
        assert_eq!(lines.len() as u64, MOST_INTERVALS / 24);
        assert_eq!((lines[0], lines[1]), (("1.000", "23.000", "fsync"), ("24.000", "24.000", "fsync")));
        assert_eq!(read(trial.path()), [("fsync".to_owned(), whole(&intervals, "fsync"))]);
    }

    #[test]
    fn a_measurement_without_operations_writes_a_file_without_lines() {
        let (trial, text) = written(60, &[]);
        assert!(text.starts_with('#') && lines(&text).is_empty());
        assert_eq!(read(trial.path()), []);
    }

    #[test]
    fn a_damaged_latency_file_is_an_error() {
        let (_trial, text) = written(60, &[interval("transactions", 0, &[5])]);
        let mut bytes = text.into_bytes();
        let middle = bytes.len() - 8;
        bytes[middle] = b'!';
        let taken = |log: &[u8]| intervals(log, |_, _, _, _| Ok(()));
        assert!(taken(&bytes).is_err());
        assert!(taken(b"garbage\n").is_err());
    }

    #[test]
    fn a_name_that_cannot_be_a_tag_is_refused() {
        let trial = tempfile::tempdir().unwrap();
        let path = trial.path().join("latency.hist");
        assert!(write(&path, 1, || None, [interval("a,b", 0, &[1])].into_iter()).is_err());
    }
}
