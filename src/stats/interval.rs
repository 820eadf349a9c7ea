//! The 95 % interval of a mean rate over trials; that of percentiles is in [`super::geometric`].
//!
//! The mean is geometric, so that the quotient of two figures equals the ratio computed from their trials
//! ([`super::ratio`]). Everything is computed on logarithms.
//!
//! Two sources of uncertainty are kept apart. *Between* trials: a t interval on the trials' means, each trial being one
//! observation of a fresh stack (the textbook method for replicated simulations, A. M. Law, "Simulation Modeling and
//! Analysis", 5th ed., section 9.5.2). *Within* a trial: the autocorrelated seconds ([`super::autocorrelation`]). The
//! wider of the two is used: a few trials that agree by chance must not claim more than their seconds support. The
//! error of a trial's mean becomes a relative error of its logarithm (delta method).

use super::autocorrelation::Within;
use super::student;

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Fewest degrees of freedom of an interval: those of three independent values. With one, its ends would lie 12.7
/// standard errors from the figure, which is no information; the range of the values is reported instead.
const LEAST_DEGREES: f64 = 2.0;

/// Mean of one trial, and its error estimated from inside the trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialMean {
    pub mean: f64,
    /// Error of the mean according to the trial's own seconds.
    pub within: Option<Within>,
}

/// A figure and its interval; `None` if there are too few data for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// Geometric mean over the trials; the plain mean if a trial is zero.
    pub mean: f64,
    /// Lower and upper end of the interval with [`CONFIDENCE`].
    pub ends: Option<(f64, f64)>,
}

impl TrialMean {
    /// Error of the mean's logarithm.
    pub(super) fn log_error(&self) -> Option<Component> {
        self.within.map(|within| Component::of(within).scaled(1.0 / self.mean.powi(2)))
    }
}

/// Mean of positive figures over trials, with its interval; `None` if there are none or one is not finite. A figure of
/// zero has no logarithm: then the mean is the plain one, without an interval unless all figures are zero.
///
/// With three or more trials: the wider of the t interval on their logarithms (k - 1 degrees of freedom) and the
/// interval from their seconds alone. With fewer, no interval: their seconds say nothing about the next trial.
pub fn mean_over_trials(trials: &[TrialMean]) -> Option<MeanInterval> {
    let means: Vec<f64> = trials.iter().map(|trial| trial.mean).collect();
    let plain = super::moments::mean(&means).filter(|mean| mean.is_finite())?;
    if means.iter().any(|mean| *mean <= 0.0) {
        let ends = means.iter().all(|mean| *mean == 0.0).then_some((0.0, 0.0));
        return Some(MeanInterval { mean: plain, ends });
    }
    // In units of the first, so that equal figures have no spread, not that of their rounding.
    let unit = means[0];
    let logs: Vec<f64> = means.iter().map(|mean| (mean / unit).ln()).collect();
    let log = super::moments::mean(&logs)?;
    let errors: Vec<Option<Component>> = trials.iter().map(TrialMean::log_error).collect();
    let half = between(&logs).filter(Component::carries_an_interval);
    let half = half.map(|half| half.half_width().max(inside(&errors).map_or(0.0, Component::half_width)));
    let ends = half.map(|half| (unit * (log - half).exp(), unit * (log + half).exp()));
    let mean = if trials.len() == 1 { plain } else { unit * log.exp() };
    Some(MeanInterval { mean, ends: ends.filter(|(low, high)| *low > 0.0 && high.is_finite()) })
}

/// Mean of figures of either sign, and the half width of its t interval; `None` if there are none, no interval for one
/// or two.
pub fn mean_of_differences(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let mean = super::moments::mean(values).filter(|mean| mean.is_finite())?;
    Some((mean, between(values).filter(Component::carries_an_interval).map(Component::half_width)))
}

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Component {
    pub variance: f64,
    pub degrees: f64,
}

impl Component {
    pub(super) fn of(within: Within) -> Component {
        Component { variance: within.standard_error.powi(2), degrees: within.degrees }
    }

    /// Sum of independent variances, with degrees of freedom by Welch and Satterthwaite (Satterthwaite, Biometrics
    /// Bulletin 2 (1946) 110).
    pub(super) fn sum(parts: &[Component]) -> Component {
        let variance: f64 = parts.iter().map(|part| part.variance).sum();
        let spread: f64 = parts.iter().map(|part| part.variance.powi(2) / part.degrees.max(1.0)).sum();
        let known: f64 = parts.iter().map(|part| part.degrees).sum();
        let degrees = if spread > 0.0 { (variance * variance / spread).max(1.0) } else { known };
        Component { variance, degrees }
    }

