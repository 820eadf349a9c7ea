//! One-time stages of trials: duration and speed.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use crate::analyse::findings::{StageFinding, StageKind, names};

/// Explanation of the stages.
const NOTE: &str = "Mean over trials with its 95 % CI. Indented: the parts of the stage above them; they add up to \
                               it in each trial, and the rest is named. MB: 10^6 bytes.";

impl Labelled<'_> {
    /// One row per stage of each case.
    pub fn stages(&self) -> Table {
        let table = self.over_cases("stages", "Stage by stage", |case| &case.stages).columns(&[
            (TableColumn::text("Stage").csv(&["stage", "kind"]), &|it| name(it)),
            (TableColumn::estimate("Time", "time", "s"), &|it| {
                Cell::estimate(it.seconds.as_ref(), it.missing.as_deref())
            }),
            (TableColumn::number("Amount", "").csv(&["amount (B)"]), &|it| Cell::bytes(it.bytes)),
            (TableColumn::estimate("Rate", "rate", "MB/s"), &|it| Cell::estimate(it.mb_per_s.as_ref(), None)),
        ]);
        table.note(NOTE)
    }
}

fn name(stage: &StageFinding) -> Cell {
    let lead = if stage.kind == StageKind::Part { "\u{2003}" } else { "" };
    Cell::text(format!("{lead}{}", stage.name)).csv(vec![stage.name.clone(), names::stored(&stage.kind)])
}
