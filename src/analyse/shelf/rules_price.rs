//! What durability costs: two cases that differ in nothing but whether a sync is done.

use super::findings::{Remark, Weight};
use super::rules::Rule;
use super::select::{Found, rows, synced, tps};
use super::words::rate;
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
    let pair = pair(without, with)?;
    let (fast, slow, what, ratio) = (pair.one, pair.other, &pair.what, pair.ratio());
    if ratio < APART {
        return None;
    }
    let sentence = format!(
        "{what} ran {} times a second with {key}={}, {} with {value}: {} times is the price of durability here, and the \
         faster one loses at a power cut what it acknowledged last",
        rate(slow.1),
        with.facts.get(*key).map_or("its default", String::as_str),
        rate(fast.1),
        significant(ratio)
    );
    let mut remark = rule.says(&[fast.0], Some((ratio, 1.0, "times")), sentence)?;
    remark.at.push(slow.0.at());
    Some(remark)
}

/// The same figure of two cases.
struct Pair<'a> {
    one: (Found<'a>, f64),
    other: (Found<'a>, f64),
    /// Which.
    what: String,
}

impl Pair<'_> {
    fn ratio(&self) -> f64 {
        self.one.1 / self.other.1
    }
}

/// The first way to sync that both have, or transactions.
fn pair<'a>(a: &'a ImportedCase, b: &'a ImportedCase) -> Option<Pair<'a>> {
    const WAYS: [&str; 4] = ["fdatasync", "fsync", "open_datasync", "open_sync"];
    let sync = |case: &'a ImportedCase, way: &str| {
        synced(rows(case), "one write").find(|(_, method, _)| *method == way).map(|(row, _, rate)| (row, rate))
    };
    let by_way =
        WAYS.iter().find_map(|way| Some(Pair { one: sync(a, way)?, other: sync(b, way)?, what: (*way).to_owned() }));
    let commits = |case: &'a ImportedCase| rows(case).find_map(|row| Some((row, tps(&row)?.value)));
    by_way.or_else(|| Some(Pair { one: commits(a)?, other: commits(b)?, what: "transactions".to_owned() }))
}

/// By how much two cases differ, where they clearly do, and in which figure.
pub(super) fn apart(a: &ImportedCase, b: &ImportedCase) -> Option<(String, f64)> {
    const CLEARLY: f64 = 3.0;
    let pair = pair(a, b)?;
    let ratio = pair.ratio();
    (ratio >= CLEARLY || ratio <= 1.0 / CLEARLY).then_some((pair.what, ratio))
}
