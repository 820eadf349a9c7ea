//! Imported figures that no storage can reach.

use crate::analyse::imported::select::{FoundRow, rows_of_trial, synced};
use crate::analyse::imported::words::rate as shown;
use crate::record::imported::{ImportedCase, ImportedTrial};

/// Text on a rate of synced writes that no storage is known to reach.
pub(crate) fn beyond_storage(case: &ImportedCase) -> Option<String> {
    let (_, method, rate) =
        case.trials.iter().filter_map(|trial| fastest(case, trial)).find(|it| it.2 > MOST_SYNCS_PER_S)?;
    Some(format!("{method} ran at {} per second, faster than any known durable storage", shown(rate)))
}

/// No device other than memory is known to sync more often with one writer.
pub(crate) const MOST_SYNCS_PER_S: f64 = 100_000.0;

/// The fastest row of one synced write.
pub(crate) fn fastest<'a>(case: &'a ImportedCase, trial: &'a ImportedTrial) -> Option<(FoundRow<'a>, &'a str, f64)> {
    synced(rows_of_trial(case, trial), "one write").max_by(|a, b| a.2.total_cmp(&b.2))
}
