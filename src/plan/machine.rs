//! The table `[machine]`: kernel knobs for every case, and, under `queue`, those for every device.
//!
//! Knobs of devices are copied to the options of the stacks' nodes (see [`super::stacks`]), so that a case has them in
//! one place. Absent on purpose: the meaning of any knob.

use super::options::{Axis, Entered, options, read_options};
use super::postgres::flatten;
use super::problem::{Problem, Problems};
use super::tree::{Node, Pair, get};
use super::values::Choice;
use super::{Catalogue, CatalogueEntry};
use crate::record::options::{OptionKind, Options};
use std::path::Path;

pub(super) const MACHINE: &str = "machine";

/// Option of layers, and key of the table, with the knobs of a device.
pub(super) const QUEUE: &str = "queue";

#[derive(Default)]
pub(super) struct MachineDraft<'c> {
    entry: Option<&'c CatalogueEntry>,
    /// Knobs of the machine, in the order of the plan.
    pub knobs: Vec<Axis>,
    /// Knobs of every device; their axes are named `queue.scheduler`.
    pub queue: Vec<Axis>,
}

impl MachineDraft<'_> {
    /// Knobs of the machine, given one choice per axis.
    pub fn options(&self, chosen: &[&Choice]) -> Options {
        self.entry.map(|entry| options(entry, Path::new("/"), &self.knobs, chosen)).unwrap_or_default()
    }
}

/// Reads the table; a plan without one sets nothing.
pub(super) fn read_machine<'c>(root: &[Pair], catalogue: &'c Catalogue, problems: &mut Problems) -> MachineDraft<'c> {
    let (Some((key, node)), Some(entry)) = (get(root, MACHINE), &catalogue.machine) else {
        return MachineDraft::default();
    };
    let Some(pairs) = node.table(format!("`{MACHINE}`"), "write [machine]", problems) else {
        return MachineDraft::default();
    };
    let flat = flat(pairs, entry);
    for (at, (key, _)) in flat.iter().enumerate() {
        if let Some((first, _)) = flat[..at].iter().find(|(first, _)| first.text == key.text) {
            let problem = Problem::at(&key.span, format!("`{}` of [machine] is set twice", key.text));
            problems.add(problem.also(&first.span, "first here"));
        }
    }
    let entered = Entered {
        entry,
        what: format!("[{MACHINE}]"),
        prefix: None,
        place: key.span.clone(),
        main: None,
        pairs: flat.iter().collect(),
        folder: Path::new("/"),
    };
    let axes = read_options(&entered, problems).unwrap_or_default();
    let (mut queue, knobs): (Vec<Axis>, Vec<Axis>) = axes.into_iter().partition(|axis| axis.option.0 == QUEUE);
    for axis in &mut queue {
        axis.name = format!("{QUEUE}.{}", axis.name);
    }
    MachineDraft { entry: Some(entry), knobs, queue }
}

/// Treats `[machine.vm] swappiness = 1` and `"vm.swappiness" = 1` alike; a table that is one option is not split.
fn flat(pairs: &[Pair], entry: &CatalogueEntry) -> Vec<Pair> {
    let pairs = pairs.iter().cloned();
    let (tables, others): (Vec<Pair>, Vec<Pair>) = pairs
        .partition(|(key, _)| entry.option(&key.text).is_some_and(|spec| matches!(spec.kind, OptionKind::Table(_))));
    flatten(&others).into_iter().map(|(key, node): (_, &Node)| (key, node.clone())).chain(tables).collect()
}
