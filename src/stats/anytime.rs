//! Tests for a run whose end was not planned: valid after any number of blocks, whatever the reason for adding more.
//!
//! Formula: the e-value of a difference with normal noise of unknown size, a mixture over the size of the difference in
//! units of the noise, with the right Haar prior on the noise: T. L. Lai, Ann. Statist. 4 (1976) 265; H. Wang, A.
//! Ramdas, "Anytime-valid t-tests", arXiv 2310.03722. If all cases are equal, the probability that it ever exceeds c is
//! at most 1/c.

/// Variance of the differences under the mixture, as a multiple of the variance of a difference in one block: stacks
/// differ by several times their noise or hardly at all.
const EXPECTED: f64 = 16.0;

/// Standard errors that a difference over `blocks` needs for its e-value to reach `evidence`, if its noise has
/// `degrees` degrees of freedom; infinite if none reaches it.
pub(super) fn standard_errors(blocks: f64, degrees: f64, evidence: f64) -> f64 {
    let widened = 1.0 + blocks * EXPECTED;
    let needed = (evidence * widened.sqrt()).powf(2.0 / (degrees + 1.0));
    if needed >= widened { f64::INFINITY } else { (degrees * (needed - 1.0) / (1.0 - needed / widened)).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E-value by its definition.
    fn e_value(t: f64, blocks: f64, degrees: f64) -> f64 {
        let widened = 1.0 + blocks * EXPECTED;
        let x = t * t / degrees;
        ((1.0 + x) / (1.0 + x / widened)).powf((degrees + 1.0) / 2.0) / widened.sqrt()
    }

    #[test]
    fn required_standard_errors_are_where_the_e_value_is_reached() {
        for (blocks, degrees, evidence, wanted) in
            [(3.0, 2.0, 20.0, 10.7), (4.0, 3.0, 20.0, 6.6), (6.0, 5.0, 20.0, 5.1), (20.0, 19.0, 20.0, 3.9)]
        {
            let t = standard_errors(blocks, degrees, evidence);
            assert!((e_value(t, blocks, degrees) / evidence - 1.0).abs() < 1e-9, "{t}");
            assert!((t - wanted).abs() < 0.06, "{t} {wanted}");
        }
        assert_eq!(standard_errors(2.0, 1.0, 1e6), f64::INFINITY);
    }
}
