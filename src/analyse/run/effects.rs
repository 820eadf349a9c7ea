//! Effects of options: finds the full factorials among the ranked cases, and the names of their axes.

use crate::analyse::findings::{Effects, Estimate, OptionEffect, PairOutcome, names};
use crate::analyse::run::ranking::{Contest, ContestEntry, SEED};
use crate::stats::criticals::Criticals;
use crate::stats::effects::{Effect, Factorial};
use crate::stats::ratio::BlockMean;
use std::collections::BTreeSet;

/// One for each workload and figure in which two or more axes vary; where its cases are not all measured, one for each
/// ranking whose cases are. `order` has the ids of the cases as the plan has them. `is_fixed`: the number of blocks was
/// fixed in advance.
pub fn found(contests: &[Contest<'_>], baseline: &names::Axes, order: &[&str], is_fixed: bool) -> Vec<Effects> {
    let mut criticals = Criticals::seeded(SEED);
    let mut of = |group: &[&Contest<'_>]| Some(Matrix::of(group, baseline, order)?.effects(is_fixed, &mut criticals));
    let mut found = Vec::new();
    for (place, contest) in contests.iter().enumerate() {
        if contests[..place].iter().all(|before| key(before) != key(contest)) {
            let group: Vec<&Contest<'_>> = contests.iter().filter(|other| key(other) == key(contest)).collect();
            let Some(whole) = of(&group) else { continue };
            if whole.unavailable.is_some() {
                found.extend(group.iter().filter_map(|one| of(&[*one])).filter(|part| part.unavailable.is_none()));
            }
            found.push(whole);
        }
    }
    found
}

/// Workload, measure and quantity: "p99 latency", without the rate at which it was measured.
fn key<'a>(contest: &'a Contest<'_>) -> [&'a str; 3] {
    let quantity = contest.entries.first().and_then(|entry| entry.ranked.title.split(" at ").next());
    [&contest.ranking.workload, &contest.ranking.measure, quantity.unwrap_or_default()]
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
    cases: Vec<&'a ContestEntry<'a>>,
}

impl<'a> Matrix<'a> {
    /// `None` unless two axes vary, one of them not the load's.
    fn of(contests: &[&'a Contest<'a>], baseline: &names::Axes, order: &[&str]) -> Option<Matrix<'a>> {
        let mut cases: Vec<&ContestEntry<'_>> = contests.iter().flat_map(|contest| &contest.entries).collect();
        cases.sort_by_key(|entry| order.iter().position(|id| *id == entry.case.spec.id));
        let own = |entry: &ContestEntry<'_>, axis: &str| entry.case.spec.axes.get(axis).cloned();
        let is_of_baseline = |entry: &&&ContestEntry<'_>| {
            baseline.iter().all(|(axis, is)| own(entry, axis).is_none_or(|own| own == *is))
        };
        let reference = *cases.iter().find(is_of_baseline).or(cases.first())?;
        // Options that only some stacks have are part of the stack.
        let is_partial = |axis: &str| cases.iter().any(|entry| own(entry, axis).is_none());
        let level = |entry: &ContestEntry<'_>, axis: &str| {
            let parts = entry.case.spec.axes.iter().filter(|(part, _)| axis == "stack" && is_partial(part));
            let parts = parts.map(|(part, is)| names::of_axis(part, is));
            own(entry, axis).into_iter().chain(parts).collect::<Vec<_>>().join(" ")
        };
        let spec = &reference.case.spec;
        let of_axis = |name: &'a String| {
            let mut seen = BTreeSet::new();
            let all = [&reference].into_iter().chain(&cases).map(|entry| level(entry, name));
            let levels: Vec<String> = all.filter(|level| seen.insert(level.clone())).collect();
            VariedAxis { name, levels, is_load: spec.is_workload_axis(name) && !baseline.contains_key(name) }
        };
        let common = spec.axes.keys().filter(|name| *name != "workload" && !is_partial(name));
        let mut axes: Vec<VariedAxis<'_>> = common.map(of_axis).filter(|axis| axis.levels.len() > 1).collect();
        axes.sort_by_key(|axis| (axis.name != "stack", axis.is_load));
        let place = |entry: &&ContestEntry<'_>| {
            let digit = |axis: &VariedAxis<'_>| axis.levels.iter().position(|known| *known == level(entry, axis.name));
            axes.iter().fold(0, |place, axis| place * axis.levels.len() + digit(axis).unwrap_or(0))
        };
        let mut sorted = cases.clone();
        sorted.sort_by_cached_key(&place);
        let combinations: usize = axes.iter().map(|axis| axis.levels.len()).product();
        let is_full = sorted.iter().map(place).eq(0..combinations);
        let why = format!("{} cases for {combinations} combinations: not all were measured", cases.len());
        let first = contests[0];
        let shared = key(first).into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let found = Effects {
            title: if contests.len() == 1 { first.ranking.title.clone() } else { shared },
            combinations: cases.len(),
            blocks: 0,
            unavailable: (!is_full).then_some(why),
            options: Vec::new(),
        };
        (axes.len() > 1 && !axes[0].is_load).then_some(Matrix { found, axes, cases: sorted })
    }

    fn effects(mut self, is_fixed: bool, criticals: &mut Criticals) -> Effects {
        if self.found.unavailable.is_some() {
            return self.found;
        }
        let levels = self.axes.iter().map(|axis| axis.levels.len()).collect();
        let trials: Vec<Vec<BlockMean>> = self.cases.iter().map(|entry| entry.ranked.values.clone()).collect();
        match Factorial::of(levels, &trials, is_fixed, criticals) {
            None => self.found.unavailable = Some("a trial had no operations".to_owned()),
            Some(factorial) => {
                self.found.blocks = factorial.blocks;
                self.found.options = factorial.effects(criticals).iter().map(|effect| self.option(effect)).collect();
            }
        }
        self.found
    }

    fn option(&self, effect: &Effect) -> OptionEffect {
        let axis = &self.axes[effect.axis];
        let classes = |sign: f64| {
            let side = self.cases.iter().zip(&effect.weights).filter(move |(_, weight)| **weight * sign > 0.0);
            side.map(|(entry, _)| entry.durability.class).collect::<Vec<_>>()
        };
        let ratio = effect.log.exp();
        let ends = effect.margin.and_then(|margin| margin.around(ratio));
        let (differs, is_within) = effect.decides();
        let other = effect.at.map(|(other, level)| (&self.axes[other], level));
        OptionEffect {
            axis: axis.name.to_owned(),
            level: axis.levels[effect.level].clone(),
            reference: axis.levels[0].clone(),
            at: other.map(|(other, level)| names::of_axis(other.name, &other.levels[level])),
            ratio: Estimate::of(ratio, ends, self.found.blocks),
            outcome: (!axis.is_load).then(|| PairOutcome::of(differs, is_within)),
            pairs: classes(1.0).len() * self.found.blocks,
            differs_in_durability: classes(1.0) != classes(-1.0),
        }
    }
}
