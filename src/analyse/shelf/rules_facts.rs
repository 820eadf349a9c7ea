//! Rules that hold the properties and settings that a case is said to have against what its own output shows.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::rules_price::apart;
use super::select::{Found, rows};
use crate::record::imported::{ImportRecord, ImportedCase};
use crate::units::significant;

/// What contradicts the facts of a case.
pub(super) fn of_case(record: &ImportRecord, case: &ImportedCase) -> Vec<Remark> {
    let mut found = Vec::new();
    for (key, value) in &case.facts {
        found.extend(property(record, case, key, value));
        found.extend(of_pgbench(case, key, value));
    }
    found
}

/// A property that `zfs get` or `zpool get` shows otherwise.
fn property(record: &ImportRecord, case: &ImportedCase, key: &str, said: &str) -> Option<Remark> {
    let source = "the list of properties that came with the case";
    let (tool, name) = match key.split_once('.')? {
        ("zfs", name) => ("zfs get", name),
        ("zpool", name) => ("zpool get", name),
        _ => return None,
    };
    let listed = listed(case, tool, name);
    let is_said = |row: &&Found<'_>| row.label("value").is_some_and(|value| value.eq_ignore_ascii_case(said));
    let others: Vec<Found<'_>> = listed.iter().filter(|row| !is_said(row)).copied().collect();
    let row = others.first()?;
    if others.len() < listed.len() {
        let rule = Rule { name: "datasets_differ", weight: Weight::Information, source };
        let values: Vec<String> = listed.iter().map(|row| of_dataset(row, name)).collect();
        let sentence = format!(
            "{tool} lists {}: which of them the case used is not told, so none is held against {name}={said}",
            values.join(", ")
        );
        return rule.says(&listed, None, sentence);
    }
    let rule = Rule { name: "facts_contradict", weight: Weight::Contradiction, source };
    let mut values: Vec<&str> = others.iter().filter_map(|row| row.label("value")).collect();
    values.sort_unstable();
    values.dedup();
    let [value] = values.as_slice() else {
        let values: Vec<String> = others.iter().map(|row| of_dataset(row, name)).collect();
        let sentence = format!("{tool} lists {}, where the case is said to have {name}={said}", values.join(", "));
        return rule.says(&others, None, sentence);
    };
    let mut sentence = format!("{tool} lists {name}={value}, where the case is said to have {name}={said}");
    let other = record.cases.iter().find(|other| other.facts.get(key).is_some_and(|found| found == value));
    if let Some((method, ratio)) = other.and_then(|other| apart(other, case)) {
        let times = if ratio >= 1.0 { ratio } else { 1.0 / ratio };
        sentence.push_str(&format!(
            "; {method} differs {} times from the case that has {value}, so the list is of another moment than the run",
            significant(times)
        ));
    }
    rule.says(&[*row], None, sentence)
}

/// The rows of a property: those of the dataset or pool that the case is said to have used, or that is mounted where its
/// data lay; of all where neither is told.
fn listed<'a>(case: &'a ImportedCase, tool: &'a str, property: &'a str) -> Vec<Found<'a>> {
    let of = |property: &'a str| {
        rows(case).filter(move |row| row.output.tool == tool && row.label("property") == Some(property))
    };
    let told = ["zfs.dataset", "stack.dataset", "zpool.pool", "stack.pool"];
    let told = told[if tool == "zfs get" { 0..2 } else { 2..4 }].iter().find_map(|key| case.facts.get(*key));
    let at = case.facts.get("stack.mount");
    let mounted = of("mountpoint").find(|row| at.is_some_and(|at| row.label("value") == Some(at)));
    let used = told.map(String::as_str).or_else(|| mounted.and_then(|row| row.label("name")));
    let is_used = |row: &Found<'_>| used.is_none() || row.label("name").is_none() || row.label("name") == used;
    let mut found: Vec<Found<'a>> = Vec::new();
    for row in of(property).filter(|row| row.label("value").is_some()).filter(is_used) {
        // Each trial may have a list of its own that says the same.
        let same = |known: &Found<'_>| known.row.labels == row.row.labels;
        if !found.iter().any(same) {
            found.push(row);
        }
    }
    found
}

/// `tank/a sync=disabled`.
fn of_dataset(row: &Found<'_>, property: &str) -> String {
    let value = row.label("value").unwrap_or_default();
    row.label("name").map_or_else(|| format!("{property}={value}"), |name| format!("{name} {property}={value}"))
}

/// A setting of pgbench, as `pgbench.NAME` or `workload.NAME`, that its summary shows otherwise.
fn of_pgbench(case: &ImportedCase, key: &str, said: &str) -> Option<Remark> {
    let rule =
        Rule { name: "facts_contradict", weight: Weight::Contradiction, source: "the summary that pgbench printed" };
    let name = key.strip_prefix("pgbench.").or_else(|| key.strip_prefix("workload."))?;
    let said: f64 = said.trim().parse().ok()?;
    let summaries = rows(case).filter(|row| row.output.tool == "pgbench" && row.label("part") == Some("summary"));
    let (row, shown) = summaries.filter_map(|row| Some((row, row.value(name)?))).find(|(_, shown)| *shown != said)?;
    let sentence = format!("pgbench says {name} {shown}, where the case is said to have {said}");
    rule.says(&[row], Some((shown, said, "")), sentence)
}
