//! Effect of snapshots on a load: the seconds around each snapshot, superposed and averaged (superposed epochs).
//!
//! Seconds are aligned by their distance to the second in which the snapshot was made. Trials are averaged like other
//! figures.

use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{Estimate, SnapshotFinding};
use crate::analyse::trial::input::Seconds;
use crate::record::built::StackFacts;
use crate::record::columns;
use crate::record::snapshots::{DeedKind, SnapshotCounts, SnapshotDeed};
use crate::record::trial::TrialRecord;
use crate::stats::moments;
use crate::stats::ratio::BlockMean;
use std::ops::Range;

/// Most seconds before a snapshot used as its baseline; a deletion happens half-way to the previous snapshot.
const BEFORE: usize = 5;
/// The load has recovered at this share of the rate before.
const BACK_AT: f64 = 0.95;
/// Seconds, from the snapshot's own on, in which time without a commit is attributed to it.
const IDLE_SECONDS: usize = 3;

/// Snapshots of a case, collected over its trials.
#[derive(Debug, Clone, Default)]
pub struct EpochSums {
    /// What the trials have in common, and sums over them.
    found: SnapshotFinding,
    trials: Vec<TrialEpochs>,
}

#[derive(Debug, Clone, Default)]
struct TrialEpochs {
    trial: u32,
    /// Operations per second by distance to the snapshot; the first `before` seconds precede it.
    curve: Vec<f64>,
    before: usize,
    make_s: Option<f64>,
    delete_s: Option<f64>,
    /// Rate during deletions over the rate before snapshots.
    delete_load: Option<f64>,
    /// Longest time without a completed operation from the snapshot on, seconds; mean over snapshots.
    idle_s: Option<f64>,
    bytes_before: Option<f64>,
    bytes_after: Option<f64>,
    gb_per_hour: Option<f64>,
}

impl EpochSums {
    pub fn add(&mut self, record: &TrialRecord, seconds: &Seconds) {
        let Some(counts) = &record.counts else { return };
        let Some(snapshots) = &counts.snapshots else { return };
        let found = &mut self.found;
        found.every_s = snapshots.every_us.map(|us| us as f64 / 1e6);
        found.made += done(snapshots, DeedKind::Make).count() as u64;
        found.deleted += done(snapshots, DeedKind::Delete).count() as u64;
        let failures = snapshots.deeds.iter().filter_map(|deed| deed.failure.clone());
        let lost = snapshots.lost.iter().map(|number| format!("snapshot {number} had no room left and became invalid"));
        let copy = snapshots.copy_failure.iter().map(|why| format!("no server started on a copy: {why}"));
        found.failures.extend(failures.chain(lost).chain(copy).map(|why| format!("trial {}: {why}", record.trial)));
        let hours = counts.elapsed_us as f64 / 3.6e9;
        let grown = snapshots.used_bytes.map(|(before, after)| (after as f64 - before as f64) / 1e9);
        let gb_per_hour = grown.filter(|_| hours > 0.0).map(|grown| grown / hours);
        let of_trial = epochs(snapshots, record.stack.as_ref(), seconds).unwrap_or_default();
        self.trials.push(TrialEpochs { trial: record.trial, gb_per_hour, ..of_trial });
    }

    /// Result; `None` for a workload without snapshots.
    pub fn finding(&self) -> Option<SnapshotFinding> {
        let first = self.trials.first()?;
        let length = self.trials.iter().map(|trial| trial.curve.len()).min().unwrap_or(0);
        let curve = (0..length).filter_map(|at| {
            Some((at as i64 - first.before as i64, mean(self.trials.iter().map(|trial| trial.curve[at]))?))
        });
        Some(SnapshotFinding {
            curve: curve.collect(),
            dip: self.over(TrialEpochs::dip),
            back_s: self.over(|trial| trial.back_s().map(|seconds| seconds as f64)),
            idle_s: self.over(|trial| trial.idle_s),
            make_s: self.over(|trial| trial.make_s),
            delete_s: self.over(|trial| trial.delete_s),
            delete_load: self.over(|trial| trial.delete_load),
            bytes_before: self.over(|trial| trial.bytes_before),
            bytes_after: self.over(|trial| trial.bytes_after),
            gb_per_hour: mean(self.trials.iter().filter_map(|trial| trial.gb_per_hour)),
            ..self.found.clone()
        })
    }

    /// Failed snapshots, each with its message.
    pub fn remarks(&self) -> Vec<Remark> {
        let failures = self.found.failures.iter();
        failures.map(|why| Remark::plain(Weight::Wrong, format!("a snapshot failed: {why}"))).collect()
    }

