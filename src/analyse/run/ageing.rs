//! Figures by amount of ageing: on the aged filesystem, on a fresh one, their ratio, its slope, and whether it is
//! steady. Nothing is extrapolated beyond the largest measured amount.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::estimate::estimate;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{Ageing, AgeingPoint, Estimate, names};
use crate::stats::ratio::{BlockMean, ratio};
use crate::stats::trend::{self, Point, Trajectory};
use crate::units::significant;
use std::collections::BTreeSet;

/// `age` options that are amounts: axis, meaning of one unit, meaning of the whole.
const AMOUNTS: [[&str; 3]; 4] = [
    ["age.rewrite", "overwrite", "times overwritten (page rewrite)"],
    ["age.pgbench", "overwrite", "times overwritten (pgbench)"],
    ["age.churn", "turnover", "times the free space was written"],
    ["age.fill", "percent filled", "percent of the filesystem filled"],
];

/// `age` option that selects the aged filesystem or the control.
const CONTROL: &str = "age.filesystem";

/// Smallest difference from 1 that counts: counts that are the same in each block have an interval of zero width.
const LEAST_DIFFERENCE: f64 = 0.01;

/// Cases that differ only in the amount of ageing and in what was measured.
pub(crate) struct Group<'a> {
    name: String,
    axis: &'static str,
    unit: &'static str,
    amount: &'static str,
    /// Amount, whether it is the control, and the case.
    cases: Vec<(f64, bool, &'a CaseSums)>,
}

/// Every figure by every amount that varies.
pub fn findings(cases: &[CaseSums]) -> Vec<Ageing> {
    let groups = AMOUNTS.into_iter().flat_map(|amount| groups(cases, amount));
    let varied = groups.filter(|group| group.cases.iter().any(|(x, _, _)| *x != group.cases[0].0));
    varied.flat_map(|group| group.found()).collect()
}

