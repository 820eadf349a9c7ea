//! The difference between two figures that counts as shown, and the true difference that a run like this one would
//! detect.

use super::interval::Component;
use super::student;

/// Share of such runs that find a detectable difference.
pub const POWER: f64 = 0.8;

/// Half width of a ratio's interval, on the logarithm, with the error behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    pub(super) log: f64,
    pub(super) error: Component,
    /// True if the seconds inside the trials set the margin: trials may agree by chance better than their seconds
    /// allow.
    pub by_seconds: bool,
}

impl Margin {
    /// The larger of two margins: from the spread between trials or blocks, and from the seconds inside them. Each with
    /// the standard errors that it must span.
    pub(super) fn larger(spread: (Component, f64), inside: Option<(Component, f64)>) -> Margin {
        let of = |(error, errors): (Component, f64), by_seconds: bool| Margin {
            log: errors * error.variance.sqrt(),
            error,
            by_seconds,
        };
        let by_spread = of(spread, false);
        inside.map(|inside| of(inside, true)).filter(|floor| floor.log > by_spread.log).unwrap_or(by_spread)
    }

    /// The smallest ratio above 1 that would have been significant.
    pub fn ratio(self) -> Option<f64> {
        Some(self.log.exp()).filter(|ratio| ratio.is_finite())
    }

    /// The interval around a ratio.
    pub fn around(self, ratio: f64) -> Option<(f64, f64)> {
        self.ratio().map(|margin| (ratio / margin, ratio * margin)).filter(|(low, high)| *low > 0.0 && high.is_finite())
    }

    /// True ratio above 1 that [`POWER`] of runs like this one would find: the margin, plus the amount by which a ratio
    /// falls short in the other runs (J. Bloom, "Minimum Detectable Effects", Evaluation Review 19 (1995) 547).
    pub fn detectable(self) -> Option<f64> {
        let beyond = student::two_sided_quantile(2.0 * POWER - 1.0, self.error.degrees) * self.error.variance.sqrt();
        Some((self.log + beyond).exp()).filter(|ratio| ratio.is_finite())
    }
}
