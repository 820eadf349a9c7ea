//! Snapshots under load: the cost of each, beside the control.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::SnapshotFinding;
use crate::units::significant;

/// Explanation of the figures.
const NOTE: &str = "Seconds are aligned to the one in which a snapshot is made and averaged over snapshots, then over \
                               trials (95 % CI). Dip: the slowest of these seconds over the rate before. Back: until 95 % of it. \
                               Longest time without a commit: of those that ended within three seconds of a snapshot, or began \
                               then and went on. Growth: of the \
                               space in use, snapshots included; that of the control is data and WAL.";

impl Labelled<'_> {
    /// One row per figure of each case.
    pub fn snapshots(&self) -> Table {
        let csv = ["value", "value low", "value high", "trials"];
        let rows = self.over_cases("snapshots", "Snapshots", |case| case.snapshots.iter().flat_map(figures));
        let table = rows.columns(&[
            (TableColumn::label("Figure"), &|(figure, ..)| Cell::text(*figure)),
            (TableColumn::number("Value, 95 % interval", "").csv(&csv), &|(_, value, _)| value.clone()),
            (TableColumn::label("Unit"), &|(.., unit)| Cell::text(*unit)),
        ]);
        table.note(NOTE)
    }
}

/// Figures of a case: name, value, unit.
fn figures(found: &SnapshotFinding) -> Vec<(&'static str, Cell, &'static str)> {
    let made = (found.made > 0).then(|| ("snapshots made", plain(found.made as f64), ""));
    let growth = found.gb_per_hour.map(|growth| ("growth", plain(growth), "GB/h"));
    let estimates = [
        ("dip", &found.dip, "of the rate before"),
        ("back", &found.back_s, "s"),
        ("longest time without a commit", &found.idle_s, "s"),
        ("make", &found.make_s, "s"),
        ("delete", &found.delete_s, "s"),
        ("load while deleting", &found.delete_load, "of the rate before"),
        ("written before", &found.bytes_before, "B per operation"),
        ("written after", &found.bytes_after, "B per operation"),
    ];
    let estimates = estimates.into_iter().filter(|(_, figure, _)| figure.is_some());
    let estimates = estimates.map(|(name, figure, unit)| (name, Cell::estimate(figure.as_ref(), None), unit));
    made.into_iter().chain(estimates).chain(growth).collect()
}

/// A number without an interval.
fn plain(value: f64) -> Cell {
    Cell::number(Some(value), significant).csv([&value.to_string(), "", "", ""].map(str::to_owned).into())
}
