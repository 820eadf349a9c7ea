//! Error rate and power of runs in turns, on simulated ones whose truth is known: the promises of
//! `docs/adr/0046-turns-on-standing-stacks.md`. Six blocks of six rounds; the noise of a round is common to its cases.

use super::decisions::Decisions;
use super::ratio::BlockMean;
use super::simulation::{Noise, numbered_blocks};
use crate::stats::criticals::Criticals;

const BLOCKS: usize = 6;
const ROUNDS: usize = 6;

/// Standard deviation of the logarithm of a turn's rate.
const OF_TURN: f64 = 0.07;

/// How turns vary, besides.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    None,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// The machine gets slower by a tenth over each block.
    Drift,
    /// In one round in twelve the disk is at a fifth of its speed for half of the turns.
    SlowedDisk,
    /// The first case is twice as noisy.
    UnequalNoise,
}

const TROUBLES: [Trouble; 5] =
    [Trouble::None, Trouble::HeavyTails, Trouble::Drift, Trouble::SlowedDisk, Trouble::UnequalNoise];

/// A run: logarithms of the true rates, and the standard deviation between builds of one stack.
struct Run<'t> {
    truth: &'t [f64],
    between_builds: f64,
    trouble: Trouble,
}

impl Run<'_> {
    fn blocks(&self, noise: &mut Noise) -> Vec<Vec<BlockMean>> {
        let mut rates = vec![Vec::new(); self.truth.len()];
        for _ in 0..BLOCKS {
            let built: Vec<f64> = self.truth.iter().map(|log| log + self.between_builds * noise.normal()).collect();
            let mut seconds = vec![0.0; built.len()];
            for round in 0..ROUNDS {
                self.round(round, &built, noise, &mut seconds);
            }
            seconds.iter().zip(&mut rates).for_each(|(seconds, rates)| rates.push(ROUNDS as f64 / seconds));
        }
        rates.iter().map(|rates| numbered_blocks(rates)).collect()
    }

    /// Adds the seconds that each case's work takes in a round.
    fn round(&self, round: usize, built: &[f64], noise: &mut Noise, seconds: &mut [f64]) {
        let common = 0.2 * noise.normal() - if self.trouble == Trouble::Drift { 0.1 * round as f64 / 6.0 } else { 0.0 };
        let is_slowed = self.trouble == Trouble::SlowedDisk && noise.normal() > 1.38;
        let mut order: Vec<(f64, usize)> = (0..built.len()).map(|case| (noise.normal(), case)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (place, (_, case)) in order.into_iter().enumerate() {
            let own = match self.trouble {
                Trouble::HeavyTails => OF_TURN * heavy(noise),
                Trouble::UnequalNoise if case == 0 => 2.0 * OF_TURN * noise.normal(),
                _ => OF_TURN * noise.normal(),
            };
            let slowed = if is_slowed && place < built.len() / 2 { -1.6 } else { 0.0 };
            seconds[case] += (-(built[case] + common + own + slowed)).exp();
        }
    }

    /// Per cent of runs whose decisions satisfy `is`.
    fn share(&self, runs: u32, seed: u64, is: impl Fn(&Decisions) -> bool) -> f64 {
        let (mut noise, mut criticals) = (Noise::seeded(seed), Criticals::seeded(1));
        let found = (0..runs).filter(|_| is(&Decisions::of(&self.blocks(&mut noise), &mut criticals))).count();
        found as f64 / f64::from(runs) * 100.0
    }
}

/// Student's t with three degrees of freedom, of variance one.
fn heavy(noise: &mut Noise) -> f64 {
    let squares: f64 = (0..3).map(|_| noise.normal().powi(2)).sum();
    noise.normal() / squares.sqrt()
}

/// Runs of a cell: 10 000 in the full suite.
fn runs() -> u32 {
    if std::env::var_os("PGSTRATA_TEST_FULL").is_some() { 10_000 } else { 500 }
}

#[test]
fn equal_cases_in_turns_rarely_differ_whatever_the_noise() {
    let is_full = runs() > 500;
    // Three standard errors of a share of 5.5 % above it.
    let most = 5.5 + 3.0 * (5.5 * 94.5 / f64::from(runs())).sqrt();
    let cells: &[(usize, f64)] = match is_full {
        true => &[(4, 0.0), (4, 0.02), (4, 0.05), (4, 0.1), (8, 0.02), (16, 0.02)],
        false => &[(4, 0.02), (8, 0.05)],
    };
    for (cases, between_builds) in cells.iter().copied() {
        for trouble in TROUBLES {
            let run = Run { truth: &vec![0.0; cases], between_builds, trouble };
            let any = |found: &Decisions| (0..cases).any(|case| found.rank(case) > 1);
            let found = run.share(runs(), 20_261_127, any);
            println!(
                "{cases} cases, builds by {between_builds}, {trouble:?}: {found:.1} % of runs with a false difference"
            );
            assert!(found <= most, "{found} %");
        }
    }
}

#[test]
fn a_case_ten_percent_apart_is_found_in_turns() {
    let run = Run { truth: &[1.1f64.ln(), 0.0, 0.0, 0.0], between_builds: 0.02, trouble: Trouble::None };
    let all = run.share(runs(), 7, |found| (1..4).all(|case| found.faster(0, case)));
    let found = run.share(runs(), 7, |found| found.faster(0, 1));
    println!("a case 10 % apart is told from one of three equal ones in {found:.1} % of runs, from all in {all:.1} %");
    assert!(found >= 90.0, "{found} %");
}
