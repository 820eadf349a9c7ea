//! Drives brought to their steady state: one sentence each, and their rounds.

use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::{DriveFinding, DriveRoundFinding};
use crate::units::{Bytes, grouped};

/// Explanation of the tables.
const NOTE: &str = "Before stacks were built on it, each drive was purged where the column Purge says so, written over in sequence and then written \
                               at random in rounds. Steady by SNIA's rule (PTS 2.0.2): over five rounds, the range is at \
                               most 20 % of the mean and the fitted line moves by at most 10 %. While a stack stood on it, the \
                               kernel was told to send it no discards: the fact `discards` of its layer says what the kernel showed.";

/// Result for each drive.
pub(super) fn drives(all: &[DriveFinding]) -> Table {
    let columns = vec![
        TableColumn::text("Drive"),
        TableColumn::text("Size"),
        TableColumn::text("Purge"),
        TableColumn::text("Sequential writes"),
        TableColumn::text("Random writes"),
        TableColumn::text("State"),
    ];
    let rows = all.iter().map(|one| {
        let mut name = Cell::text(&one.drive);
        name.aside.clone_from(&one.model);
        let fill = format!("{} at {}/s", Bytes(one.fill_bytes), Bytes(one.fill_bytes_per_s as u64));
        let random = format!("{}, {} in flight", Bytes(one.block_bytes), one.depth);
        vec![
            name,
            Cell::text(Bytes(one.bytes).to_string()),
            Cell::text(&one.purge),
            Cell::text(fill),
            Cell::text(random),
            Cell::text(&one.sentence),
        ]
    });
    Table::new("drives", "Preconditioned drives", columns).note(NOTE).rows(rows)
}

/// Every round.
pub(super) fn rounds(all: &[DriveFinding]) -> Table {
    let columns = vec![
        TableColumn::text("Drive"),
        TableColumn::number("Round", ""),
        TableColumn::number("Until", "s"),
        TableColumn::number("Writes", "1/s"),
        TableColumn::number("Range of the last five", "%"),
        TableColumn::number("Slope of the last five", "%"),
    ];
    let rows = all.iter().flat_map(|one| (1..).zip(&one.rounds).map(|(number, round)| row(&one.drive, number, round)));
    Table::new("drive-rounds", "Rounds on drives", columns).rows(rows)
}

fn row(drive: &str, number: u64, round: &DriveRoundFinding) -> Vec<Cell> {
    vec![
        Cell::text(drive),
        Cell::number(Some(number), grouped),
        Cell::number(Some(round.until_s), |s| format!("{s:.1}")),
        Cell::number(Some(round.rate), |rate| grouped(rate.round() as u64)),
        percent(round.range),
        percent(round.excursion),
    ]
}

fn percent(share: Option<f64>) -> Cell {
    Cell::number(share.map(|share| share * 100.0), |share| format!("{share:.1}"))
}
