//! A share of a plan that continues on another machine: cases compare only within a machine, so a block begun on
//! another machine is measured again as a whole.

use crate::error::Result;
use crate::record::case::TrialKey;
use crate::record::event::Event;
use crate::record::facts::HostFacts;
use crate::store::folder::{RunFolder, StoredTrial};
use std::collections::BTreeSet;

/// Trials of a share to measure again on `here`: those from another machine, in blocks that are not complete on one
/// machine.
///
/// # Errors
/// When the run folder was written by a newer pgstrata.
pub(super) fn begun_elsewhere(folder: &RunFolder, here: &HostFacts) -> Result<BTreeSet<TrialKey>> {
    let mut again = BTreeSet::new();
    if folder.record().share.is_none() {
        return Ok(again);
    }
    for block in folder.record().order.chunk_by(|one, next| one.trial == next.trial) {
        let (mut others, mut is_whole, mut first) = (Vec::new(), true, None::<HostFacts>);
        for key in block {
            match folder.stored(key)? {
                StoredTrial::Whole(trial) if trial.is_result() => {
                    is_whole &= first.get_or_insert_with(|| trial.host.clone()).differences(&trial.host).is_empty();
                    if !trial.host.differences(here).is_empty() {
                        others.push(key.clone());
                    }
                }
                _ => is_whole = false,
            }
        }
        if !is_whole {
            again.extend(others);
        }
    }
    Ok(again)
}

/// The warning about them.
pub(super) fn warning(again: &BTreeSet<TrialKey>) -> Option<Event> {
    let blocks: BTreeSet<u32> = again.iter().map(|key| key.trial).collect();
    let word = if blocks.len() == 1 { "block" } else { "blocks" };
    let blocks = blocks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("another machine had begun {word} {blocks}: all of it is measured again here");
    (!again.is_empty()).then_some(Event::Warning { message })
}

/// True if a trial has a valid result: one from another machine, in a block that is measured again here, is not.
///
/// # Errors
/// As [`begun_elsewhere`].
pub(super) fn stands(folder: &RunFolder, key: &TrialKey, again: &BTreeSet<TrialKey>, here: &HostFacts) -> Result<bool> {
    let StoredTrial::Whole(trial) = folder.stored(key)? else { return Ok(false) };
    Ok(trial.is_result() && (!again.contains(key) || trial.host.differences(here).is_empty()))
}
