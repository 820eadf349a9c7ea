//! Decides which of several cases differ if a run is looked at after each block and may stop early or get more blocks,
//! so that all looks together show any false difference in at most 5 % of runs.
//! `docs/adr/0022-blocks-may-be-adaptive.md`.
//!
//! A look compares all cases that have a trial in that block, over the blocks that they share. The margin is that of
//! Tukey's test at the rule's level; the residual variance is that of all trials of these blocks, including those of
//! cases dropped earlier. If Hartley's test finds unequal noises, a pair has its own noise and the level of one pair
//! divided by the number of pairs. The first decision on a pair stands.

use super::anytime;
use super::criticals::Criticals;
use super::interval::Component;
use super::margin::Margin;
use super::noise;
use super::ratio::BlockMean;
use super::student;
use crate::stats::nominal::LEVEL;

/// Cases within so much of each other count as the same, per cent.
#[cfg(test)]
const PRECISION_PERCENT: u32 = 5;

/// The logarithm below which ratios are within so much of 1, per cent.
pub fn same(percent: u32) -> f64 {
    (f64::from(percent) / 100.0).ln_1p()
}

/// Rule that bounds the error of all looks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppingRule {
    /// Looks after each block from `first` to `last`, all at one nominal level.
    Planned { first: u32, last: u32 },
    /// Unplanned blocks were added: e-values, which are valid at any time.
    Anytime,
}

impl StoppingRule {
    fn first(self) -> u32 {
        match self {
            StoppingRule::Planned { first, .. } => first,
            StoppingRule::Anytime => 2,
        }
    }
}

/// Relation of one case to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Open,
    /// The first case has the larger figure.
    Larger,
    Smaller,
    /// Within the precision of each other.
    Same,
}

/// State of the looks at one group of cases.
#[derive(Debug, Clone)]
pub struct Sequence {
    pub(super) rule: StoppingRule,
    pub(super) cases: usize,
    /// Per cent within which cases are the same.
    percent: u32,
    /// `relations[i * cases + j]`: i to j.
    pub(super) relations: Vec<Relation>,
    /// Block after which each pair was decided; 0 if open.
    pub(super) decided_at: Vec<u32>,
    /// The last look of each pair.
    pub(super) pairs: Vec<Option<LookedAt>>,
    pub(super) looks: u32,
}

/// A pair at its last look.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookedAt {
    pub(super) blocks: usize,
    /// Logarithm of the ratio, and the margin that it must exceed.
    pub(super) log: f64,
    pub(super) margin: Margin,
    /// Variance of the ratio's logarithm in one block, and degrees of freedom gained with each further block.
    pub(super) variance: f64,
    pub(super) degrees: f64,
}

impl Sequence {
    pub fn new(cases: usize, rule: StoppingRule, percent: u32) -> Sequence {
        let pairs = cases * cases;
        let (relations, decided_at) = (vec![Relation::Open; pairs], vec![0; pairs]);
        Sequence { rule, cases, percent, relations, decided_at, pairs: vec![None; pairs], looks: 0 }
    }

    /// Replays all looks at the stored trials; cases within `percent` are the same.
    pub fn of(cases: &[Vec<BlockMean>], rule: StoppingRule, percent: u32, criticals: &mut Criticals) -> Sequence {
        let mut found = Sequence::new(cases.len(), rule, percent);
        let last = cases.iter().flatten().map(|trial| trial.block).max().unwrap_or(0);
        for block in rule.first()..=last {
            found.look(cases, block, criticals);
        }
        found
    }

    /// One look at all trials, to estimate how many more blocks would decide.
    pub fn at_end(cases: &[Vec<BlockMean>], percent: u32, criticals: &mut Criticals) -> Sequence {
        let mut found = Sequence::new(cases.len(), StoppingRule::Anytime, percent);
        let last = cases.iter().flatten().map(|trial| trial.block).max().unwrap_or(0);
        found.look(cases, last, criticals);
        found
    }

    /// Logarithm of the ratio of two cases at their last look.
    pub fn log(&self, case: usize, other: usize) -> Option<f64> {
        self.pairs[case * self.cases + other].map(|pair| pair.log)
    }

