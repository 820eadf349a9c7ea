//! Runs from which a run was merged, and what was left out.

use super::table::{Cell, Table, TableColumn};
use super::words::{numbered, ranges};
use crate::analyse::findings::{LeftOut, MergeRecord};
use crate::analyse::merge;

/// A row per merged run and per omission.
pub(super) fn table(merge: Option<&MergeRecord>) -> Table {
    let labels = ["Run folder", "Run", "Hosts", "Blocks"].map(TableColumn::label);
    let others = [TableColumn::number("Trials", "").csv(&["trials"]), TableColumn::text("Why not").csv(&["reason"])];
    let columns = labels.into_iter().chain(others).collect();
    let mut table = Table::new("merged", "Merged runs", columns).lead(&["merged"]);
    let Some(merge) = merge else { return table };
    table.open_group(Some("Merged".to_owned()), Some(merge.group.to_string()), vec!["yes".to_owned()]);
    for run in &merge.merged {
        table.push(vec![
            Cell::text(&run.folder).style("name"),
            Cell::text(&run.id),
            Cell::text(run.hosts.join(", ")),
            Cell::text(ranges(&run.blocks)),
            Cell::number(Some(run.trials), |trials| trials.to_string()),
            Cell::text(""),
        ]);
    }
    if !merge.missing.is_empty() {
        table.below([format!("{}.", missing(merge))]);
    }
    if !merge.left_out.is_empty() {
        table.open_group(Some("Left out".to_owned()), None, vec!["no".to_owned()]);
    }
    for LeftOut { folder, blocks, reason } in &merge.left_out {
        let blocks = if blocks.is_empty() { Cell::text("all").style("quiet") } else { Cell::text(ranges(blocks)) };
        let reason = Cell::text(reason).style("reason");
        let [run, hosts, trials] = [(); 3].map(|()| Cell::text(""));
        table.push(vec![Cell::text(folder).style("name"), run, hosts, blocks, trials, reason]);
    }
    table
}

/// `No run has blocks 3, 5-7 of the plan`.
fn missing(merge: &MergeRecord) -> String {
    format!("No run has {} of the plan", numbered("block", &merge.missing))
}

/// The same as lines: `Merged: results/a (0badcafe), node1, blocks 1, 4`, `Left out: results/b: another plan than ...`,
/// and the blocks that no run has.
pub(super) fn lines(merge: &MergeRecord) -> Vec<String> {
    let merged = merge.merged.iter().map(|run| {
        let (hosts, blocks) = (run.hosts.join(", "), numbered("block", &run.blocks));
        format!("Merged: {} ({}), {hosts}, {blocks}", run.folder, run.id)
    });
    let left_out = merge.left_out.iter().map(|one| format!("Left out: {}", merge::line(one)));
    let missing = (!merge.missing.is_empty()).then(|| missing(merge));
    merged.chain(left_out).chain(missing).collect()
}
