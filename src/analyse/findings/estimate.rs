//! A figure with its interval.

use crate::stats::geometric;
use crate::stats::interval::{TrialMean, mean_over_trials};
use crate::stats::ratio::BlockMean;
use serde::{Deserialize, Serialize};

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// Lower end of the interval; `None` where the data do not allow one.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Trials that it rests on.
    pub trials: u32,
}

/// Mean of a figure of each trial that spreads by factors.
#[must_use]
pub fn over_trials(values: &[BlockMean]) -> Option<Estimate> {
    let plain: Vec<f64> = values.iter().map(|value| value.trial.mean).collect();
    let found = geometric::over_trials(&plain)?;
    Some(Estimate {
        value: found.mean,
        low: found.ends.map(|ends| ends.0),
        high: found.ends.map(|ends| ends.1),
        trials: u32::try_from(values.len()).unwrap_or(u32::MAX),
    })
}

/// Mean rate over trials with its interval.
#[must_use]
pub fn estimate(rates: &[BlockMean]) -> Option<Estimate> {
    let trials: Vec<TrialMean> = rates.iter().map(|rate| rate.trial).collect();
    let found = mean_over_trials(&trials)?;
    Some(Estimate {
        value: found.mean,
        low: found.ends.map(|ends| ends.0),
        high: found.ends.map(|ends| ends.1),
        trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
    })
}

/// An interval of a share on the logarithm may reach beyond the whole.
#[must_use]
pub fn at_most(whole: f64, share: Estimate) -> Estimate {
    let cut = |value: f64| value.min(whole);
    Estimate { value: cut(share.value), low: share.low.map(cut), high: share.high.map(cut), trials: share.trials }
}