fn groups<'a>(cases: &'a [CaseSums], [axis, unit, amount]: [&'static str; 3]) -> Vec<Group<'a>> {
    let aged = cases.iter().filter_map(|case| {
        let x = case.spec.axes.get(axis)?.parse().ok()?;
        let others = case.spec.axes.iter().filter(|(name, _)| *name != axis && *name != CONTROL);
        let name = others.map(|(name, value)| names::of_axis(name, value)).collect::<Vec<_>>().join(", ");
        Some((name, (x, case.spec.age.text("filesystem") == Some("fresh"), case)))
    });
    by_key(aged).into_iter().map(|(name, cases)| Group { name, axis, unit, amount, cases }).collect()
}

impl Group<'_> {
    fn found(&self) -> Vec<Ageing> {
        let mut seen = BTreeSet::new();
        let figures = self.cases.iter().flat_map(|(_, _, case)| &case.ageing.figures);
        figures.filter(|(key, _)| seen.insert(key)).map(|(key, _)| self.figure(key)).collect()
    }

    fn figure(&self, key: &(String, String)) -> Ageing {
        let mut amounts: Vec<f64> = self.cases.iter().map(|(x, _, _)| *x).collect();
        amounts.sort_by(f64::total_cmp);
        amounts.dedup();
        let points: Vec<AgeingPoint> =
            amounts.iter().map(|x| point(*x, self.at(key, *x, false), self.at(key, *x, true))).collect();
        // If some amounts have no control, figures and ratios do not form one curve.
        let has_control = points.iter().all(|point| point.ratio.is_some());
        let tracked: Vec<Point> = amounts
            .iter()
            .flat_map(|x| tracked(*x, self.at(key, *x, false), has_control.then(|| self.at(key, *x, true))))
            .collect();
        let slope = trend::slope(&tracked);
        let sentence = self.sentence(&points, slope, trend::course(&tracked));
        let trials = points.iter().filter_map(|point| point.aged).map(|aged| aged.trials).max().unwrap_or(0);
        let slope = slope.map(|slope| Estimate::of(slope.value, slope.interval, trials as usize));
        let (figure, unit) = key.clone();
        let [name, axis, amount] = [self.name.as_str(), self.axis, self.amount].map(str::to_owned);
        Ageing { name, axis, amount, figure, unit, points, slope, sentence }
    }

    fn at(&self, key: &(String, String), x: f64, fresh: bool) -> &[BlockMean] {
        let case = self.cases.iter().find(|(of, is_fresh, _)| *of == x && *is_fresh == fresh);
        case.map_or(&[][..], |(_, _, case)| case.ageing.of(key))
    }

    /// How far the figure moved, how fast, and whether it still changes.
    fn sentence(&self, points: &[AgeingPoint], slope: Option<trend::Slope>, course: Option<Trajectory>) -> String {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
        let Some(slope) = slope else { return "measured at one amount only".to_owned() };
        // Zero has no multiples: a new pool's used capacity is 0 %.
        let began = first.aged.zip(last.aged).filter(|(first, _)| first.value != 0.0);
        let began = began.map(|(first, last)| last.value / first.value);
        let went = match (&last.ratio, began) {
            (Some(ratio), _) => {
                format!("after {}, {} times a fresh filesystem's", significant(last.x), interval(ratio))
            }
            (None, Some(factor)) => format!("{} times that at {}", significant(factor), significant(first.x)),
            (None, None) => match first.aged.zip(last.aged) {
                Some((from, to)) => format!(
                    "{} at {}, {} at {}",
                    significant(from.value),
                    significant(first.x),
                    significant(to.value),
                    significant(last.x)
                ),
                None => "unknown at the end".to_owned(),
            },
        };
        let verb = if slope.value < 0.0 { "falls" } else { "rises" };
        let value = percent(slope.value);
        let slope = match slope.interval {
            Some((low, high)) if low <= 0.0 && high >= 0.0 => {
                format!("no slope shown ({:+.1} to {:+.1} % per {})", low * 100.0, high * 100.0, self.unit)
            }
            Some((low, high)) => {
                let (least, most) = if slope.value < 0.0 { (high, low) } else { (low, high) };
                format!("{verb} {value} % ({} to {}) per {}", percent(least), percent(most), self.unit)
            }
            None => format!("{verb} {value} % per {}, with too few points for an interval", self.unit),
        };
        let course = match course {
            Some(Trajectory::Steady(from)) => format!("; steady from {} on", significant(from)),
            Some(Trajectory::Changing(factor)) if factor < 1.0 => "; still falling at the last point".to_owned(),
            Some(Trajectory::Changing(_)) => "; still rising at the last point".to_owned(),
            Some(Trajectory::Undecided) => "; steady or not: undecided".to_owned(),
            None => String::new(),
        };
        format!("{went}; {slope}{course}")
    }
}

/// A share in percent, without its sign.
fn percent(share: f64) -> String {
    let percent = (share * 100.0).abs();
    if percent < 0.05 { "0.0".to_owned() } else { significant(percent) }
}

pub(crate) fn interval(of: &Estimate) -> String {
    let ends = of.low.zip(of.high).map(|(low, high)| format!(" ({} to {})", significant(low), significant(high)));
    format!("{}{}", significant(of.value), ends.unwrap_or_default())
}

pub(crate) fn point(x: f64, aged: &[BlockMean], fresh: &[BlockMean]) -> AgeingPoint {
    let found = ratio(aged, fresh);
    let ratio = found.map(|found| Estimate::of_ratio(&found, aged.len().min(fresh.len())));
    let with_interval = found.filter(|found| found.interval.is_some());
    let told_apart = with_interval.map(|found| found.tells_apart() && (found.value - 1.0).abs() >= LEAST_DIFFERENCE);
    AgeingPoint { x, aged: estimate(aged), fresh: estimate(fresh), ratio, told_apart }
}

