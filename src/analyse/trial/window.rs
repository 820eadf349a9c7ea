//! Measured window of one trial: whole checkpoint cycles, checkpoints, and the trend from the first cycle to the last.

use crate::analyse::findings::{CheckpointFinding, Trend, TrialWindow};
use crate::analyse::trial::input::Seconds;
use crate::record::columns;
use crate::record::counts::Counts;
use crate::record::trial::TrialRecord;
use crate::record::window::{Extent, WindowEnd, WindowRecord};
use crate::stats::autocorrelation;

/// A trend is reported if the first and the last cycle differ by more than this share ...
const TREND_WORTH_SAYING: f64 = 0.05;

/// ... and by more than this many standard errors (1 % of cycles without a trend, if normally distributed).
const TREND_ERRORS: f64 = 2.58;

/// Seconds that a third of a window needs for a comparison: with fewer, its own noise is unknown.
const LEAST_THIRD: usize = 10;

/// PostgreSQL's default page size in bytes, for a server that did not report its own.
const PAGE: f64 = 8192.0;

/// Position of an interval, in microseconds after the first operation, relative to checkpoints: entirely inside one,
/// entirely outside, or (`None`) partly inside.
pub fn in_checkpoint(window: &WindowRecord, start_us: u64, length_us: u64) -> Option<bool> {
    let from = window.first_operation_us + start_us;
    let to = from + length_us;
    let mut touched = false;
    for checkpoint in &window.checkpoints {
        let end = checkpoint.done.as_ref().map_or(u64::MAX, |done| done.ended_us);
        if checkpoint.started_us <= from && to <= end {
            return Some(true);
        }
        touched |= checkpoint.started_us < to && from < end;
    }
    (!touched).then_some(false)
}

/// Checkpoint starts that delimit whole cycles, wall clock.
fn boundaries(window: &WindowRecord) -> Vec<u64> {
    let in_window = |at: &u64| *at > window.began_us && *at <= window.ended_us;
    let first = window.from_checkpoint.and_then(|place| window.checkpoints.get(place));
    let starts = window.checkpoints.iter().map(|checkpoint| checkpoint.started_us).filter(in_window);
    first.map(|checkpoint| checkpoint.started_us).into_iter().chain(starts).collect()
}

/// Window of a trial; `None` for a workload without a server.
pub fn of_trial(record: &TrialRecord, counts: &Counts, seconds: &Seconds) -> Option<TrialWindow> {
    let window = record.window.as_ref()?;
    let boundaries = boundaries(window);
    let whole_cycles = boundaries.len().saturating_sub(1) as u64;
    let asked_cycles = if let Extent::Cycles { cycles, .. } = window.extent { Some(cycles) } else { None };
    let after = |at: u64| (at as f64 - window.first_operation_us as f64) / 1e6;
    let end_us = window.first_operation_us + counts.elapsed_us;
    let touching = window.checkpoints.iter().filter(|checkpoint| {
        checkpoint.started_us <= window.ended_us
            && checkpoint.done.as_ref().is_none_or(|done| done.ended_us >= window.first_operation_us)
    });
    let checkpoints = touching.map(|checkpoint| CheckpointFinding {
        start_s: after(checkpoint.started_us),
        end_s: checkpoint.done.as_ref().map(|done| after(done.ended_us)),
        cause: checkpoint.cause.clone(),
        done: checkpoint.done.clone(),
    });
    let done = window.checkpoints.iter().filter_map(|checkpoint| checkpoint.done.as_ref());
    let ended = done.filter(|done| done.ended_us > window.began_us && done.ended_us <= window.ended_us);
    let removed: u64 = ended.map(|done| done.wal_removed).sum();
    let segments = window.wal_segments_before.zip(window.wal_segments_after);
    let vacuums = window.vacuums.iter();
    let vacuums =
        vacuums.filter(|vacuum| vacuum.ended_us > window.first_operation_us && vacuum.ended_us <= window.ended_us);
    let in_window = |(end, elapsed): (u64, u64)| {
        end.min(end_us).saturating_sub((end - elapsed.min(end)).max(window.first_operation_us))
    };
    let vacuum_us: u64 = vacuums.map(|vacuum| in_window((vacuum.ended_us, vacuum.elapsed_us))).sum();
    let asked = |name: &str| record.case.postgres.as_ref().and_then(|postgres| postgres.asked(name));
    let replaced = window.settings.iter().filter_map(|(name, ours)| {
        let own = asked(name).filter(|own| own != ours)?;
        Some((name.clone(), (own.to_owned(), ours.clone())))
    });
    Some(TrialWindow {
        asked_cycles,
        whole_cycles,
        cut: window.end == WindowEnd::Time && asked_cycles.is_some_and(|asked| whole_cycles < asked),
        length_s: counts.elapsed_us as f64 / 1e6,
        warm_up_cycles: window.warm_up.len() as u64,
        settled: window.settled,
        prefilled: window.prefill.is_some(),
        replaced: replaced.collect(),
        wal_segments_new: segments.map(|(before, after)| (after + removed).saturating_sub(before)),
        checkpoints: checkpoints.collect(),
        // The steps of a search have different rates, and so have its cycles.
        trend: trend(window, &boundaries, seconds).filter(|_| counts.search.is_none() && record.turns.is_none()),
        vacuum_s: vacuum_us as f64 / 1e6,
    })
}

