//! A remark on published figures.

use crate::analyse::imported::select::{FoundRow, synced};
use crate::analyse::shelf::findings::{RemarkWeight, RuleRemark};

/// Name and source of a rule.
pub(crate) struct ShelfRule {
    pub(super) name: &'static str,
    pub(super) weight: RemarkWeight,
    pub(super) source: &'static str,
}

pub(super) fn rule(name: &'static str, weight: RemarkWeight, source: &'static str) -> ShelfRule {
    ShelfRule { name, weight, source }
}

/// The rate of synced writes with a method, and its row.
pub(super) fn rate_of<'a>(
    rows: impl Iterator<Item = FoundRow<'a>>,
    test: &'a str,
    method: &str,
) -> Option<(FoundRow<'a>, f64)> {
    synced(rows, test).find(|(_, of, _)| *of == method).map(|(row, _, rate)| (row, rate))
}

impl ShelfRule {
    /// Remark on these rows, the first of which determines the case.
    pub(super) fn says(&self, rows: &[FoundRow<'_>], sentence: String) -> Option<RuleRemark> {
        Some(RuleRemark {
            rule: self.name.to_owned(),
            weight: self.weight,
            case: rows.first()?.case.name.clone(),
            source: self.source.to_owned(),
            sentence,
            at: rows.iter().map(FoundRow::at).collect(),
        })
    }
}
