//! The geometric mean of positive figures with its 95 % interval: for figures that spread by factors, such as a trial's
//! 99th percentile, where the plain mean would be the worst trial's.
//!
//! Uses the t interval on the logarithms, to agree with [`super::ratio`], which compares logarithms too. Unlike
//! [`super::interval`] it ignores the seconds inside a trial (`docs/adr/0003-intervals.md`).

use super::interval::{MeanInterval, TrialMean, mean_over_trials};

/// `None` if there are no values or one is not finite. With a zero, which has no logarithm: the plain mean without an
/// interval. Below three values: no interval.
pub fn over_trials(values: &[f64]) -> Option<MeanInterval> {
    let trials: Vec<TrialMean> = values.iter().map(|mean| TrialMean { mean: *mean, within: None }).collect();
    let found = mean_over_trials(&trials)?;
    Some(MeanInterval { ends: found.ends.filter(|_| values.iter().all(|value| *value > 0.0)), ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::Noise;

    #[test]
    fn the_interval_is_the_textbook_one_on_the_logarithms() {
        let found = over_trials(&[1.0, 10.0, 100.0]).unwrap();
        assert!((found.mean - 10.0).abs() < 1e-9);
        let (low, high) = found.ends.unwrap();
        let half = 4.302_653 * 10f64.ln() / 3f64.sqrt();
        assert!((low.ln() - (10f64.ln() - half)).abs() < 1e-5 && (high.ln() - (10f64.ln() + half)).abs() < 1e-5);
    }

    #[test]
    fn one_value_or_a_zero_carries_no_interval() {
        assert_eq!(over_trials(&[]), None);
        assert_eq!(over_trials(&[7.0]).unwrap().ends, None);
        assert_eq!(over_trials(&[0.0, 4.0]), Some(MeanInterval { mean: 2.0, ends: None }));
        assert_eq!(over_trials(&[f64::NAN]), None);
        assert_eq!(over_trials(&[7.0; 5]), Some(MeanInterval { mean: 7.0, ends: Some((7.0, 7.0)) }));
    }

    #[test]
    fn the_geometric_interval_has_its_nominal_coverage() {
        let mut noise = Noise::seeded(20_261_122);
        for trials in [3, 5] {
            let hits = (0..2000)
                .filter(|_| {
                    let values: Vec<f64> = (0..trials).map(|_| 5.0 * (0.6 * noise.normal()).exp()).collect();
                    let (low, high) = over_trials(&values).unwrap().ends.unwrap();
                    (low..=high).contains(&5.0)
                })
                .count();
            assert!((1860..=1940).contains(&hits), "{hits} of 2000 with {trials} trials");
        }
    }
}
