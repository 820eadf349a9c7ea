//! Finds one slow machine among equal ones: distance from the median in units of the median absolute deviation (MAD),
//! which the slow one itself does not move (F. R. Hampel, JASA 69 (1974) 383).
//!
//! The usual limit of 3 or 3.5 is for one value; here the worst of `n` values is tested, and median and MAD come from
//! these few values. The limit therefore depends on `n`. It was simulated for `n` equal machines with normal noise,
//! 60 000 times for up to 50 machines, 20 000 times for 200, 4000 times beyond; [`LIMITS`] holds the distance that the
//! slowest one exceeds in 5 %. (At 20 machines a limit of 3 names one in 11 %, one of 3.5 in 6 %.) A test repeats the
//! simulation.
//!
//! Only slow machines are named, so the test has one side.

/// Fewest machines among which one is named. One that is 15 % slower at 3 % noise is found in 36 % of cases among five,
/// 58 % among six, 75 % among ten, 89 % among twenty.
pub const FEWEST: usize = 6;

/// Scales the MAD of normal values to their standard deviation: 1 / Phi^-1(3/4).
const NORMAL: f64 = 1.482_602_218_505_602;

/// Number of machines, and the limit. Between two entries the larger limit holds: odd numbers have larger limits than
/// their even neighbours.
const LIMITS: [(usize, f64); 18] = [
    (6, 4.36),
    (7, 4.69),
    (8, 4.05),
    (9, 4.28),
    (10, 3.87),
    (11, 4.00),
    (12, 3.77),
    (13, 3.88),
    (14, 3.69),
    (15, 3.74),
    (20, 3.59),
    (30, 3.50),
    (50, 3.48),
    (100, 3.51),
    (200, 3.62),
    (500, 3.75),
    (1000, 3.91),
    (10_000, 4.4),
];

/// Values with their distances.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustSpread {
    pub median: f64,
    /// Median absolute deviation, scaled to the standard deviation of normal values.
    pub deviation: f64,
    /// Distance of each value below the median, in such deviations; negative above it. Empty if nothing varies.
    pub below: Vec<f64>,
    /// Distance beyond which a value is named; `None` for too few values, or if nothing varies.
    pub limit: Option<f64>,
}

impl RobustSpread {
    /// `None` if `values` is empty.
    pub fn of(values: &[f64]) -> Option<RobustSpread> {
        let median = median(values)?;
        let distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let deviation = NORMAL * self::median(&distances)?;
        let varies = deviation > 0.0;
        let below = if varies { values.iter().map(|value| (median - value) / deviation).collect() } else { Vec::new() };
        Some(RobustSpread { median, deviation, below, limit: limit(values.len()).filter(|_| varies) })
    }

    /// Indices of the values further below the median than the limit.
    pub fn named(&self) -> Vec<usize> {
        let Some(limit) = self.limit else { return Vec::new() };
        (0..self.below.len()).filter(|place| self.below[*place] > limit).collect()
    }
}

/// Median; for an even number of values, the mean of the middle two.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = if sorted.len().is_multiple_of(2) { *sorted.get(sorted.len() / 2 - 1)? } else { upper };
    Some(f64::midpoint(lower, upper))
}

fn limit(values: usize) -> Option<f64> {
    let above = LIMITS.iter().position(|(n, _)| *n >= values)?;
    let (n, own) = LIMITS[above];
    let before = above.checked_sub(1).map(|before| LIMITS[before].1).filter(|_| n != values);
    (values >= FEWEST).then(|| before.map_or(own, |before| before.max(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::simulation::Noise;
    use proptest::prelude::{prop_assert, proptest};

    /// Simulates `times` fleets of `hosts` machines with 3 % noise: counts those in which the first machine, slower by this
    /// share, is named, and those in which another one is.
    fn simulated(hosts: usize, slower: f64, times: u32, seed: u64) -> (u32, u32) {
        let mut noise = Noise::seeded(seed);
        let (mut first, mut others) = (0, 0);
        for _ in 0..times {
            let mut speeds: Vec<f64> = (0..hosts).map(|_| 0.03 * noise.normal()).collect();
            speeds[0] += (1.0 - slower).ln();
            let named = RobustSpread::of(&speeds).unwrap().named();
            first += u32::from(named.contains(&0));
            others += u32::from(named.iter().any(|place| *place != 0));
        }
        (first, others)
    }

    #[test]
    fn the_machine_15_percent_slower_among_twenty_is_found() {
        let (found, others) = simulated(20, 0.15, 1000, 1);
        // 887 expected, standard deviation 10; the mean of several trials has a noise below 3 %.
        assert!((840..930).contains(&found), "{found}");
        assert!(others < 80, "{others}");
    }

    #[test]
    fn no_machine_is_named_in_95_percent_of_equal_fleets() {
        for (hosts, seed) in [(6, 2), (7, 3), (10, 4), (11, 5), (13, 6), (20, 7), (33, 8), (75, 9)] {
            let (first, others) = simulated(hosts, 0.0, 2000, seed);
            let named = first + others;
            // 100 expected, standard deviation 10; one fleet may add to both counts.
            assert!((55..140).contains(&named), "{hosts} machines: {named} of 2000");
        }
    }

    #[test]
    fn a_limit_for_one_value_names_too_many_of_twenty() {
        let mut noise = Noise::seeded(10);
        let beyond = |limit: f64, noise: &mut Noise| {
            let fleets = (0..2000).filter(|_| {
                let speeds: Vec<f64> = (0..20).map(|_| noise.normal()).collect();
                RobustSpread::of(&speeds).unwrap().below.iter().any(|below| *below > limit)
            });
            fleets.count()
        };
        // 11.5 % of 2000 expected, standard deviation 14.
        assert!((180..290).contains(&beyond(3.0, &mut noise)));
    }

    #[test]
    fn among_too_few_machines_and_equal_figures_none_is_named() {
        let few = RobustSpread::of(&[0.0, 0.01, -0.01, 0.0, -2.0]).unwrap();
        assert_eq!((few.limit, few.named()), (None, Vec::new()));
        let equal = RobustSpread::of(&[1.0; 20]).unwrap();
        assert_eq!((equal.limit, equal.named()), (None, Vec::new()));
        let one = RobustSpread::of(&[0.0, 0.01, -0.01, 0.02, -0.02, -2.0]).unwrap();
        assert_eq!(one.named(), [5]);
        assert_eq!(RobustSpread::of(&[]), None);
        // Fast machines are not named.
        assert_eq!(RobustSpread::of(&[0.0, 0.01, -0.01, 0.02, -0.02, 2.0]).unwrap().named(), Vec::<usize>::new());
    }

    #[test]
    fn the_median_of_an_even_number_lies_in_the_middle_of_two() {
        assert_eq!((median(&[5.0, 1.0, 9.0]), median(&[4.0, 1.0, 9.0, 5.0])), (Some(5.0), Some(4.5)));
        assert_eq!(median(&[]), None);
    }

    proptest! {
        #[test]
        fn at_most_half_of_the_values_lie_above_the_median(values in proptest::collection::vec(0.0..1000.0, 1..50)) {
            let middle = median(&values).unwrap();
            let below = values.iter().filter(|value| **value < middle).count();
            let above = values.iter().filter(|value| **value > middle).count();
            prop_assert!(below * 2 <= values.len() && above * 2 <= values.len());
        }
    }

    #[test]
    fn between_two_numbers_of_machines_the_larger_limit_holds() {
        assert_eq!((limit(5), limit(6), limit(17), limit(60)), (None, Some(4.36), Some(3.74), Some(3.51)));
    }
}
