//! The answer in two lines: the row that matters most, and how much could be compared.

use super::findings::{Comparison, ComparisonFindings, MeasureRow, PairFinding, RatioOutcome};
use super::single;
use crate::analyse::probe::caveats::WAITED;
use crate::units::{count, significant};

/// Rows that determine a server's performance, most important first.
const TELLING: [(&str, &str); 4] = [
    ("pgbench", "/tps"),
    ("wal", "/fdatasync"),
    ("pg_test_fsync/one write", "/fdatasync"),
    ("pg_test_fsync/one write", "/fsync"),
];

/// The answer; ignores `findings.answer`.
pub(super) fn answer(findings: &ComparisonFindings) -> String {
    let rows = findings.pairs.iter().flat_map(|pair| pair.rows.iter().map(move |row| (pair, row)));
    let compared: Vec<(&PairFinding, &MeasureRow, &Comparison)> =
        rows.filter_map(|(pair, row)| Some((pair, row, row.comparison.as_ref()?))).collect();
    // The user asked to compare one argument with another.
    let is_crossing = |pair: &PairFinding| findings.sides[pair.side].argument != findings.sides[pair.against].argument;
    let crossing: Vec<_> = compared.iter().filter(|(pair, ..)| is_crossing(pair)).copied().collect();
    let asked = if crossing.is_empty() { &compared } else { &crossing };
    let telling = TELLING
        .iter()
        .find_map(|(family, end)| asked.iter().find(|(_, row, _)| row.family == *family && row.measure.ends_with(end)));
    let Some((pair, row, comparison)) = telling.or(asked.first()) else { return nothing(findings) };
    format!("{}\n{}", first_line(findings, pair, row, comparison), counted(&compared))
}

/// Comparison of the most important row, in the direction of its column, and how certain it is.
fn first_line(findings: &ComparisonFindings, pair: &PairFinding, row: &MeasureRow, comparison: &Comparison) -> String {
    let sides = [pair.side, pair.against].map(|place| &findings.sides[place]);
    let ends = comparison.low.zip(comparison.high);
    let [side, reference] = sides.map(|side| &side.mark);
    let less = if row.more_is_better { "" } else { ", lower is better" };
    let what = format!("{side} is {}× {reference} at {}{less}", significant(comparison.ratio), spoken(&row.measure));
    let once = comparison.method.is_of_single_runs();
    // The known scatter between runs is that of rates.
    let points = row.more_is_better && lie_apart(row) && single::points_a_way(comparison.ratio);
    let points = points && !sides.iter().flat_map(|side| &side.caveats).any(|caveat| caveat.contains(WAITED));
    let runs = match (row.value.trials > 1, row.reference.trials > 1) {
        (false, false) => "one run each".to_owned(),
        (repeated, _) => format!("one run of {}", sides[usize::from(repeated)].mark),
    };
    let sure = match ends {
        _ if once && points => format!("{runs}: direction is clear, size is not"),
        _ if once => format!("{runs}: neither size nor direction is certain"),
        Some((low, high)) => {
            let says = if comparison.outcome == RatioOutcome::Undecided { "undecided, " } else { "" };
            format!("{says}95 % interval {} to {}", significant(low), significant(high))
        }
        None => comparison.how.clone(),
    };
    format!("{what}; {sure}")
}

/// A measure's name within a sentence: `fsync, one write, 8 kB` for `pg_test_fsync/one write/8 kB/fsync`.
fn spoken(measure: &str) -> String {
    let Some((rest, item)) = measure.rsplit_once('/') else { return measure.to_owned() };
    let conditions = ["pg_test_fsync/", "pgbench/"].iter().find_map(|tool| rest.strip_prefix(tool)).unwrap_or(rest);
    format!("{item}, {}", conditions.replace('/', ", "))
}

/// Number of compared figures, by outcome.
fn counted(compared: &[(&PairFinding, &MeasureRow, &Comparison)]) -> String {
    let counts = [
        (RatioOutcome::Faster, "faster"),
        (RatioOutcome::Slower, "slower"),
        (RatioOutcome::Lower, "lower"),
        (RatioOutcome::Higher, "higher"),
        (RatioOutcome::Undecided, "undecided"),
        (RatioOutcome::NotRepeated, "different but not repeated"),
        (RatioOutcome::NoInterval, "without an interval"),
    ];
    let counts = counts.into_iter().filter_map(|(outcome, word)| {
        let number = compared.iter().filter(|it| it.2.outcome == outcome).count();
        (number > 0).then(|| format!("{number} {word}"))
    });
    let counts: Vec<String> = counts.collect();
    format!("{} compared: {}", count(compared.len(), "figure"), counts.join(", "))
}

/// True if neither figure lies within the known scatter of the other.
fn lie_apart(row: &MeasureRow) -> bool {
    let [one, other] = [row.value, row.reference].map(|it| (it.low.unwrap_or(it.value), it.high.unwrap_or(it.value)));
    one.1 < other.0 || other.1 < one.0
}

fn nothing(findings: &ComparisonFindings) -> String {
    match findings.refused.first() {
        Some(refusal) => format!("Nothing can be compared. {}.", capital(&refusal.words)),
        None => "Nothing can be compared: the sides have no measure in common.".to_owned(),
    }
}

/// Capitalises the first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
