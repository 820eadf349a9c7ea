//! The rate of work that ran in short slices, with its 95 % interval.
//!
//! A slice runs until the operation in flight at its end is done, so slices differ in length, and a long one is long
//! *because* an operation was slow. The mean of the slices' rates would be too high. The ratio estimator, all
//! operations over all time, is not (W. G. Cochran, "Sampling Techniques", 3rd ed., 1977, section 2.11 and chapter 6):
//! by Wald's identity it tends to one over the mean latency. Its standard error comes from the residuals `operations -
//! rate * seconds`, corrected for their autocorrelation from eight slices on ([`super::autocorrelation`]). The half
//! width is applied to the logarithm (`docs/adr/0003-intervals.md`). Limit of the method: slices that missed a rare
//! stall by chance do not reflect it; a test below shows the effect on coverage.

use super::autocorrelation::{FEWEST_VALUES, Within, integrated_time};
use super::interval::CONFIDENCE;
use super::student;

/// More slices than this are first summed in neighbouring groups: the estimate stays the same, the cost is bounded.
const MOST_SLICES: usize = 1024;

/// A rate and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Total operations over total seconds.
    pub per_s: f64,
    /// Lower and upper end of the interval with [`CONFIDENCE`]; `None` below two slices, or if nothing was done.
    pub ends: Option<(f64, f64)>,
}

impl Rate {
    /// Half width of the interval over the rate; `None` without an interval.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.ends.map(|(low, high)| (high - low) / 2.0 / self.per_s)
    }
}

/// Rate over slices (operations, seconds) in the order in which they ran; `None` if they took no time. A slice without
/// operations counts, because its time passed.
pub fn rate(slices: &[(u64, f64)]) -> Option<Rate> {
    let (per_s, error) = estimated(slices)?;
    let half = error.map(|error| error.standard_error * student::two_sided_quantile(CONFIDENCE, error.degrees));
    Some(Rate { per_s, ends: half.and_then(|half| around(per_s, half)) })
}

/// Error of the rate of slices (operations, seconds); `None` below two slices or if they took no time.
pub fn within(slices: &[(u64, f64)]) -> Option<Within> {
    estimated(slices)?.1
}

/// The rate and its error.
fn estimated(slices: &[(u64, f64)]) -> Option<(f64, Option<Within>)> {
    let groups = grouped(slices);
    let (operations, seconds) = groups.iter().fold((0.0, 0.0), |sums, group| (sums.0 + group.0, sums.1 + group.1));
    let per_s = operations / seconds;
    (seconds > 0.0 && seconds.is_finite()).then(|| (per_s, error(&groups, per_s, seconds)))
}

/// True if two intervals overlap.
pub fn overlap(one: (f64, f64), other: (f64, f64)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}

/// Error of the plain rate, corrected for the slices' autocorrelation; `None` below two slices.
fn error(groups: &[(f64, f64)], per_s: f64, seconds: f64) -> Option<Within> {
    if groups.len() < 2 {
        return None;
    }
    let n = groups.len() as f64;
    let residuals: Vec<f64> = groups.iter().map(|(operations, seconds)| operations - per_s * seconds).collect();
    let time = if groups.len() < FEWEST_VALUES { 1.0 } else { integrated_time(&residuals) };
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    // As in `autocorrelation::within`: the fitted rate takes tau / n of the variance.
    let standard_error = (squares * n * time / (n - time).max(1.0)).sqrt() / seconds;
    Some(Within { standard_error, degrees: (n / time - 1.0).max(1.0) })
}

