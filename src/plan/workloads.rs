//! The tables `[workload.NAME]`: exactly one key, the kind of workload, with its options.

use super::limits::Key;
use super::names::{self, named_tables};
use super::options::{Axis, Entered, read_options};
use super::problem::{Problem, Problems, misplaced, nearest, suggestion};
use super::tree::{Node, Pair, Toml};
use super::{Catalogue, CatalogueEntry};
use std::path::Path;

pub(super) struct WorkloadDraft<'c> {
    /// Its name, with its span.
    pub name: Key,
    pub entry: &'c CatalogueEntry,
    /// In the order of the plan.
    pub axes: Vec<Axis>,
    /// Base of relative paths.
    pub folder: &'c Path,
}

/// Reads every workload; those with mistakes are left out and reported in `problems`.
pub(super) fn read_workloads<'c>(
    root: &[Pair],
    folder: &'c Path,
    catalogue: &'c Catalogue,
    problems: &mut Problems,
) -> Vec<WorkloadDraft<'c>> {
    let mut workloads = Vec::new();
    for (name, node) in named_tables(root, "workload", "[workload.tpcb]", problems) {
        names::check(name, "workload", problems);
        workloads.extend(read_workload(name, node, folder, catalogue, problems));
    }
    workloads
}

fn read_workload<'c>(
    name: &Key,
    node: &Node,
    folder: &'c Path,
    catalogue: &'c Catalogue,
    problems: &mut Problems,
) -> Option<WorkloadDraft<'c>> {
    let (kind, written) = match &node.value {
        Toml::Text(kind) => (Key { text: kind.clone(), span: node.span.clone() }, None),
        Toml::Table(pairs) => {
            let (kind, written) = only_kind(name, pairs, catalogue, problems)?;
            (kind.clone(), Some(written))
        }
        _ => {
            problems.add(node.must_be(format!("workload `{}`", name.text), "a table"));
            return None;
        }
    };
    let Some(entry) = catalogue.workloads.iter().find(|entry| entry.name == kind.text) else {
        unknown_kind(name, &kind, catalogue, problems);
        return None;
    };
    let pairs: &[Pair] = match written.map(|node| (node, &node.value)) {
        None => &[],
        Some((_, Toml::Table(inner))) => inner,
        Some((node, _)) => {
            let problem = node.must_be(format!("`{}`", kind.text), "a table of options");
            problems.add(problem.help(format!("write {} = {{}} for no options", kind.text)));
            return None;
        }
    };
    let what = format!("workload `{}`", entry.name);
    let place = kind.span.clone();
    let entered = Entered { entry, what, prefix: None, place, main: None, pairs: pairs.iter().collect(), folder };
    let axes = read_options(&entered, problems)?;
    Some(WorkloadDraft { name: name.clone(), entry, axes, folder })
}

fn only_kind<'t>(name: &Key, pairs: &'t [Pair], catalogue: &Catalogue, problems: &mut Problems) -> Option<&'t Pair> {
    match pairs {
        [only] => Some(only),
        [] => {
            let kinds: Vec<String> = catalogue.workloads.iter().map(|entry| format!("`{}`", entry.name)).collect();
            let problem = Problem::at(&name.span, format!("workload `{}` has no kind", name.text));
            problems.add(problem.help(format!("add KIND = {{ ... }}; known: {}", kinds.join(", "))));
            None
        }
        [(first, _), (second, _), ..] => {
            let kinds = pairs.iter().map(|(key, _)| key);
            let kinds: Vec<&Key> =
                kinds.filter(|key| catalogue.workloads.iter().any(|entry| entry.name == key.text)).collect();
            match kinds.as_slice() {
                [] => unknown_kind(name, first, catalogue, problems),
                [kind] => {
                    let stranger = if kind.text == first.text { second } else { first };
                    let message = format!("`{}` is next to the kind `{}`, not inside it", stranger.text, kind.text);
                    let inside = || format!("move options inside: {} = {{ {} = ... }}", kind.text, stranger.text);
                    let help = misplaced(&stranger.text).unwrap_or_else(inside);
                    problems.add(Problem::at(&stranger.span, message).help(help));
                }
                [one, other, ..] => {
                    let message = format!("workload `{}` has two kinds", name.text);
                    let problem = Problem::at(&other.span, message).also(&one.span, "the other one");
                    problems.add(problem.help("write a workload for each"));
                }
            }
            None
        }
    }
}

fn unknown_kind(name: &Key, kind: &Key, catalogue: &Catalogue, problems: &mut Problems) {
    let kinds = catalogue.workloads.iter().map(|entry| entry.name);
    let owner = catalogue.workloads.iter().find(|entry| entry.option(&kind.text).is_some());
    let help = match owner {
        _ if catalogue.workloads.iter().any(|entry| entry.name == name.text && entry.option(&kind.text).is_some()) => {
            format!("a workload has a name before its kind: [workload.mine] and below it {} = {{ ... }}", name.text)
        }
        Some(owner) if nearest(&kind.text, kinds.clone()).is_empty() => {
            format!("it is an option of `{0}`; write {0} = {{ {1} = ... }}", owner.name, kind.text)
        }
        _ => suggestion(&kind.text, kinds),
    };
    problems.add(Problem::at(&kind.span, format!("`{}` is not a workload kind", kind.text)).help(help));
}
