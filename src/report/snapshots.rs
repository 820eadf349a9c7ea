//! Snapshots under load: the cost of each, beside the control.

use super::rankings::estimate_cell;
use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::{CaseFinding, Estimate, SnapshotFinding};
use crate::units::significant;
use std::collections::BTreeMap;

/// Explanation of the figures.
pub(super) const NOTE: &str = "Seconds are aligned to the one in which a snapshot is made and averaged over snapshots, then over \
                               trials (95 % CI). Dip: the slowest of these seconds over the rate before. Back: until 95 % of it. \
                               Longest time without a commit: of those that ended within three seconds of a snapshot, or began \
                               then and went on. Growth: of the \
                               space in use, snapshots included; that of the control is data and WAL.";

/// Cases that make snapshots, with their labels.
pub(super) struct SnapshotTable<'a> {
    pub cases: &'a [CaseFinding],
    /// Label of a case by id.
    pub labels: &'a BTreeMap<String, String>,
}

impl SnapshotTable<'_> {
    /// One row per figure of each case.
    pub fn table(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Figure").csv(&["figure"]),
            TableColumn::number("Value, 95 % interval", "").csv(&["value", "value low", "value high", "trials"]),
            TableColumn::text("Unit").csv(&["unit"]),
        ];
        let mut table = Table::new("snapshots", "Snapshots", columns).note(NOTE);
        for case in self.cases {
            for (figure, value, unit) in case.snapshots.iter().flat_map(figures) {
                table.push(vec![
                    Cell::case(self.labels.get(&case.id).map_or(&case.id, |label| label), &case.id),
                    Cell::text(figure),
                    value,
                    Cell::text(unit),
                ]);
            }
        }
        table
    }
}

/// Figures of a case: name, value, unit.
fn figures(found: &SnapshotFinding) -> Vec<(&'static str, Cell, &'static str)> {
    let plain = |value: f64| {
        let csv = vec![value.to_string(), String::new(), String::new(), String::new()];
        Cell::number(Some(value), significant).csv(csv)
    };
    let made = (found.made > 0).then(|| ("snapshots made", plain(found.made as f64), ""));
    let estimate = |name: &'static str, figure: &Option<Estimate>, unit: &'static str| {
        figure.as_ref().map(|figure| (name, estimate_cell(Some(figure), None), unit))
    };
    let rows = [
        made,
        estimate("dip", &found.dip, "of the rate before"),
        estimate("back", &found.back_s, "s"),
        estimate("longest time without a commit", &found.idle_s, "s"),
        estimate("make", &found.make_s, "s"),
        estimate("delete", &found.delete_s, "s"),
        estimate("load while deleting", &found.delete_load, "of the rate before"),
        estimate("written before", &found.bytes_before, "B per operation"),
        estimate("written after", &found.bytes_after, "B per operation"),
        found.gb_per_hour.map(|growth| ("growth", plain(growth), "GB/h")),
    ];
    rows.into_iter().flatten().collect()
}
