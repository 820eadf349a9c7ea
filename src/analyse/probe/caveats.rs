//! What a reader should know before believing a figure of a probe.

use super::evidence::Evidence;
use crate::units::{Bytes, Micros, significant};

/// File size that the rows of pg_test_fsync have there.
const USUAL_FILE_BYTES: u64 = 16 << 20;

/// Every caveat, the most important first.
pub(super) fn caveats(evidence: &Evidence) -> Vec<String> {
    let record = evidence.record;
    let mut found = record.notes.clone();
    let rows = evidence.rows.iter();
    let imprecise = rows.filter(|row| row.rate.as_ref().is_some_and(|rate| !rate.precise)).count();
    if imprecise > 0 {
        found.push(format!(
            "{imprecise} of {} rows are not known to ±{} %: a longer probe narrows them",
            evidence.rows.len(),
            significant(record.precision * 100.0)
        ));
    }
    let worthless = evidence.rows.iter().flat_map(|row| &row.work).any(|work| work.worthless);
    if worthless {
        found.push("others use the device: the device work of rows marked ~ is theirs as well".to_owned());
    }
    if record.file_bytes > 0 && record.file_bytes < USUAL_FILE_BYTES {
        let why = format!("the file is {}, not 16 MiB, for want of free space", Bytes(record.file_bytes));
        found.push(why);
    }
    found.push(format!(
        "{} are a short look: a drive that slows down when its cache is full, or that stalls once a minute, may not have shown \
         it",
        Micros(record.elapsed_us)
    ));
    found
}
