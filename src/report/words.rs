//! The words and number formats that all renderers share.

use super::terminal::is_invisible;
use crate::analyse::findings::{BaselineComparison, Caution, DurabilityClass, Estimate, Findings, Fits};
use crate::units::{Micros, beyond, grouped, significant};
use std::collections::{BTreeMap, BTreeSet};

/// A class in one word, as headings have it.
pub(super) fn class_title(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::Flushed => "Flushed",
        DurabilityClass::DeclaredStable => "Declared stable",
        DurabilityClass::MayTear => "May tear",
        DurabilityClass::Delayed => "Delayed",
        DurabilityClass::Volatile => "Volatile",
        DurabilityClass::Unknown => "Unknown",
    }
}

/// What a class costs, in a clause.
pub(super) fn class_meaning(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::Flushed => "flushes pass every level that can be seen",
        DurabilityClass::DeclaredStable => "the device says that it needs no flushes; its word is all there is",
        DurabilityClass::MayTear => "a page torn by a power cut cannot be repaired",
        DurabilityClass::Delayed => "loses the last commits at a power cut",
        DurabilityClass::Volatile => "may lose everything at a power cut",
        DurabilityClass::Unknown => "the facts do not show what a power cut costs",
    }
}

/// A class as `--json` and the style sheet have it.
pub(super) fn class_key(class: DurabilityClass) -> &'static str {
    match class {
        DurabilityClass::Flushed => "flushed",
        DurabilityClass::DeclaredStable => "declared_stable",
        DurabilityClass::MayTear => "may_tear",
        DurabilityClass::Delayed => "delayed",
        DurabilityClass::Volatile => "volatile",
        DurabilityClass::Unknown => "unknown",
    }
}

/// Where the data fit, in words.
pub(super) fn fits_title(fits: Fits) -> &'static str {
    match fits {
        Fits::SharedBuffers => "fit into shared_buffers",
        Fits::Memory => "fit into RAM",
        Fits::Neither => "larger than RAM",
    }
}

/// A figure with its interval, no more digits than the interval carries: the figure, and `1180–1290` or why there is
/// none.
pub(super) fn estimate_text(estimate: &Estimate) -> (String, String) {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        let trials = if estimate.trials == 1 { "1 trial".to_owned() } else { format!("{} trials", estimate.trials) };
        return (rounded(estimate.value, last_digit(estimate.value, 0.0)), format!("no interval from {trials}"));
    };
    let last = last_digit(estimate.value, (high - low) / 2.0);
    (rounded(estimate.value, last), format!("{}–{}", rounded(low, last), rounded(high, last)))
}

/// From the least to the most of some trials, with the digits of their mean.
pub(super) fn range_text(least: f64, most: f64, mean: &Estimate) -> String {
    let half = mean.low.zip(mean.high).map_or(0.0, |(low, high)| (high - low) / 2.0);
    let last = last_digit(mean.value, half);
    let (least, most) = (rounded(least, last), rounded(most, last));
    if least == most { least } else { format!("{least}–{most}") }
}

/// Power of ten of the last digit worth showing, by the half width of the interval as the Particle Data Group rounds:
/// two of its digits while they are below 3.55, else one. Between 3 and 5 digits of the figure, and whole numbers from
/// 100 to 9999.
fn last_digit(value: f64, half_width: f64) -> i32 {
    let power = |x: f64| if x > 0.0 && x.is_finite() { x.log10().floor() as i32 } else { 0 };
    let first = power(value.abs());
    if matches!(first, 2 | 3) {
        return 0;
    }
    if half_width <= 0.0 {
        return first - 2;
    }
    let leading = half_width / 10f64.powi(power(half_width));
    let by_width = if leading < 3.55 { power(half_width) - 1 } else { power(half_width) };
    by_width.clamp(first - 4, first - 2)
}

/// `value` rounded to the digit at 10^`last`, thousands apart.
fn rounded(value: f64, last: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if last < 0 {
        return format!("{value:.*}", last.unsigned_abs() as usize);
    }
    let step = 10f64.powi(last);
    let whole = (value / step).round() * step;
    let sign = if whole < 0.0 { "-" } else { "" };
    format!("{sign}{}", unbroken(&grouped(whole.abs() as u64)))
}

