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
    let columns = vec![
        TableColumn::text("Case").csv(&["case"]),
        TableColumn::text("Trial").csv(&["trial"]),
        TableColumn::number("Full after", "s").csv(&["full after (s)"]),
        TableColumn::text("While").csv(&["step"]),
        TableColumn::number("Used", "").csv(&["used"]),
        TableColumn::text("First refusal").csv(&["reason"]),
        TableColumn::text("End of the server log").csv(&["server log"]),
    ];
    let rows = labelled.findings.full.iter().map(|found| {
        vec![
            labelled.name(&found.case),
            Cell::text(found.trial.to_string()),
            Cell::figure(Some(found.after_s)),
            Cell::text(found.step.clone()),
            Cell::number(found.used, percent),
            Cell::text(found.reason.clone()).style("reason"),
            Cell::log(&found.server_log).style("lines"),
        ]
    });
    Table::new("full", "Full stacks", columns).note(NOTE).rows(rows)
}

/// One trial in a line: "trial 2: full after 31.4 s (measuring), 97 % used".
pub(super) fn line(found: &FullFinding) -> String {
    let used = found.used.map_or_else(String::new, |used| format!(", {} used", percent(used)));
    let figures = if found.is_measured { "" } else { "; no figures" };
    format!("trial {}: full after {} s ({}){used}{figures}", found.trial, significant(found.after_s), found.step)
}
