//! What figures without repeats may claim: one rule for `compare`, the shelf, and the help of both.

/// The rule, in lines for a help text.
pub const RULE: [&str; 3] = [
    "Single runs without repeats show no winner: an interval from slices covers its own minutes,",
    "not the next run. A ratio of rates of 3 or more exceeds the known scatter between runs on idle",
    "machines (2.7) and shows the direction; on a busy machine no ratio does.",
];

/// Ratio beyond the known scatter between runs on idle machines. Published: the same test on the same server twice,
/// 62.0k and 170.2k (2.7 times) with another layout; one test by two tools on the same servers, 1.5 to 2.6 times.
const BEYOND_KNOWN_SCATTER: f64 = 3.0;

/// Description of such a ratio.
pub const POINTS: &str = "more than the known scatter between runs on idle machines";

/// True if a ratio of two single runs' rates shows a direction, regardless of which is larger.
pub fn points_a_way(ratio: f64) -> bool {
    ratio.is_finite() && ratio > 0.0 && ratio.ln().abs() >= BEYOND_KNOWN_SCATTER.ln()
}

/// The rule as a sentence.
pub fn sentence() -> String {
    RULE.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_inverse_point_equally_far() {
        assert!(points_a_way(3.0) && points_a_way(1.0 / 3.001) && !points_a_way(2.9) && !points_a_way(0.34));
        assert!(![0.0, -5.0, f64::NAN, f64::INFINITY].into_iter().any(points_a_way));
    }

    #[test]
    fn the_rule_names_the_threshold_that_is_used() {
        assert!(sentence().contains(&format!("ratio of rates of {BEYOND_KNOWN_SCATTER} or more")));
        assert!(RULE.iter().all(|line| line.chars().count() <= 100));
    }
}
