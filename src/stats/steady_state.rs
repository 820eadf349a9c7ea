//! Steady state of a drive: the rule of SNIA's Solid State Storage Performance Test Specification 2.0.2 (2020,
//! definition of steady state), over a window of five equal rounds.
//!
//! (a) The range of the window, its largest figure less its smallest, is at most 20 % of its mean. (b) Its
//! least-squares line changes by at most 10 % of the mean from the first round to the last. At most 25 rounds are run.
//! fio's option `steadystate` (steadystate.c) is a different rule: `iops:20%` allows figures up to 20 % of the mean to
//! *either* side, and `iops_slope:10%` is 10 % of the mean for each sample, four times SNIA's over five.

use super::moments;
use crate::stats::line::FittedLine;

/// Rounds in a window.
pub const WINDOW: usize = 5;
/// Rounds after which a drive counts as not steady.
pub const MOST_ROUNDS: usize = 25;
/// Largest range of a steady window, as a share of its mean.
pub const RANGE: f64 = 0.20;
/// Largest change of a steady window's line, as a share of its mean.
pub const EXCURSION: f64 = 0.10;

/// Spread and slope of figures over some rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    pub mean: f64,
    /// Largest less smallest figure, as a share of the mean.
    pub range: f64,
    /// Change of the fitted line from the first round to the last, as a share of the mean; negative if it falls.
    pub excursion: f64,
}

impl Course {
    /// Figures at the places at which they were measured; `None` below two places, or if the mean is not above 0.
    pub fn of(points: &[(f64, f64)]) -> Option<Course> {
        let figures: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
        let mean = moments::mean(&figures).filter(|mean| *mean > 0.0)?;
        let largest = figures.iter().copied().fold(f64::MIN, f64::max);
        let smallest = figures.iter().copied().fold(f64::MAX, f64::min);
        let width = points.last()?.0 - points.first()?.0;
        let excursion = FittedLine::through(points)?.slope * width / mean;
        Some(Course { mean, range: (largest - smallest) / mean, excursion })
    }

    pub fn is_steady(&self) -> bool {
        self.range <= RANGE && self.excursion.abs() <= EXCURSION
    }
}

/// The last window of these rounds; `None` below [`WINDOW`] rounds.
pub fn last_window(rounds: &[f64]) -> Option<Course> {
    let last = &rounds[rounds.len().checked_sub(WINDOW)?..];
    Course::of(&(1u32..).map(f64::from).zip(last.iter().copied()).collect::<Vec<_>>())
}

/// True if the drive is steady after these rounds.
pub fn is_reached(rounds: &[f64]) -> bool {
    last_window(rounds).is_some_and(|course| course.is_steady())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `check_steady_state` of fio's steadystate.c with `ss=iops_slope:LIMIT%`: the least-squares slope per sample.
    fn is_steady_for_fio_by_slope(rounds: &[f64], limit: f64) -> bool {
        let points: Vec<(f64, f64)> = (0u32..).map(f64::from).zip(rounds.iter().copied()).collect();
        let slope = FittedLine::through(&points).unwrap().slope;
        (100.0 * slope / moments::mean(rounds).unwrap()).abs() < limit
    }

    /// The same with `ss=iops:LIMIT%`: the largest deviation from the mean.
    fn is_steady_for_fio_by_deviation(rounds: &[f64], limit: f64) -> bool {
        let mean = moments::mean(rounds).unwrap();
        rounds.iter().all(|figure| (100.0 * (figure - mean) / mean).abs() < limit)
    }

    #[test]
    fn a_drop_by_a_third_is_steady_only_for_fio() {
        let falls = [58_000.0, 54_000.0, 50_000.0, 46_000.0, 42_000.0];
        assert!(is_steady_for_fio_by_slope(&falls, 10.0), "8 % of the mean for each sample");
        assert!(is_steady_for_fio_by_deviation(&falls, 20.0), "16 % of the mean to either side");
        let course = last_window(&falls).unwrap();
        assert!((course.range - 0.32).abs() < 1e-9 && (course.excursion + 0.32).abs() < 1e-9, "{course:?}");
        assert!(!course.is_steady());
        // With the rule's own limits, fio's `iops_slope` is SNIA's (b): 10 % over four steps.
        assert!(!is_steady_for_fio_by_slope(&falls, 10.0 / 4.0));
    }

    #[test]
    fn each_part_of_the_rule_can_fail_alone() {
        // Alternating figures: no slope, but a range of 30 %.
        let shakes = last_window(&[100.0, 115.0, 85.0, 115.0, 100.0]).unwrap();
        assert!(shakes.excursion.abs() < 1e-9 && !shakes.is_steady(), "{shakes:?}");
        // A slow fall, within the range.
        let falls = last_window(&[106.0, 103.0, 100.0, 97.0, 94.0]).unwrap();
        assert!(falls.range < RANGE && !falls.is_steady(), "{falls:?}");
        assert!(last_window(&[104.0, 102.0, 100.0, 98.0, 96.0]).unwrap().is_steady());
    }

    #[test]
    fn only_the_last_five_rounds_decide_steady_state() {
        let settles = [400.0, 200.0, 120.0, 101.0, 100.0, 99.0, 100.0, 101.0];
        let reached: Vec<bool> = (1..=settles.len()).map(|rounds| is_reached(&settles[..rounds])).collect();
        assert_eq!(reached, [false, false, false, false, false, false, false, true]);
        assert_eq!(last_window(&[100.0; 4]), None);
        assert!(!is_reached(&[0.0; 5]), "a drive that does nothing is not steady");
    }

    proptest! {
        #[test]
        fn the_unit_of_the_figures_changes_nothing(rounds in prop::collection::vec(1.0..1e6f64, 5..25), factor in 0.01..100.0f64) {
            let course = last_window(&rounds).unwrap();
            let scaled = last_window(&rounds.iter().map(|figure| figure * factor).collect::<Vec<_>>()).unwrap();
            prop_assert!((course.range - scaled.range).abs() < 1e-9 && (course.excursion - scaled.excursion).abs() < 1e-9);
        }

        #[test]
        fn a_reversed_window_has_equal_range_and_opposite_slope(rounds in prop::collection::vec(1.0..1e6f64, 5)) {
            let course = last_window(&rounds).unwrap();
            let back = last_window(&rounds.iter().rev().copied().collect::<Vec<_>>()).unwrap();
            prop_assert!((course.range - back.range).abs() < 1e-9 && (course.excursion + back.excursion).abs() < 1e-6);
        }

        #[test]
        fn figures_within_four_percent_of_their_middle_are_steady(noise in prop::collection::vec(-0.04..0.04f64, 5..25)) {
            let rounds: Vec<f64> = noise.iter().map(|noise| 40_000.0 * (1.0 + noise)).collect();
            // Five figures that deviate by at most d move the line by at most 2.4 d.
            prop_assert!(is_reached(&rounds), "{:?}", last_window(&rounds));
        }

        #[test]
        fn a_trend_above_ten_percent_is_never_steady(excursion in 0.101..0.9f64, falls in any::<bool>()) {
            let step = if falls { -excursion } else { excursion } / 4.0;
            let rounds: Vec<f64> = (-2..=2).map(|place| 1000.0 * (1.0 + f64::from(place) * step)).collect();
            prop_assert!(!is_reached(&rounds));
        }
    }
}
