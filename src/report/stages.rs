//! One-time stages of trials: duration and speed.

use super::rankings::{estimate_cell, estimate_column};
use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::{CaseFinding, StageKind};
use crate::units::Bytes;
use std::collections::BTreeMap;

/// Explanation of the stages.
pub(super) const NOTE: &str = "Mean over trials with its 95 % CI. Indented: the parts of the stage above them; they add up to \
                               it in each trial, and the rest is named. MB: 10^6 bytes.";

/// Cases whose trials have stages, with their labels.
pub(super) struct Stages<'a> {
    pub cases: &'a [CaseFinding],
    /// Label of a case by id.
    pub labels: &'a BTreeMap<String, String>,
}

impl Stages<'_> {
    /// One row per stage of each case.
    pub fn table(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Stage").csv(&["stage", "kind"]),
            estimate_column("Time", "time", "s"),
            TableColumn::number("Amount", "").csv(&["amount (B)"]),
            estimate_column("Rate", "rate", "MB/s"),
        ];
        let mut table = Table::new("stages", "Stage by stage", columns).note(NOTE);
        for case in self.cases {
            for stage in &case.stages {
                let (lead, kind) = match stage.kind {
                    StageKind::Ranked => ("", "ranked"),
                    StageKind::Part => ("\u{2003}", "part"),
                    StageKind::Beside => ("", "beside"),
                };
                let name = Cell::text(format!("{lead}{}", stage.name));
                table.push(vec![
                    Cell::case(self.labels.get(&case.id).map_or(&case.id, |label| label), &case.id),
                    name.csv(vec![stage.name.clone(), kind.to_owned()]),
                    estimate_cell(stage.seconds.as_ref(), stage.missing.as_deref()),
                    Cell::number(stage.bytes, |bytes| Bytes(bytes.round() as u64).to_string()),
                    estimate_cell(stage.mb_per_s.as_ref(), None),
                ]);
            }
        }
        table
    }
}
