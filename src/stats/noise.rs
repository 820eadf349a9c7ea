//! Test for equal noise of cases that ran in the same blocks: Hartley's ratio, the largest variance over the smallest
//! (H. O. Hartley, Biometrika 37 (1950) 308).
//!
//! The residuals of a block design do not measure one case's noise: a noisy case moves the mean of each block, and with
//! it the residuals of all others; of k cases none could exceed the others by more than (k - 1)^2. The noise of a case
//! is therefore the median, over the other cases, of the variance of its logarithmic ratio to them.
//!
//! Less than that test can see still matters: with one case twice as noisy as fifteen others, an error common to all
//! pairs lets 8 % of rankings of equal cases show a difference. So the error of a pair leans to the variance of its own
//! ratios ([`of_pairs`]), as in the moderated t of G. K. Smyth (Stat. Appl. Genet. Mol. Biol. 3 (2004) 3), with fixed
//! weights. No table has critical values for either statistic: they come from simulated designs of the same shape, with
//! a seed.

use super::interval::CONFIDENCE;
use super::moments;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;

/// Probability of calling equal noises different.
const LEVEL: f64 = 0.01;
/// Part of the error of 5 % reserved for designs in which Hartley's test sees a difference of noises that is not there, so
/// that pairs are decided by their own noise. Two cases have no such test.
pub(super) const RESERVED: f64 = 0.005;
/// Weight with which the mean variance over all pairs enters the error of one, beside the `blocks - 3` of its own
/// ratios, of which three blocks say nothing. Less costs power, more lets unequal noise through.
const COMMON: f64 = 6.0;
/// Maximum simulated designs: with this many, the true level of Hartley's test lies between 0.8 and 1.2 %.
const DESIGNS_MAX: usize = 10_000;
/// The same for the errors that a pair must span: within 0.2 points of it. Large designs get fewer.
const DESIGNS_OF_ERRORS_MAX: usize = 40_000;
/// Fewest designs for a critical value.
const DESIGNS_MIN: usize = 1000;
/// Total simulated differences, so that a design of two hundred cases takes a second.
const DIFFERENCES_MAX: usize = 40_000_000;
/// Variances of logarithms below this are rounding errors.
const ROUNDING: f64 = 1e-24;

/// Noise of each case in a complete design (one row per case, one logarithm per block): the lower median of the
/// variances of its differences to the other cases.
pub(super) fn noises(logs: &[Vec<f64>]) -> Vec<f64> {
    let medians = variances(logs).into_iter().enumerate().map(|(case, mut of_case)| {
        of_case.swap_remove(case);
        let middle = of_case.len().saturating_sub(1) / 2;
        if of_case.is_empty() { 0.0 } else { *of_case.select_nth_unstable_by(middle, f64::total_cmp).1 }
    });
    medians.collect()
}

/// Variance of the logarithmic ratio of each pair over the blocks, moderated: its own, and with [`COMMON`] the mean over
/// all pairs, which is twice the residual variance of the design.
pub(super) fn of_pairs(logs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut found = variances(logs);
    let pairs = (logs.len() * logs.len().saturating_sub(1)).max(1);
    let mean = found.iter().flatten().sum::<f64>() / pairs as f64;
    let weight = logs.first().map_or(0, Vec::len).saturating_sub(3) as f64;
    let moderated = |own: f64| (COMMON * mean + weight * own) / (COMMON + weight);
    found.iter_mut().flatten().for_each(|own| *own = moderated(*own));
    found
}

/// Variance of the logarithmic ratio of each pair over the blocks, a row per case; 0 of a case to itself.
fn variances(logs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let k = logs.len();
    let centred: Vec<Vec<f64>> = logs.iter().map(|row| centred(row)).collect();
    let mut variances = vec![vec![0.0; k]; k];
    for one in 0..k {
        for other in one + 1..k {
            let pairs = centred[one].iter().zip(&centred[other]);
            let variance =
                pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / logs[one].len().saturating_sub(1).max(1) as f64;
            variances[one][other] = variance;
            variances[other][one] = variance;
        }
    }
    variances
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
    exceeded([cases, blocks, DESIGNS_MAX], seed, LEVEL, |logs| largest_over_smallest(&noises(logs)))
}

/// Standard errors ([`of_pairs`]) that the largest difference between means of equal cases exceeds in 5 % of all designs, less
/// [`RESERVED`].
pub(super) fn critical_errors(cases: usize, blocks: usize, seed: u64) -> f64 {
    exceeded([cases, blocks, DESIGNS_OF_ERRORS_MAX], seed, 1.0 - CONFIDENCE - RESERVED, |logs| {
        let means: Vec<f64> = logs.iter().filter_map(|row| moments::mean(row)).collect();
        let variances = of_pairs(logs);
        let pairs = (0..cases).flat_map(|one| (0..one).map(move |other| (one, other)));
        let squares = pairs.map(|(one, other)| (means[one] - means[other]).powi(2) / variances[one][other]);
        (squares.fold(0.0, f64::max) * blocks as f64).sqrt()
    })
}

/// Value that a statistic exceeds in a share `level` of simulated designs of equal noise: cases, blocks, most designs.
fn exceeded(of: [usize; 3], seed: u64, level: f64, statistic: impl Fn(&[Vec<f64>]) -> f64) -> f64 {
    let [cases, blocks, most] = of;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let differences = (cases * cases * blocks / 2).max(1);
    let designs = (DIFFERENCES_MAX / differences).clamp(DESIGNS_MIN, most);
    let mut found: Vec<f64> = (0..designs).map(|_| statistic(&design(cases, blocks, &mut rng))).collect();
    found.sort_by(f64::total_cmp);
    let place = ((1.0 - level) * designs as f64).ceil() as usize;
    found[place.min(designs - 1)]
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
