//! Decides which of several cases differ, for all pairs together, so that a ranking of equal cases shows any difference
//! in at most 5 % of runs. Reasons and error rates: `docs/adr/0017-ranks-are-decided-together.md`.
//!
//! - Two cases: the interval of their ratio ([`super::ratio`]).
//! - More: Tukey's test on the analysis of variance of the logarithms in complete blocks (J. W. Tukey, "The Problem of
//!   Multiple Comparisons", 1953; Montgomery, "Design and Analysis of Experiments", 8th ed., section 4.1), the error of
//!   a pair leaning to its own ratios ([`super::noise`]). It is never taken to be less than the seconds inside the trials
//!   imply.
//! - If Hartley's test ([`super::noise`]) finds the cases unequally noisy, or blocks are incomplete: each pair by its
//!   own ratio, with Holm's correction (S. Holm, Scand. J. Statist. 6 (1979) 65).

use crate::stats::criticals::Criticals;
use crate::stats::interval::{CONFIDENCE, Component};
use crate::stats::margin::Margin;
use crate::stats::noise;
use crate::stats::nominal::LEVEL;
use crate::stats::ratio::{BlockMean, Contrast};
use crate::stats::sequence::{Relation, Sequence, StoppingRule};
use std::collections::BTreeSet;
use std::f64::consts::SQRT_2;

/// Procedure by which pairs were decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Procedure {
    /// No pair, or none whose ratio has an interval.
    Nothing,
    /// The interval of the only ratio.
    Pair,
    Tukey {
        /// Number of blocks that all cases have.
        blocks: usize,
    },
    /// Each pair by its own ratio with Holm's correction.
    Holm {
        /// Ratio of the largest noise (a variance) to the smallest if unequal noise is the reason; `None` if blocks are
        /// incomplete.
        noise: Option<f64>,
    },
    /// Tukey's test after each block from `first` to `last` ([`super::sequence`]).
    Looks { first: u32, last: u32 },
    /// E-values, because unplanned blocks were added.
    Anytime,
}

/// Decisions about cases, which are identified by index.
#[derive(Debug, Clone)]
pub struct Decisions {
    pub procedure: Procedure,
    cases: usize,
    /// `faster[i * cases + j]`: i was shown to be faster than j, or than one that was shown to be faster than j.
    faster: Vec<bool>,
    margins: Margins,
    /// The looks behind the decisions, if there were several.
    pub(super) sequence: Option<Sequence>,
}

impl Sequence {
    /// Converts the looks to decisions, from which ranks are computed.
    pub fn decisions(self) -> Decisions {
        let k = self.cases;
        let faster = self.relations.iter().map(|relation| *relation == Relation::Larger).collect();
        let margins: Vec<Option<Margin>> = self.pairs.iter().map(|pair| pair.map(|pair| pair.margin)).collect();
        let procedure = match self.rule {
            _ if self.looks == 0 => Procedure::Nothing,
            StoppingRule::Planned { first, last } => Procedure::Looks { first, last },
            StoppingRule::Anytime => Procedure::Anytime,
        };
        let mut found = Decisions::new(procedure, k, faster, Margins::Pairs(margins));
        found.sequence = Some(self);
        found
    }
}

/// Margins between pairs of cases.
#[derive(Debug, Clone)]
pub(super) enum Margins {
    /// One margin per pair, and the mean logarithm of each case.
    Means(Vec<Margin>, Vec<f64>),
    /// One contrast per pair, and the level at which its margin is computed.
    Own(Vec<Option<Contrast>>, f64),
    /// One margin per pair.
    Pairs(Vec<Option<Margin>>),
}

impl Decisions {
    pub(super) fn new(procedure: Procedure, cases: usize, faster: Vec<bool>, margins: Margins) -> Decisions {
        let mut found = Decisions { procedure, cases, faster, margins, sequence: None };
        found.close();
        found
    }

    /// The looks behind the decisions, if there were several.
    pub fn sequence(&self) -> Option<&Sequence> {
        self.sequence.as_ref()
    }

    /// Decides all pairs of `cases`, each with its trials.
    pub fn of(cases: &[Vec<BlockMean>], criticals: &mut Criticals) -> Decisions {
        if cases.len() > 2
            && let Some(design) = BlockDesign::of(cases)
        {
            return match design.unequal_noise(criticals) {
                None => design.tukey(criticals),
                unequal => holm(cases, unequal),
            };
        }
        holm(cases, None)
    }