    /// Mean over trials; `None` if one lacks the value.
    fn over(&self, of: fn(&TrialEpochs) -> Option<f64>) -> Option<Estimate> {
        let values = self.trials.iter().map(|trial| Some(BlockMean::of(trial.trial, of(trial)?)));
        over_trials(&values.collect::<Option<Vec<_>>>()?)
    }
}

impl TrialEpochs {
    fn rate_before(&self) -> Option<f64> {
        moments::mean(&self.curve[..self.before]).filter(|rate| *rate > 0.0)
    }

    /// Slowest second from the snapshot on, over the rate before.
    fn dip(&self) -> Option<f64> {
        let least = self.curve[self.before..].iter().copied().reduce(f64::min)?;
        Some(least / self.rate_before()?)
    }

    /// Seconds from the start of the snapshot's second to the first recovered second after the slowest; 0 if no second
    /// was slower than that.
    fn back_s(&self) -> Option<usize> {
        let wanted = self.rate_before()? * BACK_AT;
        let after = &self.curve[self.before..];
        let slowest = after.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1))?.0;
        let back = after[slowest..].iter().position(|rate| *rate >= wanted)?;
        Some(if back == 0 { 0 } else { slowest + back })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    moments::mean(&values.collect::<Vec<_>>())
}

/// Deeds of a kind that succeeded.
fn done(snapshots: &SnapshotCounts, kind: DeedKind) -> impl Iterator<Item = &SnapshotDeed> + Clone {
    snapshots.deeds.iter().filter(move |deed| deed.kind == kind && deed.failure.is_none())
}

/// Mean length of deeds, seconds.
fn length<'a>(deeds: impl Iterator<Item = &'a SnapshotDeed>) -> Option<f64> {
    mean(deeds.map(|deed| deed.length_us as f64 / 1e6))
}

/// Row that contains a moment; row 1 is the first second.
fn row_of(start_us: u64) -> usize {
    (start_us / 1_000_000) as usize + 1
}

fn epochs(snapshots: &SnapshotCounts, stack: Option<&StackFacts>, seconds: &Seconds) -> Option<TrialEpochs> {
    let client = seconds.counts(&columns::CLIENT_DONE)?;
    let every = (snapshots.every_us? / 1_000_000) as usize;
    let (before, after) = (BEFORE.min(every / 2), every - every / 2);
    let (made, deleted) = (done(snapshots, DeedKind::Make), done(snapshots, DeedKind::Delete));
    // Only snapshots whose seconds were all measured.
    let places = made.clone().map(|deed| row_of(deed.start_us));
    let rows: Vec<usize> =
        places.filter(|row| *row > before && (row - before..row + after).all(|row| client.at(row).is_some())).collect();
    let rates = (0..before + after)
        .map(|at| mean(rows.iter().filter_map(|row| client.at(row + at - before)).map(|n| n as f64)));
    let mut found = TrialEpochs { curve: rates.collect::<Option<_>>()?, before, ..TrialEpochs::default() };
    (found.make_s, found.delete_s) = (length(made), length(deleted.clone()));
    let while_deleting = deleted.flat_map(|deed| row_of(deed.start_us)..=row_of(deed.start_us + deed.length_us));
    let rate = mean(while_deleting.filter_map(|row| client.at(row)).map(|done| done as f64));
    found.delete_load = rate.zip(found.rate_before()).map(|(rate, usual)| rate / usual);
    if let Some(idle) = seconds.counts(&columns::CLIENT_IDLE_US_MAX) {
        let longest = rows.iter().filter_map(|row| {
            let further = row + IDLE_SECONDS..idle.rows();
            // An idle time of more than a second was already under way when the second began.
            let further = further.take_while(|row| idle.at(*row).is_some_and(|us| us >= 1_000_000));
            (*row..row + IDLE_SECONDS).chain(further).filter_map(|row| idle.at(row)).max()
        });
        found.idle_s = mean(longest.map(|us| us as f64 / 1e6));
    }
    if let Some(stack) = stack {
        found.bytes_before = bytes_each(stack, seconds, &rows, 0..before, before);
        found.bytes_after = bytes_each(stack, seconds, &rows, before..before + after, before);
    }
    Some(found)
}

