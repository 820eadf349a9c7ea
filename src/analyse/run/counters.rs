//! Counters per operation, compared over the cases of a ranking: they vary far less than rates, and tell stacks apart on a machine
//! whose rates decide nothing.

use crate::analyse::case::work::WorkSums;
use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::{Counter, CounterComparison, CounterRow, Estimate, RankedBy};
use crate::analyse::run::blocks::Blocks;
use crate::analyse::run::decided::Decided;
use crate::stats::criticals::Criticals;
use crate::stats::ratio::{BlockMean, ratio};

/// A case whose counters are compared.
pub struct CountedCase<'a> {
    pub id: &'a str,
    pub label: &'a str,
    pub work: &'a WorkSums,
}

/// Every counter that two cases or more have; `reference` is the id of the case that the others are compared with.
#[must_use]
pub fn compared(
    cases: &[CountedCase<'_>],
    reference: &str,
    blocks: Blocks,
    criticals: &mut Criticals,
) -> Vec<CounterComparison> {
    Counter::ALL.into_iter().filter_map(|counter| of_counter(counter, cases, reference, blocks, criticals)).collect()
}

fn of_counter(
    counter: Counter,
    cases: &[CountedCase<'_>],
    reference: &str,
    blocks: Blocks,
    criticals: &mut Criticals,
) -> Option<CounterComparison> {
    let counted: Vec<(&CountedCase<'_>, Vec<BlockMean>)> =
        cases.iter().map(|case| (case, case.work.of(counter))).filter(|(_, trials)| !trials.is_empty()).collect();
    let (_, base) = counted.iter().find(|(case, _)| case.id == reference)?;
    let ids = counted.iter().map(|(case, trials)| (case.id.to_owned(), trials.clone()));
    let decided = Decided::of(ids, RankedBy::Rate, blocks, criticals);
    let row = |(case, trials): &(&CountedCase<'_>, Vec<BlockMean>)| {
        let is_other = case.id != reference;
        let found = ratio(trials, base).filter(|found| is_other && found.value > 0.0);
        let tested = found.map(|found| decided.tested(case.id, reference, found));
        Some(CounterRow {
            case: case.id.to_owned(),
            label: case.label.to_owned(),
            figure: over_trials(trials)?,
            ratio: tested.map(|found| Estimate::of_ratio(&found, trials.len().min(base.len()))),
            outcome: is_other.then(|| decided.outcome(case.id, reference)),
        })
    };
    let rows: Vec<CounterRow> = counted.iter().filter_map(row).collect();
    (rows.len() > 1).then(|| CounterComparison { counter, reference: reference.to_owned(), rows })
}
