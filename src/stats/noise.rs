//! Test for equal noise of cases that ran in the same blocks: Hartley's ratio, the largest variance over the smallest
//! (H. O. Hartley, Biometrika 37 (1950) 308).
//!
//! The residuals of a block design do not measure one case's noise: a noisy case moves the mean of each block, and with
//! it the residuals of all others; of k cases none could exceed the others by more than (k - 1)^2. The noise of a case
//! is therefore the median, over the other cases, of the variance of its logarithmic ratio to them. No table has
//! critical values for that ratio: they come from simulated designs of the same shape, with a seed.

use super::moments;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;

/// Probability of calling equal noises different.
const LEVEL: f64 = 0.01;
/// Maximum simulated designs: with this many, the true level of the test lies between 0.8 and 1.2 %.
const DESIGNS_MAX: usize = 10_000;
/// Fewest designs for a critical value.
const DESIGNS_MIN: usize = 1000;
/// Total simulated differences, so that a design of two hundred cases takes a second.
const DIFFERENCES_MAX: usize = 40_000_000;
/// Variances of logarithms below this are rounding errors.
const ROUNDING: f64 = 1e-24;

/// Noise of each case in a complete design (one row per case, one logarithm per block): the lower median of the
/// variances of its differences to the other cases.
pub(super) fn noises(logs: &[Vec<f64>]) -> Vec<f64> {
    let k = logs.len();
    let centred: Vec<Vec<f64>> = logs.iter().map(|row| centred(row)).collect();
    let mut variances = vec![Vec::with_capacity(k); k];
    for one in 0..k {
        for other in one + 1..k {
            let pairs = centred[one].iter().zip(&centred[other]);
            let variance =
                pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / logs[one].len().saturating_sub(1).max(1) as f64;
            variances[one].push(variance);
            variances[other].push(variance);
        }
    }
    let medians = variances.into_iter().map(|mut of_case| {
        let middle = of_case.len().saturating_sub(1) / 2;
        if of_case.is_empty() { 0.0 } else { *of_case.select_nth_unstable_by(middle, f64::total_cmp).1 }
    });
    medians.collect()
}

/// A row less its mean.
fn centred(row: &[f64]) -> Vec<f64> {
    let mean = moments::mean(row).unwrap_or(0.0);
    row.iter().map(|log| log - mean).collect()
}

/// Largest over smallest noise; 1 if nothing varies.
pub(super) fn largest_over_smallest(noises: &[f64]) -> f64 {
    let (least, most) = noises.iter().fold((f64::INFINITY, 0.0f64), |(least, most), x| (least.min(*x), most.max(*x)));
    if most < ROUNDING { 1.0 } else { most / least.max(ROUNDING) }
}

/// Value that [`largest_over_smallest`] exceeds in [`LEVEL`] of all designs of `cases` in `blocks` with equal noise.
pub(super) fn critical_value(cases: usize, blocks: usize, seed: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let differences = (cases * cases * blocks / 2).max(1);
    let designs = (DIFFERENCES_MAX / differences).clamp(DESIGNS_MIN, DESIGNS_MAX);
    let mut ratios: Vec<f64> =
        (0..designs).map(|_| largest_over_smallest(&noises(&design(cases, blocks, &mut rng)))).collect();
    ratios.sort_by(f64::total_cmp);
    let place = ((1.0 - LEVEL) * designs as f64).ceil() as usize;
    ratios[place.min(designs - 1)]
}

fn design(cases: usize, blocks: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    (0..cases).map(|_| (0..blocks).map(|_| normal(rng)).collect()).collect()
}

/// A standard normal value (Box and Muller, Ann. Math. Statist. 29 (1958) 610).
pub(super) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let [radius, angle] = [(); 2].map(|()| (rng.random::<u64>() >> 11) as f64 / (1u64 << 53) as f64);
    let radius = 1.0 - radius;
    (-2.0 * radius.ln()).sqrt() * (2.0 * PI * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_median_variance_of_ratios_to_other_cases() {
        let logs = [vec![0.0, 1.0, 2.0], vec![5.0, 6.0, 7.0], vec![0.0, 0.0, 0.0], vec![9.0, 0.0, 9.0]];
        // Variances: 0-1: 0, 0-2: 1, 0-3: 28; 1-2: 1, 1-3: 28; 2-3: 27.
        let found = noises(&logs);
        let wanted = [1.0, 1.0, 1.0, 28.0];
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        assert!((largest_over_smallest(&found) - 28.0).abs() < 1e-6);
    }

    #[test]
    fn two_cases_are_equally_noisy_by_construction_and_copies_too() {
        assert_eq!(largest_over_smallest(&noises(&[vec![1.0, 5.0, 2.0], vec![9.0, 9.1, 9.2]])), 1.0);
        assert_eq!(largest_over_smallest(&noises(&vec![vec![1.0, 5.0, 2.0]; 3])), 1.0);
    }

    /// Number of 100 designs of this shape whose noises are called different; `deviation` gives that of each case.
    fn called_different(cases: usize, blocks: usize, deviation: impl Fn(usize) -> f64) -> f64 {
        let critical = critical_value(cases, blocks, 1);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let found = (0..3000).filter(|_| {
            let mut logs = design(cases, blocks, &mut rng);
            for (case, row) in logs.iter_mut().enumerate() {
                row.iter_mut().for_each(|log| *log *= deviation(case));
            }
            largest_over_smallest(&noises(&logs)) > critical
        });
        found.count() as f64 / 30.0
    }

    #[test]
    fn equal_noise_is_called_different_at_the_nominal_rate() {
        for (cases, blocks) in [(3, 5), (4, 3), (8, 5)] {
            let found = called_different(cases, blocks, |_| 1.0);
            assert!((0.4..=1.7).contains(&found), "{found} % of {cases} cases in {blocks} blocks");
        }
    }

    #[test]
    fn tenfold_noise_of_one_case_is_detected_in_five_blocks() {
        for (cases, blocks, least) in [(3, 5, 70.0), (4, 5, 90.0), (4, 3, 55.0), (8, 3, 75.0)] {
            let found = called_different(cases, blocks, |case| if case == 0 { 10.0 } else { 1.0 });
            assert!(found >= least, "{found} % of {cases} cases in {blocks} blocks");
        }
    }
}
