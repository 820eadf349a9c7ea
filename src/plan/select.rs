//! `[[exclude]]` and `baseline`: select cases by their values.

use super::guest::GUEST;
use super::limits::Key;
use super::matrix::CaseCandidate;
use super::postgres::flatten;
use super::problem::{Problem, Problems, suggestion};
use super::tree::{Node, Pair, Toml, get};
use super::values::identities;
use std::collections::{BTreeMap, BTreeSet};

/// Most tables `[[exclude]]`.
const MAX_EXCLUDES: usize = 1000;

/// Values of all cases, by axis: identity and text.
pub(super) type KnownValues<'c> = BTreeMap<&'c str, Values<'c>>;

/// Values of one axis: identity and text.
type Values<'c> = BTreeMap<&'c str, &'c str>;

/// Axes of the baseline with their values.
pub(super) type Baseline = BTreeMap<String, String>;

pub(super) fn known_values(candidates: &[CaseCandidate]) -> KnownValues<'_> {
    let mut known = KnownValues::new();
    for (axis, value) in candidates.iter().flat_map(|candidate| &candidate.values) {
        known.entry(axis).or_default().insert(&value.identity, &value.text);
    }
    known
}

/// Drops the cases that any `[[exclude]]` matches. Each is compared with the whole matrix, so that order and overlaps
/// do not matter.
pub(super) fn exclude(root: &[Pair], candidates: Vec<CaseCandidate>, problems: &mut Problems) -> Vec<CaseCandidate> {
    let Some((key, node)) = get(root, "exclude") else { return candidates };
    let Toml::List(tables) = &node.value else {
        let message = format!("`exclude` must be tables, found {}", node.noun());
        problems.add(Problem::at(&key.span, message).help("write [[exclude]], in double brackets"));
        return candidates;
    };
    if tables.len() > MAX_EXCLUDES {
        let message = format!("{} tables `exclude`, the limit is {MAX_EXCLUDES}", tables.len());
        problems.add(Problem::at(&key.span, message).help("a line of a table may be a list of values"));
        return candidates;
    }
    let known = known_values(&candidates);
    let mut gone = vec![false; candidates.len()];
    for table in tables {
        let Some(conditions) = read_conditions(table, &known, "exclude", problems) else { continue };
        let mut matched = false;
        for (candidate, gone) in candidates.iter().zip(&mut gone) {
            if conditions.iter().all(|condition| condition.matches(candidate)) {
                (*gone, matched) = (true, true);
            }
        }
        if !matched {
            let problem = Problem::at(&table.span, "this exclude matches no case");
            problems.add(problem.help("all of its lines must match the same case; remove it, or fix a line"));
        }
    }
    if problems.is_empty() && !candidates.is_empty() && gone.iter().all(|gone| *gone) {
        problems.add(Problem::at(&key.span, "all cases are excluded"));
    }
    candidates.into_iter().zip(gone).filter(|(_, gone)| !gone).map(|(candidate, _)| candidate).collect()
}

/// One line of an exclude: an axis and values, any of which matches.
pub(super) struct AxisCondition {
    pub axis: String,
    identities: BTreeSet<String>,
}

impl AxisCondition {
    pub fn matches(&self, candidate: &CaseCandidate) -> bool {
        candidate.values.get(&self.axis).is_some_and(|known| self.identities.contains(&known.identity))
    }
}

/// Reads the lines of a table; `place` names it in messages.
pub(super) fn read_conditions(
    table: &Node,
    known: &KnownValues<'_>,
    place: &str,
    problems: &mut Problems,
) -> Option<Vec<AxisCondition>> {
    let Toml::Table(pairs) = &table.value else {
        problems.add(table.must_be(place, "a table of axes").help("write AXIS = VALUE, or AXIS = [VALUE, ...]"));
        return None;
    };
    if pairs.is_empty() {
        let problem = Problem::at(&table.span, format!("this {place} is empty and would match every case"));
        problems.add(problem.help("state the cases: stack = \"...\""));
        return None;
    }
    let before = problems.len();
    let mut conditions = Vec::new();
    for (key, node) in &flatten(pairs) {
        let Some(values) = values_of(key, known, place, problems) else { continue };
        if node.items().is_empty() {
            problems.add(Problem::at(&node.span, format!("`{}` is an empty list", key.text)));
        }
        let found = node.items().iter().filter_map(|item| find_value(key, item, values, problems));
        let identities = found.map(|(identity, _)| identity).collect();
        conditions.push(AxisCondition { axis: key.text.clone(), identities });
    }
    (problems.len() == before).then_some(conditions)
}

/// Values of the cases on an axis. Adds a problem if no case has that axis.
fn values_of<'k>(key: &Key, known: &'k KnownValues<'k>, at: &str, problems: &mut Problems) -> Option<&'k Values<'k>> {
    if let Some(values) = known.get(key.text.as_str()) {
        return Some(values);
    }
    let help = match key.text.as_str() {
        "bin" => "the axis of PostgreSQL versions is named `postgres`".to_owned(),
        name => suggestion(name, known.keys().copied()),
    };
    problems.add(Problem::at(&key.span, format!("unknown axis `{}` in {at}: no case has it", key.text)).help(help));
    None
}

