//! Error rate and power of the whole procedure, from trials to ranks, on simulated runs whose truth is known.
//!
//! These tests' bounds are the promises of `docs/adr/0017-ranks-are-decided-together.md`. The blocks of a simulated run
//! drift together by 10 %, which pairing must remove.

use super::decisions::{Decisions, Procedure};
use super::margin::Margin;
use super::ratio::{BlockMean, ratio};
use super::simulation::{Noise, numbered_blocks};
use crate::stats::criticals::Criticals;

/// A run to simulate: each case's rate, and the standard deviation of its trials' logarithms.
struct Run {
    blocks: usize,
    cases: Vec<(f64, f64)>,
}

impl Run {
    /// Equal cases with these noises.
    fn equal(blocks: usize, noises: &[f64]) -> Run {
        Run { blocks, cases: noises.iter().map(|noise| (1000.0, *noise)).collect() }
    }

    fn trials(&self, noise: &mut Noise) -> Vec<Vec<BlockMean>> {
        let drift: Vec<f64> = (0..self.blocks).map(|_| 0.1 * noise.normal()).collect();
        let mut case = |(rate, own): &(f64, f64)| {
            let rates: Vec<f64> = drift.iter().map(|drift| rate * (drift + own * noise.normal()).exp()).collect();
            numbered_blocks(&rates)
        };
        self.cases.iter().map(&mut case).collect()
    }

    /// Per cent of `runs` whose decisions satisfy `is`.
    fn share(&self, runs: u32, seed: u64, is: impl Fn(&Decisions) -> bool) -> f64 {
        let (mut noise, mut criticals) = (Noise::seeded(seed), Criticals::seeded(1));
        let found = (0..runs).filter(|_| is(&Decisions::of(&self.trials(&mut noise), &mut criticals))).count();
        found as f64 / f64::from(runs) * 100.0
    }

    /// Per cent of runs with a false rank; all cases must be equal.
    fn false_ranks(&self, runs: u32, seed: u64) -> f64 {
        let any = |found: &Decisions| (0..self.cases.len()).any(|case| found.rank(case) > 1);
        self.share(runs, seed, any)
    }

    /// Per cent of runs in which the first case alone has rank 1.
    fn first_wins(&self, runs: u32, seed: u64) -> f64 {
        let wins = |found: &Decisions| found.rank(0) == 1 && (1..self.cases.len()).all(|case| found.rank(case) > 1);
        self.share(runs, seed, wins)
    }
}

#[test]
fn equal_stacks_are_falsely_ranked_in_at_most_six_percent() {
    // The standard error of a share is 0.3 % at 5000 runs.
    for (cases, runs) in [(3, 5000), (4, 5000), (8, 5000), (16, 4000)] {
        for blocks in [3, 5] {
            let found = Run::equal(blocks, &vec![0.03; cases]).false_ranks(runs, 20_261_122);
            println!("{cases} cases, {blocks} blocks: {found:.1} % of runs with a false rank");
            assert!((3.5..=6.0).contains(&found), "{found} % with {cases} cases in {blocks} blocks");
        }
    }
}

#[test]
fn separate_ratios_would_rank_equal_stacks_falsely_far_more_often() {
    for (cases, least) in [(4, 15.0), (8, 37.0)] {
        let (run, mut noise) = (Run::equal(5, &vec![0.03; cases]), Noise::seeded(7));
        let wrong = (0..1000).filter(|_| {
            let mut trials = run.trials(&mut noise);
            let rate = |case: &[BlockMean]| case.iter().map(|trial| trial.trial.mean.ln()).sum::<f64>();
            trials.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
            trials.iter().skip(1).any(|case| ratio(case, &trials[0]).is_some_and(|ratio| ratio.tells_apart()))
        });
        let found = wrong.count() as f64 / 10.0;
        assert!(found >= least, "{found} % with {cases} cases: the simulation shows nothing");
    }
}

