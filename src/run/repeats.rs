//! Decides which disturbed trials to repeat, by the rule of [`crate::stats::disturbance`]. Its inputs come from the run
//! folder, so that a resumed run decides as if it had not stopped.

use super::cpu_taken::is_disturbed;
use crate::error::Result;
use crate::record::case::TrialKey;
use crate::record::trial::Outcome;
use crate::stats::disturbance::{may_repeat, most_repeats};
use crate::store::folder::{RunFolder, StoredTrial};

/// True if a trial was disturbed, has not been repeated, and repeating is worth the time.
///
/// # Errors
/// When the run folder was written by a newer pgstrata.
pub(super) fn is_due(folder: &RunFolder, key: &TrialKey) -> Result<bool> {
    let disturbed = folder.stored(key)?.measured().is_some_and(|record| is_disturbed(record.cpu_taken));
    if !disturbed || folder.set_aside(key)? != StoredTrial::Missing {
        return Ok(false);
    }
    let made = made(folder)?;
    Ok(may_repeat(planned(folder)?, made.repeats, made.in_vain))
}

/// Upper limit of repeats still to come; 0 if every trial is complete and none is due.
///
/// # Errors
/// As [`is_due`].
pub(super) fn left(folder: &RunFolder) -> Result<u32> {
    let made = made(folder)?;
    let order = &folder.record().order;
    let mut open = false;
    for key in order {
        open = open || !folder.stored(key)?.is_result() || is_due(folder, key)?;
    }
    let planned = planned(folder)?;
    let goes_on = open && may_repeat(planned, made.repeats, made.in_vain);
    Ok(if goes_on { most_repeats(planned) - made.repeats } else { 0 })
}

/// Repeats so far, and those that did not help.
#[derive(Default)]
struct Made {
    repeats: u32,
    in_vain: u32,
}

fn made(folder: &RunFolder) -> Result<Made> {
    let mut made = Made::default();
    for key in &folder.record().order {
        match folder.set_aside(key)? {
            StoredTrial::Missing => {}
            StoredTrial::Damaged(_) => made.repeats += 1,
            StoredTrial::Whole(record) => {
                made.repeats += 1;
                // A repeat that was set aside was disturbed, too; a failed one says nothing about the machine.
                made.in_vain += u32::from(record.is_repeat && record.outcome == Outcome::Measured);
            }
        }
    }
    Ok(made)
}

/// Trials certain to be in the run. Adaptive blocks may end after any look, so only blocks already begun and those
/// before the first look count; the share of repeats then holds wherever the run ends.
fn planned(folder: &RunFolder) -> Result<u32> {
    let record = folder.record();
    let mut last = record.at_least.unwrap_or(u32::MAX);
    for key in &record.order {
        if key.trial > last && folder.stored(key)? != StoredTrial::Missing {
            last = key.trial;
        }
    }
    let events = folder.events()?;
    let due = record.due(events.iter().map(|event| &event.what));
    Ok(u32::try_from(due.iter().filter(|key| key.trial <= last).count()).unwrap_or(u32::MAX))
}
