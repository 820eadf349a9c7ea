//! Mean and variance of slices.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_known_sample() {
        let sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&sample), Some(5.0));
        assert!((variance(&sample).unwrap() - 32.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_has_no_moments() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[1.0]), None);
    }

    #[test]
    fn a_large_offset_does_not_drown_the_variance() {
        let sample = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        assert!((variance(&sample).unwrap() - 30.0).abs() < 1e-6);
    }
}
