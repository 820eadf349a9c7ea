//! Reads the options of one layer or workload according to its [`OptionSpec`]s; lists of values become axes.
//!
//! Owns: unknown keys, values of the wrong kind, missing required options, the entry's own check. Absent on purpose:
//! where in a plan an entry is allowed.

use super::CatalogueEntry;
use super::limits::{Key, Span};
use super::problem::{Problem, Problems, refuse_unknown};
use super::tree::{Node, Pair, Toml};
use super::values::{Choice, describe, is_scalar, read};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use std::collections::HashMap;
use std::path::Path;

/// Most combinations of one entry's options: far more than anybody would wait for.
pub(super) const MAX_COMBINATIONS: usize = 10_000;

/// A name with one or more values to choose from. It varies if there are several.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    /// Name of the option or setting; `NODE.OPTION` for a layer's.
    pub name: String,
    /// The option's key, and the key within it if it is a table.
    pub option: (String, Option<String>),
    /// Span of the name in the plan.
    pub span: Span,
    /// Never empty.
    pub choices: Vec<Choice>,
}

impl Axis {
    /// An axis that is not an option of a layer or workload.
    pub fn of(name: &str, span: Span, choices: Vec<Choice>) -> Axis {
        Axis { name: name.to_owned(), option: (name.to_owned(), None), span, choices }
    }

    /// An axis of one key of a table of `[postgres]`.
    pub fn within(table: &str, key: &Key, choices: Vec<Choice>) -> Axis {
        let option = (table.to_owned(), Some(key.text.clone()));
        Axis { name: format!("{table}.{}", key.text), option, span: key.span.clone(), choices }
    }

    /// True if it has several choices.
    pub fn varies(&self) -> bool {
        self.choices.len() > 1
    }
}

/// The options of an entry as written in the plan.
pub(super) struct Entered<'a> {
    pub entry: &'a CatalogueEntry,
    /// Description for messages: "layer `ext4`".
    pub what: String,
    /// Prefix of its axes' names: the node's name.
    pub prefix: Option<&'a str>,
    /// Span of its name in the plan.
    pub place: Span,
    /// The value of the entry's own key, which is its first option.
    pub main: Option<&'a Node>,
    pub pairs: Vec<&'a Pair>,
    /// Base of relative paths.
    pub folder: &'a Path,
}

/// Reads and checks the options; `None` if any is wrong, with the reasons in `problems`.
pub(super) fn read_options(entered: &Entered<'_>, problems: &mut Problems) -> Option<Vec<Axis>> {
    let before = problems.len();
    let specs = entered.entry.options;
    if specs.is_empty() && !entered.pairs.is_empty() {
        for (key, _) in &entered.pairs {
            problems.add(Problem::at(&key.span, format!("{} has no options", entered.what)));
        }
    } else {
        let known: Vec<&str> =
            specs.iter().map(|spec| spec.key).chain(entered.entry.takes.iter().map(|take| take.key)).collect();
        refuse_unknown(entered.pairs.iter().map(|(key, _)| key), &known, &entered.what, problems);
    }
    let mut axes = Vec::new();
    for (key, node) in with_main(entered, problems) {
        if let Some(spec) = specs.iter().find(|spec| spec.key == key.text) {
            axes.extend(read_option(spec, &key, node, entered, problems));
        }
    }
    for spec in specs.iter().filter(|spec| spec.required) {
        let given = entered.pairs.iter().any(|(key, _)| key.text == spec.key);
        let is_main = entered.main.is_some() && spec.key == specs[0].key;
        if !given && !is_main {
            let problem = Problem::at(&entered.place, format!("{} needs `{}`", entered.what, spec.key));
            problems.add(problem.help(format!("{} = {}: {}", spec.key, describe(spec.kind), spec.doc)));
        }
    }
    if problems.len() == before {
        check(entered, &axes, problems);
    }
    (problems.len() == before).then_some(axes)
}

/// The options, including the main one under its own key.
fn with_main<'a>(entered: &Entered<'a>, problems: &mut Problems) -> Vec<(Key, &'a Node)> {
    let mut all = Vec::new();
    if let Some(node) = entered.main {
        match entered.entry.options.first() {
            Some(spec) => {
                if let Some((key, _)) = entered.pairs.iter().find(|(key, _)| key.text == spec.key) {
                    let message = format!("`{}` of {} is set twice", spec.key, entered.what);
                    problems.add(Problem::at(&key.span, message).also(&node.span, "first here"));
                }
                all.push((Key { text: spec.key.to_owned(), span: entered.place.clone() }, node));
            }
            None => problems.add(Problem::at(&node.span, format!("{} takes no value", entered.what))),
        }
    }
    all.extend(entered.pairs.iter().map(|(key, node)| (key.clone(), node)));
    all
}

