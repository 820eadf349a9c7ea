//! One-time stages of trials: duration and speed.

use super::labelled::Labelled;
use super::table::{Cell, Column, Table, TableColumn};
use crate::analyse::findings::{StageFinding, StageKind, names};

/// Explanation of the stages.
const NOTE: &str = "Mean over trials with its 95 % CI. Indented: the parts of the stage above them; they add up to \
                               it in each trial, and the rest is named. MB: 10^6 bytes.";

impl Labelled<'_> {
    /// One row per stage of each case.
    pub fn stages(&self) -> Table {
        let rows = self.findings.cases.iter().flat_map(|case| case.stages.iter().map(move |stage| (case, stage)));
        let table = Table::over("stages", "Stage by stage", rows).columns(&[
            Column(TableColumn::label("Case"), &|(case, _)| self.name(&case.id)),
            Column(TableColumn::text("Stage").csv(&["stage", "kind"]), &|(_, it)| name(it)),
            Column(TableColumn::estimate("Time", "time", "s"), &|(_, it)| {
                Cell::estimate(it.seconds.as_ref(), it.missing.as_deref())
            }),
            Column(TableColumn::number("Amount", "").csv(&["amount (B)"]), &|(_, it)| Cell::bytes(it.bytes)),
            Column(TableColumn::estimate("Rate", "rate", "MB/s"), &|(_, it)| {
                Cell::estimate(it.mb_per_s.as_ref(), None)
            }),
        ]);
        table.note(NOTE)
    }
}

fn name(stage: &StageFinding) -> Cell {
    let lead = match stage.kind {
        StageKind::Part => "\u{2003}",
        StageKind::Ranked | StageKind::Beside => "",
    };
    Cell::text(format!("{lead}{}", stage.name)).csv(vec![stage.name.clone(), names::stored(&stage.kind)])
}