/// The same with blanks that no line ends at.
fn unbroken(number: &str) -> String {
    number.replace(' ', "\u{a0}")
}

/// A comparison in words: the ratio or "no difference seen", and its interval with the difference that would have shown.
pub(super) fn comparison_text(comparison: &BaselineComparison) -> (String, String) {
    let (ratio, interval) = estimate_text(&comparison.ratio);
    if comparison.no_difference_seen {
        let shown = comparison.would_have_shown.map(|ratio| format!("; beyond {} would have shown", beyond(ratio)));
        ("no difference seen".to_owned(), format!("{ratio}× ({interval}){}", shown.unwrap_or_default()))
    } else {
        (format!("{ratio}×"), interval)
    }
}

/// A share of 0 to 1 as per cent: `71 %`, `0.4 %`.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// A latency in milliseconds for a column whose heading has the unit. Latencies are counted in whole microseconds: what
/// took less than one is known to have taken less, not to have taken none.
pub(super) fn millis(us: u64) -> String {
    mean_millis(us as f64)
}

/// A mean latency likewise.
pub(super) fn mean_millis(us: f64) -> String {
    if us == 0.0 { "<0.001".to_owned() } else { significant(us / 1e3) }
}

/// A single latency with its unit.
pub(super) fn latency(us: u64) -> String {
    if us == 0 { "under 1 us".to_owned() } else { Micros(us).to_string() }
}

/// Numbers in a row as ranges: `1–3, 5`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let sorted: Vec<u32> = numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let parts: Vec<String> = sorted
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, second] => format!("{first}, {second}"),
            [first, .., last] => format!("{first}–{last}"),
            [] => String::new(),
        })
        .collect();
    parts.join(", ")
}

