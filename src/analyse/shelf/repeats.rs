//! What a publication measured twice without meaning to: pg_test_fsync writes twice 8 kB with open_sync in two of its tests.

use super::findings::Repeat;
use super::select::rows_of_trial;
use crate::record::imported::ImportRecord;

/// The pairs, the widest apart first.
pub(super) fn repeats(record: &ImportRecord) -> Vec<Repeat> {
    let mut found = Vec::new();
    for case in &record.cases {
        for trial in &case.trials {
            let rate = |labels: &[(&str, &str)]| {
                rows_of_trial(case, trial).find(|row| row.is(labels)).and_then(|row| row.value("rate"))
            };
            let one = rate(&[("test", "two writes"), ("write_bytes", "8192"), ("method", "open_sync")]);
            let other = rate(&[("test", "open_sync sizes"), ("writes", "2"), ("write_bytes", "8192")]);
            let Some((one, other)) = one.zip(other).filter(|(one, other)| *one > 0.0 && *other > 0.0) else { continue };
            found.push(Repeat {
                case: case.name.clone(),
                what: "two 8 kB open_sync writes".to_owned(),
                values: (one, other),
                unit: "ops/s".to_owned(),
                apart: one.max(other) / one.min(other) - 1.0,
            });
        }
    }
    found.sort_by(|a, b| b.apart.total_cmp(&a.apart));
    found
}
