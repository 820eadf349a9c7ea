//! A remark on published figures.

use crate::analyse::imported::select::FoundRow;
use crate::analyse::shelf::findings::{Remark, Weight};

/// Name and source of a rule.
pub(crate) struct Rule {
    pub(super) name: &'static str,
    pub(super) weight: Weight,
    pub(super) source: &'static str,
}

impl Rule {
    /// Remark on these rows, the first of which determines the case.
    pub(super) fn says(&self, rows: &[FoundRow<'_>], sentence: String) -> Option<Remark> {
        Some(Remark {
            rule: self.name.to_owned(),
            weight: self.weight,
            case: rows.first()?.case.name.clone(),
            source: self.source.to_owned(),
            sentence,
            at: rows.iter().map(FoundRow::at).collect(),
        })
    }
}