    /// True if the two cases were shown to differ.
    pub fn apart(&self, one: usize, other: usize) -> bool {
        self.faster(one, other) || self.faster(other, one)
    }

    /// True if `one` was shown to be faster than `other`.
    pub fn faster(&self, one: usize, other: usize) -> bool {
        self.faster[one * self.cases + other]
    }

    /// Rank from 1: one more than the number of cases shown to be faster.
    pub fn rank(&self, case: usize) -> usize {
        1 + (0..self.cases).filter(|other| self.faster(*other, case)).count()
    }

    /// Margin that the ratio of the two has to exceed; also the half width of its interval. `None` if no margin would
    /// do.
    pub fn margin(&self, one: usize, other: usize) -> Option<Margin> {
        match &self.margins {
            Margins::Means(margins, _) => Some(margins[one * self.cases + other]),
            Margins::Own(contrasts, level) => {
                contrasts[one * self.cases + other].and_then(|found| found.margin(1.0 - level))
            }
            Margins::Pairs(margins) => margins[one * self.cases + other],
        }
    }

    /// Logarithm of the tested ratio.
    pub fn log(&self, one: usize, other: usize) -> Option<f64> {
        match &self.margins {
            Margins::Means(_, means) => Some(means[one] - means[other]),
            Margins::Own(contrasts, _) => contrasts[one * self.cases + other].map(|found| found.log),
            Margins::Pairs(_) => self.sequence.as_ref()?.log(one, other),
        }
    }

    /// Number of pairs decided.
    pub fn pairs(&self) -> usize {
        self.cases * self.cases.saturating_sub(1) / 2
    }

    /// Transitive closure: if A is faster than B and B faster than C, A is faster than C.
    fn close(&mut self) {
        let k = self.cases;
        for middle in 0..k {
            for one in (0..k).filter(|one| *one != middle) {
                if self.faster[one * k + middle] {
                    for other in 0..k {
                        self.faster[one * k + other] |= self.faster[middle * k + other];
                    }
                }
            }
        }
    }
}

/// Blocks that all of `cases` have; `None` if fewer than two, or if a case has more than twice as many trials.
pub fn complete_blocks(cases: &[Vec<BlockMean>]) -> Option<BTreeSet<u32>> {
    let mut common: BTreeSet<u32> = cases.first()?.iter().map(|trial| trial.block).collect();
    for case in cases {
        let own: BTreeSet<u32> = case.iter().map(|trial| trial.block).collect();
        common = common.intersection(&own).copied().collect();
    }
    let most = cases.iter().map(Vec::len).max().unwrap_or(0);
    (common.len() >= 2 && 2 * common.len() >= most).then_some(common)
}

/// A complete block design with its analysis of variance.
#[derive(Debug, Clone)]
pub(super) struct BlockDesign {
    pub blocks: usize,
    /// One row per case, one logarithm per block.
    pub logs: Vec<Vec<f64>>,
    /// Mean logarithm of each case.
    pub means: Vec<f64>,
    /// Logarithms less the effects of case and block.
    residuals: Vec<Vec<f64>>,
    /// Mean variance of a trial according to its own seconds.
    pub inside: Option<Component>,
}

