//! `latency.hist`: the whole latency distribution of each measure of a trial.
//!
//! The file is an HdrHistogram log (format 1.3), which HdrHistogram's own tools read: one line a measure, its name as the
//! tag, values in microseconds.

use crate::error::{Context, Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Name of a measure and its latencies in microseconds.
pub type Distribution = (String, Histogram<u64>);

/// The file's bytes.
///
/// # Errors
/// When a measure's name cannot be a tag: it has a comma, a blank or a line end.
pub(super) fn encode(distributions: &[Distribution], started_us: u64, elapsed_us: u64) -> Result<Vec<u8>> {
    let fault = |e: String| Error::bug(format!("latency.hist cannot be written: {e}"));
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("latencies in microseconds; the tag is the measure")
        .with_start_time(UNIX_EPOCH + Duration::from_micros(started_us))
        .with_max_value_divisor(1000.0)
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|e| fault(e.to_string()))?;
    for (measure, histogram) in distributions {
        let tag = Tag::new(measure).ok_or_else(|| fault(format!("the measure's name `{measure}` is no tag")))?;
        log.write_histogram(histogram, Duration::ZERO, Duration::from_micros(elapsed_us), Some(tag))
            .map_err(|e| fault(format!("{e:?}")))?;
    }
    Ok(bytes)
}

/// Reads the distributions of a trial; none where the file is not there (a trial that was not run).
///
/// # Errors
/// With the path, when the file is damaged.
pub fn read(trial: &Path) -> Result<Vec<Distribution>> {
    let path = trial.join("latency.hist");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = fs::read(&path).or_store(|| format!("read {}", path.display()))?;
    decode(&bytes).map_err(|e| e.while_doing(format!("read {}", path.display())))
}

fn decode(bytes: &[u8]) -> Result<Vec<Distribution>> {
    let damaged = |what: String| Error::store(format!("not an HdrHistogram log: {what}"));
    let mut deserializer = Deserializer::new();
    let mut distributions = Vec::new();
    for entry in IntervalLogIterator::new(bytes) {
        let LogEntry::Interval(line) = entry.map_err(|e| damaged(format!("{e:?}")))? else { continue };
        let tag = line.tag().ok_or_else(|| damaged("a line without its tag".to_owned()))?;
        let encoded = STANDARD.decode(line.encoded_histogram()).map_err(|e| damaged(e.to_string()))?;
        let histogram = deserializer.deserialize(&mut encoded.as_slice()).map_err(|e| damaged(format!("{e:?}")))?;
        distributions.push((tag.as_str().to_owned(), histogram));
    }
    Ok(distributions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(name: &str, values: &[u64]) -> Distribution {
        let mut histogram = Histogram::new(3).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        (name.to_owned(), histogram)
    }

    #[test]
    fn distributions_are_read_back_as_they_were_written() {
        let written = vec![distribution("transactions", &[1, 250, 4_000_000]), distribution("fdatasync", &[])];
        let bytes = encode(&written, 1_700_000_000_000_000, 60_000_000).unwrap();
        assert_eq!(decode(&bytes).unwrap(), written);
        assert!(String::from_utf8(bytes).unwrap().contains("#[StartTime: 1700000000"));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_not_an_empty_distribution() {
        let mut bytes = encode(&[distribution("transactions", &[5])], 0, 1).unwrap();
        let middle = bytes.len() - 8;
        bytes[middle] = b'!';
        assert!(decode(&bytes).is_err());
        assert!(decode(b"garbage\n").is_err());
    }

    #[test]
    fn a_name_that_cannot_be_a_tag_is_refused() {
        assert!(encode(&[distribution("a,b", &[1])], 0, 1).is_err());
    }
}
