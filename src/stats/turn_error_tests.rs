//! Error rate and power of runs in turns, on simulated ones whose truth is known: the promises of
//! `docs/adr/0046-turns-on-standing-stacks.md`. Blocks of six rounds, mostly six; the noise of a round is common to its
//! cases.

use super::beside;
use super::carry_over::{Turn, borne};
use super::decisions::Decisions;
use super::ratio::BlockMean;
use super::simulation::{Noise, numbered_blocks};
use crate::stats::criticals::Criticals;

/// The default of plans.
const BLOCKS: u32 = 6;
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
    /// Turns after one of the first case are so much slower.
    CarryOver(f64),
    /// Others come for eight turns in the mean, take a fifth to half of the CPUs, and go for as many.
    Neighbour,
}

const TROUBLES: [Trouble; 9] = [
    Trouble::None,
    Trouble::HeavyTails,
    Trouble::Drift,
    Trouble::SlowedDisk,
    Trouble::UnequalNoise,
    Trouble::CarryOver(0.1),
    Trouble::CarryOver(0.05),
    Trouble::CarryOver(0.03),
    Trouble::Neighbour,
];

/// A run: logarithms of the true rates, and the standard deviation between builds of one stack.
struct Run<'t> {
    truth: &'t [f64],
    blocks: u32,
    between_builds: f64,
    trouble: Trouble,
}

impl Run<'_> {
    fn measured(&self, noise: &mut Noise, machine: &mut Machine) -> Vec<Vec<BlockMean>> {
        let cases = self.truth.len();
        let mut turns = Vec::new();
        for block in 1..=self.blocks {
            let built: Vec<f64> = self.truth.iter().map(|log| log + self.between_builds * noise.normal()).collect();
            let first = turns.len();
            for round in 1..=ROUNDS {
                self.round((block, round as u32), &built, noise, &mut turns, first, machine);
            }
        }
        let beside = beside::taken_out(&turns, u32::MAX);
        let mut borne = borne(&beside.turns, cases, u32::MAX);
        beside.borne.iter().for_each(|(at, log)| *borne.entry(*at).or_default() += log);
        let rate = |case: usize, block: u32| {
            let own = turns.iter().filter(|turn| (turn.case, turn.block) == (case, block));
            ROUNDS as f64
                / own.map(|turn| (-turn.log).exp()).sum::<f64>()
                / borne.get(&(case, block)).map_or(1.0, |log| log.exp())
        };
        let rates = |case: usize| (1..=self.blocks).map(|block| rate(case, block)).collect::<Vec<_>>();
        (0..cases).map(|case| numbered_blocks(&rates(case))).collect()
    }

    /// Adds the turns of a round of the block that begins at `first`, in an order of E. J. Williams's design, beside
    /// others that take that share of the CPUs.
    fn round(
        &self,
        at: (u32, u32),
        built: &[f64],
        noise: &mut Noise,
        turns: &mut Vec<Turn>,
        first: usize,
        machine: &mut Machine,
    ) {
        let ((block, round), cases) = (at, built.len());
        let drift = if self.trouble == Trouble::Drift { 0.1 * f64::from(round) / 6.0 } else { 0.0 };
        let common = 0.2 * noise.normal() - drift;
        let is_slowed = self.trouble == Trouble::SlowedDisk && noise.normal() > 1.38;
        for place in 0..cases {
            let zigzag = if place % 2 == 0 { place / 2 } else { cases - place.div_ceil(2) };
            let case = (zigzag + (block * 5 + round) as usize) % cases;
            let after = turns[first..].last().map(|turn| turn.case);
            let own = match self.trouble {
                Trouble::HeavyTails => OF_TURN * heavy(noise),
                // A rate is operations by time, so equal cases have equal mean times, whatever their noise.
                Trouble::UnequalNoise if case == 0 => 2.0 * OF_TURN * noise.normal() + 1.5 * OF_TURN.powi(2),
                _ => OF_TURN * noise.normal(),
            };
            let slowed = if is_slowed && place < cases / 2 { -1.6 } else { 0.0 };
            let carried = match self.trouble {
                Trouble::CarryOver(slower) if after == Some(0) => (1.0 - slower).ln(),
                _ => 0.0,
            };
            // Others are hardly ever quite away.
            let others_share = Some(machine.others + 0.01 + 0.002 * machine.noise.normal());
            let disturbed = if self.trouble == Trouble::Neighbour { (1.0 - machine.turn()).ln() } else { 0.0 };
            let log = built[case] + common + own + slowed + carried + disturbed;
            turns.push(Turn { case, block, round, after, log, others_share });
        }
    }

    /// Per cent of runs whose decisions satisfy `is`.
    fn share(&self, runs: u32, seed: u64, is: impl Fn(&Decisions) -> bool) -> f64 {
        let (mut noise, mut criticals) = (Noise::seeded(seed), Criticals::seeded(1));
        let mut machine = Machine { others: 0.0, noise: Noise::seeded(seed + 1) };
        let found = (0..runs).filter(|_| is(&Decisions::of(&self.measured(&mut noise, &mut machine), &mut criticals)));
        let found = found.count();
        found as f64 / f64::from(runs) * 100.0
    }
}

