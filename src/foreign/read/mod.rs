//! The one list of the readers of foreign text, and which of them a text's lines belong to.

pub mod fio;
pub mod iostat;
mod json;
pub mod mount;
pub mod output;
pub mod pg_test_fsync;
pub mod pgbench;
pub mod pgbench_log;
pub(super) mod table;
pub mod vmstat;
pub mod zfs_get;
pub mod zpool_iostat;

use super::guard;
use crate::foreign::read::output::{Line, Output};
use std::collections::{BTreeMap, BTreeSet};

/// A reader of the outputs of one tool, or of several that look alike.
#[derive(Debug)]
pub struct Kind {
    /// Its name for people.
    pub name: &'static str,
    /// Whether a text holds one.
    pub looks_like: fn(&[Line<'_>]) -> bool,
    /// Reads all in a text.
    pub read: fn(&[Line<'_>]) -> Vec<Output>,
}

impl Kind {
    /// Its outputs in a text: none where it does not recognise one, and only numbers that stand in the text; `ends` says
    /// whether that ends with a line feed.
    #[must_use]
    pub fn outputs(&self, lines: &[Line<'_>], ends: bool) -> Vec<Output> {
        if !(self.looks_like)(lines) {
            return Vec::new();
        }
        let mut outputs = (self.read)(lines);
        outputs.iter_mut().for_each(|output| guard::check(output, lines, ends));
        outputs
    }
}

const fn kind(name: &'static str, looks_like: fn(&[Line<'_>]) -> bool, read: fn(&[Line<'_>]) -> Vec<Output>) -> Kind {
    Kind { name, looks_like, read }
}

/// All of them. Where two take the same lines and as many numbers from them, the first has them.
pub const KINDS: &[Kind] = &[
    kind("fio --output-format=json", fio::looks_like, fio::read),
    kind("pg_test_fsync", pg_test_fsync::looks_like, pg_test_fsync::read),
    kind("pgbench", pgbench::looks_like, pgbench::read),
    kind("zpool iostat", zpool_iostat::looks_like, zpool_iostat::read),
    kind("iostat", iostat::looks_like, iostat::read),
    kind("vmstat", vmstat::looks_like, vmstat::read),
    kind("zfs get", zfs_get::looks_like, zfs_get::read),
    kind("mount", mount::looks_like, mount::read),
];

/// An output and which kind took it.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// Index into [`KINDS`].
    pub(super) kind: usize,
    /// It.
    pub(super) output: Output,
}

/// The outputs of all tools in a text, in the order of their lines; no line gives numbers to two tools.
pub(super) fn outputs(lines: &[Line<'_>], ends: bool) -> Vec<Taken> {
    let mut taken = Vec::new();
    for (kind, reader) in KINDS.iter().enumerate() {
        taken.extend(reader.outputs(lines, ends).into_iter().map(|output| Taken { kind, output }));
    }
    settle(&mut taken);
    taken.sort_by_key(|it| (it.output.lines, it.kind));
    taken
}

/// Lines that give something to an output: its rows and their numbers.
fn given(output: &Output) -> BTreeSet<u32> {
    output.rows.iter().flat_map(|row| row.figures.iter().map(|figure| figure.line).chain([row.line])).collect()
}

/// Gives each line to one kind: to the output that has the most numbers altogether.
fn settle(taken: &mut Vec<Taken>) {
    let mut owners: BTreeMap<u32, usize> = BTreeMap::new();
    let weight = |it: &Taken| it.output.rows.iter().map(|row| row.figures.len()).sum::<usize>();
    let mut order: Vec<usize> = (0..taken.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(weight(&taken[*at])), taken[*at].kind));
    for at in order {
        let Taken { kind, output } = &mut taken[at];
        let lost: BTreeSet<u32> =
            given(output).into_iter().filter(|line| owners.get(line).is_some_and(|owner| owner != kind)).collect();
        if !lost.is_empty() {
            output.rows.retain(|row| {
                !lost.contains(&row.line) && !row.figures.iter().any(|figure| lost.contains(&figure.line))
            });
        }
        for line in given(output) {
            owners.insert(line, *kind);
        }
    }
    for Taken { kind, output } in taken.iter_mut() {
        // What another tool could read was not left unread.
        output.unread.retain(|unread| owners.get(&unread.line).is_none_or(|owner| owner == kind));
    }
    taken.retain(|it| !it.output.rows.is_empty() || !it.output.facts.is_empty());
}
