//! Checks conclusions against the figures behind them: one ratio and one sentence per comparison.
//!
//! Repeated trials give an interval (`stats::ratio`). Two single runs have none and show nothing; `compare::single`
//! decides whether their ratio indicates a direction.

use super::findings::{ClaimComparison, ConclusionFinding, Support};
use crate::analyse::compare::single;
use crate::analyse::imported::select::{FoundRow, length, rows};
use crate::analyse::imported::words::rate;
use crate::record::imported::ImportRecord;
use crate::record::publication::{Compare, Conclusion};
use crate::stats::moments;
use crate::stats::ratio::{self, BlockMean, Ratio};
use crate::units::significant;

/// Support of a conclusion by the figures.
pub(super) fn answer(record: &ImportRecord, conclusion: &Conclusion) -> ConclusionFinding {
    let mut because = Vec::new();
    let comparisons: Vec<ClaimComparison> =
        conclusion.compare.iter().filter_map(|claim| compare(record, claim)).collect();
    if comparisons.len() < conclusion.compare.len() {
        because.push("a figure it compares was not found".to_owned());
    }
    because.extend(conclusion.lacks.iter().map(|lacks| format!("missing: {lacks}")));
    let of_figures = comparisons.iter().map(|it| it.support).min().unwrap_or(Support::CannotBeTold);
    let support = if because.is_empty() { of_figures } else { of_figures.min(Support::CannotBeTold) };
    ConclusionFinding { says: conclusion.says.clone(), support, comparisons, because }
}

/// The figure of a claim in each trial of a case, with the row of the first.
fn side<'a>(record: &'a ImportRecord, name: &str, claim: &Compare) -> Option<(FoundRow<'a>, Vec<f64>)> {
    let labels: Vec<(&str, &str)> = claim.row.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut found: Vec<(FoundRow<'a>, f64)> = Vec::new();
    let case = record.cases.iter().find(|case| case.name == name)?;
    for row in rows(case).filter(|row| row.output.tool == claim.tool && row.is(&labels)) {
        // Progress rows have the same names; the summary covers them.
        let summary = row.label("part").is_none_or(|part| part == "summary");
        let other_trial = found.last().is_none_or(|(last, _)| !std::ptr::eq(last.trial, row.trial));
        if let Some(value) = row.value(&claim.figure).filter(|_| summary && other_trial) {
            found.push((row, value));
        }
    }
    let first = found.first()?.0;
    Some((first, found.into_iter().map(|(_, value)| value).collect()))
}

/// Compares one figure of two cases.
fn compare(record: &ImportRecord, claim: &Compare) -> Option<ClaimComparison> {
    let ((row, a), (_, b)) = (side(record, &claim.case, claim)?, side(record, &claim.over, claim)?);
    // Separate blocks: imported trials are not known to be paired.
    let [own, others] = [(&a, 0u32), (&b, 1 << 16)].map(|(values, from)| {
        (from..).zip(values).map(|(block, mean)| BlockMean::of(block, *mean)).collect::<Vec<_>>()
    });
    let found = ratio::ratio(&own, &others)?;
    let (value, over_value) = moments::mean(&a).zip(moments::mean(&b))?;
    let labels: Vec<&str> = claim.row.values().map(String::as_str).collect();
    let unit = row.figure(&claim.figure)?.unit.clone();
    let points = found.interval.is_none() && unit.ends_with("/s") && single::points_a_way(found.value);
    let mut comparison = ClaimComparison {
        case: claim.case.clone(),
        over: claim.over.clone(),
        what: [&[claim.tool.as_str()], labels.as_slice(), &[claim.figure.as_str()]].concat().join(", "),
        unit,
        value,
        over_value,
        ratio: found.value,
        trials: (a.len(), b.len()),
        interval: found.interval,
        support: support(&found, points),
        sentence: String::new(),
    };
    comparison.sentence = sentence(&comparison, points, length(&row).as_deref());
    Some(comparison)
}

/// Support from a ratio that the conclusion claims to exceed 1. Two single runs can neither show nor refute it.
fn support(found: &Ratio, points: bool) -> Support {
    match (found.interval.is_some(), found.value > 1.0) {
        (true, true) if found.tells_apart() => Support::Shown,
        (true, false) if found.tells_apart() => Support::Contradicted,
        (false, true) if points => Support::PointsThatWay,
        _ => Support::NotShown,
    }
}

fn sentence(it: &ClaimComparison, points: bool, length: Option<&str>) -> String {
    let unit = &it.unit;
    let (value, over) = (rate(it.value), rate(it.over_value));
    let text = format!("{} {value} {unit}, {} {over} {unit}: {} times", it.case, it.over, significant(it.ratio));
    if let Some((low, high)) = it.interval {
        return format!("{text}, 95 % interval {} to {}", significant(low), significant(high));
    }
    let length = length.map_or_else(String::new, |length| format!(" of {length}"));
    let way = if it.ratio < 1.0 { ", in the opposite direction" } else { "" };
    let points = if points { format!("; {}{way}", single::POINTS) } else { String::new() };
    format!("{text}; one run{length} each, so no interval{points}")
}