#[test]
fn unequal_noise_raises_false_ranks_as_the_decision_record_states() {
    let rising = |cases: usize, most: f64| -> Vec<f64> {
        (0..cases).map(|case| 0.01 * (1.0 + (most - 1.0) * case as f64 / (cases - 1) as f64)).collect()
    };
    let one = |cases: usize, times: f64| -> Vec<f64> {
        (0..cases).map(|case| if case == 0 { 0.01 * times } else { 0.01 }).collect()
    };
    let table = [
        ("1 to 8 %", rising(4, 8.0), 3, 9.5),
        ("1 to 8 %", rising(4, 8.0), 5, 9.5),
        ("1 to 8 %", rising(8, 8.0), 3, 13.0),
        ("1 to 8 %", rising(8, 8.0), 5, 11.5),
        ("one of 3 times", one(4, 3.0), 5, 11.0),
        ("one of 3 times", one(8, 3.0), 5, 13.0),
        ("one of 10 times", one(4, 10.0), 3, 14.0),
        ("one of 10 times", one(4, 10.0), 5, 6.5),
        ("one of 10 times", one(8, 10.0), 3, 16.0),
        ("one of 10 times", one(8, 10.0), 5, 6.5),
    ];
    for (what, noises, blocks, most) in table {
        let run = Run::equal(blocks, &noises);
        let found = run.false_ranks(3000, 5);
        let cases = noises.len();
        let switched = run.share(1000, 6, |found| matches!(found.procedure, Procedure::Holm { .. }));
        println!(
            "{what}: {cases} cases, {blocks} blocks: {found:.1} % of runs with a false rank, {switched:.0} % by Holm"
        );
        assert!(found <= most, "{found} % with {cases} cases in {blocks} blocks, {what}");
    }
}

#[test]
fn a_15_percent_lead_is_detected_at_3_percent_noise() {
    // 15 % ahead of equal others.
    let led = |cases: usize, blocks: usize| {
        let mut rates = vec![(1000.0, 0.03); cases];
        rates[0].0 *= 1.15;
        Run { blocks, cases: rates }
    };
    for (cases, blocks, least) in [(4, 3, 88.0), (4, 5, 99.0), (8, 3, 85.5), (8, 5, 98.5)] {
        let found = led(cases, blocks).first_wins(4000, 3);
        println!("{cases} cases, {blocks} blocks: {found:.1} % of runs name the winner");
        assert!(found >= least, "{found} % with {cases} cases in {blocks} blocks");
    }
}

#[test]
fn a_quiet_pair_is_told_apart_beside_a_jumpy_case() {
    let cases = vec![(1000.0, 0.01), (900.0, 0.01), (1000.0, 0.01), (700.0, 0.3)];
    let found = Run { blocks: 5, cases }.share(1000, 3, |found| found.faster(0, 1) && found.faster(2, 1));
    assert!(found >= 85.0, "{found} %");
}

#[test]
fn a_detectable_difference_is_found_in_four_of_five_runs() {
    // Four cases in five blocks at 3 %: the margin is q(4, 12) = 4.20 times 0.03 / sqrt(5), or 5.6 %; a ratio falls
    // short of its true value by more than t(12) = 0.873 standard errors of 1.9 % in one run of five.
    let equal = Run::equal(5, &[0.03; 4]);
    let (mut noise, mut criticals) = (Noise::seeded(8), Criticals::seeded(1));
    let detectable = (0..500).filter_map(|_| {
        Decisions::of(&equal.trials(&mut noise), &mut criticals).margin(0, 1).and_then(Margin::detectable)
    });
    let mut detectable: Vec<f64> = detectable.collect();
    detectable.sort_by(f64::total_cmp);
    let median = detectable[detectable.len() / 2] - 1.0;
    assert!((median / 0.0756 - 1.0).abs() < 0.08, "{median}");
    let mut cases = vec![(1000.0, 0.03); 4];
    cases[0].0 *= 1.0 + median;
    let seen = Run { blocks: 5, cases }.share(2000, 9, |found| found.faster(0, 1));
    assert!((75.0..=86.0).contains(&seen), "{seen} %");
}
