//! A rule of the credibility that fired.

use crate::analyse::findings::CredibilityKind;
use crate::analyse::probe::findings::FiredRule;

/// A rule about a number.
pub(crate) struct MeasuredNumber {
    pub number: f64,
    pub threshold: f64,
    pub unit: &'static str,
}

/// Puts a fired rule together.
pub(crate) fn rule(
    name: &str,
    speaks_for: Option<CredibilityKind>,
    measured: Option<MeasuredNumber>,
    source: &str,
    sentence: String,
) -> FiredRule {
    FiredRule {
        name: name.to_owned(),
        speaks_for,
        number: measured.as_ref().map(|measured| measured.number),
        threshold: measured.as_ref().map(|measured| measured.threshold),
        unit: measured.map_or("", |measured| measured.unit).to_owned(),
        source: source.to_owned(),
        sentence,
    }
}
