//! The ratio of two figures with its interval, as far as their spread is known.
//!
//! Trials: `stats::ratio`. Two probes: each has an interval from its slices, laid off on the logarithm, so the half widths
//! of the logarithms add as squares (G. Y. Zou, A. Donner, Statistics in Medicine 27 (2008) 1693: an interval of a
//! difference from those of its parts). A figure that someone published without its spread gives a ratio and no interval,
//! and the spread of one machine says nothing of another's.

use super::findings::{Comparison, Outcome};
use super::side::{Measure, Origin, Spread};
use crate::stats::ratio::{BlockMean, RatioMethod, ratio};

/// Added to the numbers of blocks of another run, so that none is taken for a common one.
const OTHER_RUN: u32 = 1 << 24;

/// `side` over `reference`; `None` where either did nothing.
#[must_use]
pub fn compare(side: (&Measure, Origin), reference: (&Measure, Origin)) -> Option<Comparison> {
    let (a, b) = (side.0, reference.0);
    let plain = a.value / b.value;
    if !(plain.is_finite() && plain > 0.0) {
        return None;
    }
    let imported = side.1 == Origin::Imported || reference.1 == Origin::Imported;
    let found = match (&a.spread, &b.spread) {
        (Spread::Trials { run: one, means, .. }, Spread::Trials { run: other, means: others, .. })
            if means.len() > 1 || others.len() > 1 =>
        {
            let apart = if one == other { others.clone() } else { shifted(others) };
            from_trials(means, &apart, imported && one != other)
        }
        (Spread::Trials { means, .. }, Spread::Slices(probe)) if means.len() > 1 => {
            from_trials(means, &shifted(&[*probe]), imported)
        }
        (Spread::Slices(probe), Spread::Trials { means, .. }) if means.len() > 1 => {
            from_trials(&[*probe], &shifted(means), imported)
        }
        (one, other) if has_slices(one) && has_slices(other) && !(is_trial(one) && is_trial(other)) => {
            from_slices(a, b, plain)
        }
        (Spread::Trials { .. }, Spread::Trials { .. }) => Err("no interval: a single trial each".to_owned()),
        _ => Err("no interval: a single run without spread".to_owned()),
    };
    Some(match found {
        Ok((value, ends, method)) => {
            let outcome = outcome(ends, a.more_is_better());
            Comparison { ratio: value, low: Some(ends.0), high: Some(ends.1), outcome, method }
        }
        Err(method) => Comparison { ratio: plain, low: None, high: None, outcome: Outcome::NoInterval, method },
    })
}

type Found = Result<(f64, (f64, f64), String), String>;

fn shifted(means: &[BlockMean]) -> Vec<BlockMean> {
    means.iter().map(|mean| BlockMean { block: mean.block.saturating_add(OTHER_RUN), ..*mean }).collect()
}

fn from_trials(a: &[BlockMean], b: &[BlockMean], strangers: bool) -> Found {
    if strangers && (a.len() < 2 || b.len() < 2) {
        return Err("no interval: a single run without spread".to_owned());
    }
    let none = || "no interval: a trial did nothing".to_owned();
    let found = ratio(a, b).ok_or_else(none)?;
    let method = match found.method {
        RatioMethod::Paired { blocks } => format!("paired over {blocks} blocks"),
        RatioMethod::Unpaired { trials: (a, b) } => format!("from {a} and {b} trials without common blocks"),
        RatioMethod::BorrowedSpread { trials: (a, b) } => {
            format!("from {a} and {b} trials: the spread of the {} taken for both", a.max(b))
        }
        RatioMethod::NoInterval => return Err(none()),
    };
    found
        .interval
        .map(|ends| (found.value, ends, method))
        .ok_or_else(|| "no interval: the trials differ too much".into())
}

fn has_slices(spread: &Spread) -> bool {
    match spread {
        Spread::Slices(_) => true,
        Spread::Trials { means, slices, .. } => *slices && means.len() == 1,
        Spread::None => false,
    }
}

fn is_trial(spread: &Spread) -> bool {
    matches!(spread, Spread::Trials { .. })
}

fn from_slices(a: &Measure, b: &Measure, plain: f64) -> Found {
    let half = |measure: &Measure| {
        let (low, high) = measure.ends?;
        Some((high / low).ln() / 2.0).filter(|half| half.is_finite() && *half >= 0.0)
    };
    let (Some(one), Some(other)) = (half(a), half(b)) else {
        return Err("no interval: too few slices".to_owned());
    };
    let factor = one.hypot(other).exp();
    let ends = (plain / factor, plain * factor);
    if !(ends.0 > 0.0 && ends.1.is_finite()) {
        return Err("no interval: the slices differ too much".to_owned());
    }
    Ok((plain, ends, "from the slices of one measurement each".to_owned()))
}

fn outcome(ends: (f64, f64), more_is_better: bool) -> Outcome {
    match (ends.0 > 1.0, ends.1 < 1.0) {
        (false, false) => Outcome::NoDifferenceSeen,
        (more, _) if more == more_is_better => Outcome::Faster,
        _ => Outcome::Slower,
    }
}
