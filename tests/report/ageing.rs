//! Figures of ageing made up for these tests.

use pgstrata::analyse::findings::{Ageing, AgeingPoint, Estimate};

/// A rate and a quotient over overwrites, on an aged filesystem and on a fresh one.
pub fn figures() -> Vec<Ageing> {
    let estimate = |value: f64, trials: u32| {
        let ends = (trials > 1).then_some((0.98 * value, 1.02 * value));
        Some(Estimate::of(value, ends, trials as usize))
    };
    let point = |x, aged, fresh| AgeingPoint { x, aged, fresh, ratio: None, told_apart: None };
    let figure = |figure: &str, unit: &str, points: [(f64, u32, f64, f64); 3]| Ageing {
        name: "btrfs, scan".to_owned(),
        axis: "age.rewrite".to_owned(),
        amount: "times overwritten (page rewrite)".to_owned(),
        figure: figure.to_owned(),
        unit: unit.to_owned(),
        points: points.map(|(x, trials, aged, fresh)| point(x, estimate(aged, trials), estimate(fresh, trials))).into(),
        slope: None,
        sentence: "after 10, 0.5 times a fresh filesystem's".to_owned(),
    };
    vec![
        figure("scan", "MiB/s", [(0.0, 3, 410.0, 405.0), (1.0, 1, 300.0, 402.0), (10.0, 3, 205.0, 401.0)]),
        figure("space used / logical size", "", [(0.0, 3, 1.0, 1.0), (1.0, 1, 1.1, 1.0), (10.0, 3, 1.2, 1.0)]),
    ]
}
