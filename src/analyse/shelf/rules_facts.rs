//! Rules that hold what is said of a case against what its own output shows.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::rules_price::apart;
use super::select::{Found, all, rows, rows_of_trial};
use crate::record::imported::{ImportRecord, ImportedCase};
use crate::units::significant;

/// What contradicts the facts of a case.
pub(super) fn of_case(record: &ImportRecord, case: &ImportedCase) -> Vec<Remark> {
    let mut found = Vec::new();
    for (key, value) in &case.facts {
        found.extend(property(record, case, key, value));
        found.extend(of_pgbench(case, key, value));
    }
    found.extend(mounted(record, case));
    found.extend(rates_and_times(case));
    found
}

/// A property that `zfs get` or `zpool get` shows otherwise.
fn property(record: &ImportRecord, case: &ImportedCase, key: &str, said: &str) -> Option<Remark> {
    let rule = Rule {
        name: "facts_contradict",
        weight: Weight::Contradiction,
        source: "the list of properties that was published with the case",
    };
    let (tool, name) = match key.split_once('.')? {
        ("zfs", name) => ("zfs get", name),
        ("zpool", name) => ("zpool get", name),
        _ => return None,
    };
    let row = rows(case).find(|row| row.output.tool == tool && row.label("property") == Some(name))?;
    let listed = row.label("value").filter(|listed| !listed.eq_ignore_ascii_case(said))?;
    let mut sentence = format!("{tool} lists {name}={listed}, where the case is said to have {name}={said}");
    let other = record.cases.iter().find(|other| other.facts.get(key).is_some_and(|value| value == listed));
    if let Some((method, ratio)) = other.and_then(|other| apart(other, case)) {
        let times = if ratio >= 1.0 { ratio } else { 1.0 / ratio };
        sentence.push_str(&format!(
            "; {method} differs {} times from the case that has {listed}, so the list is of another moment than the run",
            significant(times)
        ));
    }
    rule.says(&[row], None, sentence)
}

/// A setting of pgbench that its summary shows otherwise.
fn of_pgbench(case: &ImportedCase, key: &str, said: &str) -> Option<Remark> {
    let rule =
        Rule { name: "facts_contradict", weight: Weight::Contradiction, source: "the summary that pgbench printed" };
    let name = key.strip_prefix("pgbench.")?;
    let said: f64 = said.parse().ok()?;
    let summaries = rows(case).filter(|row| row.output.tool == "pgbench" && row.label("part") == Some("summary"));
    let (row, shown) = summaries.filter_map(|row| Some((row, row.value(name)?))).find(|(_, shown)| *shown != said)?;
    let sentence = format!("pgbench says {name} {shown}, where the case is said to have {said}");
    rule.says(&[row], Some((shown, said, "")), sentence)
}

/// A filesystem that `mount` or `df` shows otherwise.
fn mounted(record: &ImportRecord, case: &ImportedCase) -> Option<Remark> {
    let rule =
        Rule { name: "facts_contradict", weight: Weight::Contradiction, source: "the mounts that were published" };
    let (kind, mount) = (case.facts.get("stack.filesystem")?, case.facts.get("stack.mount")?);
    let row = all(record).find(|row| row.label("mount") == Some(mount) && row.label("type").is_some())?;
    let shown = row.label("type").filter(|shown| shown != kind)?;
    let mut remark =
        rule.says(&[row], None, format!("{mount} is mounted as {shown}, where the case is said to be on {kind}"))?;
    remark.case.clone_from(&case.name);
    Some(remark)
}

/// Rates and times of one row that are not each other's inverse.
fn rates_and_times(case: &ImportedCase) -> Vec<Remark> {
    let rule = Rule {
        name: "rate_does_not_fit_its_time",
        weight: Weight::Contradiction,
        source: "operations a second times microseconds an operation are a million",
    };
    // A rate is printed to a thousandth, a time to a whole.
    const RATE_ROUNDING: f64 = 0.0005;
    let misfits = |row: &Found<'_>| {
        let rate = row.value("rate").filter(|rate| *rate > 0.0)?;
        let time = row.figure("latency_mean").filter(|time| time.unit == "us")?;
        let expected = 1e6 / rate;
        let slack = 0.51 + expected / rate * RATE_ROUNDING;
        ((expected - time.value).abs() > slack).then_some((time.value, expected))
    };
    let all = case.trials.iter().flat_map(|trial| rows_of_trial(case, trial));
    let odd = all.filter(|row| row.label("test").is_some()).filter_map(|row| Some((row, misfits(&row)?)));
    odd.filter_map(|(row, (time, expected))| {
        let method = row.label("method").unwrap_or_default();
        let sentence = format!("{method}: its rate means {} us an operation, not {time}", significant(expected));
        rule.says(&[row], Some((time, expected, "us")), sentence)
    })
    .collect()
}
