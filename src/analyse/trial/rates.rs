//! Rates of one trial.

use crate::record::counts::Measure;
use crate::stats::autocorrelation::Within;
use crate::stats::{autocorrelation, slices};

/// Operations per second of one trial; `None` if it has no operations or no time.
pub fn rate_of(measure: &Measure) -> Option<f64> {
    let done = measure.done.filter(|_| measure.elapsed_us > 0)?;
    Some(done as f64 / (measure.elapsed_us as f64 / 1e6))
}

/// Share of the due operations that completed within the limit. Failed, skipped and unsent operations were due too.
pub(crate) fn in_time(measure: &Measure) -> Option<f64> {
    let done = measure.done?;
    let due = done + measure.failed + measure.skipped + measure.never_sent();
    (due > 0).then(|| done.saturating_sub(measure.late) as f64 / due as f64)
}

pub(crate) fn within(measure: &Measure, seconds: Option<&[f64]>) -> Option<Within> {
    if measure.slices.is_empty() { seconds.and_then(autocorrelation::within) } else { within_slices(measure) }
}

/// Error of a measure's rate, estimated from its turns.
pub fn within_slices(measure: &Measure) -> Option<Within> {
    let turns: Vec<(u64, f64)> =
        measure.slices.iter().map(|slice| (slice.operations, slice.elapsed_ns as f64 / 1e9)).collect();
    slices::within(&turns)
}
