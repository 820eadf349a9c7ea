//! Which files belong to one moment.

use super::Reading;
use crate::record::imported::{ImportedLog, ImportedTrial};
use std::collections::BTreeMap;

/// One trial of files that belong to one moment. The logs of several threads become one.
#[must_use]
pub fn trial(readings: Vec<Reading>) -> ImportedTrial {
    let mut trial = ImportedTrial::default();
    for (index, reading) in readings.into_iter().enumerate() {
        trial.files.push(reading.file);
        for mut output in reading.outputs {
            output.file = index;
            trial.outputs.push(output);
        }
        trial.log = match (trial.log.take(), reading.log) {
            (Some(one), Some(other)) => Some(joined(&one, &other)),
            (one, other) => one.or(other),
        };
    }
    trial
}

/// Trials of files, those of one moment as one.
#[must_use]
pub fn group(readings: Vec<Reading>) -> Vec<ImportedTrial> {
    readings.into_iter().map(|reading| trial(vec![reading])).collect()
}

/// The name of the case that a trial belongs to, from the names of its files.
#[must_use]
pub fn case_name(trial: &ImportedTrial) -> String {
    trial.files.first().map(|file| file.name.clone()).unwrap_or_default()
}

/// Two logs of one moment as one.
fn joined(one: &ImportedLog, other: &ImportedLog) -> ImportedLog {
    let first = |log: &ImportedLog| log.span_us.map_or(0, |(first, _)| first / 1_000_000);
    let (from_one, from_other) = (first(one), first(other));
    let base = match (one.span_us, other.span_us) {
        (Some(_), Some(_)) => from_one.min(from_other),
        _ => from_one.max(from_other),
    };
    let mut seconds: BTreeMap<u64, u64> = BTreeMap::new();
    let mut latencies: BTreeMap<u64, u64> = BTreeMap::new();
    for (log, from) in [(one, from_one), (other, from_other)] {
        for (second, done) in &log.seconds {
            *seconds.entry((second + from).saturating_sub(base)).or_default() += done;
        }
        for (latency, count) in &log.latencies {
            *latencies.entry(*latency).or_default() += count;
        }
    }
    let span = |pick: fn(u64, u64) -> u64, end: fn((u64, u64)) -> u64| {
        [one.span_us, other.span_us].into_iter().flatten().map(end).reduce(pick)
    };
    ImportedLog {
        done: one.done + other.done,
        skipped: one.skipped + other.skipped,
        failed: one.failed + other.failed,
        span_us: span(u64::min, |it| it.0).zip(span(u64::max, |it| it.1)),
        seconds: seconds.into_iter().collect(),
        latencies: latencies.into_iter().collect(),
        lines_unread: one.lines_unread + other.lines_unread,
    }
}
