//! Change of a figure with an amount of work: its slope with an interval, and the amount from which it is steady.
//!
//! The slope is that of the figure's logarithm: a relative change per unit of work. Blocks are replicates: each gives a
//! least-squares slope over its own points, and the interval is the t interval on these. With one block it is that of
//! the fitted line.
//!
//! Steady means SNIA's rule ([`steady_state`]) over the last points. SNIA looks at five equal rounds; here there may be
//! as few as three points, at unequal distances.

use crate::stats::interval::mean_of_differences;
use crate::stats::line::FittedLine;
use crate::stats::{moments, steady_state};

/// Smallest difference of the logarithm between the last two amounts that counts as a change.
const LEAST_CHANGE: f64 = 0.02;
/// Fewest points that count as steady.
const LEAST_POINTS: usize = 3;

/// A figure at an amount of work, in one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub block: u32,
    /// Work done before.
    pub x: f64,
    /// Figure, above zero.
    pub y: f64,
}

/// Slope: relative change per unit of work, 0.02 for 2 % more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    pub value: f64,
    /// Ends of its 95 % interval.
    pub interval: Option<(f64, f64)>,
}

/// Behaviour over the last points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trajectory {
    /// Steady from this amount on.
    Steady(f64),
    /// Changed by this factor between the last two amounts, in three blocks or more.
    Changing(f64),
    /// Neither is shown.
    Undecided,
}

/// Slope over all points; `None` below two amounts.
pub fn slope(points: &[Point]) -> Option<Slope> {
    let blocks = blocks(points);
    let lines: Vec<FittedLine> = blocks.iter().filter_map(|block| FittedLine::through(&logs(block))).collect();
    let (log, half) = match lines.as_slice() {
        [] => return None,
        [one] => (one.slope, one.half_width()),
        several => mean_of_differences(&several.iter().map(|line| line.slope).collect::<Vec<_>>())?,
    };
    let interval = half.map(|half| ((log - half).exp_m1(), (log + half).exp_m1()));
    Some(Slope { value: log.exp_m1(), interval })
}

/// Behaviour over the last points; `None` below three amounts.
pub fn course(points: &[Point]) -> Option<Trajectory> {
    let means = means(points);
    if means.len() < LEAST_POINTS {
        return None;
    }
    let from = (0..=means.len() - LEAST_POINTS).find(|from| is_steady(&means[*from..]));
    if let Some(from) = from {
        return Some(Trajectory::Steady(means[from].0));
    }
    let last = [means[means.len() - 2].0, means[means.len() - 1].0];
    let steps: Vec<f64> = blocks(points)
        .iter()
        .filter_map(|block| {
            let [before, after] = last.map(|x| block.iter().find(|point| point.x == x).map(|point| point.y.ln()));
            Some(after? - before?)
        })
        .collect();
    let (log, half) = mean_of_differences(&steps)?;
    let changing = half.is_some_and(|half| log.abs() > half) && log.abs() >= LEAST_CHANGE;
    Some(if changing { Trajectory::Changing(log.exp()) } else { Trajectory::Undecided })
}

/// Mean figure at each amount, in order of the amounts.
fn means(points: &[Point]) -> Vec<(f64, f64)> {
    let mut amounts: Vec<f64> = points.iter().map(|point| point.x).collect();
    amounts.sort_by(f64::total_cmp);
    amounts.dedup();
    let at = |x: f64| points.iter().filter(|point| point.x == x).map(|point| point.y).collect::<Vec<_>>();
    amounts.into_iter().filter_map(|x| Some((x, moments::mean(&at(x))?))).collect()
}

fn is_steady(means: &[(f64, f64)]) -> bool {
    let is_nothing = means.iter().all(|(_, y)| *y == 0.0);
    is_nothing || steady_state::Course::of(means).is_some_and(|course| course.is_steady())
}

/// Points of each block, except figures without a logarithm.
fn blocks(points: &[Point]) -> Vec<Vec<Point>> {
    let mut numbers: Vec<u32> = points.iter().map(|point| point.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let of = |block: u32| points.iter().filter(|point| point.block == block && point.y > 0.0).copied().collect();
    numbers.into_iter().map(of).collect()
}

fn logs(block: &[Point]) -> Vec<(f64, f64)> {
    block.iter().map(|point| (point.x, point.y.ln())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: &[(u32, &[(f64, f64)])]) -> Vec<Point> {
        of.iter().flat_map(|(block, pairs)| pairs.iter().map(|(x, y)| Point { block: *block, x: *x, y: *y })).collect()
    }

    #[test]
    fn a_two_percent_decline_per_unit_is_found_with_interval() {
        let fall = |factor: f64| [0.0, 1.0, 3.0, 10.0].map(|x| (x, 100.0 * factor.powf(x)));
        let (one, two, three) = (fall(0.98), fall(0.975), fall(0.985));
        let found = slope(&points(&[(1, &one), (2, &two), (3, &three)])).unwrap();
        assert!((found.value + 0.02).abs() < 1e-4, "{found:?}");
        let (low, high) = found.interval.unwrap();
        // Three slopes of logarithms 0.0051 apart: a standard error of 0.0030, times 4.30.
        assert!(low < -0.031 && low > -0.034 && high < -0.006 && high > -0.010, "{found:?}");
    }

    #[test]
    fn a_single_block_uses_the_interval_of_its_line() {
        let bent = points(&[(1, &[(0.0, 100.0), (1.0, 90.0), (2.0, 85.0)])]);
        let (low, high) = slope(&bent).unwrap().interval.unwrap();
        assert!(low < -0.08 && high > 0.0, "one degree of freedom: {low} to {high}");
        assert_eq!(slope(&points(&[(1, &[(0.0, 100.0), (1.0, 90.0)])])).unwrap().interval, None);
        assert_eq!(slope(&points(&[(1, &[(3.0, 100.0)])])), None);
    }

    #[test]
    fn steady_begins_where_the_rule_holds_to_the_end() {
        let settles = points(&[(1, &[(0.0, 100.0), (1.0, 60.0), (3.0, 42.0), (10.0, 41.0), (20.0, 40.0)])]);
        assert_eq!(course(&settles), Some(Trajectory::Steady(3.0)));
        let flat = points(&[(1, &[(0.0, 100.0), (1.0, 99.0), (3.0, 101.0)])]);
        assert_eq!(course(&flat), Some(Trajectory::Steady(0.0)));
        assert_eq!(course(&flat[..2]), None);
    }

    #[test]
    fn a_moving_figure_is_changing_unless_its_blocks_disagree() {
        let one = [(0.0, 100.0), (1.0, 80.0), (3.0, 60.0), (10.0, 30.0)];
        let two = [(0.0, 101.0), (1.0, 79.0), (3.0, 61.0), (10.0, 31.0)];
        let Some(Trajectory::Changing(factor)) = course(&points(&[(1, &one), (2, &two), (3, &one)])) else { panic!() };
        assert!((factor - 0.504).abs() < 0.01, "{factor}");
        let other = [(0.0, 101.0), (1.0, 79.0), (3.0, 61.0), (10.0, 90.0)];
        assert_eq!(course(&points(&[(1, &one), (2, &other), (3, &one)])), Some(Trajectory::Undecided));
    }
}
