//! Shows, at the line of the plan, what the machine rejects in an otherwise valid plan.

use super::limits::Span;
use super::postgres::{INITDB, flatten};
use super::problem::{Paint, Problem, Problems};
use super::stacks::AGE;
use super::tree::{self, Node, Pair, Toml, get};
use super::{Plan, values};
use crate::error::Error;
use std::path::Path;

/// Part of the plan that is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// A setting, by its name.
    Setting(String),
    /// One value of a setting.
    SettingValue(String, String),
    /// An argument of initdb.
    Initdb(String),
    /// A mount option or an argument of mkfs in a stack, by its key.
    Layer { stack: String, key: &'static str, word: String },
    /// An option of `age` in a stack.
    Age { stack: String, key: String },
    /// An option of a workload.
    Workload { name: String, key: String },
}

/// A rejected part, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineRefusal {
    pub spot: Spot,
    /// A lower-case fragment that names the subject.
    pub message: String,
    pub help: Option<String>,
}

/// The error that shows each refusal at its line of the plan's text.
pub fn refused(plan: &Plan, file: &Path, refusals: &[MachineRefusal], paint: Paint) -> Error {
    let mut problems = Problems::default();
    // The text was parsed before, so this succeeds.
    let root = tree::parse(&plan.text, &mut Problems::default()).unwrap_or_default();
    for refusal in refusals {
        let mut spans = spans(&root, &refusal.spot);
        if spans.is_empty() {
            spans.push(0..0);
        }
        for span in spans {
            let problem = Problem::at(&span, refusal.message.clone());
            problems.add(problem.help_if(refusal.help.clone()));
        }
    }
    problems.into_error(&plan.text, &file.display().to_string(), paint)
}

fn spans(root: &[Pair], spot: &Spot) -> Vec<Span> {
    match spot {
        Spot::Setting(name) => setting(root, name).map(|(key, _)| key).into_iter().collect(),
        Spot::SettingValue(name, value) => {
            let Some((key, node)) = setting(root, name) else { return Vec::new() };
            places(node, Some(key), |node| values::setting(node).as_ref() == Some(value))
        }
        Spot::Initdb(argument) => {
            let found = table(root, "postgres").and_then(|pairs| get(pairs, INITDB));
            found.map_or(Vec::new(), |pair| places(&pair.1, Some(place(pair)), |node| node.text() == Some(argument)))
        }
        Spot::Age { stack, key } => {
            let of_stack = table(root, "stack").and_then(|stacks| table(stacks, stack));
            of_stack.and_then(|pairs| get(table(pairs, AGE)?, key)).map(place).into_iter().collect()
        }
        Spot::Workload { name, key } => {
            let kind = table(root, "workload").and_then(|workloads| table(workloads, name)?.first());
            let key = kind.map(|kind| match &kind.1.value {
                Toml::Table(options) => get(options, key).unwrap_or(kind),
                _ => kind,
            });
            key.map(place).into_iter().collect()
        }
        Spot::Layer { stack, key, word } => {
            let of_stack = table(root, "stack").and_then(|stacks| get(stacks, stack));
            let given = of_stack.map_or(Vec::new(), |(_, node)| values_of(key, node)).into_iter();
            let is_it = |text: &str| text == word || text.split(',').any(|part| part.trim() == word);
            given.flat_map(|node| places(node, None, |node| node.text().is_some_and(is_it))).collect()
        }
    }
}

fn place((key, _): &Pair) -> Span {
    key.span.clone()
}

/// Spans of the matching items in a node; the span of its key if none matches.
fn places(node: &Node, key: Option<Span>, is_it: impl Fn(&Node) -> bool) -> Vec<Span> {
    fn leaves(node: &Node) -> Vec<&Node> {
        match &node.value {
            Toml::List(items) => items.iter().flat_map(leaves).collect(),
            _ => vec![node],
        }
    }
    let found: Vec<Span> = leaves(node).into_iter().filter(|node| is_it(node)).map(|node| node.span.clone()).collect();
    if found.is_empty() { key.into_iter().collect() } else { found }
}

