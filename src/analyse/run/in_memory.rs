//! Cases compared with the same case on a stack in memory.

use crate::analyse::case::measures::MeasureSums;
use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::{BackendTime, Estimate, InMemory};
use crate::record::claim::Claim;
use crate::stats::ratio::ratio;
use std::collections::BTreeMap;

/// Compares a case with the one in memory that differs from it only in its stack.
pub fn measured_in_memory(sums: &[CaseSums], case: &CaseSums, found: &mut BackendTime) {
    if case.at_fixed_rate() || found.storage.is_none() || lies_in_memory(case) {
        return;
    }
    let mut alike = sums.iter().filter(|other| beside_stack(case) == beside_stack(other));
    let Some(memory) = alike.find(|other| lies_in_memory(other)) else { return };
    let rates = case.measures.first().zip(memory.measures.first());
    let without_borne = |(own, other): (&MeasureSums, &MeasureSums)| {
        ratio(&memory.turns.without_borne(&other.rates), &case.turns.without_borne(&own.rates))
    };
    let Some(gain) = rates.and_then(without_borne) else { return };
    let stack = memory.spec.stack.name.clone();
    let ratio = Estimate::of_ratio(&gain, case.trials.len().min(memory.trials.len()));
    let ends = gain.interval.filter(|_| !ratio.is_beyond_use()).map(|(low, high)| format!(" ({low:.2} to {high:.2})"));
    let clause =
        format!("on {stack} the same settings ran at {:.2}× this rate{}", gain.value, ends.unwrap_or_default());
    found.sentence = format!("{}; {clause}", found.sentence);
    found.in_memory = Some(InMemory { case: memory.spec.id.clone(), stack, ratio });
}

/// Axes and settings that are not the stack's.
fn beside_stack(sums: &CaseSums) -> (BTreeMap<&String, &String>, Option<&BTreeMap<String, String>>) {
    let spec = &sums.spec;
    let axes = spec.axes.iter().filter(|(axis, _)| *axis != "stack" && !spec.is_of_stack(axis));
    (axes.collect(), spec.postgres.as_ref().map(|postgres| &postgres.settings))
}

/// True if data and WAL of all trials are on a stack that keeps everything in memory.
fn lies_in_memory(case: &CaseSums) -> bool {
    let in_memory = case.trials.iter().all(|trial| {
        trial.stack.as_ref().is_some_and(|stack| {
            let mut bases = std::iter::once(stack.data.as_ref()).chain(stack.wal.as_ref().map(Some));
            bases.all(|base| stack.promise(base, Claim::Volatile).is_some() && stack.devices_below(base).is_empty())
        })
    });
    in_memory && !case.trials.is_empty()
}
