//! A remark on published figures.

use crate::analyse::imported::select::{FoundRow, synced};
use crate::analyse::shelf::findings::{RemarkWeight, RuleRemark};

pub(super) type Rated<'a> = (FoundRow<'a>, f64);

/// The rate of synced writes with a method, and its row.
pub(super) fn rate_of<'a>(rows: impl Iterator<Item = FoundRow<'a>>, test: &'a str, method: &str) -> Option<Rated<'a>> {
    synced(rows, test).find(|(_, of, _)| *of == method).map(|(row, _, rate)| (row, rate))
}

/// Remark of a rule on these rows, the first of which determines the case; with the source of the rule or its threshold.
pub(super) fn remark(
    rule: &str,
    weight: RemarkWeight,
    source: &str,
    rows: &[FoundRow<'_>],
    sentence: String,
) -> Option<RuleRemark> {
    let case = rows.first()?.case.name.clone();
    let at = rows.iter().map(FoundRow::at).collect();
    Some(RuleRemark { rule: rule.to_owned(), weight, case, source: source.to_owned(), sentence, at })
}
