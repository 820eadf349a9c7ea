//! Read-back facts that differ between the cases of a run, and settings that all cases changed from PostgreSQL's
//! defaults.

use crate::analyse::compare::facts::{Facts, is_of_place};
use crate::analyse::findings::groups::{by_key, distinct};
use crate::analyse::findings::{CaseFinding, TrialFinding};
use std::collections::BTreeMap;

/// A fact with the cases that have each of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Dotted key: `mount.options`, `postgresql.wal_level`.
    pub key: String,
    /// Each value with the ids of its cases, in the plan's order.
    pub values: Vec<(String, Vec<String>)>,
}

/// Facts with more than one value over the cases. Paths, UUIDs and device numbers do not count.
pub fn between_cases(cases: &[CaseFinding], trials: &[TrialFinding]) -> Vec<Difference> {
    let mut found: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for case in cases {
        let mut facts = Facts::default();
        for trial in trials.iter().filter(|trial| trial.case == case.id) {
            facts.built(trial.stack.as_ref(), &trial.knobs, trial.server.as_ref());
        }
        for (key, value) in facts.texts() {
            found.entry(key).or_default().push((value, case.id.clone()));
        }
    }
    let facts = found.into_iter().map(|(key, values)| Difference { key, values: by_key(values) });
    facts.filter(|fact| fact.values.len() > 1).collect()
}

/// Settings that differ from PostgreSQL's defaults and are the same on every server of the run.
pub fn from_defaults(trials: &[TrialFinding]) -> BTreeMap<String, String> {
    let mut servers = trials.iter().filter_map(|trial| trial.server.as_ref());
    let mut shared = servers.next().map(|first| first.settings.clone()).unwrap_or_default();
    shared.retain(|name, value| !is_of_place(name) && servers.clone().all(|it| it.settings.get(name) == Some(value)));
    shared
}

/// Shortest description of the cases: a stack's name if all its cases are included, else each case's name.
pub fn named(ids: &[String], cases: &[CaseFinding], labels: &BTreeMap<String, String>) -> Vec<String> {
    let names = ids.iter().map(|id| {
        let stack = cases.iter().find(|case| case.id == *id).and_then(|case| case.axes.get("stack"));
        let mut of_stack = cases.iter().filter(|case| case.axes.get("stack") == stack);
        let whole = stack.filter(|_| of_stack.all(|case| ids.contains(&case.id)));
        whole.or_else(|| labels.get(id)).unwrap_or(id)
    });
    distinct(names).into_iter().cloned().collect()
}
