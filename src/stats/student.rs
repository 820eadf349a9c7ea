//! Student's t distribution: distribution function and quantiles, for any real number of degrees of freedom.
//!
//! Computed from the regularised incomplete beta function (DLMF 8.17.22, <https://dlmf.nist.gov/8.17>, evaluated by the
//! modified Lentz method: Thompson and Barnett, J. Comput. Phys. 64 (1986) 490) and Lanczos' approximation of the gamma
//! function (SIAM J. Numer. Anal. 1 (1964) 86; coefficients for g = 7, n = 9 after Godfrey).

/// Degrees of freedom are capped at this: the 97.5 % quantile then differs from the normal one by less than 3e-6, and
/// the continued fraction stays short.
const LARGEST_DEGREES: f64 = 1e6;
/// Smallest number of degrees of freedom: below 1 the quantiles explode and are useless.
const SMALLEST_DEGREES: f64 = 1.0;
/// Relative accuracy of the continued fraction.
const ACCURACY: f64 = 1e-14;
/// Steps after which the continued fraction gives up; O(sqrt(degrees)) are needed.
const MOST_STEPS: u32 = 10_000;
/// Substitute for zero in Lentz' method.
const TINY: f64 = 1e-300;

const LANCZOS_G: f64 = 7.0;
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

/// Natural logarithm of the gamma function for `x > 0.5`.
pub(super) fn ln_gamma(x: f64) -> f64 {
    let x = x - 1.0;
    let mut sum = LANCZOS[0];
    for (i, coefficient) in LANCZOS.iter().enumerate().skip(1) {
        sum += coefficient / (x + i as f64);
    }
    let t = x + LANCZOS_G + 0.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

fn away_from_zero(value: f64) -> f64 {
    if value.abs() < TINY { TINY } else { value }
}

/// Continued fraction of the incomplete beta function; converges fast for `x < (a + 1) / (a + b + 2)`.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=MOST_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < ACCURACY {
            break;
        }
    }
    fraction
}

/// Regularised incomplete beta function I_x(a, b) for `a, b >= 0.5` and `x` in 0..=1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Probability that a t variable with `degrees` degrees of freedom exceeds `t >= 0`.
pub fn upper_tail(t: f64, degrees: f64) -> f64 {
    let degrees = degrees.clamp(SMALLEST_DEGREES, LARGEST_DEGREES);
    0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// Probability of a value at least as far from zero as `value`, if its true mean is zero and its variance is estimated
/// with `degrees` degrees of freedom.
pub(super) fn p_value(value: f64, variance: f64, degrees: f64) -> f64 {
    if variance > 0.0 {
        return 2.0 * upper_tail(value.abs() / variance.sqrt(), degrees);
    }
    if value == 0.0 { 1.0 } else { 0.0 }
}

/// The quantile t with P(|T| <= t) = `confidence`: the factor of a two-sided interval. `degrees` below 1 count as 1.
///
/// Bisection on [`upper_tail`], which falls strictly: accurate to 1e-9 relative for confidences up to 0.9999.
pub fn two_sided_quantile(confidence: f64, degrees: f64) -> f64 {
    let tail = (1.0 - confidence.clamp(0.0, 1.0 - 1e-12)) / 2.0;
    bisected(1.0, 1e15, 1e-11, |t| upper_tail(t, degrees) > tail)
}

/// Where `is_below` changes from true to false, between 0 and about `most`, to the relative `accuracy`: an upper end is
/// doubled from `first` on, then the interval is halved.
pub(super) fn bisected(first: f64, most: f64, accuracy: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, first);
    while is_below(high) && high < most {
        low = high;
        high *= 2.0;
    }
    while high - low > accuracy * high {
        let middle = f64::midpoint(low, high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    /// Two-sided 95 % and 99 % quantiles, six digits (R: `qt(c(0.975, 0.995), df)`).
    const TABLE: [(f64, f64, f64); 9] = [
        (1.0, 12.706_205, 63.656_741),
        (2.0, 4.302_653, 9.924_843),
        (3.0, 3.182_446, 5.840_909),
        (4.0, 2.776_445, 4.604_095),
        (5.0, 2.570_582, 4.032_143),
        (10.0, 2.228_139, 3.169_273),
        (30.0, 2.042_272, 2.749_996),
        (100.0, 1.983_972, 2.625_891),
        (1000.0, 1.962_339, 2.580_755),
    ];

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (degrees, at_95, at_99) in TABLE {
            assert!((two_sided_quantile(0.95, degrees) - at_95).abs() < 1e-6, "95 %, {degrees}");
            assert!((two_sided_quantile(0.99, degrees) - at_99).abs() < 1e-6, "99 %, {degrees}");
        }
    }

    #[test]
    fn many_degrees_are_the_normal_distribution() {
        assert!((two_sided_quantile(0.95, 1e9) - 1.959_964).abs() < 5e-6);
    }

    #[test]
    fn one_degree_is_the_cauchy_distribution() {
        for t in [0.1, 1.0, 7.5] {
            let exact = 0.5 - f64::atan(t) / std::f64::consts::PI;
            assert!((upper_tail(t, 1.0) - exact).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_distribution(confidence in 0.5f64..0.999, degrees in 1.0f64..2000.0) {
            let t = two_sided_quantile(confidence, degrees);
            prop_assert!((1.0 - 2.0 * upper_tail(t, degrees) - confidence).abs() < 1e-8);
        }

        #[test]
        fn fewer_degrees_never_narrow_an_interval(degrees in 1.0f64..500.0, more in 0.1f64..500.0) {
            prop_assert!(two_sided_quantile(0.95, degrees) >= two_sided_quantile(0.95, degrees + more));
        }
    }
}
