//! Effects of options: finds the full factorials among the ranked cases, the names of their axes, and their best
//! combinations.

use crate::analyse::case::work::per_trial;
use crate::analyse::findings::{BestCombinations, CostCounter, Effects, Estimate, OptionEffect, PairOutcome, names};
use crate::analyse::run::blocks::RunBlocks;
use crate::analyse::run::decided::Decided;
use crate::analyse::run::ranking::{Contest, ContestEntry, SEED};
use crate::stats::criticals::Criticals;
use crate::stats::effects::{Effect, Factorial};
use crate::stats::ratio::{BlockMean, ratio};
use std::collections::BTreeSet;

/// One for each workload and figure in which two or more axes vary; where its cases are not all measured, one for each
/// ranking whose cases are. `order` has the ids of the cases as the plan has them.
pub fn found(contests: &[Contest<'_>], baseline: &names::Axes, order: &[&str], blocks: RunBlocks) -> Vec<Effects> {
    let mut criticals = Criticals::seeded(SEED);
    let mut found = Vec::new();
    for (place, contest) in contests.iter().enumerate() {
        if contests[..place].iter().any(|before| key(before) == key(contest)) {
            continue;
        }
        let group: Vec<&Contest<'_>> = contests.iter().filter(|other| key(other) == key(contest)).collect();
        let Some(whole) = Matrix::of(&group, baseline, order) else { continue };
        let whole = whole.effects(blocks, &mut criticals);
        if whole.unavailable.is_some() {
            let parts = group.iter().filter_map(|one| Matrix::of(&[*one], baseline, order));
            let parts = parts.map(|part| part.effects(blocks, &mut criticals));
            found.extend(parts.filter(|part| part.unavailable.is_none()));
        }
        found.push(whole);
    }
    found
}

/// Those that answer a plan whose first ranking this is: of two or more options beside the load.
pub fn answering<'f>(found: &'f [Effects], contest: &Contest<'_>) -> Option<&'f Effects> {
    let titles = [&contest.ranking.title, &shared_title(contest)];
    found.iter().find(|one| titles.contains(&&one.title) && one.has_several_options() && one.best.is_some())
}

/// Workload, measure and quantity: "p99 latency", without the rate at which it was measured.
fn key<'a>(contest: &'a Contest<'_>) -> [&'a str; 3] {
    let quantity = contest.entries.first().and_then(|entry| entry.ranked.title.split(" at ").next());
    [&contest.ranking.workload, &contest.ranking.measure, quantity.unwrap_or_default()]
}

fn shared_title(contest: &Contest<'_>) -> String {
    key(contest).into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// An axis that varies, with its levels; the first is the reference.
struct VariedAxis<'a> {
    name: &'a str,
    levels: Vec<String>,
    is_load: bool,
}

/// Cases of one workload and measure in the order of their combinations.
struct Matrix<'a> {
    found: Effects,
    axes: Vec<VariedAxis<'a>>,
    /// Each with its levels, by index.
    cases: Vec<(Vec<usize>, &'a ContestEntry<'a>)>,
    /// The levels of the load in the most important ranking.
    load: Vec<usize>,
}

