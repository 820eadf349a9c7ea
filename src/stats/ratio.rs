//! The ratio of two cases' rates with its 95 % interval.
//!
//! Computed on the logarithms of the trials' rates, so that the ratios a to b and b to a agree and no end of an
//! interval is negative. Trials of one block ran close together in time: if both cases have two or more blocks in
//! common, the ratio is taken block by block and drift of the machine cancels (randomised block design: Box, Hunter and
//! Hunter, "Statistics for Experimenters", 2nd ed., chapter 4). As for means, the interval is never narrower than the
//! seconds inside the trials allow.

use super::interval::{CONFIDENCE, Component, TrialMean, between, inside};
use super::margin::Margin;
use super::{moments, student};

/// Mean of one trial, with its block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockMean {
    pub block: u32,
    pub trial: TrialMean,
}

impl BlockMean {
    /// A mean whose error is unknown.
    pub fn of(block: u32, mean: f64) -> BlockMean {
        BlockMean { block, trial: TrialMean { mean, within: None } }
    }
}

/// Method by which a ratio was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RatioMethod {
    /// Mean of the log ratios inside common blocks.
    Paired {
        /// Number of common blocks.
        blocks: usize,
    },
    /// All trials of both, two or more each (Welch, Biometrika 34 (1947) 28).
    Unpaired {
        /// Number of trials of the case and of the other.
        trials: (usize, usize),
    },
    /// One of the two has a single trial, or a rate of zero: no interval.
    NoInterval,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Rate of the case over rate of the other: geometric mean over blocks or trials.
    pub value: f64,
    /// `None` below three independent values.
    pub interval: Option<(f64, f64)>,
    /// The margin that gives the interval.
    pub margin: Option<Margin>,
    /// Smallest and largest of the blocks' ratios, if there are two blocks: too few for an interval.
    pub range: Option<(f64, f64)>,
    pub method: RatioMethod,
}

impl Ratio {
    /// True if the data show a difference: there is an interval, and it does not contain 1.
    pub fn tells_apart(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// Rate of `case` over rate of `other`; `None` if either has no trial or `other` did nothing.
pub fn ratio(case: &[BlockMean], other: &[BlockMean]) -> Option<Ratio> {
    let [level, of_other] =
        [case, other].map(|trials| moments::mean(&trials.iter().map(|t| t.trial.mean).collect::<Vec<_>>()));
    let plain = level? / of_other?;
    if !plain.is_finite() {
        return None;
    }
    let Some(found) = Contrast::of(case, other) else {
        let method = RatioMethod::NoInterval;
        return Some(Ratio { value: plain, interval: None, margin: None, range: None, method });
    };
    let (value, margin) = (found.log.exp(), found.margin(CONFIDENCE));
    let interval = margin.and_then(|margin| margin.around(value));
    Some(Ratio { value, interval, margin, range: found.range, method: found.method })
}

/// Logarithm of a ratio with its errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contrast {
    /// Logarithm of case over other.
    pub log: f64,
    /// Variance from the spread between trials or blocks.
    between: Component,
    /// Variance from the seconds inside the trials.
    inside: Option<Component>,
    range: Option<(f64, f64)>,
    method: RatioMethod,
}

impl Contrast {
    /// Of two cases; `None` where a trial had no operations or a case has fewer than two.
    pub(super) fn of(case: &[BlockMean], other: &[BlockMean]) -> Option<Contrast> {
        let nothing_done = case.iter().chain(other).any(|t| t.trial.mean <= 0.0);
        if nothing_done || case.len() < 2 || other.len() < 2 {
            return None;
        }
        let pairs = case.iter().filter_map(|a| Some((a.trial, other.iter().find(|b| b.block == a.block)?.trial)));
        let pairs: Vec<(TrialMean, TrialMean)> = pairs.collect();
        if pairs.len() >= 2 { paired(&pairs) } else { unpaired(case, other) }
    }

    /// Half width of its interval; `None` below three independent values.
    pub(super) fn margin(&self, confidence: f64) -> Option<Margin> {
        self.between.carries_an_interval().then(|| {
            let spanned = |error: Component| (error, student::two_sided_quantile(confidence, error.degrees));
            Margin::larger(spanned(self.between), self.inside.map(spanned))
        })
    }

