//! One nominal level for all looks at a run that may stop early. Tukey's test at this level after each block, from the
//! first look to the last, shows any false difference in at most 5 % of runs (S. J. Pocock, Biometrika 64 (1977) 191,
//! for the studentized range of all cases).
//!
//! Simulated on demand, as there is no table. The margins at this level are repeated confidence intervals: all looks
//! and pairs hold together in 95 % of runs, whatever the reason to stop (C. Jennison, B. W. Turnbull, J. R. Stat. Soc.
//! B 51 (1989) 305).

use crate::stats::interval::CONFIDENCE;
use crate::stats::noise::{RESERVED, normal};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// Trials to simulate in total; a design of 8 cases in 12 blocks takes a tenth of a second.
const TRIALS_MAX: usize = 4_000_000;
/// Minimum and maximum designs to simulate; the minimum keeps the error of the level within 5 % of it.
const DESIGNS: (usize, usize) = (8_000, 20_000);

/// Nominal level if `cases` equal cases of equal noise are looked at after each block from `first` to `last`.
pub(super) fn level(cases: usize, first: u32, last: u32, seed: u64) -> f64 {
    if cases < 2 || first >= last {
        return LEVEL;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let designs = (TRIALS_MAX / (cases * last as usize)).clamp(DESIGNS.0, DESIGNS.1);
    let mut by_look: Vec<Vec<f64>> = vec![Vec::with_capacity(designs); (last - first + 1) as usize];
    for _ in 0..designs {
        simulate(cases, first, &mut by_look, &mut rng);
    }
    // For each design, the least of its looks: the share of designs at least as extreme at that look.
    let mut least = vec![1.0f64; designs];
    for ranges in &by_look {
        let mut order: Vec<usize> = (0..designs).collect();
        order.sort_by(|a, b| ranges[*b].total_cmp(&ranges[*a]));
        for (place, design) in order.into_iter().enumerate() {
            least[design] = least[design].min((place + 1) as f64 / designs as f64);
        }
    }
    least.sort_by(f64::total_cmp);
    let share = if cases > 2 { LEVEL - RESERVED } else { LEVEL };
    least[(share * designs as f64) as usize].min(LEVEL)
}

/// Simulates one design: at each look, the square of the studentized range, up to a factor common to all designs.
fn simulate(cases: usize, first: u32, by_look: &mut [Vec<f64>], rng: &mut ChaCha8Rng) {
    let k = cases as f64;
    let mut sums = vec![0.0f64; cases];
    let (mut squares, mut of_blocks) = (0.0, 0.0);
    let last = first as usize + by_look.len() - 1;
    for block in 1..=last {
        let mut of_block = 0.0;
        for sum in &mut sums {
            let value = normal(rng);
            *sum += value;
            squares += value * value;
            of_block += value;
        }
        of_blocks += of_block * of_block / k;
        let Some(look) = block.checked_sub(first as usize) else { continue };
        let n = block as f64;
        let all: f64 = sums.iter().sum();
        let of_cases = sums.iter().map(|sum| sum * sum).sum::<f64>() / n;
        let residual = squares - of_blocks - of_cases + all * all / (k * n);
        let (low, high) = sums.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (x.min(l), x.max(h)));
        by_look[look].push((high - low).powi(2) / residual.max(f64::MIN_POSITIVE));
    }
}

/// Probability of any false difference among the pairs.
pub const LEVEL: f64 = 1.0 - CONFIDENCE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_levels_match_a_published_style_t_test_simulation() {
        // Expected: 100 000 runs each, simulated by another program, accurate to 3 %; ours to 5 %.
        for (first, last, wanted) in [(3, 5, 0.0225), (3, 10, 0.0118), (3, 12, 0.0106), (5, 10, 0.0179)] {
            let found = level(2, first, last, 1);
            println!("2 cases, looks {first} to {last}: {found:.4}");
            assert!((found / wanted - 1.0).abs() < 0.12, "{found} {wanted}");
        }
    }

    #[test]
    fn one_look_has_the_full_level_and_more_looks_less() {
        assert_eq!((level(4, 5, 5, 1), level(1, 3, 9, 1)), (LEVEL, LEVEL));
        let levels: Vec<f64> = [4, 6, 12].iter().map(|last| level(4, 3, *last, 1)).collect();
        println!("4 cases, looks from 3 to 4, 6, 12: {levels:?}");
        assert!(levels[0] < LEVEL && levels[1] < levels[0] && levels[2] < levels[1], "{levels:?}");
        assert!(levels[2] > LEVEL / 10.0, "looks hang together: {levels:?}");
    }
}
