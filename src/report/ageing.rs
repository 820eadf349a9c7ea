//! Figures over an amount of ageing: one sentence per figure, and every point.

use super::table::{Cell, Table, TableColumn};
use super::words::estimate_text;
use crate::analyse::findings::{Ageing, Estimate};
use crate::units::significant;

/// Explanation of the tables.
pub(super) const NOTE: &str = "Aged: measured on the filesystem that was aged. Fresh: the same cluster, copied to a fresh \
                               filesystem on the same devices. The ratio is taken block by block; each block ages a \
                               filesystem of its own. Steady: over the last points, at least three, the range is at most \
                               20 % of the mean and the fitted line moves by at most 10 % (SNIA's rule). Nothing is said \
                               beyond the last point. One slope in twenty lies outside its interval by chance.";

/// One sentence per figure.
pub(super) fn courses(all: &[Ageing]) -> Table {
    let columns = vec![TableColumn::text("Cases"), TableColumn::text("Figure"), TableColumn::text("Course")];
    let mut table = Table::new("ageing-courses", "What ageing changes", columns).note(NOTE);
    for one in all {
        table.push(vec![Cell::text(&one.name), Cell::text(figure(one)), Cell::text(&one.sentence)]);
    }
    table
}

/// Every point of every figure.
pub(super) fn points(all: &[Ageing]) -> Table {
    let with_ends = |title: &str| {
        let low = format!("{title} low");
        let high = format!("{title} high");
        TableColumn::number(title, "").csv(&[title, &low, &high])
    };
    let columns = vec![
        TableColumn::text("Cases"),
        TableColumn::text("Figure"),
        TableColumn::text("Amount"),
        TableColumn::number("At", ""),
        with_ends("Aged"),
        with_ends("Fresh"),
        with_ends("Aged / fresh"),
        TableColumn::text("Told apart"),
    ];
    let mut table = Table::new("ageing-points", "Every point", columns);
    for one in all {
        for point in &one.points {
            table.push(vec![
                Cell::text(&one.name),
                Cell::text(figure(one)),
                Cell::text(&one.amount),
                Cell::number(Some(point.x), significant),
                estimate(point.aged.as_ref()),
                estimate(point.fresh.as_ref()),
                estimate(point.ratio.as_ref()),
                Cell::text(match point.told_apart {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "–",
                }),
            ]);
        }
    }
    table
}

fn figure(of: &Ageing) -> String {
    if of.unit.is_empty() { of.figure.clone() } else { format!("{}, {}", of.figure, of.unit) }
}

fn estimate(found: Option<&Estimate>) -> Cell {
    let Some(found) = found else { return Cell::text("–").csv(vec![String::new(); 3]) };
    let (value, interval) = estimate_text(found);
    let end = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
    let mut cell = Cell::text(value).csv(vec![found.value.to_string(), end(found.low), end(found.high)]);
    cell.aside = found.low.is_some().then_some(interval);
    cell
}
