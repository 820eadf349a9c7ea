//! The one list of the readers of foreign text, and which of them a text's lines belong to.

pub mod fio;
pub mod iostat;
mod json;
pub mod mount;
pub mod output;
pub mod pg_test_fsync;
pub mod pgbench;
pub mod pgbench_log;
mod table;
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
    /// What its outputs are.
    pub role: Role,
    /// What its outputs may be called ([`Output::tool`]), without options behind it; the program first.
    tools: &'static [&'static str],
    /// What names of files begin or end with that hold one: `pgbench` of `pgbench-zfs.txt`.
    pub(super) stems: &'static [&'static str],
    /// Those that can be told from other words at the beginning only.
    pub(super) short_stems: &'static [&'static str],
    /// Whether a text holds one.
    pub looks_like: fn(&[Line<'_>]) -> bool,
    /// Reads all in a text.
    pub read: fn(&[Line<'_>]) -> Vec<Output>,
}

impl Kind {
    /// Its outputs in a text: none where it does not recognise one, and only numbers that stand in the text.
    #[must_use]
    pub fn outputs(&self, lines: &[Line<'_>]) -> Vec<Output> {
        if !(self.looks_like)(lines) {
            return Vec::new();
        }
        let mut outputs = (self.read)(lines);
        outputs.iter_mut().for_each(|output| guard::check(output, lines));
        outputs
    }
}

/// What the outputs of a kind are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A load and how fast it was.
    Load,
    /// What went on meanwhile.
    Watcher,
    /// What the machine is like, and nothing of how fast it was.
    State,
}

/// The kind of an output, by the longest of the names that it may have.
pub(super) fn of(tool: &str) -> Option<&'static Kind> {
    let length = |name: &&str| {
        tool.strip_prefix(*name).filter(|rest| rest.is_empty() || rest.starts_with(' ')).map(|_| name.len())
    };
    let best = |kind: &&Kind| kind.tools.iter().filter_map(length).max();
    KINDS.iter().filter(|kind| best(kind).is_some()).max_by_key(best)
}

/// The load that an output tells of: its program, logs apart from what is printed. `None` for what only watches or tells
/// what is there.
pub(super) fn load(tool: &str) -> Option<&'static str> {
    of(tool).filter(|kind| kind.role == Role::Load).and_then(|kind| kind.tools.first().copied())
}

/// Whether an output tells what the machine is like, and nothing of how fast it was.
pub(super) fn is_state(tool: &str) -> bool {
    of(tool).is_some_and(|kind| kind.role == Role::State)
}

macro_rules! kind {
    ($module:ident, $role:ident, $name:literal, $tools:expr, $stems:expr, $short_stems:expr) => {
        Kind {
            name: $name,
            role: Role::$role,
            tools: &$tools,
            stems: &$stems,
            short_stems: &$short_stems,
            looks_like: $module::looks_like,
            read: $module::read,
        }
    };
}

/// All of them. Where two take the same lines and as many numbers from them, the first has them.
pub const KINDS: &[Kind] = &[
    kind!(fio, Load, "fio --output-format=json", ["fio"], ["fio"], []),
    kind!(pg_test_fsync, Load, "pg_test_fsync", ["pg_test_fsync"], ["pg_test_fsync"], []),
    kind!(pgbench, Load, "pgbench", ["pgbench"], ["pgbench"], []),
    kind!(pgbench_log, Load, "pgbench -l", ["pgbench -l", "pgbench --aggregate-interval"], ["pgbench_log"], []),
    kind!(zpool_iostat, Watcher, "zpool iostat", ["zpool iostat"], ["zpool-iostat", "zpool_iostat"], []),
    kind!(iostat, Watcher, "iostat", ["iostat"], ["iostat"], []),
    kind!(vmstat, Watcher, "vmstat", ["vmstat", "vm_stat"], ["vmstat", "vm_stat"], []),
    kind!(zfs_get, State, "zfs get", ["zfs get", "zpool get"], [], ["zfs-get", "zfs_get"]),
    kind!(mount, State, "mount", ["mount"], ["mount"], ["mounts"]),
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
pub(super) fn outputs(lines: &[Line<'_>]) -> Vec<Taken> {
    let mut taken = Vec::new();
    for (kind, reader) in KINDS.iter().enumerate() {
        taken.extend(reader.outputs(lines).into_iter().map(|output| Taken { kind, output }));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_of_the_kind_with_the_longest_of_its_names() {
        for (tool, program, state) in [
            ("pgbench", Some("pgbench"), false),
            ("pgbench -l", Some("pgbench -l"), false),
            ("pgbench --aggregate-interval", Some("pgbench -l"), false),
            ("fio", Some("fio"), false),
            ("iostat -x", None, false),
            ("zpool iostat -v", None, false),
            ("zfs get", None, true),
            ("published figures", None, false),
        ] {
            assert_eq!((load(tool), is_state(tool)), (program, state), "{tool}");
        }
    }
}
