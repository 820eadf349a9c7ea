//! One line of an aggregated log. Columns by version: 9.3 `start n sum sum2 min max`; since 9.4 with a rate
//! `sum_lag sum2_lag min_lag max_lag`, since 9.5 with a latency limit `skipped` too; since 15 always all of them and
//! `retried retries serialization deadlock`, 0 where an option was not given; newer than 18 `other` failures too.
//!
//! What those zeros mean no line tells. So columns of one option that are 0 in every interval are taken for those of an
//! option that was not given, and are absent: a run that was never late loses its zeros, but none gets any it did not
//! measure. A single interval that is not 0 keeps the others' zeros.

use crate::foreign::read::output::{Figure, Line, Output, Row};
use std::ops::Range;

/// Most columns of any version.
pub(super) const MOST_COLUMNS: usize = 16;

/// Names of the figures in the order of the columns behind the start.
const NAMES: [(&str, &str); MOST_COLUMNS - 1] = [
    ("transactions", "count"),
    ("latency_sum", "us"),
    ("latency_sum_of_squares", "us2"),
    ("latency_min", "us"),
    ("latency_max", "us"),
    ("lag_sum", "us"),
    ("lag_sum_of_squares", "us2"),
    ("lag_min", "us"),
    ("lag_max", "us"),
    ("skipped", "count"),
    ("retried", "count"),
    ("retries", "count"),
    ("serialization_failures", "count"),
    ("deadlock_failures", "count"),
    ("other_failures", "count"),
];

/// Since version 15: the figures that are there by one option, the option, and what they are.
const BY_OPTION: [(Range<usize>, &str, &str); 4] = [
    (5..9, "--rate", "lag"),
    (9..10, "--latency-limit", "skipped"),
    (10..12, "--max-tries", "retries"),
    (12..MOST_COLUMNS - 1, "--failures-detailed", "failures"),
];

/// Fewest figures of a line with the columns of every option.
const OF_EVERY_OPTION: usize = 14;

/// Sums over the transactions of an interval, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sums {
    sum_us: f64,
    sum_us2: f64,
    min_us: f64,
    max_us: f64,
}

/// Whether the words are those of an interval.
pub(super) fn is_interval(words: &[&str]) -> bool {
    const YEAR_2001: u64 = 1_000_000_000;
    if !matches!(words.len(), 6 | 10 | 11 | 15 | MOST_COLUMNS)
        || !words.iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return false;
    }
    let whole = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let real = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).filter(|value| value.is_finite());
    let sums = |from: usize| {
        let (sum_us, sum_us2, min_us, max_us) = (real(from)?, real(from + 1)?, real(from + 2)?, real(from + 3)?);
        Some(Sums { sum_us, sum_us2, min_us, max_us })
    };
    let (Some(start), Some(transactions), Some(latency)) = (whole(0), whole(1), sums(2)) else { return false };
    let possible = [Some(latency), sums(6)].into_iter().flatten().all(|sums| is_possible(transactions, &sums));
    possible && (YEAR_2001..YEAR_2001 * 10).contains(&start)
}

/// Whether sums can be of so many values: those of a line that a page broke, or of another table, nearly never are.
/// Skipped transactions are counted but have no latency, so the mean may lie below the least.
fn is_possible(count: u64, sums: &Sums) -> bool {
    const RELATIVE: f64 = 1e-6;
    let count = count as f64;
    let Sums { sum_us, sum_us2, min_us, max_us } = *sums;
    if count == 0.0 {
        return sum_us == 0.0 && sum_us2 == 0.0;
    }
    // All are printed rounded to whole numbers.
    let mean = sum_us / count;
    let least = mean.max(min_us) * sum_us * (1.0 - RELATIVE) - mean - sum_us - min_us - 1.0;
    let most = sum_us * max_us * (1.0 + RELATIVE) + sum_us + max_us + 1.0;
    min_us <= max_us && mean <= max_us + 1.0 && (least..=most).contains(&sum_us2)
}

/// The words of the interval that begins at `lines[at]`, also where a page broke its line, and how many lines it takes.
fn words<'a>(lines: &[Line<'a>], at: usize) -> Option<(Vec<(u32, &'a str)>, usize)> {
    const MOST_LINES: usize = 4;
    const A_DAY: u64 = 86_400;
    let of = |line: &Line<'a>| -> Vec<(u32, &'a str)> {
        let number = line.number;
        line.text.split_whitespace().take(MOST_COLUMNS + 1).map(move |word| (number, word)).collect()
    };
    let is_numbers =
        |words: &[(u32, &str)]| words.iter().all(|(_, word)| word.bytes().all(|byte| byte.is_ascii_digit()));
    let mut all = of(lines.get(at)?);
    let start: u64 = all.first()?.1.parse().ok()?;
    let mut taken = 1;
    while let Some(next) = lines.get(at + taken).map(of).filter(|_| taken < MOST_LINES) {
        let first: Option<u64> = next.first().and_then(|(_, word)| word.parse().ok());
        let begins = first.is_none_or(|first| first.abs_diff(start) <= A_DAY);
        if begins || !is_numbers(&next) || all.len() + next.len() > MOST_COLUMNS {
            break;
        }
        all.extend(next);
        taken += 1;
    }
    Some((all, taken))
}

/// The row of the interval that begins at `lines[at]`, and how many lines it takes.
pub(super) fn row(lines: &[Line<'_>], at: usize) -> Option<(Row, usize)> {
    let (words, taken) = words(lines, at)?;
    let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
    is_interval(&texts).then_some(())?;
    let mut row = Row { line: lines[at].number, ..Row::default() };
    row.labels = vec![("start_s", texts[0].to_owned())];
    for ((line, text), (name, unit)) in words.iter().skip(1).zip(NAMES) {
        let value = text.parse().unwrap_or(f64::INFINITY);
        row.figures.push(Figure { name: name.to_owned(), unit, value, text: (*text).to_owned(), line: *line });
    }
    row.figures.iter().all(|figure| figure.value.is_finite()).then_some((row, taken))
}

/// Leaves out the figures of options that were evidently not given: version 15 and newer write zeros there.
pub(super) fn leave_out_unused(output: &mut Output) {
    let mut rows: Vec<&mut Row> = output.rows.iter_mut().filter(|row| row.figures.len() >= OF_EVERY_OPTION).collect();
    if rows.is_empty() {
        return;
    }
    let mut left_out = Vec::new();
    // From the last, so that the places of the others stay.
    for (places, option, what) in BY_OPTION.into_iter().rev() {
        let of = |figures: usize| places.start..places.end.min(figures);
        let is_unused = |row: &Row| row.figures[of(row.figures.len())].iter().all(|figure| figure.value == 0.0);
        if rows.iter().all(|row| is_unused(row)) {
            left_out.insert(0, format!("{what} ({option})"));
            rows.iter_mut().for_each(|row| drop(row.figures.drain(of(row.figures.len()))));
        }
    }
    if !left_out.is_empty() {
        let what = left_out.join(", ");
        output.notes.push(format!("left out, since they are 0 in every interval, as without the option: {what}"));
    }
}
