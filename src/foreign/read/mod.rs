//! The one list of readers of foreign text, and the assignment of a text's lines to them.

pub mod fio;
pub mod iostat;
mod json;
pub mod mount;
pub mod output;
pub mod pg_test_fsync;
pub mod pgbench;
pub mod pgbench_log;
mod refused;
pub(super) mod table;
pub mod vmstat;
pub mod zfs_get;
pub mod zpool_iostat;

use super::guard;
use crate::foreign::read::output::{Output, TextLine};
use std::collections::{BTreeMap, BTreeSet};

/// Reads all outputs of a tool, or of several similar ones, in a text.
type Read = fn(&[TextLine<'_>]) -> Vec<Output>;

/// Every reader, with a display name. If two take the same lines and as many numbers from them, the first wins.
pub const KINDS: &[(&str, Read)] = &[
    ("fio --output-format=json", fio::read),
    ("pg_test_fsync", pg_test_fsync::read),
    ("pgbench", pgbench::read),
    ("zpool iostat", zpool_iostat::read),
    ("iostat", iostat::read),
    ("vmstat", vmstat::read),
    ("zfs get", zfs_get::read),
    ("mount", mount::read),
];

/// An output and its kind.
#[derive(Debug, Clone)]
pub(super) struct TakenOutput {
    /// Index into [`KINDS`], or its length for a form that is not read.
    pub(super) kind: usize,
    pub(super) output: Output,
}

/// Outputs of all tools in a text, in line order. No line gives numbers to two tools, and all numbers stand in the
/// text. `ends` is true if the text ends with a line feed.
pub(super) fn outputs(lines: &[TextLine<'_>], ends: bool) -> Vec<TakenOutput> {
    let mut taken = Vec::new();
    for (kind, (_, read)) in KINDS.iter().enumerate() {
        taken.extend(read(lines).into_iter().map(|output| TakenOutput { kind, output }));
    }
    taken.iter_mut().for_each(|it| guard::check(&mut it.output, lines, ends));
    settle(&mut taken);
    taken.extend(refused::outputs(lines).into_iter().map(|output| TakenOutput { kind: KINDS.len(), output }));
    taken.sort_by_key(|it| (it.output.lines, it.kind));
    refused::failures(lines, taken.iter_mut().map(|it| &mut it.output));
    taken
}

/// Lines that contribute rows or figures to an output.
fn given(output: &Output) -> BTreeSet<u32> {
    output.rows.iter().flat_map(|row| row.figures.iter().map(|figure| figure.line).chain([row.line])).collect()
}

/// Assigns each line to one kind: to that of the output with the most numbers overall.
fn settle(taken: &mut Vec<TakenOutput>) {
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    let mut order: Vec<usize> = (0..taken.len()).collect();
    order.sort_by_key(|at| {
        let weight: usize = taken[*at].output.rows.iter().map(|row| row.figures.len()).sum();
        (std::cmp::Reverse(weight), taken[*at].kind)
    });
    for at in order {
        let TakenOutput { kind, output } = &mut taken[at];
        let lost: BTreeSet<u32> =
            given(output).into_iter().filter(|line| owners.get(line).is_some_and(|owner| owner != kind)).collect();
        if !lost.is_empty() {
            output.rows.retain(|row| {
                !lost.contains(&row.line) && !row.figures.iter().any(|figure| lost.contains(&figure.line))
            });
            // Its interpretation was a misunderstanding.
            if output.rows.is_empty() {
                output.unread.clear();
            }
        }
        owners.extend(given(output).into_iter().map(|line| (line, *kind)));
    }
    for TakenOutput { kind, output } in taken.iter_mut() {
        // Lines read by another tool are not unread.
        output.unread.retain(|unread| owners.get(&unread.line).is_none_or(|owner| owner == kind));
    }
    // An output without rows keeps the reason why it has none.
    taken.retain(|TakenOutput { output, .. }| {
        !(output.rows.is_empty() && output.facts.is_empty() && output.unread.is_empty())
    });
}
