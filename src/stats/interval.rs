//! The 95 % interval of a mean over trials.
//!
//! Two sources of doubt are kept apart. *Between* trials: a t interval on the trials' means (each trial is one
//! observation of a fresh stack; the textbook answer for replicated simulations, A. M. Law, "Simulation Modeling and
//! Analysis", 5th ed., section 9.5.2). *Within* a trial: the autocorrelated seconds ([`super::autocorrelation`]). The
//! wider of the two is taken: a handful of trials that agree by chance must not claim more than their seconds can carry.

use super::autocorrelation::Within;
use super::student;

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Mean of one trial and what is known of its error from the inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialMean {
    /// The mean.
    pub mean: f64,
    /// Its error as the trial's own seconds tell it.
    pub within: Option<Within>,
}

/// A figure and half the width of its interval, `None` where the data cannot carry one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The mean over the trials, each with the same weight.
    pub mean: f64,
    /// Half the width of the interval with [`CONFIDENCE`].
    pub half_width: Option<f64>,
}

/// Mean over trials with its interval; `None` of nothing or of values that are not finite.
///
/// With two or more trials: the wider of the t interval on their means (k - 1 degrees of freedom) and of the interval
/// from their seconds alone. With one: from its seconds alone, which says nothing about the next trial.
#[must_use]
pub fn mean_over_trials(trials: &[TrialMean]) -> Option<MeanInterval> {
    let means: Vec<f64> = trials.iter().map(|trial| trial.mean).collect();
    let mean = super::moments::mean(&means).filter(|mean| mean.is_finite())?;
    let variances: Vec<Option<Component>> = trials.iter().map(|trial| trial.within.map(Component::of)).collect();
    let half_width = wider(between(&means), inside(&variances)).filter(|half| half.is_finite());
    Some(MeanInterval { mean, half_width })
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

    /// Sum of independent variances with the degrees of freedom after Welch and Satterthwaite (Satterthwaite,
    /// Biometrics Bulletin 2 (1946) 110).
    pub(super) fn sum(parts: &[Component]) -> Component {
        let variance: f64 = parts.iter().map(|part| part.variance).sum();
        let spread: f64 = parts.iter().map(|part| part.variance.powi(2) / part.degrees.max(1.0)).sum();
        let degrees = if spread > 0.0 { (variance * variance / spread).max(1.0) } else { 1.0 };
        Component { variance, degrees }
    }

    pub(super) fn scaled(self, factor: f64) -> Component {
        Component { variance: self.variance * factor, ..self }
    }

    /// Half the width of the interval that it carries.
    pub(super) fn half_width(self) -> f64 {
        self.variance.sqrt() * student::two_sided_quantile(CONFIDENCE, self.degrees)
    }
}

/// Half width from the spread of observations; `None` below two.
pub(super) fn between(observations: &[f64]) -> Option<f64> {
    let k = observations.len() as f64;
    let variance = super::moments::variance(observations)?;
    Some(Component { variance: variance / k, degrees: k - 1.0 }.half_width())
}

/// Half width of a mean over trials from the errors inside them; `None` unless every trial has one.
pub(super) fn inside(variances: &[Option<Component>]) -> Option<f64> {
    let parts: Option<Vec<Component>> = variances.iter().copied().collect();
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let k = parts.len() as f64;
    Some(Component::sum(&parts).scaled(1.0 / (k * k)).half_width())
}