/// Ends of the interval: `per_s` divided and multiplied by exp(`half` / `per_s`); `None` on overflow.
fn around(per_s: f64, half: f64) -> Option<(f64, f64)> {
    let factor = (half / per_s).exp();
    let (low, high) = (per_s / factor, per_s * factor);
    (per_s > 0.0 && low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The slices as floats, neighbours summed if there are many; the remainder joins the last group.
fn grouped(slices: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let length = slices.len().div_ceil(MOST_SLICES).max(1);
    let groups = slices.chunks(length);
    groups.map(|group| group.iter().fold((0.0, 0.0), |sum, slice| (sum.0 + slice.0 as f64, sum.1 + slice.1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::Noise;
    use proptest::prelude::{prop_assert, proptest};

    /// Simulates a slice of consecutive operations, until `length` seconds have passed.
    fn slice(length: f64, mut latency: impl FnMut() -> f64) -> (u64, f64) {
        let (mut operations, mut seconds) = (0, 0.0);
        while seconds < length {
            seconds += latency();
            operations += 1;
        }
        (operations, seconds)
    }

    /// A value uniform between 0 and 1.
    fn uniform(noise: &mut Noise) -> f64 {
        // The angle of two independent normal values is uniform.
        noise.normal().atan2(noise.normal()) / (2.0 * std::f64::consts::PI) + 0.5
    }

    /// Share of simulations whose interval contains the true rate.
    fn coverage(truth: f64, simulations: u32, mut slices: impl FnMut(&mut Noise) -> Vec<(u64, f64)>) -> f64 {
        let mut noise = Noise::seeded(20_261_121);
        let mut hits = 0u32;
        for _ in 0..simulations {
            let (low, high) = rate(&slices(&mut noise)).unwrap().ends.unwrap();
            hits += u32::from((low..=high).contains(&truth));
        }
        f64::from(hits) / f64::from(simulations)
    }

    #[test]
    fn the_rate_is_all_operations_over_all_time() {
        let found = rate(&[(10, 1.0), (10, 3.0)]).unwrap();
        assert_eq!(found.per_s, 5.0);
        // Residuals 5 and -5, standard error sqrt(50 * 2) / 4 = 2.5, t with one degree of freedom 12.706.
        let factor = (2.5 * 12.706_205 / 5.0f64).exp();
        let (low, high) = found.ends.unwrap();
        assert!((low * factor - 5.0).abs() < 1e-4 && (high / factor - 5.0).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn the_mean_of_the_slices_rates_would_be_too_high() {
        let mut noise = Noise::seeded(1);
        let mut latency = || if uniform(&mut noise) < 0.01 { 0.05 } else { 0.001 };
        let slices: Vec<(u64, f64)> = (0..4000).map(|_| slice(0.02, &mut latency)).collect();
        let truth = 1.0 / (0.01 * 0.05 + 0.99 * 0.001);
        let found = rate(&slices).unwrap();
        let naive = slices.iter().map(|(n, s)| *n as f64 / s).sum::<f64>() / slices.len() as f64;
        assert!((found.per_s / truth - 1.0).abs() < 0.03, "{found:?} against {truth}");
        assert!(naive > 1.15 * truth, "{naive} against {truth}");
    }

    #[test]
    fn a_single_slice_has_no_interval() {
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[(5, 0.0)]), None);
        assert_eq!(rate(&[(5, 1.0)]), Some(Rate { per_s: 5.0, ends: None }));
        assert_eq!(rate(&[(0, 1.0), (0, 1.0)]), Some(Rate { per_s: 0.0, ends: None }));
        assert_eq!(rate(&[(5, 1.0)]).unwrap().relative_half_width(), None);
    }

    #[test]
    fn intervals_that_touch_overlap() {
        assert!(overlap((1.0, 2.0), (2.0, 3.0)) && overlap((1.0, 4.0), (2.0, 3.0)));
        assert!(!overlap((1.0, 2.0), (2.1, 3.0)) && !overlap((2.1, 3.0), (1.0, 2.0)));
    }

    #[test]
    fn independent_operations_have_the_coverage_that_the_interval_claims() {
        for n in [3, 5, 8, 20, 40] {
            let share = coverage(1000.0, 1000, |noise| {
                // Exponential latencies with mean 1 ms.
                (0..n).map(|_| slice(0.02, || -0.001 * (1.0 - uniform(noise)).max(1e-300).ln())).collect()
            });
            assert!((0.915..=0.985).contains(&share), "{share} with {n} slices");
        }
    }

    #[test]
    fn correlated_slices_keep_ninety_percent_coverage() {
        // The level of the latency drifts from slice to slice, correlation 0.6, by 20 %.
        let make = |noise: &mut Noise, n: usize| -> Vec<(u64, f64)> {
            let mut level = 0.2 * noise.normal();
            (0..n)
                .map(|_| {
                    level = 0.6 * level + 0.2 * (1.0 - 0.36f64).sqrt() * noise.normal();
                    ((20_000.0 * level.exp()) as u64, 20.0)
                })
                .collect()
        };
        let truth = 1000.0 * (0.02f64).exp();
        let share = coverage(truth, 1000, |noise| make(noise, 60));
        assert!((0.90..=0.98).contains(&share), "{share}");
        let few = coverage(truth, 1000, |noise| make(noise, 12));
        assert!((0.80..=0.97).contains(&few), "{few}: a dozen slices know little of their correlation");
        let mut noise = Noise::seeded(7);
        let mut hits = 0;
        for _ in 0..1000 {
            let values: Vec<f64> = make(&mut noise, 60).iter().map(|(n, s)| *n as f64 / s).collect();
            let mean = values.iter().sum::<f64>() / 60.0;
            let half = (crate::stats::moments::variance(&values).unwrap() / 60.0).sqrt() * 2.0;
            hits += u32::from((mean - half..=mean + half).contains(&truth));
        }
        assert!(hits < 780, "{hits} of 1000 as if they were independent");
    }

    #[test]
    fn bimodal_latency_is_covered_from_twenty_slices_on() {
        // Each slice is fast (0.1 ms) or, with probability 0.3, slow (2 ms).
        let truth_of = |p: f64| (0.7 * 200.0 + p * 10.0) / (0.7 * 0.02 + p * 0.02);
        for (n, least) in [(8, 0.80), (20, 0.90), (60, 0.93)] {
            let share = coverage(truth_of(0.3), 2000, |noise| {
                (0..n).map(|_| if uniform(noise) < 0.3 { (10, 0.02) } else { (200, 0.02) }).collect()
            });
            assert!((least..=0.985).contains(&share), "{share} with {n} slices");
        }
    }

    #[test]
    fn stalls_rarer_than_slices_are_missed_by_the_interval() {
        // One operation in 400 takes 100 ms instead of 0.2 ms; with 20 operations a slice, one slice in twenty has one.
        let truth = 1.0 / (0.0002 + 0.1 / 400.0);
        let make = |noise: &mut Noise, n: usize| -> Vec<(u64, f64)> {
            (0..n).map(|_| slice(0.004, || if uniform(noise) < 1.0 / 400.0 { 0.1002 } else { 0.0002 })).collect()
        };
        let few = coverage(truth, 600, |noise| make(noise, 10));
        let many = coverage(truth, 600, |noise| make(noise, 200));
        assert!((0.25..0.75).contains(&few), "{few}: with ten slices about half of the probes meet no stall");
        assert!(many > 0.85, "{many}: with ten stalls expected it is nearly what it claims");
    }

    /// Share of simulations whose interval contains the true rate if slices are added until the interval is narrow
    /// enough, checked from `fewest` slices on.
    fn coverage_of_stopping(fewest: usize, precision: f64) -> f64 {
        coverage(1000.0, 400, |noise| {
            let mut slices = Vec::new();
            while slices.len() < 400 {
                slices.push(slice(0.02, || -0.001 * (1.0 - uniform(noise)).max(1e-300).ln()));
                let half = rate(&slices).and_then(|found| found.relative_half_width());
                if slices.len() >= fewest && half.is_some_and(|half| half <= precision) {
                    break;
                }
            }
            slices
        })
    }

    #[test]
    fn stopping_early_at_a_narrow_interval_costs_coverage() {
        let (at_once, patient) = (coverage_of_stopping(3, 0.1), coverage_of_stopping(16, 0.1));
        println!("{at_once} from 3 slices on, {patient} from 16 on");
        assert!(patient >= 0.90, "{patient} from 16 slices on");
        assert!(at_once < patient, "{at_once} from 3 slices on, {patient} from 16 on");
    }

    #[test]
    fn thousands_of_slices_do_not_change_rate_or_widen_interval() {
        let mut noise = Noise::seeded(3);
        let slices: Vec<(u64, f64)> = (0..5000).map(|_| ((1000.0 + 100.0 * noise.normal()) as u64, 1.0)).collect();
        let found = rate(&slices).unwrap();
        let theory = 1.96 * 100.0 / 5000.0f64.sqrt() / 1000.0;
        assert!((found.relative_half_width().unwrap() / theory - 1.0).abs() < 0.35, "{found:?} {theory}");
    }

    proptest! {
        #[test]
        fn the_rate_lies_in_its_interval_and_scales_with_time(
            slices in proptest::collection::vec((0u64..100_000, 1e-6f64..10.0), 0..80), factor in 0.001f64..1000.0
        ) {
            let scaled: Vec<(u64, f64)> = slices.iter().map(|(n, s)| (*n, s * factor)).collect();
            if let (Some(one), Some(other)) = (rate(&slices), rate(&scaled)) {
                prop_assert!((one.per_s / factor - other.per_s).abs() <= 1e-9 * other.per_s);
                if let Some((low, high)) = one.ends {
                    prop_assert!(low <= one.per_s && one.per_s <= high);
                    prop_assert!(one.relative_half_width().unwrap() >= 0.0);
                }
            }
        }
    }
}
