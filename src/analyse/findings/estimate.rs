//! Figures with 95 % intervals.

use crate::stats::geometric;
use crate::stats::interval::{MeanInterval, TrialMean, mean_over_trials};
use crate::stats::ratio::{BlockMean, Ratio};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    /// `None` if the data do not allow an interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Smallest and largest of two values, which are too few for an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
    /// Trials that it is based on.
    pub trials: u32,
}

/// An interval whose end is further than this factor from the figure is too wide to be useful.
pub const BEYOND_USE: f64 = 10.0;

impl Estimate {
    /// True if the interval is too wide to be useful.
    pub fn is_beyond_use(&self) -> bool {
        self.high.is_some_and(|high| self.value > 0.0 && high > BEYOND_USE * self.value)
            || self.low.is_some_and(|low| low > 0.0 && self.value > BEYOND_USE * low)
    }

    /// A value with the ends of its interval, if there is one.
    pub fn of(value: f64, ends: Option<(f64, f64)>, trials: usize) -> Estimate {
        let trials = u32::try_from(trials).unwrap_or(u32::MAX);
        Estimate { value, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1), range: None, trials }
    }

    /// Mean over trials with its interval.
    pub(crate) fn of_means(trials: &[TrialMean]) -> Option<Estimate> {
        mean_over_trials(trials).map(|found| Estimate::of(found.mean, found.ends, trials.len()))
    }

    /// A ratio based on this many trials or blocks.
    pub fn of_ratio(ratio: &Ratio, trials: usize) -> Estimate {
        Estimate { range: ratio.range, ..Estimate::of(ratio.value, ratio.interval, trials) }
    }

    /// Applies a non-decreasing scale to the figure and its interval.
    pub fn map(self, scale: impl Fn(f64) -> f64) -> Estimate {
        let (low, high) = (self.low.map(&scale), self.high.map(&scale));
        let range = self.range.map(|(least, most)| (scale(least), scale(most)));
        Estimate { value: scale(self.value), low, high, range, trials: self.trials }
    }
}

fn with_range(found: MeanInterval, trials: &[BlockMean]) -> Estimate {
    let range = match trials {
        [one, other] => Some((one.trial.mean.min(other.trial.mean), one.trial.mean.max(other.trial.mean))),
        _ => None,
    };
    Estimate { range, ..Estimate::of(found.mean, found.ends, trials.len()) }
}

/// Geometric mean of a figure that varies by factors between trials.
pub fn over_trials(values: &[BlockMean]) -> Option<Estimate> {
    let plain: Vec<f64> = values.iter().map(|value| value.trial.mean).collect();
    let found = geometric::over_trials(&plain)?;
    Some(with_range(found, values))
}

/// Mean rate over trials, with its interval.
pub fn estimate(rates: &[BlockMean]) -> Option<Estimate> {
    let trials: Vec<TrialMean> = rates.iter().map(|rate| rate.trial).collect();
    let found = mean_over_trials(&trials)?;
    Some(with_range(found, rates))
}

/// Caps a share: its interval is computed on the logarithm and may exceed the whole.
pub fn at_most(whole: f64, share: Estimate) -> Estimate {
    share.map(|value| value.min(whole))
}
