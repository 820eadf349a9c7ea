//! Differences between the cases, the first table of the environment.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use crate::analyse::compare::differences::{Difference, between_cases, from_defaults, named};
use crate::analyse::findings::names::first;

/// Most cases listed by name beside a value.
const CASES_NAMED: usize = 8;

/// Facts that differ between cases, then the settings common to all that are not PostgreSQL's defaults.
pub(super) fn differences_table(labelled: &Labelled<'_>) -> Table {
    let columns = ["Fact", "Value", "Cases"].map(TableColumn::label).into();
    let mut table = Table::new("differences", "What differs", columns).lead(&["between"]);
    let Labelled { findings, labels } = labelled;
    let found = between_cases(&findings.cases, &findings.trials);
    if !found.is_empty() {
        table.open_group(Some("Between the cases".to_owned()), None, vec!["the cases".to_owned()]);
    }
    for Difference { key, values } in found {
        for (value, ids) in values {
            let names = named(&ids, &findings.cases, labels);
            let shown = first(names.iter(), CASES_NAMED, "; ", "; ");
            let cases = Cell::text(shown).csv(vec![ids.join("; ")]).style("quiet");
            table.push(vec![Cell::text(key.clone()).style("name"), Cell::text(value).style("code"), cases]);
        }
    }
    let settings = from_defaults(&findings.trials);
    if !settings.is_empty() {
        let heading = "Settings that differ from PostgreSQL's defaults in all cases";
        let lead = "PostgreSQL's defaults and the run";
        table.open_group(Some(heading.to_owned()), None, vec![lead.to_owned()]);
    }
    for (name, value) in settings {
        let cells = [Cell::text(name).style("name"), Cell::text(value).style("code"), Cell::text("all").style("quiet")];
        table.push(cells.into());
    }
    table
}
