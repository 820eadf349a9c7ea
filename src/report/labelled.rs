//! Findings with the names of their cases: what the sections of a report are made from.

use super::table::{Cell, TableColumn};
use crate::analyse::findings::{Findings, TrialFinding, names};
use std::collections::BTreeMap;

pub(super) struct Labelled<'a> {
    pub findings: &'a Findings,
    /// The name of each case, by its id.
    pub labels: BTreeMap<String, String>,
}

impl<'a> Labelled<'a> {
    pub fn new(findings: &'a Findings) -> Labelled<'a> {
        let labels = names::of_cases(findings.cases.iter().map(|case| (case.id.as_str(), &case.axes)));
        Labelled { findings, labels }
    }

    /// The name of a case, or its id where it has none.
    pub fn label<'l>(&'l self, id: &'l str) -> &'l str {
        self.labels.get(id).map_or(id, String::as_str)
    }

    pub fn name(&self, id: &str) -> Cell {
        Cell::case(self.label(id), id)
    }

    /// The first cells of a trial's row.
    pub fn trial_key(&self, trial: &TrialFinding) -> [Cell; 2] {
        [self.name(&trial.case), Cell::number(Some(trial.trial), |number| number.to_string())]
    }
}

/// Columns of a table that has a trial in each row.
pub(super) fn trial_columns(more: Vec<TableColumn>) -> Vec<TableColumn> {
    [vec![TableColumn::text("Case").csv(&["case"]), TableColumn::number("Trial", "")], more].concat()
}
