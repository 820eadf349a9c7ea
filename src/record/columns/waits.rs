//! Columns of `waits.parquet` after those that identify the trial, and the columns of a case's axes.

use super::{ColumnDef, SECOND, gauge, interval};
use crate::record::column::{Column, ColumnKind, ColumnType, free_name};
use std::collections::BTreeMap;

columns! {
    /// wall-clock start of the sampled second, microseconds since 1970-01-01 UTC
    const TIME_US: ColumnDef = gauge("time_us", "us");
    /// pg_stat_activity.wait_event_type; `CPU` for an active backend that is not waiting, `Client` for one between
    /// statements; absent if no client backend was seen
    const WAIT_CLASS: ColumnDef = interval("wait_class", "").text();
    /// pg_stat_activity.wait_event; same as the class if there is none
    const WAIT_EVENT: ColumnDef = interval("wait_event", "").text();
    /// samples taken in the second, about ten
    const SAMPLES: ColumnDef = interval("samples", "samples");
    /// backends seen in this wait, summed over the samples; divided by samples, the mean number of backends in it
    const BACKENDS: ColumnDef = interval("backends", "backends");
}

/// Columns of `waits.parquet`, one row per second and wait.
pub(crate) fn waits() -> [Column; 6] {
    [SECOND, TIME_US, WAIT_CLASS, WAIT_EVENT, SAMPLES, BACKENDS].map(|column| column.column())
}

/// Columns of a case's axes with its value in each: `axis_stack`, `axis_clients`, `axis_ext4_mount`. Always text, since
/// an axis may mix numbers and words.
pub fn axes(axes: &BTreeMap<String, String>) -> Vec<(Column, &str)> {
    let mut columns: Vec<(Column, &str)> = Vec::new();
    for (axis, value) in axes {
        let name = free_name("axis_", axis, |name| columns.iter().any(|(column, _)| column.name == name));
        let doc = format!("value of the plan's axis `{axis}` for this case");
        let kind = ColumnKind::Gauge;
        columns.push((Column { name, unit: String::new(), kind, of: ColumnType::Text, doc }, value));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_plain_names_of_their_own_and_their_values() {
        let values = [("stack", "ext4"), ("clients", "8"), ("ext4.mount", "noatime"), ("ext4_mount", "x")];
        let values = values.map(|(axis, value)| (axis.to_owned(), value.to_owned()));
        let values = BTreeMap::from(values);
        let found: Vec<(String, &str)> =
            axes(&values).into_iter().map(|(column, value)| (column.name, value)).collect();
        let expected =
            [("axis_clients", "8"), ("axis_ext4_mount", "noatime"), ("axis_ext4_mount_2", "x"), ("axis_stack", "ext4")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
