//! Trials whose stack filled up, with the last messages of their server.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::percent;
use crate::analyse::findings::FullFinding;
use crate::units::significant;

/// Explanation of the table.
pub(super) const NOTE: &str = "Full after: from the first operation to the first refusal; without figures, from the beginning \
                               of the step. Used: share of the filesystem as df counts it; a pool below it may be full before.";

/// One row per trial.
pub(super) fn table(labelled: &Labelled<'_>) -> Table {
    let table = Table::over("full", "Full stacks", &labelled.findings.full).columns(&[
        (TableColumn::label("Case"), &|it| labelled.name(&it.case)),
        (TableColumn::label("Trial"), &|it| Cell::text(it.trial.to_string())),
        (TableColumn::number("Full after", "s").csv(&["full after (s)"]), &|it| Cell::figure(Some(it.after_s))),
        (TableColumn::text("While").csv(&["step"]), &|it| Cell::text(&it.step)),
        (TableColumn::number("Used", "").csv(&["used"]), &|it| Cell::share(it.used)),
        (TableColumn::text("First refusal").csv(&["reason"]), &|it| Cell::text(&it.reason).style("reason")),
        (TableColumn::text("End of the server log").csv(&["server log"]), &|it| {
            Cell::log(&it.server_log).style("lines")
        }),
    ]);
    table.note(NOTE)
}

/// One trial in a line: "trial 2: full after 31.4 s (measuring), 97 % used".
pub(super) fn line(found: &FullFinding) -> String {
    let used = found.used.map_or_else(String::new, |used| format!(", {} used", percent(used)));
    let figures = if found.is_measured { "" } else { "; no figures" };
    format!("trial {}: full after {} s ({}){used}{figures}", found.trial, significant(found.after_s), found.step)
}