    pub(super) fn scaled(self, factor: f64) -> Component {
        Component { variance: self.variance * factor, ..self }
    }

    pub(super) fn carries_an_interval(&self) -> bool {
        self.degrees >= LEAST_DEGREES
    }

    /// Half width of the interval with [`CONFIDENCE`].
    pub(super) fn half_width(self) -> f64 {
        self.variance.sqrt() * student::two_sided_quantile(CONFIDENCE, self.degrees)
    }
}

/// Variance of the mean of observations, from their spread; `None` below two.
pub(super) fn between(observations: &[f64]) -> Option<Component> {
    let k = observations.len() as f64;
    let variance = super::moments::variance(observations)?;
    Some(Component { variance: variance / k, degrees: k - 1.0 })
}

/// Variance of a mean over trials, from the errors inside them; `None` unless every trial has one.
pub(super) fn inside(variances: &[Option<Component>]) -> Option<Component> {
    let parts: Option<Vec<Component>> = variances.iter().copied().collect();
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let k = parts.len() as f64;
    Some(Component::sum(&parts).scaled(1.0 / (k * k)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::autocorrelation::within;
    use crate::stats::simulation::{Noise, Scene};
    use proptest::prelude::{prop_assert, proptest};

    fn bare(means: &[f64]) -> Vec<TrialMean> {
        means.iter().map(|mean| TrialMean { mean: *mean, within: None }).collect()
    }

    fn ends(trials: &[TrialMean]) -> (f64, f64) {
        mean_over_trials(trials).unwrap().ends.unwrap()
    }

    #[test]
    fn three_trials_have_the_textbook_t_interval_on_the_logarithm() {
        let found = mean_over_trials(&bare(&[98.0, 100.0, 102.0])).unwrap();
        assert!((found.mean - (98.0f64 * 100.0 * 102.0).cbrt()).abs() < 1e-9, "{found:?}");
        let logs = [98.0f64, 100.0, 102.0].map(f64::ln);
        let factor = (4.302_653 * (super::super::moments::variance(&logs).unwrap() / 3.0).sqrt()).exp();
        let (low, high) = found.ends.unwrap();
        assert!((low * factor - found.mean).abs() < 1e-5 && (high / factor - found.mean).abs() < 1e-5);
        // Close trials: almost the plain mean and its half width.
        assert!((low - 95.03).abs() < 0.15 && (high - 104.97).abs() < 0.15, "{low} {high}");
    }

    #[test]
    fn trials_differing_by_factors_have_a_positive_interval() {
        let (low, high) = ends(&bare(&[1200.0, 2700.0, 4600.0]));
        assert!(low > 400.0 && high < 16_000.0, "{low} {high}");
    }

    #[test]
    fn chance_agreement_of_trials_does_not_narrow_the_interval() {
        let inside = Some(Within { standard_error: 5.0, degrees: 50.0 });
        let trials: Vec<TrialMean> = [100.0, 100.01, 99.99].map(|mean| TrialMean { mean, within: inside }).into();
        let (low, high) = ends(&trials);
        assert!(high - low > 2.0 * 5.0 / 3.0f64.sqrt() * 1.95, "{low} {high}");
    }

    #[test]
    fn one_or_two_trials_have_no_interval() {
        let within = Some(Within { standard_error: 1.0, degrees: 1e9 });
        let trial = TrialMean { mean: 100.0, within };
        assert_eq!(mean_over_trials(&[trial]).unwrap().ends, None);
        assert_eq!(mean_over_trials(&[trial; 2]).unwrap().ends, None);
        assert!(mean_over_trials(&[trial; 3]).unwrap().ends.is_some());
    }

    #[test]
    fn nothing_and_nonsense_have_no_mean_and_idleness_no_width() {
        assert_eq!(mean_over_trials(&[]), None);
        assert_eq!(mean_over_trials(&bare(&[f64::NAN, 1.0])), None);
        assert_eq!(mean_over_trials(&bare(&[0.0, 0.0])).unwrap().ends, Some((0.0, 0.0)));
        assert_eq!(mean_over_trials(&bare(&[0.0, 8.0])), Some(MeanInterval { mean: 4.0, ends: None }));
    }

    /// Share of simulated cases whose interval contains the true geometric mean of the trials' levels.
    fn coverage(scene: Scene, simulations: u32) -> f64 {
        let mut noise = Noise::seeded(20_240_601);
        let truth = scene.mean * (-(scene.trial_spread.powi(2) + scene.factor_spread.powi(2)) / 2.0).exp();
        let hits = (0..simulations)
            .filter(|_| {
                let (low, high) = ends(&scene.trials(&mut noise));
                (low..=high).contains(&truth)
            })
            .count();
        f64::from(u32::try_from(hits).unwrap()) / f64::from(simulations)
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        for trials in [3, 5] {
            for phi in [0.0, 0.5, 0.8] {
                for trial_spread in [0.0, 0.02, 0.10] {
                    let scene = Scene { trials, phi, trial_spread, ..Scene::default() };
                    let share = coverage(scene, 1500);
                    // Trials without a level of their own have two correct estimates of the error, and the wider one is
                    // used.
                    let most = if trial_spread == 0.0 { 0.998 } else { 0.99 };
                    assert!((0.92..=most).contains(&share), "{share} for {scene:?}");
                }
            }
        }
    }

    #[test]
    fn the_interval_covers_the_truth_of_trials_differing_by_factors() {
        for trials in [3, 5] {
            for factor_spread in [0.1, 0.3, 0.6] {
                let scene = Scene { trials, factor_spread, ..Scene::default() };
                let share = coverage(scene, 3000);
                assert!((0.92..=0.97).contains(&share), "{share} for {scene:?}");
            }
        }
    }

    #[test]
    fn an_arithmetic_interval_undercovers_trials_that_differ_by_factors() {
        let mut noise = Noise::seeded(3);
        let scene = Scene { trials: 5, factor_spread: 0.6, seconds: 8, ..Scene::default() };
        let hits = (0..3000)
            .filter(|_| {
                let means: Vec<f64> = scene.trials(&mut noise).iter().map(|trial| trial.mean).collect();
                let mean = super::super::moments::mean(&means).unwrap();
                (mean - scene.mean).abs() <= between(&means).unwrap().half_width()
            })
            .count();
        assert!(hits < 2760, "{hits} of 3000: the simulation shows nothing");
    }

    #[test]
    fn treating_seconds_as_independent_would_lie() {
        let mut noise = Noise::seeded(7);
        let scene = Scene { trials: 1, phi: 0.8, seconds: 300, ..Scene::default() };
        let hits = (0..1000)
            .filter(|_| {
                let series = scene.series(&mut noise);
                let naive = between(&series).unwrap().variance.sqrt();
                let mean = super::super::moments::mean(&series).unwrap();
                (mean - scene.mean).abs() <= 1.96 * naive
            })
            .count();
        assert!(hits < 700, "the naive interval held the truth {hits} times of 1000: the simulation shows nothing");
        assert!(within(&scene.series(&mut noise)).unwrap().degrees < 150.0);
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_mean_and_scales_with_the_unit(
            means in proptest::collection::vec(1.0f64..1e6, 3..9), factor in 0.001f64..1000.0
        ) {
            let one = mean_over_trials(&bare(&means)).unwrap();
            let scaled: Vec<f64> = means.iter().map(|mean| mean * factor).collect();
            let (low, high) = one.ends.unwrap();
            let (scaled_low, scaled_high) = ends(&bare(&scaled));
            prop_assert!(0.0 < low && low <= one.mean && one.mean <= high && high.is_finite());
            prop_assert!((low * factor / scaled_low - 1.0).abs() < 1e-6);
            prop_assert!((high * factor / scaled_high - 1.0).abs() < 1e-6);
        }

        #[test]
        fn knowing_the_seconds_never_narrows_the_interval(
            means in proptest::collection::vec(1.0f64..1e3, 3..6), error in 0.0f64..100.0
        ) {
            let (low, high) = ends(&bare(&means));
            let inside = Some(Within { standard_error: error, degrees: 20.0 });
            let trials: Vec<TrialMean> = means.iter().map(|mean| TrialMean { mean: *mean, within: inside }).collect();
            // With an error a hundred times the mean, the upper end may overflow.
            if let Some((wide_low, wide_high)) = mean_over_trials(&trials).unwrap().ends {
                prop_assert!(wide_low <= low && wide_high >= high);
            }
        }
    }
}
