//! A straight line through points.

use super::interval::CONFIDENCE;
use super::student;

/// Least-squares line.
pub struct FittedLine {
    pub slope: f64,
    /// Standard error of the slope and its degrees of freedom, if there are more than two points.
    error: Option<(f64, f64)>,
}

impl FittedLine {
    pub fn through(points: &[(f64, f64)]) -> Option<FittedLine> {
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        if points.len() < 2 || spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        let rest: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
        let error = (points.len() > 2).then(|| ((rest / (n - 2.0) / spread).sqrt(), n - 2.0));
        Some(FittedLine { slope, error })
    }

    pub(super) fn half_width(&self) -> Option<f64> {
        self.error.map(|(error, degrees)| error * student::two_sided_quantile(CONFIDENCE, degrees))
    }
}
