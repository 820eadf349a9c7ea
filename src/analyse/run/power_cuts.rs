//! Cost of a power cut: verdicts on cases, and their effect on durability classes.
//!
//! A class comes from facts, a verdict from a recording of commits. A verdict never improves a class: it rests on
//! pgstrata's own commits and on what is above the recorded disks, and arithmetic alone acquits too easily.

use crate::analyse::case::sums::CaseSums;
use crate::analyse::findings::durability::class_word;
use crate::analyse::findings::names::Axes;
use crate::analyse::findings::remark::{Remark, Weight};
use crate::analyse::findings::{CutFindings, Durability, DurabilityClass, PowerCut, names};
use crate::record::cut::CutRecord;
use crate::record::verdict::{Verdict, VerdictRecord};
use std::collections::{BTreeMap, BTreeSet};

/// Combines the class from facts with the verdict. A case shown to lose commits is ranked as one that loses everything;
/// an expected loss is treated like asynchronous commit.
pub fn joined(facts: Durability, verdict: Option<&Verdict>) -> Durability {
    let class = verdict.and_then(class_of).filter(|_| facts.class != DurabilityClass::NotApplicable);
    match (class, verdict) {
        (Some(class), Some(verdict)) if class > facts.class => {
            let reason = format!("a power cut: {verdict}; by facts {}: {}", class_word(facts.class), facts.reason);
            Durability::of(class, reason)
        }
        _ => facts,
    }
}

/// Best class that a verdict allows; `None` if it allows all.
fn class_of(verdict: &Verdict) -> Option<DurabilityClass> {
    match verdict {
        verdict if verdict.convicts() => Some(DurabilityClass::Volatile),
        Verdict::ExpectedLoss { .. } => Some(DurabilityClass::Delayed),
        _ => None,
    }
}

/// Remark on a case whose class the facts alone would have made better.
pub fn remark(facts: &Durability, verdict: Option<&Verdict>) -> Option<Remark> {
    let verdict = verdict.filter(|verdict| verdict.convicts())?;
    let is_news = joined(facts.clone(), Some(verdict)).class != facts.class;
    let words = "convicted: a power cut loses acknowledged commits; ranked as volatile";
    let own = format!("convicted: a power cut: {}; ranked as volatile", verdict.short());
    is_news.then(|| Remark::plain(Weight::Unsafe, words).alone(own))
}

/// One finding per verdict.
pub fn findings(records: &[VerdictRecord], cases: &[CaseSums]) -> Vec<PowerCut> {
    records.iter().zip(labels(records, cases)).map(|(record, label)| finding(record, label)).collect()
}

fn finding(record: &VerdictRecord, label: String) -> PowerCut {
    // The disk's work is for all of them.
    let commits = record.commits + record.beside.as_ref().map_or(0, |beside| beside.commits as u64);
    let [writes_per_commit, flushes_per_commit, bytes_per_commit] =
        [record.writes, record.flushes, record.bytes].map(|count| (commits > 0).then(|| count as f64 / commits as f64));
    let (record, failing_share_max) = (record.clone(), record.failing_share_max());
    PowerCut { label, record, writes_per_commit, flushes_per_commit, bytes_per_commit, failing_share_max }
}

/// Findings of a cut of a plan's cases.
pub fn of_plan(record: CutRecord) -> CutFindings {
    let power_cuts = of_records(&record.verdicts);
    CutFindings { answer: answer(&power_cuts), power_cuts, record }
}

/// One finding per verdict, named after the first of its cases.
pub fn of_records(records: &[VerdictRecord]) -> Vec<PowerCut> {
    let named = |record: &VerdictRecord| record.cases.first().cloned().unwrap_or_default();
    records.iter().map(|record| finding(record, named(record))).collect()
}

/// Cases that the answer names of each kind of verdict; more are counted.
const MOST_NAMED: usize = 4;

/// A sentence of the answer: its title, and the verdicts that it covers.
type Kind = (&'static str, fn(&Verdict) -> bool);

const KINDS: [Kind; 5] = [
    ("Convicted", Verdict::convicts),
    ("Expected loss", |verdict| matches!(verdict, Verdict::ExpectedLoss { .. })),
    ("Holds", |verdict| matches!(verdict, Verdict::Holds { .. })),
    ("Not measured", |verdict| matches!(verdict, Verdict::NotMeasured { .. })),
    ("Harness broken", |verdict| matches!(verdict, Verdict::HarnessBroken { .. })),
];

/// A sentence for each kind of verdict.
pub(crate) fn answer(cuts: &[PowerCut]) -> String {
    let sentences = KINDS.iter().filter_map(|(kind, is_one)| {
        let of: Vec<&PowerCut> = cuts.iter().filter(|cut| is_one(&cut.record.verdict)).collect();
        let named = of.iter().map(|cut| match cut.record.verdict.convicts() {
            true => format!("{} {}", cut.label, cut.record.verdict.short()),
            false => cut.label.clone(),
        });
        match of.len() {
            0 => None,
            1..=MOST_NAMED => Some(format!("{kind}: {}.", named.collect::<Vec<_>>().join(", "))),
            _ => Some(format!("{kind}: {} cases.", of.iter().map(|cut| cut.record.cases.len()).sum::<usize>())),
        }
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// Common name of each verdict's cases: the axes, other than the workload's, in which they differ.
fn labels(records: &[VerdictRecord], cases: &[CaseSums]) -> Vec<String> {
    let firsts = records.iter().filter_map(|record| {
        let id = record.cases.first()?;
        let case = cases.iter().find(|case| case.spec.id == *id);
        let cases = case.into_iter();
        let axes = cases.flat_map(|case| case.spec.axes.iter().filter(|(axis, _)| !case.spec.is_workload_axis(axis)));
        Some((id.as_str(), axes.map(|(axis, value)| (axis.clone(), value.clone())).collect()))
    });
    let firsts: Vec<(&str, Axes)> = firsts.collect();
    let named: BTreeMap<String, String> = match firsts.as_slice() {
        [(id, axes)] => BTreeMap::from([((*id).to_owned(), names::of_axes(axes, &["stack".to_owned()]))]),
        _ => names::of_cases(firsts.iter().map(|(id, axes)| (*id, axes))),
    };
    records.iter().map(|record| named.get(record.cases.first()?).cloned()).map(Option::unwrap_or_default).collect()
}

/// Last verdict that names the case.
pub fn of_case<'r>(records: &'r [VerdictRecord], case: &str) -> Option<&'r Verdict> {
    records.iter().rev().find(|record| record.cases.iter().any(|id| id == case)).map(|record| &record.verdict)
}

/// Drops ids that verdicts name but the run does not have.
pub fn known(mut records: Vec<VerdictRecord>, cases: &[CaseSums]) -> Vec<VerdictRecord> {
    let ids: BTreeSet<&str> = cases.iter().map(|case| case.spec.id.as_str()).collect();
    records.retain(|record| record.cases.iter().all(|id| ids.contains(id.as_str())));
    records
}
