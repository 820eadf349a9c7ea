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
    let first = match comparison.outcome {
        Outcome::Faster | Outcome::Slower => {
            let word = if comparison.outcome == Outcome::Faster { "faster" } else { "slower" };
            format!("{side} is {word} than {reference}: {ratio} times its {} ({interval}).", row.measure)
        }
        Outcome::NoDifferenceSeen => {
            format!(
                "No difference is seen between {side} and {reference} in {}: {ratio} times ({interval}).",
                row.measure
            )
        }
        Outcome::NotRepeated => format!(
            "{side} has {ratio} times the {} of {reference}, but neither is called faster: nothing was repeated ({interval} \
             {}{points}).",
            row.measure, comparison.how
        ),
        Outcome::NoInterval => format!(
            "{side} has {ratio} times the {} of {reference}, but neither is called faster ({interval}{points}).",
            row.measure
        ),
    };
    let (faster, slower) = (count(&compared, Outcome::Faster), count(&compared, Outcome::Slower));
    let (same, open) = (count(&compared, Outcome::NoDifferenceSeen), count(&compared, Outcome::NoInterval));
    let once = count(&compared, Outcome::NotRepeated);
    let counts = [
        (faster, "faster"),
        (slower, "slower"),
        (same, "no difference seen"),
        (once, "apart but not repeated"),
        (open, "without an interval"),
    ];
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

fn count(compared: &[(&PairFinding, &Row, &Comparison)], outcome: Outcome) -> usize {
    compared.iter().filter(|(_, _, comparison)| comparison.outcome == outcome).count()
}

fn nothing(findings: &ComparisonFindings) -> String {
    match findings.refused.first() {
        Some(refusal) => format!("Nothing can be compared. {}.", capital(&refusal.words)),
        None => "Nothing can be compared: the sides have no measure in common.".to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