    /// Looks after a block, ignoring trials of later ones.
    pub fn look(&mut self, cases: &[Vec<BlockMean>], block: u32, criticals: &mut Criticals) {
        let Some(look) = LookData::at(cases, block) else { return };
        if let StoppingRule::Planned { first, last } = self.rule
            && !((first as usize)..=(last as usize)).contains(&look.logs[0].len())
        {
            return;
        }
        self.looks += 1;
        let own = look.noises_differ(criticals);
        for (at, one) in look.active.iter().enumerate() {
            for (behind, other) in look.active.iter().enumerate().skip(at + 1) {
                let pair = look.pair(at, behind, own, self.rule, self.cases, criticals);
                let (place, mirror) = (one * self.cases + other, other * self.cases + one);
                let mirrored = LookedAt { log: -pair.log, ..pair };
                (self.pairs[place], self.pairs[mirror]) = (Some(pair), Some(mirrored));
                let [relation, back] = [pair, mirrored].map(|looked| looked.relation(same(self.percent)));
                if self.relations[place] == Relation::Open && relation != Relation::Open {
                    (self.relations[place], self.relations[mirror]) = (relation, back);
                    self.decided_at[place] = block;
                }
            }
        }
    }

    /// Pairs decided after this block.
    pub fn decided_at(&self, block: u32) -> Vec<(usize, usize)> {
        let places = (0..self.relations.len()).filter(|place| self.decided_at[*place] == block);
        places.map(|place| (place / self.cases, place % self.cases)).collect()
    }

    pub fn relation(&self, case: usize, other: usize) -> Relation {
        self.relations[case * self.cases + other]
    }

    /// Cases whose trials are still needed: not beaten, and undecided against another one that is not beaten. `best` is
    /// the relation of a better case to a worse one.
    pub fn needed(&self, best: Relation) -> Vec<usize> {
        let left = (0..self.cases)
            .filter(|case| !(0..self.cases).any(|other| other != *case && self.relation(other, *case) == best));
        let left: Vec<usize> = left.collect();
        let open = left
            .iter()
            .filter(|case| left.iter().any(|other| other != *case && self.relation(**case, *other) == Relation::Open));
        open.copied().collect()
    }

    /// Number of further blocks that would decide a pair if its ratio and noise stay as they are; `None` if that is
    /// more than ten times the blocks it has, or nothing is known of it.
    pub fn more_blocks(&self, case: usize, other: usize) -> Option<u32> {
        let pairs = self.cases * (self.cases - 1) / 2;
        more_blocks(self.pairs[case * self.cases + other]?, pairs, same(self.percent))
    }
}

impl LookedAt {
    fn relation(&self, same: f64) -> Relation {
        let margin = self.margin.log;
        match self.log {
            log if log > margin => Relation::Larger,
            log if -log > margin => Relation::Smaller,
            log if log.abs() + margin < same => Relation::Same,
            _ => Relation::Open,
        }
    }
}

/// The same by e-values: further blocks are unplanned.
fn more_blocks(pair: LookedAt, pairs: usize, same: f64) -> Option<u32> {
    let mut deciding = (pair.blocks + 1..=pair.blocks * 10).filter(|blocks| {
        let n = *blocks as f64;
        let degrees = pair.degrees * (n - 1.0);
        let margin = anytime::standard_errors(n, degrees, evidence(pairs)) * (pair.variance / n).sqrt();
        pair.log.abs() > margin || pair.log.abs() + margin < same
    });
    u32::try_from(deciding.next()? - pair.blocks).ok()
}

/// E-value that a difference needs if this many pairs are decided together.
fn evidence(pairs: usize) -> f64 {
    pairs as f64 / LEVEL
}

/// Data of one look.
struct LookData {
    active: Vec<usize>,
    /// One row per active case, one logarithm per block.
    logs: Vec<Vec<f64>>,
    /// Variance of a trial less the effects of its case and block.
    residual: Component,
    /// Mean variance of a trial according to its own seconds.
    inside: Option<Component>,
}

impl LookData {
    fn at(cases: &[Vec<BlockMean>], last: u32) -> Option<LookData> {
        let by_block: Vec<Vec<Option<BlockMean>>> = cases.iter().map(|case| by_block(case, last)).collect();
        let last = last as usize;
        let active: Vec<usize> = (0..cases.len()).filter(|case| by_block[*case][last].is_some()).collect();
        let blocks: Vec<usize> =
            (1..=last).filter(|block| active.iter().all(|case| done(by_block[*case][*block]).is_some())).collect();
        if active.len() < 2 || blocks.len() < 2 {
            return None;
        }
        let rows: Vec<Vec<Option<BlockMean>>> =
            by_block.iter().map(|case| blocks.iter().map(|block| done(case[*block])).collect()).collect();
        let table: Vec<Vec<Option<f64>>> =
            rows.iter().map(|row| row.iter().map(|trial| trial.map(|trial| trial.trial.mean.ln())).collect()).collect();
        let trials: Vec<BlockMean> = rows.iter().flatten().flatten().copied().collect();
        let errors: Option<Vec<Component>> = trials.iter().map(|trial| trial.trial.log_error()).collect();
        Some(LookData {
            logs: active.iter().map(|case| table[*case].iter().flatten().copied().collect()).collect(),
            residual: residual(&table, blocks.len())?,
            inside: errors.map(|errors| Component::sum(&errors).scaled(1.0 / trials.len() as f64)),
            active,
        })
    }