impl BlockDesign {
    /// `None` if blocks are incomplete or a trial had no operations.
    pub fn of(cases: &[Vec<BlockMean>]) -> Option<BlockDesign> {
        let blocks = complete_blocks(cases)?;
        if cases.iter().flatten().any(|trial| trial.trial.mean <= 0.0) {
            return None;
        }
        let rows = cases.iter().map(|case| {
            blocks.iter().filter_map(|block| case.iter().find(|trial| trial.block == *block).copied()).collect()
        });
        let rows: Vec<Vec<BlockMean>> = rows.collect();
        let logs: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().map(|trial| trial.trial.mean.ln()).collect()).collect();
        let errors: Option<Vec<Component>> = rows.iter().flatten().map(|trial| trial.trial.log_error()).collect();
        let trials = (cases.len() * blocks.len()) as f64;
        Some(BlockDesign {
            blocks: blocks.len(),
            means: logs.iter().map(|row| row.iter().sum::<f64>() / row.len() as f64).collect(),
            residuals: residuals(&logs),
            logs,
            inside: errors.map(|errors| Component::sum(&errors).scaled(1.0 / trials)),
        })
    }

    /// Ratio of the largest noise to the smallest if Hartley's test finds the cases unequally noisy.
    pub fn unequal_noise(&self, criticals: &mut Criticals) -> Option<f64> {
        let spread = noise::largest_over_smallest(&noise::noises(&self.logs));
        (spread > criticals.noise(self.means.len(), self.blocks)).then_some(spread)
    }

    /// Variance of a trial less the effects of case and block.
    pub fn residual(&self) -> Component {
        let degrees = ((self.means.len() - 1) * (self.blocks - 1)) as f64;
        let squares: f64 = self.residuals.iter().flatten().map(|residual| residual * residual).sum();
        Component { variance: squares / degrees, degrees }
    }

    /// All pairs by Tukey's test, each with its own moderated error.
    fn tukey(&self, criticals: &mut Criticals) -> Decisions {
        let (k, blocks) = (self.means.len(), self.blocks as f64);
        let inside = self.inside.map(|inside| inside.scaled(2.0 / blocks));
        let inside = inside.map(|error| (error, criticals.range(k, error.degrees, CONFIDENCE) / SQRT_2));
        let (errors, degrees) = (criticals.errors(k, self.blocks), self.residual().degrees);
        let of_pair =
            |variance: &f64| Margin::larger((Component { variance: variance / blocks, degrees }, errors), inside);
        let margins: Vec<Margin> = noise::of_pairs(&self.logs).iter().flatten().map(of_pair).collect();
        let is_faster = |place: usize| self.means[place / k] - self.means[place % k] > margins[place].log;
        let faster = (0..k * k).map(is_faster).collect();
        Decisions::new(Procedure::Tukey { blocks: self.blocks }, k, faster, Margins::Means(margins, self.means.clone()))
    }
}

fn residuals(logs: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let blocks = logs.first().map_or(0, Vec::len);
    let of_block: Vec<f64> =
        (0..blocks).map(|block| logs.iter().map(|case| case[block]).sum::<f64>() / logs.len() as f64).collect();
    let all = of_block.iter().sum::<f64>() / blocks as f64;
    let residuals = logs.iter().map(|case| {
        let own = case.iter().sum::<f64>() / blocks as f64;
        case.iter().zip(&of_block).map(|(value, block)| value - own - block + all).collect()
    });
    residuals.collect()
}

