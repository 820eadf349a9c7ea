//! Findings of the rows: rates with intervals, latencies, device work.

use super::findings::{RateFinding, RowFinding};
use super::{latency, server, work};
use crate::record::probe::{ProbeRecord, RowRecord};
use crate::stats::autocorrelation::FEWEST_VALUES;
use crate::stats::slices;
use crate::units::significant;

/// Share of the budget that counts as used up: the idle interval is not part of the elapsed time.
const USED_UP: f64 = 0.8;

pub(super) fn finding(row: &RowRecord, record: &ProbeRecord, server: u32) -> RowFinding {
    let counts = latency::counts(row);
    let (stalls, stalls_in_all) = latency::stalls(&counts, &row.slowest);
    let made = row.segments_us.len() as u64;
    let made_us = row.segments_us.iter().map(|us| *us as f64).sum::<f64>();
    RowFinding {
        spec: row.spec.clone(),
        server: server::role(&row.spec, server),
        unavailable: row.unavailable.clone(),
        failure: row.failure.clone(),
        operations: row.slices.iter().fold(0u64, |sum, slice| sum.saturating_add(slice.operations)),
        measured_us: row.slices.iter().fold(0u64, |sum, slice| sum.saturating_add(slice.elapsed_ns)) / 1000,
        slices: u32::try_from(row.slices.len()).unwrap_or(u32::MAX),
        rate: rate(row, record),
        commits_per_sync: work::operations_per_sync(&row.slices),
        latency: latency::figures(&counts, &row.slowest),
        histogram: latency::histogram(&counts),
        stalls,
        stalls_in_all,
        segment_us_mean: (made > 0).then(|| made_us / made as f64),
        segments_made: made,
        work: work::work(row, record),
    }
}

fn rate(row: &RowRecord, record: &ProbeRecord) -> Option<RateFinding> {
    let timed: Vec<(u64, f64)> =
        row.slices.iter().map(|slice| (slice.operations, slice.elapsed_ns as f64 / 1e9)).collect();
    let found = slices::rate(&timed)?;
    let half = found.relative_half_width();
    let precise = half.is_some_and(|half| half <= record.precision);
    Some(RateFinding {
        per_s: found.per_s,
        low_per_s: found.ends.map(|ends| ends.0),
        high_per_s: found.ends.map(|ends| ends.1),
        relative_half_width: half,
        precise,
        imprecise_because: (!precise).then(|| imprecise_because(row, record, half)),
    })
}

/// Reason that a rate did not reach the requested precision.
fn imprecise_because(row: &RowRecord, record: &ProbeRecord, half: Option<f64>) -> String {
    let slices = row.slices.len();
    let Some(half) = half else {
        return if slices < 2 { "one slice has no interval" } else { "no operations in its slices" }.to_owned();
    };
    // Beyond 50 %, intervals are so asymmetric that a single number is meaningless.
    let wide = if half >= 0.5 { "over ±50".to_owned() } else { format!("±{}", significant(half * 100.0)) };
    let found = format!("{wide} % instead of {} %", significant(record.precision * 100.0));
    let why = if let Some(failure) = &row.failure {
        format!("it ended early, {} failed", failure.call)
    } else if slices < FEWEST_VALUES {
        format!("too few slices, {slices}")
    } else if record.elapsed_us as f64 >= record.budget_us as f64 * USED_UP {
        "the time limit was reached".to_owned()
    } else {
        "variance between slices is too high".to_owned()
    };
    format!("{found}: {why}")
}
