//! Findings with the names of their cases: what the sections of a report are made from.

use super::table::Cell;
use crate::analyse::findings::{Findings, names};
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
}
