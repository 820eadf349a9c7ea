//! Stacks under the load of a server's profile.

use super::table::{Cell, Table, TableColumn};
use super::words::{in_ms, optional};
use crate::analyse::findings::Profiled;
use crate::units::{Micros, significant};

/// Explanation of the table.
const NOTE: &str = "At the rate of the profile. Headroom: multiples of that rate, the highest at which 99 % of the \
                    transactions are done within the limit and the lowest at which they are not, of those tried. A \
                    day: at that rate all day, where each trial has a whole checkpoint cycle, which quick runs lack; the devices \
                    are those that the stack is built on.";

/// One row per stack.
pub(super) fn table(found: &[Profiled]) -> Table {
    let table = Table::over("profiled", "Load of the profile", found).columns(&[
        (TableColumn::label("Stack"), &|it| Cell::text(&it.name)),
        (TableColumn::number("Rate", "1/s"), &|it| Cell::figure(Some(it.rate))),
        (TableColumn::estimate("p99", "p99", "ms"), &|it| {
            Cell::estimate(it.p99_us.as_ref().map(in_ms).as_ref(), it.p99_unavailable.as_deref())
        }),
        (TableColumn::number("Limit", "").csv(&["limit (us)"]), &|it| {
            Cell::number(it.limit_us, |us| Micros(us).to_string())
        }),
        (TableColumn::number("Headroom", "").csv(&["holds", "fails"]), &headroom),
        (TableColumn::units("WAL a day", "", "B"), &|it| Cell::bytes(it.wal_bytes_per_day)),
        (TableColumn::number("To devices a day", "").csv(&["to devices a day (B)"]), &|it| {
            Cell::bytes(it.device_bytes_per_day)
        }),
        (TableColumn::estimate("Back after a crash", "back", "s"), &|it| Cell::estimate(it.back_s.as_ref(), None)),
    ]);
    table.note(NOTE)
}

fn headroom(it: &&Profiled) -> Cell {
    let text = match (it.holds, it.fails) {
        (None, None) => "–".to_owned(),
        (Some(holds), None) => format!("{} or more", significant(holds)),
        (None, Some(fails)) => format!("below {}", significant(fails)),
        (Some(holds), Some(fails)) if holds == fails => significant(holds),
        (Some(holds), Some(fails)) => format!("{} to {}", significant(holds), significant(fails)),
    };
    Cell::text(text).csv([it.holds, it.fails].map(optional).to_vec())
}