/// The tracked value: the figure, or its ratio to the control of the same block.
pub(crate) fn tracked(x: f64, aged: &[BlockMean], fresh: Option<&[BlockMean]>) -> Vec<Point> {
    let points = aged.iter().filter_map(|one| {
        let control = match fresh {
            None => 1.0,
            Some(fresh) => fresh.iter().find(|other| other.block == one.block)?.trial.mean,
        };
        Some(Point { block: one.block, x, y: one.trial.mean / control })
    });
    points.filter(|point| point.y.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::case::age_figures::AgeFigure;

    fn blocks(values: &[f64]) -> Vec<BlockMean> {
        let block = |(block, mean): (u32, &f64)| BlockMean::of(block, *mean);
        (1..).zip(values).map(block).collect()
    }

    fn course(figures: &[(f64, &[f64], &[f64])]) -> String {
        let has_control = figures.iter().all(|(_, _, fresh)| !fresh.is_empty());
        let tracked: Vec<Point> = figures
            .iter()
            .flat_map(|(x, aged, fresh)| tracked(*x, &blocks(aged), has_control.then_some(blocks(fresh)).as_deref()))
            .collect();
        let points: Vec<AgeingPoint> =
            figures.iter().map(|(x, aged, fresh)| point(*x, &blocks(aged), &blocks(fresh))).collect();
        let group =
            Group { name: String::new(), axis: "age.rewrite", unit: "overwrite", amount: "", cases: Vec::new() };
        group.sentence(&points, trend::slope(&tracked), trend::course(&tracked))
    }

    #[test]
    fn drift_that_the_control_shares_is_no_ageing() {
        let same = course(&[
            (0.0, &[100.0, 90.0, 95.0], &[100.0, 91.0, 95.0]),
            (3.0, &[80.0, 50.0, 60.0], &[81.0, 50.0, 60.0]),
        ]);
        assert!(same.starts_with("after 3, 0.99"), "{same}");
        assert!(same.contains("times a fresh filesystem's; no slope shown ("), "{same}");
    }

    #[test]
    fn of_nothing_no_multiple_is_told() {
        let filled = course(&[(0.0, &[0.0], &[]), (54.0, &[50.0], &[]), (90.0, &[84.0], &[])]);
        assert!(filled.starts_with("0 at 0, 84 at 90; "), "{filled}");
    }

    #[test]
    fn a_fall_is_reported_with_its_interval() {
        let falls = course(&[
            (0.0, &[100.0, 101.0, 100.0], &[]),
            (1.0, &[80.0, 81.0, 80.0], &[]),
            (3.0, &[50.0, 51.0, 50.0], &[]),
        ]);
        assert!(falls.starts_with("0.502 times that at 0; falls 2"), "{falls}");
        assert!(falls.ends_with("per overwrite; still falling at the last point"), "{falls}");
        let settles = course(&[(0.0, &[50.0], &[]), (1.0, &[101.0], &[]), (3.0, &[100.0], &[]), (10.0, &[99.0], &[])]);
        assert!(settles.ends_with("; steady from 1 on"), "{settles}");
        assert_eq!(course(&[(0.0, &[50.0], &[])]), "measured at one amount only");
    }

    #[test]
    fn a_few_extents_more_are_chance_and_thousands_are_not() {
        let blocks = |count: u64| {
            let trial = AgeFigure::count("extents per GiB", count, 30.0).trial;
            [1, 2, 3].map(|block| BlockMean { block, trial })
        };
        let differs = |aged: u64, fresh: u64| point(10.0, &blocks(aged), &blocks(fresh)).told_apart;
        assert_eq!((differs(3, 4), differs(4000, 3)), (Some(false), Some(true)));
    }

    #[test]
    fn figures_without_variance_are_distinguished_from_one_percent_on() {
        let differs = |fresh: f64| point(10.0, &blocks(&[100.0; 3]), &blocks(&[fresh; 3])).told_apart;
        assert_eq!((differs(100.0), differs(100.5), differs(50.0)), (Some(false), Some(false), Some(true)));
        assert_eq!(point(10.0, &blocks(&[100.0]), &blocks(&[50.0])).told_apart, None);
    }
}
