//! The options of one layer or workload against its [`OptionSpec`]s, and lists of values as axes.
//!
//! Owns: unknown keys, values of the wrong kind, missing required options, the entry's own check. Absent on purpose:
//! where in a plan an entry may stand.

use super::Entry;
use super::problem::{Problem, Problems, refuse_unknown};
use super::tree::{Key, Node, Pair, Span, Value};
use super::values::{Choice, Refusal, describe, is_scalar, read};
use crate::record::options::{OptionProblem, OptionSpec, OptionValue, Options};
use std::path::Path;

/// Most combinations of one entry's options: far above any plan that somebody can wait for.
pub(super) const MAX_COMBINATIONS: usize = 10_000;

/// Something with a name and one or more values to choose from. It varies where there are several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Name of the option or setting.
    pub name: String,
    /// Where the name is written.
    pub span: Span,
    /// At least one.
    pub choices: Vec<Choice>,
}

impl Axis {
    /// Whether it makes several cases.
    pub fn varies(&self) -> bool {
        self.choices.len() > 1
    }
}

/// What a list of scalar values means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// An axis, where the spec allows it.
    AreAxes,
    /// A mistake: stacks are compared by writing two of them.
    AreRefused,
}

/// An entry as it is written in the plan.
pub(super) struct Written<'a> {
    /// Its description.
    pub entry: &'a Entry,
    /// What it is, for messages: "layer `ext4`".
    pub what: String,
    /// Where its name is written.
    pub place: Span,
    /// The value of its own key, which is its first option.
    pub main: Option<&'a Node>,
    /// Its other options.
    pub pairs: Vec<&'a Pair>,
    /// Where relative paths among them start.
    pub folder: &'a Path,
}

/// Reads and checks the options; `None` when anything is wrong with them, and then `problems` says what.
pub(super) fn read_options(written: &Written<'_>, lists: Lists, problems: &mut Problems) -> Option<Vec<Axis>> {
    let before = problems.len();
    let specs = written.entry.options;
    let known: Vec<&str> = specs.iter().map(|spec| spec.key).collect();
    let keys = written.pairs.iter().map(|(key, _)| key);
    if specs.is_empty() && !written.pairs.is_empty() {
        for key in keys {
            problems.add(Problem::at(key.span.clone(), format!("{} has no options", written.what)));
        }
    } else {
        refuse_unknown(keys, &known, &written.what, problems);
    }
    let mut axes = Vec::new();
    for (key, node) in with_main(written, problems) {
        if let Some(spec) = specs.iter().find(|spec| spec.key == key.text) {
            axes.extend(read_option(spec, &key, node, written, lists, problems));
        }
    }
    for spec in specs.iter().filter(|spec| spec.required) {
        let given = written.pairs.iter().any(|(key, _)| key.text == spec.key);
        let is_main = written.main.is_some() && spec.key == specs[0].key;
        if !given && !is_main {
            problems.add(
                Problem::at(written.place.clone(), format!("{} needs `{}`", written.what, spec.key)).help(format!(
                    "{} = {}: {}",
                    spec.key,
                    describe(spec.kind),
                    spec.doc
                )),
            );
        }
    }
    if problems.len() == before {
        check(written, &axes, problems);
    }
    (problems.len() == before).then_some(axes)
}

/// The options with the main one under its own key.
fn with_main<'a>(written: &Written<'a>, problems: &mut Problems) -> Vec<(Key, &'a Node)> {
    let mut all = Vec::new();
    if let Some(node) = written.main {
        match written.entry.options.first() {
            Some(spec) => {
                if let Some((key, _)) = written.pairs.iter().find(|(key, _)| key.text == spec.key) {
                    let message = format!("`{}` of {} is given twice", spec.key, written.what);
                    problems.add(Problem::at(key.span.clone(), message).also(node.span.clone(), "first here"));
                }
                all.push((Key { text: spec.key.to_owned(), span: written.place.clone() }, node));
            }
            None => problems.add(Problem::at(node.span.clone(), format!("{} takes no value", written.what))),
        }
    }
    all.extend(written.pairs.iter().map(|(key, node)| (key.clone(), node)));
    all
}