/// A moment in RFC 3339 as people read it: `2026-03-02 09:14 UTC`; the text itself where it is no such moment.
pub(super) fn moment(rfc3339: &str) -> String {
    let Ok(at) = rfc3339.parse::<jiff::Timestamp>() else { return rfc3339.to_owned() };
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Versions of the servers that ran, each once and without the name of the package: `18.6 and 15.18`; `None` where none
/// ran.
pub(super) fn server_versions(findings: &Findings) -> Option<String> {
    let versions = findings.trials.iter().filter_map(|trial| trial.server.as_ref()?.version.split(' ').next());
    let versions: Vec<&str> = versions.collect::<BTreeSet<&str>>().into_iter().rev().collect();
    (!versions.is_empty()).then(|| versions.join(" and "))
}

/// What to call each case where all of them stand side by side: the axes in which they differ; the id where that does
/// not tell two apart.
pub(super) fn case_labels(findings: &Findings) -> BTreeMap<String, String> {
    let differing = differing_axes(findings);
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for case in &findings.cases {
        let parts: Vec<String> =
            differing.iter().filter_map(|axis| case.axes.get(axis).map(|value| axis_text(axis, value))).collect();
        let label = if parts.is_empty() { case.id.clone() } else { parts.join(", ") };
        labels.insert(case.id.clone(), label);
    }
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for label in labels.values() {
        *seen.entry(label.clone()).or_default() += 1;
    }
    for (id, label) in &mut labels {
        if seen.get(label).copied().unwrap_or(0) > 1 {
            label.clone_from(id);
        }
    }
    labels
}

/// Which cases a caution concerns: what they are all of, else their names; empty for the run as a whole.
pub(super) fn caution_cases(caution: &Caution, labels: &BTreeMap<String, String>) -> String {
    let name = |id: &String| labels.get(id).unwrap_or(id).clone();
    let names = || caution.cases.iter().map(name).collect::<Vec<_>>().join("; ");
    caution.scope.clone().unwrap_or_else(names)
}

/// Axes with more than one value over the cases (an axis that a case lacks counts as a value): stack first, then
/// workload, then the others by name.
fn differing_axes(findings: &Findings) -> Vec<String> {
    let names: BTreeSet<&String> = findings.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut differing: Vec<String> = names
        .into_iter()
        .filter(|name| {
            let values: BTreeSet<Option<&String>> = findings.cases.iter().map(|c| c.axes.get(*name)).collect();
            values.len() > 1
        })
        .cloned()
        .collect();
    differing.sort_by_key(|name| match name.as_str() {
        "stack" => 0,
        "workload" => 1,
        _ => 2,
    });
    differing
}

/// One axis with its value: `xfs` for stacks and workloads, `clients 16` for others.
fn axis_text(axis: &str, value: &str) -> String {
    if matches!(axis, "stack" | "workload") { value.to_owned() } else { format!("{axis} {value}") }
}

/// Text for a page: characters that hide or reorder what is around them become their code, as on a terminal.
pub(super) fn visible(text: &str) -> String {
    if !text.contains(is_invisible) {
        return text.to_owned();
    }
    let shown = |c: char| if is_invisible(c) { format!("{{U+{:04X}}}", c as u32) } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Writes a value into a page: escaped, and [`visible`] unless it is markup of our own.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_visible(
    out: &mut minijinja::Output<'_>,
    state: &minijinja::State<'_, '_>,
    value: &minijinja::Value,
) -> Result<(), minijinja::Error> {
    match value.as_str().filter(|text| !value.is_safe() && text.contains(is_invisible)) {
        Some(text) => minijinja::escape_formatter(out, state, &minijinja::Value::from(visible(text))),
        None => minijinja::escape_formatter(out, state, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low: Some(low), high: Some(high), trials: 3 }
    }

    #[test]
    fn a_figure_shows_no_more_digits_than_its_interval_carries() {
        let shown = |e: Estimate| {
            let (value, interval) = estimate_text(&e);
            format!("{value} ({interval})")
        };
        assert_eq!(shown(estimate(1234.56, 1180.2, 1290.7)), "1235 (1180–1291)");
        assert_eq!(shown(estimate(212.34, 205.9, 218.8)), "212 (206–219)");
        assert_eq!(shown(estimate(12_345.6, 12_344.0, 12_347.0)), "12\u{a0}346 (12\u{a0}344–12\u{a0}347)");
        assert_eq!(shown(estimate(1.017, 0.973, 1.061)), "1.02 (0.97–1.06)");
        assert_eq!(shown(estimate(1.017, 1.007, 1.027)), "1.017 (1.007–1.027)");
        assert_eq!(shown(estimate(402_123.0, 394_000.0, 410_200.0)), "402\u{a0}000 (394\u{a0}000–410\u{a0}000)");
        assert_eq!(shown(estimate(0.0123, 0.0119, 0.0127)), "0.0123 (0.0119–0.0127)");
        assert_eq!(shown(estimate(0.0, 0.0, 0.0)), "0.00 (0.00–0.00)");
    }

    #[test]
    fn a_figure_without_interval_says_so() {
        let one = Estimate { value: 812.4, low: None, high: None, trials: 1 };
        assert_eq!(estimate_text(&one), ("812".to_owned(), "no interval from 1 trial".to_owned()));
    }

    #[test]
    fn a_latency_below_the_unit_of_its_histogram_is_not_called_none() {
        assert_eq!([millis(0), millis(1), millis(1499)], ["<0.001", "0.001", "1.5"]);
        assert_eq!([mean_millis(0.0), mean_millis(0.25)], ["<0.001", "0.00025"]);
        assert_eq!([latency(0), latency(950)], ["under 1 us", "950 us"]);
    }

    #[test]
    fn trials_in_a_row_read_as_a_range() {
        assert_eq!(ranges(&[3, 1, 2, 5]), "1–3, 5");
        assert_eq!(ranges(&[1, 2]), "1, 2");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn moments_read_without_seconds_and_strange_ones_stay_as_they_are() {
        assert_eq!(moment("2026-03-02T09:14:33.5+00:00"), "2026-03-02 09:14 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }

    #[test]
    fn shares_read_as_per_cent() {
        assert_eq!(percent(0.714), "71 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.0), "0 %");
    }
}