/// The values of every key of this name at or below the node.
fn values_of<'n>(name: &str, node: &'n Node) -> Vec<&'n Node> {
    match &node.value {
        Toml::Table(pairs) => {
            let found = pairs.iter().flat_map(|(key, node)| {
                let own = (key.text == name).then_some(node);
                own.into_iter().chain(values_of(name, node))
            });
            found.collect()
        }
        Toml::List(items) => items.iter().flat_map(|item| values_of(name, item)).collect(),
        _ => Vec::new(),
    }
}

fn table<'t>(root: &'t [Pair], name: &str) -> Option<&'t [Pair]> {
    match &get(root, name)?.1.value {
        Toml::Table(pairs) => Some(pairs),
        _ => None,
    }
}

/// Span of a setting's name, and its value or values.
fn setting<'t>(root: &'t [Pair], name: &str) -> Option<(Span, &'t Node)> {
    let settings = table(table(root, "postgres")?, "settings")?;
    flatten(settings).into_iter().find(|(key, _)| key.text == name).map(|(key, node)| (key.span, node))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
[stack.a]
filesystem = { ext4 = true, mount = [[\"noatime\", \"barrier=0\"], [\"noatme,discard\"]] }
[stack.b]
filesystem = { xfs = true, mount = \"noatme\", mkfs = [[\"-f\"], [\"-m\", \"a=1,b=2\"]] }
age = { fill = 90, snapshots = [false, true] }
[postgres]
settings = { fsync = [true, false], wal_sync_method = [\"fdatasync\", \"opendatasync\"], auto.x = 3 }
initdb = [\"-k\", \"-D/x\"]
[workload.w]
pgbench = { clients = 4 }
";

    fn at(spot: &Spot) -> Vec<(usize, &'static str)> {
        let root = tree::parse(TEXT, &mut Problems::default()).unwrap();
        let shown = |span: Span| (TEXT[..span.start].lines().count(), &TEXT[span]);
        spans(&root, spot).into_iter().map(shown).collect()
    }

    #[test]
    fn a_refusal_points_at_the_refused_value_or_its_key() {
        let value = |name: &str, value: &str| at(&Spot::SettingValue(name.to_owned(), value.to_owned()));
        assert_eq!(value("wal_sync_method", "opendatasync"), [(7, "\"opendatasync\"")]);
        assert_eq!(value("fsync", "off"), [(7, "false")]);
        assert_eq!(value("auto.x", "3"), [(7, "3")]);
        assert_eq!(value("fsync", "other"), [(7, "fsync")]);
        assert_eq!(at(&Spot::Setting("wal_sync_method".into())), [(7, "wal_sync_method")]);
        assert_eq!(at(&Spot::Initdb("-D/x".into())), [(8, "\"-D/x\"")]);
        assert_eq!(at(&Spot::Setting("gone".into())), []);
    }

    #[test]
    fn an_option_of_ageing_is_found_in_its_own_stack() {
        let age = |stack: &str| at(&Spot::Age { stack: stack.into(), key: "snapshots".into() });
        assert_eq!((age("a"), age("b")), (vec![], vec![(5, "snapshots")]));
    }

    #[test]
    fn a_refusal_points_at_the_workload_option_or_its_kind() {
        let option = |key: &str| at(&Spot::Workload { name: "w".into(), key: key.into() });
        assert_eq!((option("clients"), option("jobs")), (vec![(10, "clients")], vec![(9, "pgbench")]));
    }

    #[test]
    fn options_of_layers_are_found_in_their_own_stack_alone() {
        let at = |stack: &str, key, word: &str| at(&Spot::Layer { stack: stack.into(), key, word: word.into() });
        let mount = |stack| at(stack, "mount", "noatme");
        assert_eq!(mount("a"), [(2, "\"noatme,discard\"")]);
        assert_eq!(mount("b"), [(4, "\"noatme\"")]);
        assert_eq!(at("b", "mkfs", "a=1,b=2"), [(4, "\"a=1,b=2\"")]);
    }
}
