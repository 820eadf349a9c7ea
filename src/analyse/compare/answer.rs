//! The answer in a sentence or two: the row that matters most, and how much could be compared at all.

use super::findings::{Comparison, ComparisonFindings, Outcome, PairFinding, Row};
use super::single;
use crate::analyse::findings::Estimate;
use crate::units::significant;

/// Rows that decide what a server does, the most telling first.
const TELLING: [(&str, &str); 4] = [
    ("pgbench", "/tps"),
    ("wal", "/fdatasync"),
    ("pg_test_fsync/one write", "/fdatasync"),
    ("pg_test_fsync/one write", "/fsync"),
];

/// The answer; `findings.answer` is not looked at.
pub(super) fn answer(findings: &ComparisonFindings) -> String {
    let compared: Vec<(&PairFinding, &Row, &Comparison)> = findings
        .pairs
        .iter()
        .flat_map(|pair| pair.rows.iter().map(move |row| (pair, row)))
        .filter_map(|(pair, row)| Some((pair, row, row.comparison.as_ref()?)))
        .collect();
    if compared.is_empty() {
        return nothing(findings);
    }
    // What was asked for is one argument against another.
    let crosses = |pair: &PairFinding| findings.sides[pair.side].argument != findings.sides[pair.against].argument;
    let any_crosses = compared.iter().any(|(pair, ..)| crosses(pair));
    let asked = || compared.iter().filter(|(pair, ..)| crosses(pair) == any_crosses);
    let telling = TELLING
        .iter()
        .find_map(|(family, end)| asked().find(|(_, row, _)| row.family == *family && row.measure.ends_with(end)));
    let Some((pair, row, comparison)) = telling.or_else(|| asked().next()) else { return nothing(findings) };
    let (side, reference) = (&findings.sides[pair.side].label, &findings.sides[pair.against].label);
    let ratio = significant(comparison.ratio);
    let interval = match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => format!("95 % interval {} to {}", significant(low), significant(high)),
        _ => comparison.how.clone(),
    };
    // What is known of the scatter between runs is of rates that were measured once.
    let of_rates = comparison.method.is_of_single_runs() && row.more_is_better;
    let points = of_rates && lie_apart(row) && single::points_a_way(comparison.ratio);
    let points = if points { format!("; the ratio is {}", single::POINTS) } else { String::new() };
    let measure = &row.measure;
    let first = match comparison.outcome {
        Outcome::Faster => format!("{side} is faster than {reference}: {ratio} times its {measure} ({interval})."),
        Outcome::Slower => format!("{side} is slower than {reference}: {ratio} times its {measure} ({interval})."),
        Outcome::NoDifferenceSeen => {
            format!("No difference is seen between {side} and {reference} in {measure}: {ratio} times ({interval}).")
        }
        Outcome::NotRepeated | Outcome::NoInterval => {
            let why = if comparison.outcome == Outcome::NotRepeated {
                format!(": nothing was repeated ({interval} {}{points})", comparison.how)
            } else {
                format!(" ({interval}{points})")
            };
            format!("{side} has {ratio} times the {measure} of {reference}, but neither is called faster{why}.")
        }
    };
    let counts = [
        (Outcome::Faster, "faster"),
        (Outcome::Slower, "slower"),
        (Outcome::NoDifferenceSeen, "no difference seen"),
        (Outcome::NotRepeated, "apart but not repeated"),
        (Outcome::NoInterval, "without an interval"),
    ];
    let counts = counts.map(|(outcome, word)| (compared.iter().filter(|it| it.2.outcome == outcome).count(), word));
    let counts: Vec<String> =
        counts.iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let figures = if compared.len() == 1 { "figure" } else { "figures" };
    format!("{first} Of {} {figures} compared: {}.", compared.len(), counts.join(", "))
}

/// Whether neither figure lies in what the other one is known to scatter.
fn lie_apart(row: &Row) -> bool {
    let ends = |estimate: &Estimate| {
        let value = estimate.value;
        (estimate.low.unwrap_or(value), estimate.high.unwrap_or(value))
    };
    let (one, other) = (ends(&row.value), ends(&row.reference));
    one.1 < other.0 || other.1 < one.0
}

fn nothing(findings: &ComparisonFindings) -> String {
    match findings.refused.first() {
        Some(refusal) => format!("Nothing can be compared. {}.", capital(&refusal.words)),
        None => "Nothing can be compared: the sides have no measure in common.".to_owned(),
    }
}

/// A text with a capital at its beginning.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
