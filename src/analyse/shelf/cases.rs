//! Summary of a case: its facts and main figures.

use super::findings::{MainFigure, PublishedCase};
use crate::analyse::findings::groups::by_key;
use crate::analyse::imported::select::{FoundRow, rows, synced, tps};
use crate::record::imported::ImportedCase;
use crate::stats::moments;

/// Summary of a case.
pub(super) fn case(case: &ImportedCase) -> PublishedCase {
    PublishedCase {
        name: case.name.clone(),
        facts: case.facts.clone(),
        figures: rows(case).map(|found| found.row.figures.len()).sum(),
        main: main_figures(case),
        caveats: case.caveats.clone(),
    }
}

/// Transactions per second, and the rate of each sync method with one write; means over the trials.
fn main_figures(case: &ImportedCase) -> Vec<MainFigure> {
    let rows: Vec<FoundRow<'_>> = rows(case).collect();
    let commits = rows.iter().filter_map(tps).map(|tps| (("tps", tps.unit.as_str()), tps.value));
    let synced = synced(rows.iter().copied(), "one write").map(|(_, method, rate)| ((method, "ops/s"), rate));
    let found = by_key(commits.chain(synced)).into_iter().filter_map(|((name, unit), values)| {
        Some(MainFigure { name: name.to_owned(), unit: unit.to_owned(), value: moments::mean(&values)? })
    });
    found.collect()
}