/// Bytes written to the lowest devices per operation in the seconds at these offsets.
fn bytes_each(stack: &StackFacts, seconds: &Seconds, rows: &[usize], at: Range<usize>, before: usize) -> Option<f64> {
    let done = seconds.counts(&columns::CLIENT_DONE)?;
    let lowest = stack.device_columns().into_iter().filter(|(_, _, device)| device.stands_on_nothing == Some(true));
    let written: Vec<_> =
        lowest.filter_map(|(_, prefix, _)| seconds.device_counts(&prefix, &columns::DEVICE_WRITE_BYTES)).collect();
    let (mut bytes, mut operations) = (0, 0);
    for row in rows {
        // A counter at row k was read after second k.
        let (first, last) = (row + at.start - before - 1, row + at.end - before - 1);
        for column in &written {
            bytes += column.at(last)?.checked_sub(column.at(first)?)?;
        }
        operations += (first + 1..=last).filter_map(|row| done.at(row)).sum::<u64>();
    }
    (operations > 0 && !written.is_empty()).then(|| bytes as f64 / operations as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deed(kind: DeedKind, number: u64, start_us: u64) -> SnapshotDeed {
        SnapshotDeed { number, kind, start_us, length_us: 40_000, failure: None }
    }

    /// Seconds of a load of 1000 with a dip of two seconds after each snapshot.
    fn seconds(rows: usize, snapshots: &[usize]) -> Seconds {
        let of_row = |row: usize| match (snapshots.contains(&row), snapshots.contains(&row.saturating_sub(1))) {
            (true, _) => 300,
            (_, true) => 600,
            _ => 1000,
        };
        let done: Vec<u64> = (0..rows).map(of_row).collect();
        let idle: Vec<u64> = done.iter().map(|done| if *done < 1000 { 700_000 } else { 20_000 }).collect();
        let mut seconds = Seconds::new(rows);
        seconds.push_counts(columns::CLIENT_DONE.name, done, &vec![true; rows]);
        seconds.push_counts(columns::CLIENT_IDLE_US_MAX.name, idle, &vec![true; rows]);
        seconds
    }

    fn found(deeds: Vec<SnapshotDeed>, rows: usize, at: &[usize]) -> Option<TrialEpochs> {
        let snapshots = SnapshotCounts { every_us: Some(10_000_000), keep: 1, deeds, ..SnapshotCounts::default() };
        epochs(&snapshots, None, &seconds(rows, at))
    }

    #[test]
    fn a_dip_is_found_at_the_snapshots_whatever_their_number() {
        let deeds = [10, 20, 30].map(|s: u64| deed(DeedKind::Make, s / 10, s * 1_000_000 + 300_000)).to_vec();
        let found = found(deeds, 40, &[11, 21, 31]).unwrap();
        assert_eq!(found.curve, [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 300.0, 600.0, 1000.0, 1000.0, 1000.0]);
        assert_eq!((found.dip(), found.back_s()), (Some(0.3), Some(2)));
        assert!((found.idle_s.unwrap() - 0.7).abs() < 1e-9);
        assert_eq!((found.make_s, found.delete_s), (Some(0.04), None));
    }

    #[test]
    fn a_stall_over_several_seconds_is_followed_to_its_end() {
        let snapshots = SnapshotCounts {
            every_us: Some(10_000_000),
            keep: 1,
            deeds: vec![deed(DeedKind::Make, 1, 10_300_000)],
            ..SnapshotCounts::default()
        };
        let mut seconds = Seconds::new(30);
        seconds.push_counts(columns::CLIENT_DONE.name, vec![1000; 30], &[true; 30]);
        // From 12.05 s to 15.1 s; another one later.
        let idle = |row: usize| match row {
            13 => 950_000,
            14 => 1_950_000,
            15 => 2_950_000,
            16 => 3_050_000,
            18 => 9_000_000,
            _ => 2_000,
        };
        seconds.push_counts(columns::CLIENT_IDLE_US_MAX.name, (0..30).map(idle).collect(), &[true; 30]);
        let found = epochs(&snapshots, None, &seconds).unwrap();
        assert!((found.idle_s.unwrap() - 3.05).abs() < 1e-9, "{:?}", found.idle_s);
    }

    #[test]
    fn a_load_without_a_dip_recovers_at_once() {
        let one = |s: u64| vec![deed(DeedKind::Make, 1, s * 1_000_000)];
        let flat = found(one(10), 30, &[]).unwrap();
        assert_eq!((flat.dip(), flat.back_s()), (Some(1.0), Some(0)));
        assert!(found(one(2), 30, &[]).is_none() && found(one(28), 30, &[]).is_none());
    }

    #[test]
    fn the_load_while_deleting_is_set_against_the_rate_before() {
        let deeds = vec![deed(DeedKind::Make, 2, 20_000_000), deed(DeedKind::Delete, 1, 25_100_000)];
        let found = found(deeds, 40, &[26]).unwrap();
        assert_eq!((found.delete_load, found.delete_s), (Some(0.3), Some(0.04)));
    }
}