/// What else the machine does, with noise of its own.
struct Machine {
    /// Share of the CPUs that others take.
    others: f64,
    noise: Noise,
}

impl Machine {
    /// Mean share of the CPUs that others take during a turn; they come or go in the middle of one in eight.
    fn turn(&mut self) -> f64 {
        let before = self.others;
        if self.noise.normal() > 1.15 {
            self.others = if before > 0.0 { 0.0 } else { (0.35 + 0.08 * self.noise.normal()).clamp(0.2, 0.5) };
        }
        (before + self.others) / 2.0
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
    // Three blocks are the fewest that have an interval, five those of a plan without `blocks`.
    let cells: &[(usize, f64, u32)] = match is_full {
        true => &[
            (4, 0.0, BLOCKS),
            (4, 0.02, BLOCKS),
            (4, 0.05, BLOCKS),
            (4, 0.1, BLOCKS),
            (8, 0.02, BLOCKS),
            (16, 0.02, BLOCKS),
            (4, 0.02, 3),
            (4, 0.02, 5),
        ],
        false => &[(4, 0.02, BLOCKS), (8, 0.05, BLOCKS), (4, 0.02, 3)],
    };
    let mut above = Vec::new();
    for (cases, between_builds, blocks) in cells.iter().copied() {
        for trouble in TROUBLES {
            let run = Run { truth: &vec![0.0; cases], blocks, between_builds, trouble };
            let any = |found: &Decisions| (0..cases).any(|case| found.rank(case) > 1);
            let found = run.share(runs(), 20_261_127, any);
            let cell = format!("{cases} cases, {blocks} blocks, builds by {between_builds}, {trouble:?}");
            println!("{cell}: {found:.1} % of runs with a false difference");
            // Three blocks are too few to tell one noisy case by its ratios: 6.3 % of 10 000 runs (ADR 46).
            let is_promised = blocks > 3 || trouble != Trouble::UnequalNoise;
            above.extend((is_promised && found > most).then(|| format!("{cell}: {found:.1} %")));
        }
    }
    assert!(above.is_empty(), "above {most:.1} %: {above:#?}");
}

#[test]
fn a_case_ten_percent_apart_is_found_in_turns() {
    let run =
        Run { truth: &[1.1f64.ln(), 0.0, 0.0, 0.0], blocks: BLOCKS, between_builds: 0.02, trouble: Trouble::None };
    // The standard error of a share is 0.5 % at 4000 runs.
    let runs = runs().max(4000);
    let all = run.share(runs, 7, |found| (1..4).all(|case| found.faster(0, case)));
    let found = run.share(runs, 7, |found| found.faster(0, 1));
    println!("a case 10 % apart is told from one of three equal ones in {found:.1} % of runs, from all in {all:.1} %");
    assert!(found >= 90.0, "{found} %");
    let run = Run { trouble: Trouble::Neighbour, ..run };
    let beside = run.share(runs, 7, |found| found.faster(0, 1));
    println!("beside a neighbour in {beside:.1} %");
    assert!(beside >= 75.0, "{beside} %");
}
