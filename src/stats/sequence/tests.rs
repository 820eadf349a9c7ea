//! Error rate of adaptive blocks and trials saved, on simulated runs whose truth is known.

use super::super::decisions::Decisions;
use super::*;
use crate::stats::simulation::{Noise, numbered_blocks, runs};

/// A run to simulate: each case's rate, and the standard deviation of its trials' logarithms.
struct Run {
    rule: StoppingRule,
    last: u32,
    cases: Vec<(f64, f64)>,
}

/// Result of a simulated run.
struct Outcome {
    sequence: Sequence,
    trials: usize,
}

impl Outcome {
    fn any_difference(&self) -> bool {
        self.sequence.relations.contains(&Relation::Larger)
    }

    fn first_wins(&self) -> bool {
        (1..self.sequence.cases).all(|case| self.sequence.relation(0, case) == Relation::Larger)
    }
}

impl Run {
    fn planned(first: u32, last: u32, cases: Vec<(f64, f64)>) -> Run {
        Run { rule: StoppingRule::Planned { first, last }, last, cases }
    }

    /// One case leads equal others by 15 %.
    fn led(last: u32, cases: usize, noise: f64) -> Run {
        let mut rates = vec![(1000.0, noise); cases];
        rates[0].0 *= 1.15;
        Run::planned(3, last, rates)
    }

    /// Simulates block by block, as a run does: only cases still needed get trials.
    fn simulate(&self, noise: &mut Noise, criticals: &mut Criticals) -> Outcome {
        let mut sequence = Sequence::new(self.cases.len(), self.rule, PRECISION_PERCENT);
        let mut trials: Vec<Vec<BlockMean>> = vec![Vec::new(); self.cases.len()];
        let mut needed: Vec<usize> = (0..self.cases.len()).collect();
        for block in 1..=self.last {
            let drift = 0.1 * noise.normal();
            for case in &needed {
                let (rate, own) = self.cases[*case];
                let mean = rate * (drift + own * noise.normal()).exp();
                trials[*case].push(BlockMean { block, ..numbered_blocks(&[mean])[0] });
            }
            if block < self.rule.first() {
                continue;
            }
            sequence.look(&trials, block, criticals);
            let now = sequence.needed(Relation::Larger);
            needed.retain(|case| now.contains(case));
            if needed.is_empty() {
                break;
            }
        }
        Outcome { sequence, trials: trials.iter().map(Vec::len).sum() }
    }

    /// Per cent of the runs that satisfy `is`, and the mean number of trials.
    fn share(&self, full: u32, seed: u64, is: impl Fn(&Outcome) -> bool) -> (f64, f64) {
        let runs = runs(full);
        let (mut noise, mut criticals) = (Noise::seeded(seed), Criticals::seeded(1));
        let (mut found, mut trials) = (0, 0);
        for _ in 0..runs {
            let outcome = self.simulate(&mut noise, &mut criticals);
            found += u32::from(is(&outcome));
            trials += outcome.trials;
        }
        (f64::from(found) / f64::from(runs) * 100.0, trials as f64 / f64::from(runs))
    }
}

#[test]
fn repeated_looks_show_false_differences_in_under_six_percent() {
    for (cases, runs) in [(2, 4000), (4, 4000), (8, 3000)] {
        for last in [5, 12] {
            let (found, trials) =
                Run::planned(3, last, vec![(1000.0, 0.03); cases]).share(runs, 20_261_122, Outcome::any_difference);
            println!("{cases} cases, 3 to {last} blocks: {found:.1} % false, {trials:.1} trials");
            assert!((3.0..=5.5).contains(&found), "{found} % with {cases} cases and {last} blocks");
        }
    }
}

#[test]
fn repeated_looks_at_the_plain_level_err_far_more_often() {
    let run = Run::planned(3, 12, vec![(1000.0, 0.03); 4]);
    let (mut noise, mut criticals) = (Noise::seeded(7), Criticals::seeded(1));
    criticals.set_level(4, 3, 12, LEVEL);
    let wrong = (0..600).filter(|_| run.simulate(&mut noise, &mut criticals).any_difference()).count();
    let found = wrong as f64 / 6.0;
    println!("4 cases, 3 to 12 blocks at 5 % a look: {found:.1} % false");
    assert!(found >= 14.0, "{found} %: the simulation shows nothing");
}

#[test]
fn unequal_noise_raises_false_differences_as_the_decision_record_states() {
    let rising: Vec<(f64, f64)> = (0..4).map(|case| (1000.0, 0.01 * (1.0 + 7.0 * f64::from(case) / 3.0))).collect();
    let one = |times: f64| (0..4).map(|case| (1000.0, if case == 0 { 0.01 * times } else { 0.01 })).collect::<Vec<_>>();
    for (what, cases, most) in [
        ("rising from 1 to 8 %", rising, 12.0),
        ("one of 3 times", one(3.0), 13.0),
        ("one of 10 times", one(10.0), 13.0),
    ] {
        let (found, _) = Run::planned(3, 12, cases).share(1500, 5, Outcome::any_difference);
        println!("{what}: 4 cases, 3 to 12 blocks: {found:.1} % false");
        assert!(found <= most, "{found} %, {what}");
    }
}

#[test]
fn a_15_percent_lead_needs_under_half_the_fixed_trials() {
    for (cases, noise, last, least, most) in
        [(4, 0.03, 12, 99.0, 0.34), (8, 0.03, 12, 98.5, 0.34), (4, 0.05, 12, 97.0, 0.46), (8, 0.05, 12, 97.0, 0.46)]
    {
        let (wins, trials) = Run::led(last, cases, noise).share(1200, 3, Outcome::first_wins);
        let fixed = cases as f64 * f64::from(last);
        println!(
            "{cases} cases, noise {:.0} %, 3 to {last} blocks: the winner named in {wins:.1} % of runs, with {trials:.1} of {fixed} trials ({:.0} %)",
            noise * 100.0,
            trials / fixed * 100.0
        );
        assert!(wins >= least && trials / fixed <= most, "{wins} % with {trials} trials of {fixed}");
    }
}