/// The axes of one option: one, or one per line of its table.
fn read_option(spec: &OptionSpec, key: &Key, node: &Node, entered: &Entered<'_>, problems: &mut Problems) -> Vec<Axis> {
    let name = format!("`{}` of {}", spec.key, entered.what);
    let of_table: &[OptionSpec] = match spec.kind {
        OptionKind::Table(specs) => specs,
        OptionKind::Properties => &[],
        _ => {
            return read_axis((spec.key, None), spec.kind, key, node, (entered, &name), problems).into_iter().collect();
        }
    };
    let Toml::Table(pairs) = &node.value else {
        let problem = node.must_be(name, &describe(spec.kind));
        problems.add(problem.help(format!("write {} = {{ ... }}", spec.key)));
        return Vec::new();
    };
    if matches!(spec.kind, OptionKind::Table(_)) {
        let known: Vec<&str> = of_table.iter().map(|spec| spec.key).collect();
        refuse_unknown(pairs.iter().map(|(key, _)| key), &known, &name, problems);
    }
    let mut axes = Vec::new();
    for (inner, node) in pairs {
        let of_inner = of_table.iter().find(|spec| spec.key == inner.text).map(|spec| spec.kind);
        let of_inner = of_inner.or(matches!(spec.kind, OptionKind::Properties).then_some(OptionKind::Scalar));
        let Some(kind) = of_inner else { continue };
        let inner_name = format!("`{}` in {name}", inner.text);
        let option = (spec.key, Some(inner.text.as_str()));
        axes.extend(read_axis(option, kind, inner, node, (entered, &inner_name), problems));
    }
    axes
}

/// One axis: a list of values or, if the value is itself a list, a list of lists.
fn read_axis(
    (option, inner): (&str, Option<&str>),
    kind: OptionKind,
    key: &Key,
    node: &Node,
    (entered, name): (&Entered<'_>, &str),
    problems: &mut Problems,
) -> Option<Axis> {
    let choices = read_choices(name, node, node.axis_items(is_scalar(kind)), problems, |item| read(kind, item))?;
    let plain = inner.unwrap_or(option);
    let name = match entered.prefix {
        // The size of a node named `loop` is the axis `loop`, not `loop.loop`.
        Some(prefix) if prefix == plain => plain.to_owned(),
        Some(prefix) => format!("{prefix}.{plain}"),
        None => plain.to_owned(),
    };
    let option = (option.to_owned(), inner.map(str::to_owned));
    Some(Axis { name, option, span: key.span.clone(), choices })
}

/// Reads the values of an axis; each must be valid and unique, and at least one is required.
pub(super) fn read_choices(
    name: &str,
    node: &Node,
    items: &[Node],
    problems: &mut Problems,
    read: impl Fn(&Node) -> Result<Choice, Problem>,
) -> Option<Vec<Choice>> {
    let before = problems.len();
    if items.is_empty() {
        problems.add(Problem::at(&node.span, format!("{name} is an empty list")).help("remove it, or give a value"));
    }
    let mut choices: Vec<Choice> = Vec::new();
    let mut spans: HashMap<String, Span> = HashMap::new();
    for item in items {
        match read(item) {
            Ok(choice) => match spans.get(&choice.identity) {
                Some(first) => {
                    let message = format!("{name} has the value `{}` twice", choice.value.plain());
                    problems.add(Problem::at(&choice.span, message).also(first, "first here"));
                }
                None => {
                    spans.insert(choice.identity.clone(), choice.span.clone());
                    choices.push(choice);
                }
            },
            Err(refusal) => problems.add(refusal.of(name)),
        }
    }
    (problems.len() == before).then_some(choices)
}

/// Runs the entry's own check on every combination.
fn check(entered: &Entered<'_>, axes: &[Axis], problems: &mut Problems) {
    let Some(combinations) = combinations(axes, MAX_COMBINATIONS) else {
        let message = format!("{} has more than {MAX_COMBINATIONS} combinations of options", entered.what);
        problems.add(Problem::at(&entered.place, message));
        return;
    };
    if !problems.may_check(combinations.len(), &entered.place) {
        return;
    }
    for combination in combinations {
        let options = options(entered.entry, entered.folder, axes, &combination);
        if let Err(problem) = (entered.entry.check)(&options) {
            report(entered, axes, &combination, problem, problems);
        }
    }
}

fn report(entered: &Entered<'_>, axes: &[Axis], chosen: &[&Choice], problem: OptionProblem, problems: &mut Problems) {
    let at = problem.key.as_ref().and_then(|key| axes.iter().position(|axis| axis.option.0 == *key));
    let span = at.map_or(&entered.place, |i| &chosen[i].span).clone();
    let of = problem.key.map_or_else(String::new, |key| format!("`{key}` of "));
    let message = format!("{of}{}: {}", entered.what, problem.message);
    problems.add(Problem::at(&span, message).help_if(problem.help));
}

/// All combinations of one value per axis, the last axis varying fastest; `None` if there are more than `most`. No axes
/// give one empty combination.
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

/// The options of a combination, with relative paths resolved against `folder`.
pub(super) fn options(entry: &CatalogueEntry, folder: &Path, axes: &[Axis], combination: &[&Choice]) -> Options {
    let mut options = Options::default();
    for (axis, choice) in axes.iter().zip(combination) {
        match &axis.option {
            (key, None) => options.set(key, choice.value.clone()),
            (key, Some(inner)) => {
                let mut table = options.table(key);
                table.set(inner, choice.value.clone());
                options.set(key, OptionValue::Map(table.0));
            }
        }
    }
    (entry.resolve)(&mut options, folder);
    options
}
