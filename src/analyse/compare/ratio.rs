//! Ratio of two figures with its interval, as far as their spread is known.
//!
//! Trials: `stats::ratio`. Two probes: each has an interval from its slices on the logarithm, so the squares of the
//! logarithms' half widths add up (G. Y. Zou, A. Donner, Statistics in Medicine 27 (2008) 1693: an interval of a
//! difference from those of its parts); variation between runs is not covered, so no winner is named. A figure
//! published without its spread gives a ratio without an interval: the spread of one machine says nothing about
//! another.

use super::findings::{Comparison, Method, RatioOutcome};
use super::side::{FigureKind, MeasureSpread, SideMeasure};
use crate::stats::ratio::{BlockMean, RatioMethod, ratio};
use crate::units::significant;

/// Offset added to the block numbers of another run, so that none of them match.
const OTHER_RUN: u32 = 1 << 24;
/// A narrower relative interval is discarded: its trials agree to the last digit.
const LEAST_WIDTH: f64 = 1e-9;

/// `a` over `b`, the reference; `None` if either did no work.
pub fn compare(a: &SideMeasure, b: &SideMeasure) -> Option<Comparison> {
    let plain = alone(a) / alone(b);
    if !(plain.is_finite() && plain > 0.0) {
        return None;
    }
    let found = match (&a.spread, &b.spread) {
        (MeasureSpread::Trials { run: one, means, .. }, MeasureSpread::Trials { run: other, means: others, .. })
            if means.len().min(others.len()) > 1 =>
        {
            from_trials(means, &if one == other { others.clone() } else { shifted(others) })
        }
        (MeasureSpread::Together { .. }, _) | (_, MeasureSpread::Together { .. }) => {
            Err(none(Method::PercentilesTogether, &together(a, b)))
        }
        (one, other) if has_own(one) && has_own(other) => from_own(a, b, plain),
        _ => Err(none(Method::SingleRuns, "single run, variance unknown")),
    };
    // Two counts may well agree to the last digit.
    let is_counter = a.figure == FigureKind::Counter;
    let found = found.and_then(|(value, ends, how)| match is_counter || ends.1 > ends.0 * (1.0 + LEAST_WIDTH) {
        true => Ok((value, ends, how)),
        false => Err(none(Method::Alike, "no variance between trials, as with copies or rounded figures")),
    });
    Some(match found {
        Ok((value, ends, (method, how))) => {
            let outcome = outcome(ends, a, method);
            Comparison { ratio: value, low: Some(ends.0), high: Some(ends.1), outcome, method, how }
        }
        Err((method, how)) => {
            Comparison { ratio: plain, low: None, high: None, outcome: RatioOutcome::NoInterval, method, how }
        }
    })
}

/// A single trial's rate without what its turns bore, as the report's ratios have it; else the figure.
fn alone(measure: &SideMeasure) -> f64 {
    match &measure.spread {
        MeasureSpread::Trials { means, .. } if means.len() == 1 => means[0].trial.mean,
        _ => measure.value,
    }
}

/// Method with its description.
type How = (Method, String);
/// A ratio and its interval, or why there is none.
type Found = Result<(f64, (f64, f64), How), How>;

fn none(method: Method, why: &str) -> How {
    (method, format!("no interval: {why}"))
}

fn shifted(means: &[BlockMean]) -> Vec<BlockMean> {
    means.iter().map(|mean| BlockMean { block: mean.block.saturating_add(OTHER_RUN), ..*mean }).collect()
}

fn from_trials(a: &[BlockMean], b: &[BlockMean]) -> Found {
    const NOTHING: &str = "a trial had no operations";
    let found = ratio(a, b).ok_or_else(|| none(Method::NoSpread, NOTHING))?;
    let how = match found.method {
        RatioMethod::Paired { blocks } => (Method::Paired, format!("paired over {blocks} blocks")),
        RatioMethod::Unpaired { trials: (a, b) } => {
            (Method::Trials, format!("from {a} and {b} trials without common blocks"))
        }
        RatioMethod::NoInterval => return Err(none(Method::NoSpread, NOTHING)),
    };
    let known = found.interval.map(|ends| (found.value, ends, how));
    known.ok_or_else(|| none(Method::NoSpread, "fewer than three trials, or their variance is too high"))
}

/// True if a figure has its own spread: between its trials, or between the slices of a single measurement.
fn has_own(spread: &MeasureSpread) -> bool {
    match spread {
        MeasureSpread::Trials { means, slices, .. } => *slices || means.len() > 1,
        MeasureSpread::Together { .. } | MeasureSpread::None => false,
    }
}

/// Why a percentile or maximum has no interval, with the values of single trials.
fn together(a: &SideMeasure, b: &SideMeasure) -> String {
    let [one, other] = [a, b].map(|measure| match measure.spread {
        MeasureSpread::Together { trials, alone: Some((least, most)) } if trials > 1 => {
            format!("{trials} trials, own interval {} to {} {}", significant(least), significant(most), measure.unit)
        }
        MeasureSpread::Together { trials, .. } if trials > 1 => format!("{trials} trials"),
        _ => "1 trial".to_owned(),
    });
    format!("operations of all trials merged ({one} vs. {other})")
}

/// Ratio from each side's own interval.
fn from_own(a: &SideMeasure, b: &SideMeasure, plain: f64) -> Found {
    let halves = [a, b].map(|measure| {
        let (low, high) = measure.ends?;
        Some((high / low).ln() / 2.0).filter(|half| half.is_finite() && *half >= 0.0)
    });
    let [Some(one), Some(other)] = halves else {
        return Err(none(Method::SingleRuns, "too few slices"));
    };
    let factor = one.hypot(other).exp();
    let ends = (plain / factor, plain * factor);
    if !(ends.0 > 0.0 && ends.1.is_finite()) {
        return Err(none(Method::SingleRuns, "variance between slices is too high"));
    }
    let trials = [a, b].into_iter().find_map(|measure| match &measure.spread {
        MeasureSpread::Trials { means, .. } if means.len() > 1 => Some(means.len()),
        _ => None,
    });
    let words = match trials {
        Some(trials) => format!("from {trials} trials and the slices of one measurement"),
        None => "from the slices of one measurement each".to_owned(),
    };
    Ok((plain, ends, (Method::Slices, words)))
}

fn outcome(ends: (f64, f64), a: &SideMeasure, method: Method) -> RatioOutcome {
    match (ends.0 > 1.0, ends.1 < 1.0) {
        (false, false) => RatioOutcome::Undecided,
        _ if method.is_of_single_runs() => RatioOutcome::NotRepeated,
        (true, _) if a.figure == FigureKind::Counter => RatioOutcome::Higher,
        (false, _) if a.figure == FigureKind::Counter => RatioOutcome::Lower,
        (more, _) if more == a.more_is_better() => RatioOutcome::Faster,
        _ => RatioOutcome::Slower,
    }
}
