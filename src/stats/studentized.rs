//! The studentized range: the largest less the smallest of k normal values, over an independent estimate of their
//! standard deviation. Tukey's test uses its quantiles.
//!
//! P(Q <= q) is the integral of W(q s) f(s) ds: W is the distribution of the range of k standard normal values, f the
//! density of the estimated standard deviation (H. L. Harter, Ann. Math. Statist. 31 (1960) 1122). Both integrals are
//! sums over equal steps, which converge faster than any power of the step for smooth functions with vanishing tails.
//! With w = q s the values of W do not depend on q: they are computed once, and each step towards a quantile is cheap.

use super::student::{bisected, ln_gamma};
use std::f64::consts::{LN_2, PI};

/// Range to which degrees of freedom are clamped: three cases in two blocks have two, and a quantile at the largest
/// differs from its limit by less than 1e-3.
const DEGREES: (f64, f64) = (2.0, 10_000.0);
/// Widest step of the integrals, in standard deviations.
const STEP_MAX: f64 = 0.1;
/// Steps per standard deviation of w = q s if that is narrow; q is 2 or more for every quantile in use.
const STEPS_IN_DEVIATION: f64 = 1.5;
/// Bound of the normal integral: the density beyond is below 1e-16.
const REACH: f64 = 8.5;
/// Densities below exp(-this) of their peak are ignored.
const NOTHING: f64 = 40.0;

/// The studentized range of `k` values and `degrees` degrees of freedom.
#[derive(Debug, Clone)]
pub struct StudentizedRange {
    degrees: f64,
    step: f64,
    /// Distribution function of the range at 0, step, 2 step, ...; 1 beyond.
    range: Vec<f64>,
}

impl StudentizedRange {
    /// `k` must be at least two.
    pub fn new(k: usize, degrees: f64) -> StudentizedRange {
        let degrees = degrees.clamp(DEGREES.0, DEGREES.1);
        // Relative standard deviation of the estimate: 1 / sqrt(2 degrees).
        let narrow = 2.0 / (2.0 * degrees).sqrt() / STEPS_IN_DEVIATION;
        let step = narrow.min(STEP_MAX);
        StudentizedRange { degrees, step, range: range_of_normals(k.max(2), step) }
    }

    /// P(Q <= q), for `q` from 1: below, the steps are too wide if degrees are many.
    pub fn cdf(&self, q: f64) -> f64 {
        if q <= 0.0 {
            return 0.0;
        }
        let half = self.degrees / 2.0;
        let constant = half * self.degrees.ln() - (half - 1.0) * LN_2 - ln_gamma(half);
        let ln_density = |s: f64| constant + (self.degrees - 1.0) * s.ln() - half * s * s;
        // At s = 1, near its peak.
        let least = ln_density(1.0) - NOTHING;
        let mut sum = 0.0;
        let mut place = 0usize;
        loop {
            place += 1;
            let s = place as f64 * self.step / q;
            let density = ln_density(s);
            if density < least {
                if s > 1.0 {
                    break;
                }
                continue;
            }
            sum += self.range.get(place).copied().unwrap_or(1.0) * density.exp();
        }
        (sum * self.step / q).clamp(0.0, 1.0)
    }

    /// The q with P(Q <= q) = `probability`, which must lie between 0.5 and 0.9999.
    pub fn quantile(&self, probability: f64) -> f64 {
        let wanted = probability.clamp(0.5, 0.9999);
        bisected(4.0, 1e6, 1e-9, |q| self.cdf(q) < wanted)
    }
}

/// Distribution function of the range of `k` standard normal values at multiples of `step`, up to where it is 1: k
/// times the integral of phi(z) (Phi(z + w) - Phi(z))^(k - 1), z being the smallest of them.
fn range_of_normals(k: usize, step: f64) -> Vec<f64> {
    let reach = (REACH / step).ceil() as usize;
    let points = 2 * reach + 1;
    let at: Vec<f64> = (0..points).map(|place| (place as f64 - reach as f64) * step).collect();
    let below: Vec<f64> = at.iter().map(|at| normal_cdf(*at)).collect();
    let density: Vec<f64> =
        at.iter().map(|at| (-at.powi(2) / 2.0).exp() / (2.0 * PI).sqrt() * step * k as f64).collect();
    let power = i32::try_from(k - 1).unwrap_or(i32::MAX);
    let ranges = (0..points).map(|width| {
        let upper = below.iter().skip(width).copied().chain(std::iter::repeat(1.0));
        let parts = density.iter().zip(&below).zip(upper);
        parts.map(|((density, below), upper)| density * (upper - below).powi(power)).sum::<f64>().min(1.0)
    });
    ranges.collect()
}

/// Distribution function of the normal distribution, by its power series, all terms of one sign (G. Marsaglia, J. Stat.
/// Software 11 (2004) 4, section 2).
fn normal_cdf(x: f64) -> f64 {
    if x > REACH {
        return 1.0;
    }
    if x < 0.0 {
        return (1.0 - normal_cdf(-x)).max(0.0);
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > 1e-17 * sum {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::student::two_sided_quantile;

    /// Lines of "k degrees probability quantile", made by `scripts/make-studentized-range-fixture`.
    const SCIPY: &str = include_str!("../../tests/fixtures/studentized_range/scipy.txt");

    #[test]
    fn quantiles_and_probabilities_agree_with_scipy() {
        let mut seen = 0;
        let mut made: Option<(usize, f64, StudentizedRange)> = None;
        for line in SCIPY.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<f64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
            let [k, degrees, probability, wanted] = fields[..] else { panic!("{line}") };
            let k = k as usize;
            if made.as_ref().is_none_or(|(known, of, _)| (*known, *of) != (k, degrees)) {
                made = Some((k, degrees, StudentizedRange::new(k, degrees)));
            }
            let (_, _, range) = made.as_ref().unwrap();
            let found = range.quantile(probability);
            assert!((found / wanted - 1.0).abs() < 1e-6, "{line}: {found}");
            assert!((range.cdf(wanted) - probability).abs() < 1e-7, "{line}: {}", range.cdf(wanted));
            seen += 1;
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn two_values_are_students_t_times_the_root_of_two() {
        for degrees in [2.0, 2.5, 3.5, 8.0, 60.0, 1000.0, 9000.0] {
            let found = StudentizedRange::new(2, degrees).quantile(0.95);
            let wanted = two_sided_quantile(0.95, degrees) * 2f64.sqrt();
            assert!((found / wanted - 1.0).abs() < 2e-6, "{degrees}: {found} {wanted}");
        }
    }

    #[test]
    fn the_distribution_rises_from_nothing_to_one() {
        let range = StudentizedRange::new(5, 8.0);
        assert_eq!(range.cdf(0.0), 0.0);
        let values: Vec<f64> = (2..80).map(|tenth| range.cdf(f64::from(tenth) / 2.0)).collect();
        assert!(values.windows(2).all(|pair| pair[0] <= pair[1] + 1e-12), "{values:?}");
        assert!(values[0] < 0.1 && values[77] > 0.999_99, "{values:?}");
    }

    #[test]
    fn the_normal_distribution_agrees_with_the_printed_table() {
        // Abramowitz and Stegun, table 26.1.
        for (x, p) in
            [(0.0, 0.5), (1.0, 0.841_344_746_068_543), (3.0, 0.998_650_101_968_370), (-2.0, 0.022_750_131_948_179)]
        {
            assert!((normal_cdf(x) - p).abs() < 1e-14, "{x}");
        }
    }
}