    /// True if each pair needs its own noise.
    fn noises_differ(&self, criticals: &mut Criticals) -> bool {
        let (cases, blocks) = (self.active.len(), self.logs[0].len());
        cases > 2 && noise::largest_over_smallest(&noise::noises(&self.logs)) > criticals.noise(cases, blocks)
    }

    /// Compares two active cases; `cases` is the number of all.
    fn pair(
        &self,
        one: usize,
        other: usize,
        own: bool,
        rule: StoppingRule,
        cases: usize,
        criticals: &mut Criticals,
    ) -> LookedAt {
        let logs: Vec<f64> = self.logs[one].iter().zip(&self.logs[other]).map(|(a, b)| a - b).collect();
        let n = logs.len() as f64;
        let log = logs.iter().sum::<f64>() / n;
        let spread = if own {
            Component { variance: super::moments::variance(&logs).unwrap_or(0.0), degrees: n - 1.0 }
        } else {
            self.residual.scaled(2.0)
        };
        let pairs = cases * (cases - 1) / 2;
        let inside = self.inside.map(|inside| inside.scaled(2.0 / n));
        let mut errors = |error: Component| match rule {
            StoppingRule::Anytime => anytime::standard_errors(n, error.degrees, evidence(pairs)),
            StoppingRule::Planned { first, last } if own => {
                let level = criticals.level(2, first, last) / pairs as f64;
                student::two_sided_quantile(1.0 - level, error.degrees)
            }
            StoppingRule::Planned { first, last } => {
                let level = criticals.level(cases, first, last);
                criticals.range(cases, error.degrees, 1.0 - level) / std::f64::consts::SQRT_2
            }
        };
        let mut spanned = |error: Component| (error, errors(error));
        let margin = Margin::larger(spanned(spread.scaled(1.0 / n)), inside.map(spanned));
        LookedAt {
            blocks: logs.len(),
            log,
            margin,
            variance: spread.variance.max(self.inside.map_or(0.0, |inside| 2.0 * inside.variance)),
            degrees: spread.degrees / (n - 1.0),
        }
    }
}

/// A trial in which anything was done.
fn done(trial: Option<BlockMean>) -> Option<BlockMean> {
    trial.filter(|trial| trial.trial.mean > 0.0)
}

/// Trials of a case up to a block, indexed by block.
fn by_block(case: &[BlockMean], last: u32) -> Vec<Option<BlockMean>> {
    let mut found = vec![None; last as usize + 1];
    for trial in case.iter().filter(|trial| trial.block <= last) {
        found[trial.block as usize] = Some(*trial);
    }
    found
}

/// Residual variance of a table with one row per case and missing cells, after least-squares effects of cases and
/// blocks, fitted alternately until they converge.
fn residual(table: &[Vec<Option<f64>>], blocks: usize) -> Option<Component> {
    const ROUNDS: usize = 1000;
    let mut left: Vec<Vec<Option<f64>>> = table.to_vec();
    let trials = table.iter().flatten().flatten().count();
    let rows = table.iter().filter(|row| row.iter().any(Option::is_some)).count();
    let degrees = (trials + 1).checked_sub(rows + blocks).filter(|degrees| *degrees > 0)?;
    for _ in 0..ROUNDS {
        let mut moved = 0.0f64;
        for row in &mut left {
            moved = moved.max(centre(row.iter_mut().flatten()));
        }
        for block in 0..blocks {
            moved = moved.max(centre(left.iter_mut().filter_map(|row| row[block].as_mut())));
        }
        if moved < 1e-9 {
            break;
        }
    }
    let squares: f64 = left.iter().flatten().flatten().map(|residual| residual * residual).sum();
    Some(Component { variance: squares / degrees as f64, degrees: degrees as f64 })
}

/// Subtracts the mean from the values; returns how far that moved them.
fn centre<'v>(values: impl Iterator<Item = &'v mut f64>) -> f64 {
    let values: Vec<&mut f64> = values.collect();
    if values.is_empty() {
        return 0.0;
    }
    let mean = values.iter().map(|value| **value).sum::<f64>() / values.len() as f64;
    values.into_iter().for_each(|value| *value -= mean);
    mean.abs()
}

#[cfg(test)]
mod tests;
