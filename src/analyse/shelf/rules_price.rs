//! What durability costs: two cases that differ in nothing but whether a sync is done.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::select::{Found, rows, synced, tps};
use crate::record::imported::{ImportRecord, ImportedCase};
use crate::units::significant;

/// Facts that decide whether a sync is done, with the value that leaves it out.
const DECIDES: [(&str, &str); 5] = [
    ("zfs.sync", "disabled"),
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("mount.barrier", "0"),
    ("mount.barrier", "off"),
];
/// Cases that are nearer than this are not said to differ.
const APART: f64 = 1.5;

/// The prices that a record shows.
pub(super) fn of_record(record: &ImportRecord) -> Vec<Remark> {
    let pairs = record.cases.iter().flat_map(|a| record.cases.iter().map(move |b| (a, b)));
    pairs.filter_map(|(without, with)| price(without, with)).collect()
}

fn price(without: &ImportedCase, with: &ImportedCase) -> Option<Remark> {
    let rule = Rule {
        name: "price_of_durability",
        weight: Weight::Information,
        source: "two cases that differ in this alone",
    };
    let mut keys: Vec<&String> = without.facts.keys().chain(with.facts.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| without.facts.get(*key) != with.facts.get(*key));
    let [key] = keys.as_slice() else { return None };
    let value = without.facts.get(*key)?;
    DECIDES.iter().find(|(name, off)| name == key && off == value)?;
    let (fast, slow, what) = figures(without, with)?;
    let ratio = fast.1 / slow.1;
    if ratio < APART {
        return None;
    }
    let sentence = format!(
        "{what} ran {} times a second with {key}={}, {} with {value}: {} times is the price of durability here, and the \
         faster one loses at a power cut what it acknowledged last",
        significant(slow.1),
        with.facts.get(*key).map_or("its default", String::as_str),
        significant(fast.1),
        significant(ratio)
    );
    let mut remark = rule.says(&[fast.0], Some((ratio, 1.0, "times")), sentence)?;
    remark.at.push(slow.0.at());
    Some(remark)
}

/// The same figure of two cases: the first way to sync that both have, or transactions.
#[allow(clippy::type_complexity)]
fn figures<'a>(a: &'a ImportedCase, b: &'a ImportedCase) -> Option<((Found<'a>, f64), (Found<'a>, f64), String)> {
    const WAYS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
    let sync = |case: &'a ImportedCase, way: &str| {
        synced(rows(case), "one write").find(|(_, method, _)| *method == way).map(|(row, _, rate)| (row, rate))
    };
    let by_way = WAYS.iter().find_map(|way| Some((sync(a, way)?, sync(b, way)?, (*way).to_owned())));
    let commits = |case: &'a ImportedCase| rows(case).find_map(|row| Some((row, tps(&row)?.value)));
    by_way.or_else(|| Some((commits(a)?, commits(b)?, "transactions".to_owned())))
}

/// By how much two cases differ, where they clearly do, and in which figure.
pub(super) fn apart(a: &ImportedCase, b: &ImportedCase) -> Option<(String, f64)> {
    const CLEARLY: f64 = 3.0;
    let (one, other, what) = figures(a, b)?;
    let ratio = one.1 / other.1;
    (ratio >= CLEARLY || ratio <= 1.0 / CLEARLY).then_some((what, ratio))
}