    /// Probability of a ratio at least as far from 1 if there is no difference, by the error that leaves more doubt.
    /// The interval with confidence c excludes 1 exactly if this is below 1 - c.
    pub(super) fn p_value(&self) -> f64 {
        if !self.between.carries_an_interval() {
            return 1.0;
        }
        let of = |part: Component| student::p_value(self.log, part.variance, part.degrees);
        of(self.between).max(self.inside.map_or(0.0, of))
    }
}

/// From pairs of trials of the same block.
fn paired(pairs: &[(TrialMean, TrialMean)]) -> Option<Contrast> {
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a.mean / b.mean).ln()).collect();
    let errors: Vec<Option<Component>> =
        pairs.iter().map(|(a, b)| Some(Component::sum(&[a.log_error()?, b.log_error()?]))).collect();
    let log = logs.iter().sum::<f64>() / logs.len() as f64;
    let method = RatioMethod::Paired { blocks: pairs.len() };
    let range = match *logs.as_slice() {
        [one, other] => Some((one.min(other).exp(), one.max(other).exp())),
        _ => None,
    };
    Some(Contrast { log, between: between(&logs)?, inside: inside(&errors), range, method })
}

/// From two sets of two or more trials.
fn unpaired(case: &[BlockMean], other: &[BlockMean]) -> Option<Contrast> {
    let [a, b] = [case, other].map(|trials| trials.iter().map(|t| t.trial.mean.ln()).collect::<Vec<_>>());
    let method = RatioMethod::Unpaired { trials: (a.len(), b.len()) };
    let log = moments::mean(&a)? - moments::mean(&b)?;
    let spread = Component::sum(&[between(&a)?, between(&b)?]);
    let [own, others] =
        [case, other].map(|trials| inside(&trials.iter().map(|t| t.trial.log_error()).collect::<Vec<_>>()));
    let inside = own.zip(others).map(|(a, b)| Component::sum(&[a, b]));
    Some(Contrast { log, between: spread, inside, range: None, method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::{Noise, Scene};
    use proptest::prelude::{prop_assert, proptest};

    fn blocks(means: &[f64]) -> Vec<BlockMean> {
        (1u32..)
            .zip(means)
            .map(|(block, mean)| BlockMean { block, trial: TrialMean { mean: *mean, within: None } })
            .collect()
    }

    fn numbered(trials: Vec<TrialMean>) -> Vec<BlockMean> {
        (1u32..).zip(trials).map(|(block, trial)| BlockMean { block, trial }).collect()
    }

    #[test]
    fn drift_that_both_cases_share_cancels_inside_the_blocks() {
        let found = ratio(&blocks(&[110.0, 220.5, 329.0]), &blocks(&[100.0, 200.0, 300.0])).unwrap();
        assert_eq!(found.method, RatioMethod::Paired { blocks: 3 });
        assert!(found.tells_apart() && (found.value - 1.10).abs() < 0.01, "{found:?}");
        let (low, high) = found.interval.unwrap();
        assert!(low > 1.08 && high < 1.12);
    }

    #[test]
    fn trials_of_different_blocks_are_compared_unpaired() {
        let case = blocks(&[100.0, 102.0, 101.0]);
        let other: Vec<BlockMean> =
            blocks(&[50.0, 51.0, 50.0]).iter().map(|b| BlockMean { block: b.block + 7, ..*b }).collect();
        let found = ratio(&case, &other).unwrap();
        assert_eq!(found.method, RatioMethod::Unpaired { trials: (3, 3) });
        assert!(found.tells_apart());
    }

    #[test]
    fn a_single_trial_has_no_interval_beside_any_other() {
        let found = ratio(&blocks(&[150.0]), &blocks(&[99.0, 100.0, 101.0])).unwrap();
        assert_eq!((found.value, found.interval, found.method), (1.5, None, RatioMethod::NoInterval));
    }

    #[test]
    fn two_blocks_give_a_ratio_with_range_but_no_interval() {
        let found = ratio(&blocks(&[300.0, 240.0]), &blocks(&[100.0, 120.0])).unwrap();
        let (least, most) = found.range.unwrap();
        assert!((least - 2.0).abs() < 1e-9 && (most - 3.0).abs() < 1e-9, "{found:?}");
        assert_eq!((found.interval, found.tells_apart()), (None, false));
    }

    #[test]
    fn two_single_trials_give_a_ratio_but_no_winner() {
        let found = ratio(&blocks(&[300.0]), &blocks(&[100.0])).unwrap();
        assert_eq!((found.value, found.interval, found.tells_apart()), (3.0, None, false));
    }

    #[test]
    fn a_case_without_operations_cannot_be_compared() {
        let found = ratio(&blocks(&[0.0, 0.0]), &blocks(&[100.0, 100.0])).unwrap();
        assert_eq!((found.value, found.interval), (0.0, None));
        assert_eq!(ratio(&blocks(&[100.0]), &blocks(&[0.0])), None);
        assert_eq!(ratio(&[], &blocks(&[1.0])), None);
    }

    #[test]
    fn identical_cases_show_no_difference_at_the_nominal_coverage() {
        let mut noise = Noise::seeded(99);
        for trials in [2, 3, 5] {
            for phi in [0.0, 0.7] {
                for trial_spread in [0.0, 0.05] {
                    let scene = Scene { trials, phi, trial_spread, ..Scene::default() };
                    let simulations = 1200;
                    let quiet = (0..simulations)
                        .filter(|_| {
                            let (a, b) = (scene.trials(&mut noise), scene.trials(&mut noise));
                            !ratio(&numbered(a), &numbered(b)).unwrap().tells_apart()
                        })
                        .count();
                    assert!(quiet * 100 >= simulations * 93, "{quiet} of {simulations} for {scene:?}");
                }
            }
        }
    }

    #[test]
    fn a_true_difference_of_thirty_percent_is_seen() {
        let mut noise = Noise::seeded(5);
        for (trials, wanted) in [(3, 90), (5, 99)] {
            let scene = Scene { trials, trial_spread: 0.02, ..Scene::default() };
            let faster = Scene { mean: scene.mean * 1.3, ..scene };
            let seen = (0..500)
                .filter(|_| {
                    let (a, b) = (faster.trials(&mut noise), scene.trials(&mut noise));
                    ratio(&numbered(a), &numbered(b)).unwrap().interval.unwrap().0 > 1.0
                })
                .count();
            assert!(seen * 100 >= 500 * wanted, "{seen} of 500 with {trials} trials");
        }
    }

    #[test]
    fn the_interval_of_the_ratio_holds_the_true_ratio() {
        let mut noise = Noise::seeded(11);
        for trials in [3, 5] {
            let scene = Scene { trials, trial_spread: 0.03, phi: 0.6, ..Scene::default() };
            let faster = Scene { mean: scene.mean * 1.2, ..scene };
            let hits = (0..1500)
                .filter(|_| {
                    let (a, b) = (faster.trials(&mut noise), scene.trials(&mut noise));
                    let (low, high) = ratio(&numbered(a), &numbered(b)).unwrap().interval.unwrap();
                    low <= 1.2 && 1.2 <= high
                })
                .count();
            assert!((1380..=1485).contains(&hits), "{hits} of 1500 with {trials} trials");
        }
    }

    proptest! {
        #[test]
        fn the_ratio_turned_round_is_the_inverse(
            a in proptest::collection::vec(1.0f64..1e5, 1..6), b in proptest::collection::vec(1.0f64..1e5, 1..6)
        ) {
            let (one, other) = (ratio(&blocks(&a), &blocks(&b)).unwrap(), ratio(&blocks(&b), &blocks(&a)).unwrap());
            if let (Some((low, high)), Some((other_low, other_high))) = (one.interval, other.interval) {
                prop_assert!((one.value * other.value - 1.0).abs() < 1e-9);
                prop_assert!(low <= one.value && one.value <= high);
                prop_assert!((low * other_high - 1.0).abs() < 1e-6 || other_high > 1e100);
                prop_assert!((high * other_low - 1.0).abs() < 1e-6 || high > 1e100);
            }
        }

        #[test]
        fn the_unit_of_the_rates_does_not_matter(
            a in proptest::collection::vec(1.0f64..1e3, 3), b in proptest::collection::vec(1.0f64..1e3, 3), factor in 0.01f64..100.0
        ) {
            let scale = |v: &[f64]| blocks(&v.iter().map(|x| x * factor).collect::<Vec<_>>());
            let (one, other) = (ratio(&blocks(&a), &blocks(&b)).unwrap(), ratio(&scale(&a), &scale(&b)).unwrap());
            prop_assert!((one.value / other.value - 1.0).abs() < 1e-9);
        }
    }
}
