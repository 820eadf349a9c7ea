//! A remark on published figures.

use crate::analyse::imported::select::Found;
use crate::analyse::shelf::findings::{RemarkWeight, RuleRemark};

/// Name and source of a rule.
pub(crate) struct ShelfRule {
    pub(super) name: &'static str,
    pub(super) weight: RemarkWeight,
    pub(super) source: &'static str,
}

impl ShelfRule {
    /// Remark on these rows, the first of which determines the case.
    pub(super) fn says(&self, rows: &[Found<'_>], sentence: String) -> Option<RuleRemark> {
        Some(RuleRemark {
            rule: self.name.to_owned(),
            weight: self.weight,
            case: rows.first()?.case.name.clone(),
            source: self.source.to_owned(),
            sentence,
            at: rows.iter().map(Found::at).collect(),
        })
    }
}