#[test]
fn equal_cases_with_little_noise_are_found_to_be_equal() {
    let (same, trials) = Run::planned(3, 12, vec![(1000.0, 0.01); 4])
        .share(500, 3, |outcome| (1..4).all(|case| outcome.sequence.relation(0, case) == Relation::Same));
    println!("4 equal cases, noise 1 %: the same in {same:.1} % of runs, {trials:.1} of 48 trials");
    assert!(same >= 90.0 && trials <= 24.0, "{same} % in {trials}");
}

#[test]
fn cases_ten_percent_apart_are_hardly_ever_called_the_same() {
    let cases = vec![(1000.0, 0.03), (1100.0, 0.03), (1000.0, 0.03)];
    let (wrong, _) =
        Run::planned(3, 12, cases).share(1500, 3, |outcome| outcome.sequence.relation(0, 1) == Relation::Same);
    assert!(wrong <= 1.0, "{wrong} %");
}

#[test]
fn adding_blocks_until_significance_errs_in_at_most_five_percent() {
    for cases in [2, 4] {
        let run = Run { rule: StoppingRule::Anytime, last: 25, cases: vec![(1000.0, 0.03); cases] };
        let (found, _) = run.share(800, 11, Outcome::any_difference);
        println!("{cases} cases, up to 25 blocks by e-values: {found:.1} % false");
        assert!(found <= 5.5, "{found} % with {cases} cases");
    }
}

fn trials(rows: &[&[f64]]) -> Vec<Vec<BlockMean>> {
    rows.iter().map(|means| numbered_blocks(means)).collect()
}

#[test]
fn a_single_look_at_two_cases_decides_as_a_fixed_design() {
    let (mut noise, mut criticals) = (Noise::seeded(4), Criticals::seeded(1));
    for run in 0..100 {
        let lead = if run % 2 == 0 { 1.0 } else { 1.12 };
        let mut draw = |rate: f64| (0..5).map(|_| rate * (0.04 * noise.normal()).exp()).collect::<Vec<_>>();
        let all = trials(&[&draw(lead), &draw(1.0)]);
        let fixed = Decisions::of(&all, &mut criticals);
        let rule = StoppingRule::Planned { first: 5, last: 5 };
        let looked = Sequence::of(&all, rule, PRECISION_PERCENT, &mut criticals).decisions();
        assert_eq!((fixed.rank(0), fixed.rank(1)), (looked.rank(0), looked.rank(1)));
        let margin = |of: &Decisions| of.margin(0, 1).unwrap().ratio().unwrap();
        let margins = margin(&fixed) / margin(&looked);
        assert!((margins - 1.0).abs() < 1e-6, "{margins}");
    }
}

#[test]
fn a_beaten_case_is_dropped_and_keeps_its_decision() {
    let (rule, mut criticals) = (StoppingRule::Planned { first: 3, last: 8 }, Criticals::seeded(1));
    let close = [100.0, 103.0, 99.0, 100.0, 98.0];
    let other = [101.0, 100.0, 102.0, 98.0, 101.0];
    let mut found = Sequence::new(3, rule, PRECISION_PERCENT);
    let early = trials(&[&close[..3], &other[..3], &[50.0, 51.0, 49.0]]);
    found.look(&early, 2, &mut criticals);
    assert_eq!(found.looks, 0, "before the first look");
    found.look(&early, 3, &mut criticals);
    assert_eq!(found.decided_at(3), [(0, 2), (1, 2)]);
    assert_eq!(found.needed(Relation::Larger), [0, 1]);
    // If less is better, the other two are beaten, and nothing is left to decide.
    assert_eq!(found.needed(Relation::Smaller), [] as [usize; 0]);
    let late = trials(&[&close, &other, &[50.0, 51.0, 49.0]]);
    let replayed = Sequence::of(&late, rule, PRECISION_PERCENT, &mut criticals);
    assert_eq!((replayed.relation(0, 2), replayed.relation(2, 0)), (Relation::Larger, Relation::Smaller));
    assert_eq!((replayed.relation(0, 1), replayed.looks), (Relation::Open, 3));
    assert!(replayed.more_blocks(0, 1).unwrap() > 1);
    let found = replayed.decisions();
    assert_eq!((found.rank(0), found.rank(1), found.rank(2)), (1, 1, 3));
}

#[test]
fn the_residual_of_a_table_with_gaps_matches_least_squares() {
    // Complete table: equal to the analysis of variance.
    let full = [[0.02, 0.0, -0.02], [0.0, 0.0, 0.0], [-0.04, 0.0, 0.04]];
    let table: Vec<Vec<Option<f64>>> = full.iter().map(|row| row.iter().map(|x| Some(*x)).collect()).collect();
    let found = residual(&table, 3).unwrap();
    let squares: f64 = 2.0 * [0.08f64, 0.02, -0.1].iter().map(|r| (r / 3.0).powi(2)).sum::<f64>();
    assert!((found.variance * 4.0 - squares).abs() < 1e-12 && found.degrees == 4.0, "{found:?}");
    // A case with one trial is fitted by its own effect and leaves no residual.
    let mut gaps = table;
    gaps.push(vec![Some(7.0), None, None]);
    let with = residual(&gaps, 3).unwrap();
    assert!((with.variance - found.variance).abs() < 1e-9 && with.degrees == 4.0, "{with:?}");
}
