//! Counters per operation, compared over the cases of a ranking: they vary far less than rates, and separate stacks on
//! machines whose rates do not.

use crate::analyse::case::work::{TrialsWork, per_trial};
use crate::analyse::findings::estimate::over_trials;
use crate::analyse::findings::{CostCounter, CounterComparison, CounterRow, Estimate, PairOutcome, RankedBy};
use crate::analyse::run::blocks::RunBlocks;
use crate::analyse::run::decided::Decided;
use crate::stats::criticals::Criticals;
use crate::stats::decisions::complete_blocks;
use crate::stats::ratio::{BlockMean, ratio};

/// Compares every counter that at least two cases have; `cases` have their id and label. `reference` is the id of the case
/// that the others are compared with; if it lacks the counter, the first case that has it is used.
pub fn compared(
    cases: &[(&str, &str, TrialsWork<'_>)],
    reference: &str,
    blocks: RunBlocks,
    criticals: &mut Criticals,
) -> Vec<CounterComparison> {
    let compared = |counter| of_counter(counter, cases, reference, blocks, criticals);
    CostCounter::ALL.into_iter().filter_map(compared).collect()
}

fn of_counter(
    counter: CostCounter,
    cases: &[(&str, &str, TrialsWork<'_>)],
    reference: &str,
    blocks: RunBlocks,
    criticals: &mut Criticals,
) -> Option<CounterComparison> {
    let mut counted: Vec<Counted<'_>> = cases.iter().filter_map(|case| Counted::of(case, counter)).collect();
    // A trial of these blocks may lack the counter, and the figures of all cases use the same blocks.
    let trials: Vec<Vec<BlockMean>> = counted.iter().map(|found| found.trials.clone()).collect();
    if let Some(common) = complete_blocks(&trials).filter(|_| blocks.rule.is_none()) {
        counted.iter_mut().for_each(|found| found.trials.retain(|trial| common.contains(&trial.block)));
    }
    let base = counted.iter().find(|found| found.id == reference).or(counted.first())?;
    // A zero has no ratio: an event that never happens differs from one that happens in every trial, without a test.
    let tested = counted.iter().filter(|found| found.always).map(|found| (found.id.to_owned(), found.trials.clone()));
    let decided = Decided::of(tested, RankedBy::Rate, blocks, criticals);
    let rows = counted.iter().filter_map(|found| {
        let (id, base_id) = (found.id, base.id);
        let ratio = ratio(&found.trials, &base.trials).filter(|_| id != base_id && found.always && base.always);
        let ratio = ratio.map(|ratio| decided.tested(id, base_id, ratio));
        let outcome = match ratio {
            Some(_) => decided.outcome(id, base_id),
            None => {
                let both_never = (found.never && base.never).then_some(blocks.precision_percent);
                PairOutcome::of(found.never && base.always || found.always && base.never, both_never)
            }
        };
        Some(CounterRow {
            case: id.to_owned(),
            label: found.label.to_owned(),
            figure: over_trials(&found.trials)?,
            ratio: ratio.map(|ratio| Estimate::of_ratio(&ratio, found.trials.len().min(base.trials.len()))),
            outcome: (id != base_id).then_some(outcome),
        })
    });
    let rows: Vec<CounterRow> = rows.collect();
    (rows.len() > 1).then(|| CounterComparison { counter, reference: base.id.to_owned(), rows })
}

/// A case that has the counter.
struct Counted<'a> {
    id: &'a str,
    label: &'a str,
    trials: Vec<BlockMean>,
    /// True if the counter was above zero in every trial.
    always: bool,
    /// True if the counter was zero in every trial.
    never: bool,
}

impl<'a> Counted<'a> {
    fn of((id, label, work): &(&'a str, &'a str, TrialsWork<'_>), counter: CostCounter) -> Option<Counted<'a>> {
        let trials = per_trial(counter, work);
        let always = trials.iter().all(|trial| trial.trial.mean > 0.0);
        let never = trials.iter().all(|trial| trial.trial.mean == 0.0);
        (!trials.is_empty()).then_some(Counted { id, label, trials, always, never })
    }
}
