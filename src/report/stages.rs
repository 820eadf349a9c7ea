//! One-time stages of trials: duration and speed.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::StageKind;

/// Explanation of the stages.
const NOTE: &str = "Mean over trials with its 95 % CI. Indented: the parts of the stage above them; they add up to \
                               it in each trial, and the rest is named. MB: 10^6 bytes.";

impl Labelled<'_> {
    /// One row per stage of each case.
    pub fn stages(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Stage").csv(&["stage", "kind"]),
            TableColumn::estimate("Time", "time", "s"),
            TableColumn::number("Amount", "").csv(&["amount (B)"]),
            TableColumn::estimate("Rate", "rate", "MB/s"),
        ];
        let stages = self.findings.cases.iter().flat_map(|case| case.stages.iter().map(move |stage| (case, stage)));
        let rows = stages.map(|(case, stage)| {
            let (lead, kind) = match stage.kind {
                StageKind::Ranked => ("", "ranked"),
                StageKind::Part => ("\u{2003}", "part"),
                StageKind::Beside => ("", "beside"),
            };
            let name = Cell::text(format!("{lead}{}", stage.name));
            vec![
                self.name(&case.id),
                name.csv(vec![stage.name.clone(), kind.to_owned()]),
                Cell::estimate(stage.seconds.as_ref(), stage.missing.as_deref()),
                Cell::bytes(stage.bytes),
                Cell::estimate(stage.mb_per_s.as_ref(), None),
            ]
        });
        Table::new("stages", "Stage by stage", columns).note(NOTE).rows(rows)
    }
}