fn read_option(
    spec: &OptionSpec,
    key: &Key,
    node: &Node,
    written: &Written<'_>,
    lists: Lists,
    problems: &mut Problems,
) -> Option<Axis> {
    let name = format!("`{}` of {}", spec.key, written.what);
    let items = match &node.value {
        Value::List(items) if is_scalar(spec.kind) => {
            if lists == Lists::AreRefused {
                problems.add(
                    Problem::at(node.span.clone(), format!("{name} wants {}, found a list", describe(spec.kind)))
                        .help("to compare values, write a stack for each"),
                );
                return None;
            }
            if !spec.axis {
                problems.add(
                    Problem::at(node.span.clone(), format!("{name} cannot be an axis: it takes one value"))
                        .help("to compare values, write a workload for each"),
                );
                return None;
            }
            items.as_slice()
        }
        _ => std::slice::from_ref(node),
    };
    let choices = read_choices(&name, node, items, problems, |item| read(spec.kind, item))?;
    Some(Axis { name: spec.key.to_owned(), span: key.span.clone(), choices })
}

/// Reads the values of an axis: none may be wrong, missing or there twice.
pub(super) fn read_choices(
    name: &str,
    node: &Node,
    items: &[Node],
    problems: &mut Problems,
    read: impl Fn(&Node) -> Result<Choice, Refusal>,
) -> Option<Vec<Choice>> {
    let before = problems.len();
    if items.is_empty() {
        problems.add(
            Problem::at(node.span.clone(), format!("{name} is an empty list")).help("leave it out, or give a value"),
        );
    }
    let mut choices: Vec<Choice> = Vec::new();
    for item in items {
        match read(item) {
            Ok(choice) => match choices.iter().find(|known| known.identity == choice.identity) {
                Some(first) => problems.add(
                    Problem::at(choice.span, format!("{name} has the value `{}` twice", choice.value.plain()))
                        .also(first.span.clone(), "first here"),
                ),
                None => choices.push(choice),
            },
            Err(refusal) => {
                let problem = Problem::at(refusal.span, format!("{name} {}", refusal.message));
                problems.add(match refusal.help {
                    Some(help) => problem.help(help),
                    None => problem,
                });
            }
        }
    }
    (problems.len() == before).then_some(choices)
}

/// Hands every combination to the entry's own check.
fn check(written: &Written<'_>, axes: &[Axis], problems: &mut Problems) {
    let Some(combinations) = combinations(axes, MAX_COMBINATIONS) else {
        let message = format!("{} has more than {MAX_COMBINATIONS} combinations of options", written.what);
        problems.add(Problem::at(written.place.clone(), message));
        return;
    };
    for combination in combinations {
        let options = options(written.entry, written.folder, axes, &combination);
        if let Err(problem) = (written.entry.check)(&options) {
            report(written, axes, &combination, problem, problems);
        }
    }
}

fn report(
    written: &Written<'_>,
    axes: &[Axis],
    combination: &[&Choice],
    problem: OptionProblem,
    problems: &mut Problems,
) {
    let at = problem.key.as_ref().and_then(|key| axes.iter().position(|axis| axis.name == *key));
    let span = at.map_or(&written.place, |i| &combination[i].span).clone();
    let message = match &problem.key {
        Some(key) => format!("`{key}` of {}: {}", written.what, problem.message),
        None => format!("{}: {}", written.what, problem.message),
    };
    let shown = Problem::at(span, message);
    problems.add(match problem.help {
        Some(help) => shown.help(help),
        None => shown,
    });
}

/// Every way to choose one value of each axis, the last axis turning fastest; `None` when there are more than `most`.
/// No axes give one empty combination.
pub(super) fn combinations(axes: &[Axis], most: usize) -> Option<Vec<Vec<&Choice>>> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.choices.len()))?;
    if count > most {
        return None;
    }
    let mut all: Vec<Vec<&Choice>> = vec![Vec::new()];
    for axis in axes {
        all = all
            .iter()
            .flat_map(|start| axis.choices.iter().map(move |choice| [start.as_slice(), &[choice]].concat()))
            .collect();
    }
    Some(all)
}

/// The options of an entry that a combination stands for, relative paths among them made to start at `folder`.
pub(super) fn options(entry: &Entry, folder: &Path, axes: &[Axis], combination: &[&Choice]) -> Options {
    let pairs = axes.iter().zip(combination);
    let mut options = Options(pairs.map(|(axis, choice)| (axis.name.clone(), choice.value.clone())).collect());
    (entry.resolve)(&mut options, folder);
    options
}

/// Whether a value can be matched by `[[exclude]]`: a list that is one value cannot.
pub(super) fn is_matchable(value: &OptionValue) -> bool {
    !matches!(value, OptionValue::List(_))
}