/// The wider of two half widths, the one that is there, or none.
pub(super) fn wider(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
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

    #[test]
    fn three_trials_have_the_textbook_t_interval() {
        let found = mean_over_trials(&bare(&[98.0, 100.0, 102.0])).unwrap();
        assert_eq!(found.mean, 100.0);
        assert!((found.half_width.unwrap() - 4.302_653 * 2.0 / 3.0f64.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn trials_that_agree_by_chance_are_no_surer_than_their_seconds() {
        let inside = Some(Within { standard_error: 5.0, degrees: 50.0 });
        let trials: Vec<TrialMean> = [100.0, 100.01, 99.99].map(|mean| TrialMean { mean, within: inside }).into();
        let half = mean_over_trials(&trials).unwrap().half_width.unwrap();
        assert!(half > 5.0 / 3.0f64.sqrt() * 1.95, "{half}");
    }

    #[test]
    fn one_trial_has_an_interval_from_its_seconds_or_none() {
        assert_eq!(mean_over_trials(&bare(&[100.0])).unwrap().half_width, None);
        let inside = Some(Within { standard_error: 1.0, degrees: 1e9 });
        let half = mean_over_trials(&[TrialMean { mean: 100.0, within: inside }]).unwrap().half_width.unwrap();
        assert!((half - 1.96).abs() < 1e-3);
    }

    #[test]
    fn nothing_and_nonsense_have_no_mean() {
        assert_eq!(mean_over_trials(&[]), None);
        assert_eq!(mean_over_trials(&bare(&[f64::NAN, 1.0])), None);
    }

    /// Share of simulated cases whose interval holds the true mean.
    fn coverage(scene: Scene, simulations: u32) -> f64 {
        let mut noise = Noise::seeded(20_240_601);
        let hits = (0..simulations)
            .filter(|_| {
                let found = mean_over_trials(&scene.trials(&mut noise)).unwrap();
                (found.mean - scene.mean).abs() <= found.half_width.unwrap()
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
                    // Trials without a level of their own have two ways to the truth and take the wider one.
                    let most = if trial_spread == 0.0 { 0.998 } else { 0.99 };
                    assert!((0.92..=most).contains(&share), "{share} for {scene:?}");
                }
            }
        }
    }

    #[test]
    fn the_seconds_of_one_trial_carry_an_honest_interval_of_that_trial() {
        for phi in [0.0, 0.5, 0.8] {
            let scene = Scene { trials: 1, phi, seconds: 300, ..Scene::default() };
            let share = coverage(scene, 1500);
            assert!((0.92..=0.99).contains(&share), "{share} for {scene:?}");
        }
    }

    #[test]
    fn treating_seconds_as_independent_would_lie() {
        let mut noise = Noise::seeded(7);
        let scene = Scene { trials: 1, phi: 0.8, seconds: 300, ..Scene::default() };
        let hits = (0..1000)
            .filter(|_| {
                let series = scene.series(&mut noise);
                let naive = super::super::autocorrelation::within_independent(&series).unwrap();
                let mean = super::super::moments::mean(&series).unwrap();
                (mean - scene.mean).abs() <= 1.96 * naive.standard_error
            })
            .count();
        assert!(hits < 700, "the naive interval held the truth {hits} times of 1000: the simulation shows nothing");
        assert!(within(&scene.series(&mut noise)).unwrap().degrees < 150.0);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_mean_and_scales_with_the_unit(
            means in proptest::collection::vec(1.0f64..1e6, 2..9), factor in 0.001f64..1000.0
        ) {
            let one = mean_over_trials(&bare(&means)).unwrap();
            let scaled: Vec<f64> = means.iter().map(|mean| mean * factor).collect();
            let other = mean_over_trials(&bare(&scaled)).unwrap();
            let (half, scaled_half) = (one.half_width.unwrap(), other.half_width.unwrap());
            prop_assert!(half >= 0.0 && half.is_finite());
            prop_assert!((half * factor - scaled_half).abs() <= 1e-6 * scaled_half + 1e-9 * other.mean);
            prop_assert!((one.mean * factor / other.mean - 1.0).abs() < 1e-9);
        }

        #[test]
        fn knowing_the_seconds_never_narrows_the_interval(
            means in proptest::collection::vec(1.0f64..1e3, 2..6), error in 0.0f64..100.0
        ) {
            let without = mean_over_trials(&bare(&means)).unwrap().half_width.unwrap();
            let inside = Some(Within { standard_error: error, degrees: 20.0 });
            let trials: Vec<TrialMean> = means.iter().map(|mean| TrialMean { mean: *mean, within: inside }).collect();
            prop_assert!(mean_over_trials(&trials).unwrap().half_width.unwrap() >= without);
        }
    }
}