/// Decides every pair by its own ratio, with Holm's correction.
fn holm(cases: &[Vec<BlockMean>], noise: Option<f64>) -> Decisions {
    let k = cases.len();
    let contrasts: Vec<Option<Contrast>> =
        (0..k * k).map(|place| Contrast::of(&cases[place / k], &cases[place % k])).collect();
    let places = (0..k * k).filter(|place| place / k < place % k);
    let mut pairs: Vec<(f64, usize)> =
        places.map(|place| (contrasts[place].map_or(1.0, |found| found.p_value()), place)).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut faster = vec![false; k * k];
    let mut level = LEVEL;
    for (before, (p, place)) in pairs.iter().enumerate() {
        level = LEVEL / (pairs.len() - before) as f64;
        if *p >= level {
            break;
        }
        let (one, other) = (place / k, place % k);
        let ahead = contrasts[*place].is_some_and(|found| found.log > 0.0);
        faster[if ahead { one * k + other } else { other * k + one }] = true;
    }
    let known = pairs.iter().filter_map(|(_, place)| contrasts[*place]?.margin(CONFIDENCE)).count();
    let procedure = match (k, known) {
        (_, 0) => Procedure::Nothing,
        (2, _) => Procedure::Pair,
        _ => Procedure::Holm { noise },
    };
    Decisions::new(procedure, k, faster, Margins::Own(contrasts, level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::autocorrelation::Within;
    use crate::stats::interval::TrialMean;
    use crate::stats::ratio::ratio;
    use crate::stats::simulation::{Noise, numbered_blocks as blocks};

    fn decide(cases: &[&[f64]]) -> Decisions {
        let cases: Vec<Vec<BlockMean>> = cases.iter().map(|means| blocks(means)).collect();
        Decisions::of(&cases, &mut Criticals::seeded(1))
    }

    fn ranks(found: &Decisions) -> Vec<usize> {
        (0..found.cases).map(|case| found.rank(case)).collect()
    }

    #[test]
    fn two_cases_are_decided_by_the_interval_of_their_ratio() {
        let mut noise = Noise::seeded(4);
        for _ in 0..200 {
            let draw = |noise: &mut Noise, level: f64| -> Vec<f64> {
                (0..4).map(|_| level * (0.05 * noise.normal()).exp()).collect()
            };
            let (a, b) = (draw(&mut noise, 108.0), draw(&mut noise, 100.0));
            let (found, ratio) = (decide(&[&a, &b]), ratio(&blocks(&a), &blocks(&b)).unwrap());
            assert_eq!(found.apart(0, 1), ratio.tells_apart());
            let (low, high) = ratio.interval.unwrap();
            let margin = found.margin(0, 1).unwrap().ratio().unwrap();
            assert!(((high / low).sqrt() / margin - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn tukeys_margin_for_two_cases_is_their_ratio_interval() {
        let (a, b) = (blocks(&[100.0, 107.0, 103.0, 101.0]), blocks(&[104.0, 103.0, 99.0, 102.0]));
        let design = BlockDesign::of(&[a.clone(), b.clone()]).unwrap();
        let found = design.tukey(&mut Criticals::seeded(1));
        let (low, high) = ratio(&a, &b).unwrap().interval.unwrap();
        let margin = found.margin(0, 1).unwrap().ratio().unwrap();
        // The critical value is simulated, at 4.5 %: the rest is for Hartley's test, which two cases do not need.
        assert!((margin.ln() / (high / low).sqrt().ln() - 1.044).abs() < 0.03, "{low} {high} {margin}");
        let uncertain = |means: &[BlockMean]| -> Vec<BlockMean> {
            let within = Some(Within { standard_error: 9.0, degrees: 30.0 });
            means.iter().map(|m| BlockMean { trial: TrialMean { within, ..m.trial }, ..*m }).collect()
        };
        let (a, b) = (uncertain(&a), uncertain(&b));
        let found = BlockDesign::of(&[a.clone(), b.clone()]).unwrap().tukey(&mut Criticals::seeded(1));
        let (low, high) = ratio(&a, &b).unwrap().interval.unwrap();
        assert!(found.margin(0, 1).unwrap().by_seconds);
        let wide = found.margin(0, 1).unwrap().ratio().unwrap();
        assert!(((high / low).sqrt() / wide - 1.0).abs() < 1e-6 && wide > margin, "{low} {high} {wide}");
    }

    #[test]
    fn residuals_are_without_the_means_of_cases_and_blocks() {
        let found = residuals(&[vec![1.0, 2.0, 6.0], vec![10.0, 14.0, 12.0]]);
        let close = |found: &[f64], wanted: [f64; 3]| found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&found[0], [0.0, -1.5, 1.5]) && close(&found[1], [0.0, 1.5, -1.5]), "{found:?}");
    }

    #[test]
    fn tukeys_margin_is_that_of_a_worked_example() {
        let logs = [[0.02, 0.0, 0.0, -0.02], [0.0, 0.0, 0.0, 0.0], [-0.04, 0.0, 0.0, 0.04]];
        let cases: Vec<Vec<f64>> = logs.iter().map(|row| row.iter().map(|log: &f64| log.exp()).collect()).collect();
        let found = decide(&[&cases[0], &cases[1], &cases[2]]);
        assert_eq!(found.procedure, Procedure::Tukey { blocks: 4 });
        // Squares of the ratios by hand: 0.0072, 0.0008 and 0.0032, in the mean 0.0112 / 3, with three degrees.
        let errors = Criticals::seeded(1).errors(3, 4);
        for (one, other, own) in [(0, 2, 0.0072), (0, 1, 0.0008), (1, 2, 0.0032)] {
            let wanted = errors * ((6.0 * 0.0112 / 3.0 + own) / 7.0 / 3.0 / 4.0f64).sqrt();
            let margin = found.margin(one, other).unwrap();
            assert!((margin.log / wanted - 1.0).abs() < 1e-9 && !margin.by_seconds, "{margin:?} {wanted}");
        }
        // Tukey's own at 95.5 % are q(3, 6) = 4.461, and q(3, 4) = 5.213 in three blocks.
        assert!((1.0..1.06).contains(&(errors * SQRT_2 / 4.461)), "{errors}");
        let three = Criticals::seeded(1).errors(3, 3) * SQRT_2;
        assert!((three / 5.213 - 1.0).abs() < 0.015, "{three}");
        assert_eq!(ranks(&found), [1, 1, 1]);
    }

    #[test]
    fn a_rank_is_one_plus_the_cases_shown_faster() {
        let found = decide(&[
            &[100.0, 101.0, 99.0, 100.5],
            &[150.0, 149.0, 151.0, 152.0],
            &[100.5, 99.0, 101.0, 100.0],
            &[50.0, 50.5, 49.0, 49.5],
        ]);
        assert_eq!(ranks(&found), [2, 1, 2, 4]);
        assert!(found.faster(1, 3) && !found.faster(3, 1) && found.apart(3, 1) && !found.apart(0, 2));
        assert_eq!(found.pairs(), 6);
    }

    #[test]
    fn cases_of_unequal_noise_are_decided_each_pair_by_itself() {
        let found = decide(&[
            &[100.0, 100.3, 99.8, 100.1, 100.2, 99.9],
            &[110.0, 110.2, 109.7, 110.3, 110.1, 110.0],
            &[100.0, 300.0, 60.0, 180.0, 90.0, 150.0],
        ]);
        let Procedure::Holm { noise: Some(ratio) } = found.procedure else { panic!("{:?}", found.procedure) };
        assert!(ratio > 100.0, "{ratio}");
        assert_eq!(ranks(&found), [2, 1, 1]);
        assert!(found.margin(0, 2).unwrap().ratio().unwrap() > 2.0);
    }

    #[test]
    fn what_follows_from_two_differences_is_a_difference() {
        let mut found = decide(&[&[1.0, 1.0], &[1.0, 1.0], &[1.0, 1.0]]);
        found.faster = vec![false, true, false, false, false, true, false, false, false];
        found.close();
        assert!(found.faster(0, 2));
        assert_eq!(ranks(&found), [1, 2, 3]);
    }

    #[test]
    fn incomplete_blocks_are_dropped_or_pairs_are_decided_separately() {
        let case = |means: &[f64], missing: &[u32]| -> Vec<BlockMean> {
            blocks(means).into_iter().filter(|trial| !missing.contains(&trial.block)).collect()
        };
        let rates =
            [[99.0, 101.0, 100.0, 102.0, 98.0], [102.0, 99.0, 101.0, 99.0, 103.0], [149.0, 150.0, 153.0, 152.0, 148.0]];
        let [a, b, c] = rates;
        let one_missing = [case(&a, &[]), case(&b, &[2]), case(&c, &[])];
        let found = Decisions::of(&one_missing, &mut Criticals::seeded(1));
        assert_eq!(found.procedure, Procedure::Tukey { blocks: 4 });
        let most_missing = [case(&a, &[]), case(&b, &[1, 2, 3, 4]), case(&c, &[])];
        let found = Decisions::of(&most_missing, &mut Criticals::seeded(1));
        assert_eq!(found.procedure, Procedure::Holm { noise: None });
        // The second has a single trial: nothing is shown of it.
        assert_eq!(ranks(&found), [2, 1, 1]);
    }

    #[test]
    fn single_trials_and_trials_that_did_nothing_decide_nothing() {
        let found = decide(&[&[100.0], &[300.0], &[200.0]]);
        assert_eq!((found.procedure, ranks(&found), found.margin(0, 1)), (Procedure::Nothing, vec![1, 1, 1], None));
        assert_eq!(decide(&[&[100.0, 101.0]]).procedure, Procedure::Nothing);
        let found = decide(&[&[0.0, 1.0, 1.0], &[300.0, 301.0, 299.0], &[200.0, 200.0, 201.0]]);
        assert_eq!((found.procedure, ranks(&found)), (Procedure::Holm { noise: None }, vec![1, 1, 2]));
        assert!(!found.apart(0, 1));
    }
}
