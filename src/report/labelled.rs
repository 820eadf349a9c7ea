//! Findings with the names of their cases: what the sections of a report are made from.

use super::table::{Cell, TableColumn, TableOver};
use crate::analyse::findings::{CaseFinding, Findings, TrialFinding, names};
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
        [self.name(&trial.case), Cell::text(trial.trial.to_string())]
    }

    /// A table with a row for each of these parts of the cases; the first column has the case.
    pub fn over_cases<R, P>(&self, id: &str, caption: &str, parts: impl Fn(&'a CaseFinding) -> P) -> TableOver<R>
    where
        P: IntoIterator<Item = R>,
    {
        let parts = |case: &'a CaseFinding| parts(case).into_iter().map(|part| (vec![self.name(&case.id)], part));
        let (id, caption, first) = (id.to_owned(), caption.to_owned(), vec![TableColumn::label("Case")]);
        TableOver { id, caption, first, rows: self.findings.cases.iter().flat_map(parts).collect() }
    }

    /// The same with parts of the trials; the first columns have the case and the trial's number.
    pub fn over_trials<R, P>(&self, id: &str, caption: &str, parts: impl Fn(&'a TrialFinding) -> P) -> TableOver<R>
    where
        P: IntoIterator<Item = R>,
    {
        let parts = |trial: &'a TrialFinding| parts(trial).into_iter().map(|part| (self.trial_key(trial).into(), part));
        let (id, caption, first) = (id.to_owned(), caption.to_owned(), trial_columns(Vec::new()));
        TableOver { id, caption, first, rows: self.findings.trials.iter().flat_map(parts).collect() }
    }
}

/// Columns of a table that has a trial in each row.
pub(super) fn trial_columns(more: Vec<TableColumn>) -> Vec<TableColumn> {
    [vec![TableColumn::text("Case").csv(&["case"]), TableColumn::number("Trial", "")], more].concat()
}
