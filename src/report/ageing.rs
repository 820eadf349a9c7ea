//! Figures over an amount of ageing: one sentence per figure, and every point.

use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::Ageing;
use crate::units::significant;

/// Explanation of the tables.
const NOTE: &str = "Aged: measured on the filesystem that was aged. Fresh: the same cluster, copied to a fresh \
                               filesystem on the same devices. The ratio is taken block by block; each block ages a \
                               filesystem of its own. Steady: over the last points, at least three, the range is at most \
                               20 % of the mean and the fitted line moves by at most 10 % (SNIA's rule). Nothing is said \
                               beyond the last point. One slope in twenty lies outside its interval by chance.";

/// One sentence per figure.
pub(super) fn courses(all: &[Ageing]) -> Table {
    let columns = vec![TableColumn::text("Cases"), TableColumn::text("Figure"), TableColumn::text("Course")];
    let rows = all.iter().map(|one| vec![Cell::text(&one.name), Cell::text(figure(one)), Cell::text(&one.sentence)]);
    Table::new("ageing-courses", "What ageing changes", columns).note(NOTE).rows(rows)
}

/// Every point of every figure.
pub(super) fn points(all: &[Ageing]) -> Table {
    let points = all.iter().flat_map(|one| one.points.iter().map(move |point| (one, point)));
    Table::over("ageing-points", "Every point", points).columns(&[
        (TableColumn::text("Cases"), &|(one, _)| Cell::text(&one.name)),
        (TableColumn::text("Figure"), &|(one, _)| Cell::text(figure(one))),
        (TableColumn::text("Amount"), &|(one, _)| Cell::text(&one.amount)),
        (TableColumn::number("At", ""), &|(_, it)| Cell::number(Some(it.x), significant)),
        (TableColumn::bounded("Aged"), &|(_, it)| Cell::bounded(it.aged.as_ref())),
        (TableColumn::bounded("Fresh"), &|(_, it)| Cell::bounded(it.fresh.as_ref())),
        (TableColumn::bounded("Aged / fresh"), &|(_, it)| Cell::bounded(it.ratio.as_ref())),
        (TableColumn::text("Told apart"), &|(_, it)| {
            Cell::text(it.told_apart.map_or("–", |is| if is { "yes" } else { "no" }))
        }),
    ])
}

fn figure(of: &Ageing) -> String {
    if of.unit.is_empty() { of.figure.clone() } else { format!("{}, {}", of.figure, of.unit) }
}
