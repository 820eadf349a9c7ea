//! Rules that compare the stated facts of a case with its own output, and cases that differ only in whether a sync is
//! done.

use super::findings::{RemarkWeight, RuleRemark};
use crate::analyse::imported::select::{FoundRow, rows, tps};
use crate::analyse::imported::words::rate;
use crate::analyse::shelf::rule::{Rated, rate_of, remark};
use crate::record::imported::{ImportRecord, ImportedCase};
use crate::units::significant;

/// Facts that decide whether a sync is done, with the value that disables it.
const DECIDES: [(&str, &str); 5] = [
    ("zfs.sync", "disabled"),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("mount.barrier", "0"),
    ("mount.barrier", "off"),
];
/// Smallest ratio at which cases are said to differ.
const APART: f64 = 1.5;

/// Contradictions of the facts of a case.
pub(super) fn of_case(record: &ImportRecord, case: &ImportedCase) -> Vec<RuleRemark> {
    let of_facts =
        case.facts.iter().filter_map(|(key, said)| property(case, key, said).or_else(|| of_pgbench(case, key, said)));
    of_facts.chain(mounted(record, case)).collect()
}

/// A property that contradicts every `zfs get` or `zpool get` list: of the dataset that the case reportedly used, or
/// that is mounted at the data; of all datasets if neither is known.
fn property(case: &ImportedCase, key: &str, said: &str) -> Option<RuleRemark> {
    let source = "the list of properties that came with the case";
    let (tool, name) = match key.split_once('.')? {
        ("zfs", name) => ("zfs get", name),
        ("zpool", name) => ("zpool get", name),
        _ => return None,
    };
    let at = case.fact("stack.mount");
    let mounted = listed(case, tool, "mountpoint").find(|row| at.is_some() && row.label("value") == at);
    let of_case = if tool == "zfs get" { ["zfs.dataset", "stack.dataset"] } else { ["zpool.pool", "stack.pool"] };
    let used = of_case.iter().find_map(|key| case.fact(key)).or_else(|| mounted.and_then(|row| row.label("name")));
    let listed = listed(case, tool, name)
        .filter(|row| used.is_none_or(|used| row.label("name").is_none_or(|name| name == used)));
    let listed: Vec<FoundRow<'_>> = listed.collect();
    let value = listed.first()?.label("value")?;
    let sentence = format!("{tool} lists {name}={value}, but the case states {name}={said}");
    let mut values = listed.iter().filter_map(|row| row.label("value"));
    let is_said = values.any(|value| value.eq_ignore_ascii_case(said));
    contradiction(source, &listed, sentence).filter(|_| !is_said)
}

fn contradiction(source: &str, rows: &[FoundRow<'_>], sentence: String) -> Option<RuleRemark> {
    remark("facts_contradict", RemarkWeight::Contradiction, source, rows, sentence)
}

/// The rows of a property.
fn listed<'a>(case: &'a ImportedCase, tool: &'a str, property: &'a str) -> impl Iterator<Item = FoundRow<'a>> {
    rows(case).filter(move |row| row.output.tool == tool && row.label("property") == Some(property))
}

/// A pgbench setting, given as `pgbench.NAME` or `workload.NAME`, that contradicts its summary.
fn of_pgbench(case: &ImportedCase, key: &str, said: &str) -> Option<RuleRemark> {
    let name = key.strip_prefix("pgbench.").or_else(|| key.strip_prefix("workload."))?;
    let said: f64 = said.trim().parse().ok()?;
    let summaries = rows(case).filter(|row| row.output.tool == "pgbench" && row.label("part") == Some("summary"));
    let (row, shown) = summaries.filter_map(|row| Some((row, row.value(name)?))).find(|(_, shown)| *shown != said)?;
    let sentence = format!("pgbench reports {name} {shown}, but the case states {said}");
    contradiction("the summary that pgbench printed", &[row], sentence)
}

/// A filesystem that contradicts the `mount` output at the case's location. Mounts listed with other output belong to
/// the case; a list alone is the machine's.
fn mounted(record: &ImportRecord, case: &ImportedCase) -> Option<RuleRemark> {
    let (kind, place) = (case.facts.get("stack.filesystem")?, case.facts.get("stack.mount")?);
    let cases = record.cases.iter().filter(|other| {
        let mut outputs = other.trials.iter().flat_map(|trial| &trial.outputs);
        std::ptr::eq(*other, case) || outputs.all(|output| output.tool == "mount")
    });
    let listed = cases.flat_map(rows).filter(|row| row.label("mount") == Some(place) && row.label("type").is_some());
    let listed: Vec<FoundRow<'_>> = listed.collect();
    let shown = listed.last()?.label("type")?;
    let fits = listed.iter().any(|row| row.label("type").is_some_and(|shown| shown.eq_ignore_ascii_case(kind)));
    let sentence = format!("{place} is mounted as {shown}, but the case states {kind}");
    let remark = contradiction("the mounts that came with the case", &listed, sentence).filter(|_| !fits)?;
    Some(RuleRemark { case: case.name.clone(), ..remark })
}

/// Cost of durability, from two cases that differ only in whether a sync is done.
pub(super) fn price(without: &ImportedCase, with: &ImportedCase) -> Option<RuleRemark> {
    let source = "two cases that differ in this alone";
    let keys = without.facts.keys().chain(with.facts.keys());
    let mut keys: Vec<&String> = keys.filter(|key| without.facts.get(*key) != with.facts.get(*key)).collect();
    keys.dedup();
    let [key] = keys.as_slice() else { return None };
    let value = without.facts.get(*key)?;
    DECIDES.iter().find(|(name, off)| name == key && off == value)?;
    let (what, fast, slow) = pair(without, with)?;
    let ratio = fast.1 / slow.1;
    let sentence = format!(
        "{what} ran {} times a second with {key}={}, {} with {value}: {} times is the price of durability here, and the \
         faster one loses its last acknowledged commits on power loss",
        rate(slow.1),
        with.fact(key).unwrap_or("its default"),
        rate(fast.1),
        significant(ratio)
    );
    let rows = [fast.0, slow.0];
    remark("price_of_durability", RemarkWeight::Information, source, &rows, sentence).filter(|_| ratio >= APART)
}

/// The first sync method that both cases have, or transactions.
fn pair<'a>(a: &'a ImportedCase, b: &'a ImportedCase) -> Option<(&'static str, Rated<'a>, Rated<'a>)> {
    const WAYS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
    let by_way = WAYS.iter().find_map(|way| {
        let [a, b] = [a, b].map(|case| rate_of(rows(case), "one write", way));
        Some((*way, a?, b?))
    });
    by_way.or_else(|| {
        let [a, b] = [a, b].map(|case| rows(case).find_map(|row| Some((row, tps(&row)?.value))));
        Some(("transactions", a?, b?))
    })
}