/// Compares the first whole cycle with the last, by their whole seconds; without two whole cycles, in a window without
/// cycles or of a given duration, the first third with the last.
pub(crate) fn trend(window: &WindowRecord, boundaries: &[u64], seconds: &Seconds) -> Option<Trend> {
    let done = seconds.counts(&columns::CLIENT_DONE)?;
    let (first, last) = match boundaries {
        [a, b, .., y, z] => ((*a, *b), (*y, *z)),
        [a, b, c] => ((*a, *b), (*b, *c)),
        [_, _] if matches!(window.extent, Extent::Cycles { .. }) => return None,
        _ => thirds(window.first_operation_us, done.rows().saturating_sub(1))?,
    };
    let of = |(from, to): (u64, u64)| -> Vec<f64> {
        let second = |row: usize| window.first_operation_us + (row as u64 - 1) * 1_000_000;
        let whole = (1..done.rows()).filter(|row| second(*row) >= from && second(*row) + 1_000_000 <= to);
        whole.filter_map(|row| done.at(row)).map(|done| done as f64).collect()
    };
    let (early, late) = (of(first), of(last));
    let (early_error, late_error) = (autocorrelation::within(&early)?, autocorrelation::within(&late)?);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (first, last) = (mean(&early), mean(&late));
    let error = early_error.standard_error.hypot(late_error.standard_error);
    let differs = (last - first).abs();
    let seen = differs > TREND_WORTH_SAYING * first.max(last) && differs > TREND_ERRORS * error;
    Some(Trend { first, last, seen })
}

/// First and last third of this many seconds, wall clock.
pub(crate) fn thirds(from_us: u64, seconds: usize) -> Option<((u64, u64), (u64, u64))> {
    let third = seconds / 3;
    let at = |second: usize| from_us + second as u64 * 1_000_000;
    (third >= LEAST_THIRD).then(|| ((at(0), at(third)), (at(seconds - third), at(seconds))))
}

/// Seconds of sync phase per GB (10^9 bytes) written, over the checkpoints that ended in the trial's window; `None` if
/// none of them wrote a page.
pub(crate) fn sync_s_per_gb(record: &TrialRecord) -> Option<f64> {
    let window = record.window.as_ref()?;
    let done = window.checkpoints.iter().filter(|it| it.started_us <= window.ended_us);
    let done = done.filter_map(|it| it.done.as_ref()).filter(|done| done.ended_us > window.first_operation_us);
    let (pages, sync_us) = done.fold((0, 0), |(pages, us), done| (pages + done.buffers, us + done.sync_us));
    let block_size = record.server.as_ref().and_then(|server| server.key_settings.get("block_size"));
    let page = block_size.and_then(|bytes| bytes.parse().ok()).unwrap_or(PAGE);
    (pages > 0).then(|| sync_us as f64 / 1e6 / (pages as f64 * page / 1e9))
}