impl<'a> Matrix<'a> {
    /// `None` unless two axes vary, one of them not the load's.
    fn of(contests: &[&'a Contest<'a>], baseline: &names::Axes, order: &[&str]) -> Option<Matrix<'a>> {
        let first = contests[0];
        let mut cases: Vec<&ContestEntry<'_>> = contests.iter().flat_map(|contest| &contest.entries).collect();
        cases.sort_by_key(|entry| order.iter().position(|id| *id == entry.case.spec.id));
        let of_baseline = cases
            .iter()
            .find(|entry| baseline.iter().all(|(axis, is)| entry.case.spec.axes.get(axis).is_none_or(|own| own == is)));
        let reference = *of_baseline.or(cases.first())?;
        let spec = &reference.case.spec;
        let mut partial: BTreeSet<&String> = cases.iter().flat_map(|entry| entry.case.spec.axes.keys()).collect();
        partial.retain(|axis| cases.iter().any(|entry| !entry.case.spec.axes.contains_key(*axis)));
        let common = spec.axes.keys().filter(|name| *name != "workload" && !partial.contains(name));
        let axes = common.map(|name| {
            let mut seen = BTreeSet::new();
            let all = [&reference].into_iter().chain(&cases).map(|entry| level(entry, name, &partial));
            let levels = all.filter(|level| seen.insert(level.clone())).collect();
            VariedAxis { name, levels, is_load: spec.is_workload_axis(name) && !baseline.contains_key(name) }
        });
        let mut axes: Vec<VariedAxis<'_>> = axes.collect();
        axes.retain(|axis| axis.levels.len() > 1);
        axes.sort_by_key(|axis| (axis.name != "stack", axis.is_load));
        if axes.len() < 2 || axes[0].is_load {
            return None;
        }
        let of_first = first.entries.first().unwrap_or(reference);
        let load = places(of_first, &axes, &partial);
        let mut cases: Vec<_> = cases.into_iter().map(|entry| (places(entry, &axes, &partial), entry)).collect();
        cases.sort_by(|one, other| one.0.cmp(&other.0));
        let combinations: usize = axes.iter().map(|axis| axis.levels.len()).product();
        let is_full = cases.len() == combinations && cases.windows(2).all(|two| two[0].0 != two[1].0);
        let why = format!("{} cases for {combinations} combinations: not all were measured", cases.len());
        let found = Effects {
            title: if contests.len() == 1 { first.ranking.title.clone() } else { shared_title(first) },
            combinations: cases.len(),
            blocks: 0,
            unavailable: (!is_full).then_some(why),
            options: Vec::new(),
            wal: Vec::new(),
            best: None,
        };
        Some(Matrix { found, axes, cases, load })
    }

    fn effects(mut self, blocks: RunBlocks, criticals: &mut Criticals) -> Effects {
        if self.found.unavailable.is_some() {
            return self.found;
        }
        match self.options(|entry| entry.compared.clone(), blocks, criticals) {
            None => self.found.unavailable = Some("a trial had no operations".to_owned()),
            Some((found, options)) => {
                (self.found.blocks, self.found.options) = (found, options);
                let wal = self.options(wal_of_trials, blocks, criticals);
                self.found.wal = wal.map(|(_, options)| options).unwrap_or_default();
                self.found.best = self.best(blocks, criticals);
            }
        }
        self.found
    }

    /// Effects on one figure, and the blocks that they are from; `None` if a trial lacks it.
    fn options(
        &self,
        of: fn(&ContestEntry<'_>) -> Vec<BlockMean>,
        blocks: RunBlocks,
        criticals: &mut Criticals,
    ) -> Option<(usize, Vec<OptionEffect>)> {
        let levels = self.axes.iter().map(|axis| axis.levels.len()).collect();
        let trials: Vec<Vec<BlockMean>> = self.cases.iter().map(|(_, entry)| of(entry)).collect();
        let factorial = Factorial::of(levels, &trials, blocks.rule.is_none(), criticals)?;
        let effects = factorial.effects(criticals);
        let options = effects.iter().map(|effect| self.option(effect, factorial.blocks, blocks.precision_percent));
        Some((factorial.blocks, options.collect()))
    }

    /// `percent`: cases within so much of each other are the same.
    fn option(&self, effect: &Effect, blocks: usize, percent: u32) -> OptionEffect {
        let axis = &self.axes[effect.axis];
        let [with, without] = [1.0, -1.0].map(|sign| {
            let side = self.cases.iter().zip(&effect.weights).filter(|(_, weight)| **weight * sign > 0.0);
            side.map(|((_, entry), _)| entry.durability.class).collect::<Vec<_>>()
        });
        let ratio = effect.log.exp();
        let ends = effect.margin.and_then(|margin| margin.around(ratio));
        let (differs, is_within) = effect.decides(percent);
        let other = effect.at.map(|(other, level)| (&self.axes[other], level));
        OptionEffect {
            axis: axis.name.to_owned(),
            level: axis.levels[effect.level].clone(),
            reference: axis.levels[0].clone(),
            at: other.map(|(other, level)| names::of_axis(other.name, &other.levels[level])),
            ratio: Estimate::of(ratio, ends, blocks),
            outcome: (!axis.is_load).then(|| PairOutcome::of(differs, is_within.then_some(percent))),
            pairs: with.len() * blocks,
            differs_in_durability: with != without,
        }
    }

    /// The best of the safest durability class, at the load of the most important ranking. `None` where looks or added
    /// blocks decided inside each ranking: then these answer.
    fn best(&self, blocks: RunBlocks, criticals: &mut Criticals) -> Option<BestCombinations> {
        if blocks.rule.is_some() {
            return None;
        }
        let mut safest = self.cases.clone();
        safest.retain(|(of, _)| (0..of.len()).all(|axis| !self.axes[axis].is_load || of[axis] == self.load[axis]));
        let (of_reference, reference) = safest.first().cloned()?;
        let class = safest.iter().map(|(_, entry)| (entry.durability.class, entry.durability.otherwise)).min()?;
        safest.retain(|(_, entry)| (entry.durability.class, entry.durability.otherwise) == class);
        let by = reference.ranked.by;
        safest.sort_by(|(_, a), (_, b)| by.best_first(a.ranked.figure.value, b.ranked.figure.value));
        let compared: Vec<String> = safest.iter().map(|(_, entry)| entry.case.spec.id.clone()).collect();
        let trials = safest.iter().map(|(_, entry)| entry.compared.clone());
        let decided = Decided::of(compared.iter().cloned().zip(trials), by, blocks, criticals);
        safest.retain(|(_, entry)| decided.rank(&entry.case.spec.id) == 1);
        let cases: Vec<String> = safest.iter().map(|(_, entry)| entry.case.spec.id.clone()).collect();
        let (_, best) = safest.first()?;
        let (id, other) = (&best.case.spec.id, &reference.case.spec.id);
        let against = ratio(&best.compared, &reference.compared).filter(|_| id != other);
        let against = against.map(|found| decided.tested(id, other, found));
        let trials = best.compared.len().min(reference.compared.len());
        Some(BestCombinations {
            labels: safest.iter().map(|(of, _)| self.label(of, false)).collect(),
            same_within_percent: decided.same_within(&cases.iter().map(String::as_str).collect::<Vec<_>>()),
            class: class.0,
            compared,
            load: Some(self.label(&of_reference, true)).filter(|load| !load.is_empty()),
            reference: self.label(&of_reference, false),
            ratio: against.map(|found| Estimate::of_ratio(&found, trials)),
        })
    }

    /// "xfs guest=trixie": its levels of the axes that are, or are not, the load's.
    fn label(&self, of: &[usize], is_load: bool) -> String {
        let axes = self.axes.iter().zip(of).filter(|(axis, _)| axis.is_load == is_load);
        axes.map(|(axis, level)| names::of_axis(axis.name, &axis.levels[*level])).collect::<Vec<_>>().join(" ")
    }
}

/// WAL per operation in the trials by which it is compared.
fn wal_of_trials(entry: &ContestEntry<'_>) -> Vec<BlockMean> {
    let blocks: Vec<u32> = entry.compared.iter().map(|trial| trial.block).collect();
    per_trial(CostCounter::WalBytes, &entry.case.work.within(Some(&blocks)))
}

/// Its level of an axis; options that only some stacks have are part of the stack.
fn level(entry: &ContestEntry<'_>, axis: &str, partial: &BTreeSet<&String>) -> String {
    let axes = &entry.case.spec.axes;
    let parts = axes.iter().filter(|(part, _)| axis == "stack" && partial.contains(part));
    let parts = parts.map(|(part, is)| names::of_axis(part, is));
    axes.get(axis).cloned().into_iter().chain(parts).collect::<Vec<_>>().join(" ")
}

/// Its levels, by index.
fn places(entry: &ContestEntry<'_>, axes: &[VariedAxis<'_>], partial: &BTreeSet<&String>) -> Vec<usize> {
    let places = axes.iter().map(|axis| {
        let own = level(entry, axis.name, partial);
        axis.levels.iter().position(|known| *known == own).unwrap_or_default()
    });
    places.collect()
}