fn find_value(key: &Key, node: &Node, values: &Values<'_>, problems: &mut Problems) -> Option<(String, String)> {
    let Some(wanted) = identities(node) else {
        problems.add(node.must_be(format!("`{}`", key.text), "a value"));
        return None;
    };
    if let Some((identity, text)) = wanted.iter().find_map(|identity| values.get_key_value(identity.as_str())) {
        return Some(((*identity).to_owned(), (*text).to_owned()));
    }
    let what = wanted.first().map(String::as_str).unwrap_or_default();
    let message = format!("no case has `{}` = `{what}`", key.text);
    let help = suggestion(what, values.values().copied());
    problems.add(Problem::at(&node.span, message).help(help));
    None
}

/// Reads `baseline`: a stack, or a table of axes. `all` is the whole matrix, `left` what remains after exclusion.
pub fn baseline(root: &[Pair], all: &[CaseCandidate], left: &[CaseCandidate], problems: &mut Problems) -> Baseline {
    let mut wanted = Baseline::new();
    let Some((key, node)) = get(root, "baseline") else { return wanted };
    let before = problems.len();
    match &node.value {
        Toml::Text(_) => {
            let stack = Key { text: "stack".to_owned(), span: key.span.clone() };
            add_axis(&stack, node, all, &mut wanted, problems);
        }
        Toml::Table(pairs) if !pairs.is_empty() => {
            for (axis, value) in &flatten(pairs) {
                add_axis(axis, value, all, &mut wanted, problems);
            }
        }
        _ => {
            let problem = node.must_be("`baseline`", "the name of a stack or a table of axes");
            problems.add(problem.help("write baseline = \"STACK\" or baseline = { AXIS = VALUE }"));
        }
    }
    if problems.len() == before && !left.iter().any(|candidate| is_of(&wanted, candidate)) {
        let help = if all.iter().any(|candidate| is_of(&wanted, candidate)) {
            "every matching case is excluded: exclude less, or choose another baseline"
        } else {
            "all of its axes must match the same case"
        };
        problems.add(Problem::at(&node.span, "the baseline matches no case").help(help));
    }
    if problems.len() == before {
        refuse_guest_among_others(node, &wanted, problems);
        refuse_two_baselines(node, left, &wanted, problems);
    }
    wanted
}

/// Inside a block the trials of one guest follow each other. Two guests can be compared by blocks; if they were ranked
/// together with cases of one guest, which share its boot, their differences would look more certain than they are.
fn refuse_guest_among_others(node: &Node, wanted: &Baseline, problems: &mut Problems) {
    if let (Some(guest), 2..) = (wanted.get(GUEST), wanted.len()) {
        let problem = Problem::at(&node.span, "the baseline names `guest` beside other axes");
        let help = format!(
            "compare guests alone, baseline = {{ {GUEST} = \"{guest}\" }}, or the other axes inside each guest"
        );
        problems.add(problem.help(help));
    }
}

/// If the baseline's stack varied in several options, the baseline would be ambiguous.
fn refuse_two_baselines(node: &Node, left: &[CaseCandidate], wanted: &Baseline, problems: &mut Problems) {
    let matching = left.iter().filter(|candidate| is_of(wanted, candidate)).map(|candidate| &candidate.case);
    let open: BTreeSet<&String> = matching
        .clone()
        .flat_map(|case| case.axes.keys().filter(|axis| case.is_of_stack(axis) && !wanted.contains_key(*axis)))
        .collect();
    let Some(axis) = open.first().filter(|_| wanted.contains_key("stack")) else { return };
    let values: BTreeSet<&String> = matching.filter_map(|case| case.axes.get(*axis)).collect();
    let [value, _, ..] = values.iter().copied().collect::<Vec<_>>()[..] else { return };
    let message = format!("the baseline matches several cases, which differ in `{axis}`");
    let named = wanted.iter().map(|(axis, value)| format!("\"{axis}\" = \"{value}\""));
    let named: Vec<String> = named.chain([format!("\"{axis}\" = \"{value}\"")]).collect();
    let help = format!("select one: baseline = {{ {} }}", named.join(", "));
    problems.add(Problem::at(&node.span, message).help(help));
}

/// True if a case has the values of the baseline.
pub(super) fn is_of(baseline: &Baseline, candidate: &CaseCandidate) -> bool {
    baseline.iter().all(|(axis, value)| candidate.case.axes.get(axis) == Some(value))
}

fn add_axis(axis: &Key, node: &Node, all: &[CaseCandidate], wanted: &mut Baseline, problems: &mut Problems) {
    let known = known_values(all);
    let Some(values) = values_of(axis, &known, "baseline", problems) else { return };
    if !all.iter().any(|candidate| candidate.case.axes.contains_key(&axis.text)) {
        let message = format!("`{}` has only one value, so there is nothing to compare", axis.text);
        problems.add(Problem::at(&axis.span, message).help("give it a list of values"));
        return;
    }
    wanted.extend(find_value(axis, node, values, problems).map(|(_, text)| (axis.text.clone(), text)));
}
