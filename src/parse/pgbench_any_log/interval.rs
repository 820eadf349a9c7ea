//! One line of an aggregated log. Columns by version: 9.3 `start n sum sum2 min max`; since 9.4 with a rate
//! `sum_lag sum2_lag min_lag max_lag`, since 9.5 with a latency limit `skipped` too; since 15 always all of them and
//! `retried retries serialization deadlock`, 0 where an option was not given; newer than 18 `other` failures too.
//!
//! What those zeros mean no line tells. So columns of one option that are 0 in every interval are taken for those of an
//! option that was not given, and are absent: a run that was never late loses its zeros, but none gets any it did not
//! measure. A single interval that is not 0 keeps the others' zeros.

use crate::parse::output::{Figure, Line, Output, Row, Unread};
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

/// Sums over the transactions of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sums {
    /// Sum, microseconds.
    pub sum_us: f64,
    /// Sum of squares, microseconds squared.
    pub sum_us2: f64,
    /// Least, microseconds.
    pub min_us: f64,
    /// Greatest, microseconds.
    pub max_us: f64,
}

/// One interval of an aggregated log.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its start, seconds since 1970.
    pub start_s: u64,
    /// Transactions; before version 15 with those that were skipped.
    pub transactions: u64,
    /// Latencies.
    pub latency: Sums,
    /// Lags behind the schedule. None without the columns, and where they are 0 in every interval, as version 15 writes
    /// without a rate; so the following too.
    pub lag: Option<Sums>,
    /// Transactions skipped; none without the column.
    pub skipped: Option<u64>,
    /// Transactions that were retried; none without the column, as in the following.
    pub retried: Option<u64>,
    /// Retries.
    pub retries: Option<u64>,
    /// Transactions failed for lack of a serial order.
    pub serialization_failures: Option<u64>,
    /// Transactions failed by a deadlock.
    pub deadlock_failures: Option<u64>,
    /// Transactions failed otherwise.
    pub other_failures: Option<u64>,
}

/// Reads the words of a line. The error says what was wanted.
pub(super) fn interval(words: &[&str]) -> Result<Interval, &'static str> {
    const YEAR_2001: u64 = 1_000_000_000;
    if !matches!(words.len(), 6 | 10 | 11 | 15 | 16) {
        return Err("6, 10, 11, 15 or 16 columns, as versions of pgbench write");
    }
    if !words.iter().all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err("whole numbers");
    }
    let whole = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let real = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).filter(|value| value.is_finite());
    let sums = |from: usize| {
        let (sum_us, sum_us2, min_us, max_us) = (real(from)?, real(from + 1)?, real(from + 2)?, real(from + 3)?);
        Some(Sums { sum_us, sum_us2, min_us, max_us })
    };
    let start_s = whole(0).filter(|start| (YEAR_2001..YEAR_2001 * 10).contains(start));
    let start_s = start_s.ok_or("the interval's start in seconds since 1970")?;
    let (Some(transactions), Some(latency)) = (whole(1), sums(2)) else { return Err("sums of latencies") };
    let lag = sums(6);
    if ![Some(latency), lag].into_iter().flatten().all(|sums| is_possible(transactions, &sums)) {
        return Err("a sum, a sum of squares, a least and a greatest value that can be of one interval");
    }
    Ok(Interval {
        start_s,
        transactions,
        latency,
        lag,
        skipped: whole(10),
        retried: whole(11),
        retries: whole(12),
        serialization_failures: whole(13),
        deadlock_failures: whole(14),
        other_failures: whole(15),
    })
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
    interval(&texts).ok()?;
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

/// The same for intervals.
fn without_unused(intervals: &mut [Interval]) {
    let unused =
        |is_zero: fn(&Interval) -> bool| intervals.iter().filter(|interval| interval.retried.is_some()).all(is_zero);
    let lag = unused(|it| it.lag.is_none_or(|lag| lag.sum_us == 0.0 && lag.max_us == 0.0));
    let skipped = unused(|it| it.skipped == Some(0));
    let retries = unused(|it| it.retried == Some(0) && it.retries == Some(0));
    let failures = unused(|it| {
        [it.serialization_failures, it.deadlock_failures, it.other_failures].iter().all(|count| count.unwrap_or(0) == 0)
    });
    for interval in intervals.iter_mut().filter(|interval| interval.retried.is_some()) {
        interval.lag = interval.lag.filter(|_| !lag);
        interval.skipped = interval.skipped.filter(|_| !skipped);
        if retries {
            (interval.retried, interval.retries) = (None, None);
        }
        if failures {
            interval.serialization_failures = None;
            interval.deadlock_failures = None;
            interval.other_failures = None;
        }
    }
}

/// Every interval, and the lines that are none.
pub(super) fn all(lines: &[Line<'_>]) -> (Vec<Interval>, Vec<Unread>) {
    let (mut intervals, mut unread) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < lines.len() {
        let (words, taken) = words(lines, at).unwrap_or_default();
        let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        match interval(&texts) {
            Ok(interval) => {
                intervals.push(interval);
                at += taken;
            }
            Err(wanted) => {
                let (line, text) = (lines[at].number, lines[at].text);
                if !text.is_empty() {
                    let text = text.chars().take(200).collect();
                    unread.push(Unread { line, text, wanted: wanted.to_owned() });
                }
                at += 1;
            }
        }
    }
    without_unused(&mut intervals);
    (intervals, unread)
}
