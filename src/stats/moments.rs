//! Mean, variance and median of slices.

/// Arithmetic mean; `None` if empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// Unbiased sample variance (divisor n - 1), in two passes so that a large mean costs no precision; `None` below two
/// values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// Median of whole numbers, the mean of the two middle ones if their number is even; `None` if empty. Reorders the
/// slice.
pub fn median(values: &mut [u64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable(middle);
    let upper = *upper as f64;
    if odd {
        return Some(upper);
    }
    let lower = below.iter().max().map_or(upper, |lower| *lower as f64);
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn moments_of_a_known_sample() {
        let sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&sample), Some(5.0));
        assert!((variance(&sample).unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert_eq!(median(&mut [5, 1, 9]), Some(5.0));
        assert_eq!(median(&mut [4, 1, 9, 5]), Some(4.5));
    }

    #[test]
    fn nothing_has_no_moments() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[1.0]), None);
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn a_large_offset_does_not_drown_the_variance() {
        let sample = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        assert!((variance(&sample).unwrap() - 30.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn at_most_half_of_the_values_lie_above_the_median(mut values in proptest::collection::vec(0u64..1000, 1..50)) {
            let middle = median(&mut values).unwrap();
            let below = values.iter().filter(|v| (**v as f64) < middle).count();
            let above = values.iter().filter(|v| (**v as f64) > middle).count();
            prop_assert!(below * 2 <= values.len() && above * 2 <= values.len());
        }
    }
}
