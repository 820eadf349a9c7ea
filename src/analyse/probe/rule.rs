//! A credibility rule that fired.

use crate::analyse::findings::CredibilityKind;
use crate::analyse::probe::findings::FiredRule;

/// Builds a fired rule; `measured` is a number, the threshold that it passed, and their unit.
pub(crate) fn rule(
    name: &str,
    speaks_for: Option<CredibilityKind>,
    measured: Option<(f64, f64, &str)>,
    source: &str,
    sentence: String,
) -> FiredRule {
    let (number, threshold, unit) =
        measured.map_or((None, None, ""), |(number, threshold, unit)| (Some(number), Some(threshold), unit));
    let (name, unit, source) = (name.to_owned(), unit.to_owned(), source.to_owned());
    FiredRule { name, speaks_for, number, threshold, unit, source, sentence }
}
