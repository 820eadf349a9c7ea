//! Drives brought to their steady state: one sentence each, and their rounds.

use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::DriveFinding;
use crate::units::{Bytes, grouped};

/// Explanation of the tables.
const NOTE: &str = "Before stacks were built on it, each drive was purged where the column Purge says so, written over in sequence and then written \
                               at random in rounds. Steady by SNIA's rule (PTS 2.0.2): over five rounds, the range is at \
                               most 20 % of the mean and the fitted line moves by at most 10 %. While a stack stood on it, the \
                               kernel was told to send it no discards: the fact `discards` of its layer says what the kernel showed.";

/// Result for each drive.
pub(super) fn drives(all: &[DriveFinding]) -> Table {
    let table = Table::over("drives", "Preconditioned drives", all).columns(&[
        (TableColumn::text("Drive"), &|one| Cell { aside: one.model.clone(), ..Cell::text(&one.drive) }),
        (TableColumn::text("Size"), &|one| Cell::text(Bytes(one.bytes).to_string())),
        (TableColumn::text("Purge"), &|one| Cell::text(&one.purge)),
        (TableColumn::text("Sequential writes"), &|one| {
            Cell::text(format!("{} at {}/s", Bytes(one.fill_bytes), Bytes(one.fill_bytes_per_s as u64)))
        }),
        (TableColumn::text("Random writes"), &|one| {
            Cell::text(format!("{}, {} in flight", Bytes(one.block_bytes), one.depth))
        }),
        (TableColumn::text("State"), &|one| Cell::text(&one.sentence)),
    ]);
    table.note(NOTE)
}

/// Every round.
pub(super) fn rounds(all: &[DriveFinding]) -> Table {
    let rows = all.iter().flat_map(|one| (1..).zip(&one.rounds).map(move |(number, round)| (one, number, round)));
    Table::over("drive-rounds", "Rounds on drives", rows).columns(&[
        (TableColumn::text("Drive"), &|(one, _, _)| Cell::text(&one.drive)),
        (TableColumn::number("Round", ""), &|(_, number, _)| Cell::number(Some(*number), grouped)),
        (TableColumn::number("Until", "s"), &|(.., it)| Cell::number(Some(it.until_s), |s| format!("{s:.1}"))),
        (TableColumn::number("Writes", "1/s"), &|(.., it)| {
            Cell::number(Some(it.rate), |rate| grouped(rate.round() as u64))
        }),
        (TableColumn::number("Range of the last five", "%"), &|(.., it)| percent(it.range)),
        (TableColumn::number("Slope of the last five", "%"), &|(.., it)| percent(it.excursion)),
    ])
}

fn percent(share: Option<f64>) -> Cell {
    Cell::number(share.map(|share| share * 100.0), |share| format!("{share:.1}"))
}
