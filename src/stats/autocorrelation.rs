//! Standard error of the mean of a correlated series: the seconds of one trial are not independent of each other.
//!
//! A series with integrated autocorrelation time tau carries as much about its mean as n / tau independent values. tau
//! is estimated with Geyer's initial monotone sequence (C. J. Geyer, "Practical Markov Chain Monte Carlo", Statistical
//! Science 7 (1992) 473, section 3.3): sums of neighbouring autocovariances are added while they stay positive, each
//! cut down to the one before. That needs no window to be chosen and errs towards wide intervals.

use super::moments;

/// Fewest values from which autocorrelation is estimated; with fewer there is no standard error.
pub const FEWEST_VALUES: usize = 8;
/// Longer series are first averaged over blocks of equal length, at most this many. The mean of the blocks has the same
/// standard error, and the cost, quadratic in this number at worst, stays bounded for series of days.
const MOST_BLOCKS: usize = 4096;

/// Standard error of the mean of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    pub standard_error: f64,
    /// Degrees of freedom of the standard error: effective number of values less one, at least 1.
    pub degrees: f64,
}

/// Standard error of the mean of `series`, in its order; `None` below [`FEWEST_VALUES`].
pub fn within(series: &[f64]) -> Option<Within> {
    if series.len() < FEWEST_VALUES {
        return None;
    }
    let blocks = blocked(series);
    let n = blocks.len() as f64;
    let time = integrated_time(&blocks);
    let mean = moments::mean(&blocks)?;
    let squares: f64 = blocks.iter().map(|value| (value - mean).powi(2)).sum();
    // The sample mean eats tau / n of the variance: E[squares / n] = variance * (1 - tau / n).
    let standard_error = (squares / n * time / (n - time).max(1.0)).sqrt();
    Some(Within { standard_error, degrees: (n / time - 1.0).max(1.0) })
}

/// Integrated autocorrelation time of a series in steps, at least 1. A negatively correlated series is treated as
/// independent: the narrower interval would rest on the weakest part of the estimate.
pub fn integrated_time(series: &[f64]) -> f64 {
    let n = series.len();
    let Some(mean) = moments::mean(series) else { return 1.0 };
    let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
    let covariance =
        |lag: usize| centred.iter().zip(&centred[lag..]).map(|(early, late)| early * late).sum::<f64>() / n as f64;
    let at_zero = if n == 0 { 0.0 } else { covariance(0) };
    if at_zero <= 0.0 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut before = f64::INFINITY;
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = covariance(lag) + covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        before = pair.min(before);
        sum += before;
    }
    (2.0 * sum / at_zero - 1.0).max(1.0)
}

/// Means over blocks of equal length; values that do not fill the last block are dropped.
fn blocked(series: &[f64]) -> Vec<f64> {
    let length = series.len().div_ceil(MOST_BLOCKS);
    if length <= 1 {
        return series.to_vec();
    }
    series.chunks_exact(length).map(|block| block.iter().sum::<f64>() / length as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::{Noise, autoregressive};
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn an_independent_series_has_a_correlation_time_of_about_one() {
        let series = autoregressive(&mut Noise::seeded(1), 100.0, 5.0, 0.0, 4000);
        let time = integrated_time(&series);
        assert!((1.0..1.25).contains(&time), "{time}");
    }

    #[test]
    fn the_correlation_time_of_an_autoregressive_series_is_found() {
        // tau = (1 + phi) / (1 - phi) = 9.
        let series = autoregressive(&mut Noise::seeded(2), 100.0, 5.0, 0.8, 4000);
        let time = integrated_time(&series);
        assert!((7.0..11.5).contains(&time), "{time}");
    }

    #[test]
    fn days_of_seconds_have_the_standard_error_that_theory_gives() {
        let n = 200_000;
        let series = autoregressive(&mut Noise::seeded(3), 100.0, 5.0, 0.8, n);
        let theory = 5.0 * (9.0 / n as f64).sqrt();
        let found = within(&series).unwrap().standard_error;
        assert!((found / theory - 1.0).abs() < 0.15, "{found} against {theory}");
    }

    #[test]
    fn a_constant_series_has_zero_error_and_short_ones_none() {
        assert_eq!(within(&[7.0; 60]).unwrap().standard_error, 0.0);
        assert_eq!(within(&[7.0; 7]), None);
    }

    proptest! {
        #[test]
        fn the_standard_error_is_finite_and_scales_with_the_series(
            series in proptest::collection::vec(0.0f64..1e6, 8..200), factor in 0.001f64..1000.0
        ) {
            let one = within(&series).unwrap();
            let scaled: Vec<f64> = series.iter().map(|value| value * factor).collect();
            let other = within(&scaled).unwrap();
            prop_assert!(one.standard_error.is_finite() && one.degrees >= 1.0);
            prop_assert!((one.standard_error * factor - other.standard_error).abs() <= 1e-6 * other.standard_error + 1e-9);
        }
    }
}
