//! The two promises of a search, by simulation: a rate that holds is seldom above the capacity; the capacity is
//! unbiased and its interval covers.

use super::*;
use crate::stats::simulation::Noise;
use std::sync::LazyLock;

const STEPS: usize = 14;

/// Searches per cell of a table.
const SEARCHES: usize = 600;

/// Summary of the searches of one kind.
#[derive(Debug, Default)]
struct Promises {
    /// Share of searches whose rate that holds is above the capacity.
    above: f64,
    /// Share of searches without a rate that holds.
    none: f64,
    /// Mean logarithm of the rate that holds over the capacity.
    holds: f64,
    /// Mean and standard deviation of the logarithm of the estimate over the capacity.
    bias: f64,
    deviation: f64,
    /// Share of intervals that contain the capacity.
    covered: f64,
}

/// Simulates a search: each try has its own capacity, lognormal around `capacity` (rungs) with this spread.
fn searched(noise: &mut Noise, capacity: f64, spread: f64) -> Vec<Try> {
    let mut tried: Vec<Try> = Vec::new();
    for _ in 0..STEPS {
        let rung = next(&tried);
        let passed = f64::from(rung) * RUNG.ln() <= capacity * RUNG.ln() + spread * noise.normal();
        tried.push(Try { rung, passed });
    }
    tried
}

/// Summary for capacities from `least` to `most` rungs above the start of the search.
fn promises(spread: f64, least: f64, most: f64) -> Promises {
    let mut noise = Noise::seeded(23);
    let mut sums = Promises::default();
    let (mut errors, mut held) = (Vec::new(), Vec::new());
    for search in 0..SEARCHES {
        let capacity = least + (most - least) * search as f64 / SEARCHES as f64;
        let tried = searched(&mut noise, capacity, spread);
        match holds(&tried) {
            Some(rung) => {
                held.push((f64::from(rung) - capacity) * RUNG.ln());
                sums.above += f64::from(u8::from(f64::from(rung) > capacity));
            }
            None => sums.none += 1.0,
        }
        if let Some(about) = about(&tried) {
            errors.push((about.rung - capacity) * RUNG.ln());
            sums.covered += f64::from(u8::from(about.low <= capacity && capacity <= about.high));
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    assert!(errors.len() > SEARCHES * 98 / 100, "{} have a figure", errors.len());
    sums.covered /= errors.len() as f64;
    (sums.above, sums.none) = (sums.above / SEARCHES as f64, sums.none / SEARCHES as f64);
    (sums.holds, sums.bias) = (mean(&held), mean(&errors));
    sums.deviation = mean(&errors.iter().map(|error| (error - sums.bias).powi(2)).collect::<Vec<f64>>()).sqrt();
    sums
}

/// Ranges of capacities: near 0.7 of the rate without a limit, where the search begins, and well below.
const NEAR: (f64, f64) = (-2.0, 8.0);
const FAR: (f64, f64) = (-30.0, -10.0);

/// Noise of a try, true if the capacity lies far below the start, and the result.
static CELLS: LazyLock<Vec<(f64, bool, Promises)>> = LazyLock::new(|| {
    let cells = [0.02, 0.05, 0.10].into_iter().flat_map(|spread| [(spread, false), (spread, true)]);
    let found = |(spread, far)| {
        let (least, most) = if far { FAR } else { NEAR };
        (spread, far, promises(spread, least, most))
    };
    cells.map(found).collect()
});

#[test]
fn at_most_3_percent_of_searches_overstate_the_capacity() {
    for (spread, far, found) in CELLS.iter() {
        println!("spread {spread}, far {far}: {found:?}");
        assert!(found.above <= 0.03, "spread {spread}, far {far}: {found:?}");
        assert!(found.holds > -0.19, "spread {spread}, far {far}: {found:?}");
        let none = if *spread < 0.1 { 0.1 } else { 0.35 };
        assert!(found.none <= none, "spread {spread}, far {far}: {found:?}");
    }
}

#[test]
fn capacity_bias_is_below_two_percent_at_95_percent_coverage() {
    for (spread, far, found) in CELLS.iter() {
        assert!(found.bias.abs() < 0.02, "spread {spread}, far {far}: {found:?}");
        assert!(found.covered > 0.93, "spread {spread}, far {far}: {found:?}");
        assert!(found.deviation < 0.07, "spread {spread}, far {far}: {found:?}");
    }
}

#[test]
fn without_noise_the_capacity_is_found_within_one_rung() {
    let mut noise = Noise::seeded(1);
    for capacity in [-40.3, -12.5, 0.2, 6.9, 14.4] {
        let tried = searched(&mut noise, capacity, 0.0);
        let (about, held) = (about(&tried).unwrap(), holds(&tried).unwrap());
        assert!((about.rung - capacity).abs() < 1.2, "{capacity}: {about:?} {tried:?}");
        assert!(f64::from(held) <= capacity && f64::from(held) > capacity - 7.0, "{capacity}: {held} {tried:?}");
    }
}

#[test]
fn searches_without_both_passes_and_failures_have_no_capacity() {
    let all = |passed| (0..STEPS as i32).map(|rung| Try { rung, passed }).collect::<Vec<Try>>();
    assert_eq!((about(&all(true)), about(&all(false))), (None, None));
    assert_eq!(holds(&all(true)), None);
    let row = |passed: [bool; 4]| passed.map(|passed| Try { rung: 7, passed });
    assert_eq!(holds(&row([true, true, false, true])), None);
    assert_eq!(holds(&row([false, true, true, true])), Some(7));
}
