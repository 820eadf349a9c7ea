//! Words and number formats shared by all renderers.

use crate::analyse::findings::{Caution, DurabilityClass, Estimate, Findings, Fits, PairOutcome, RunSummary};
pub(super) use crate::analyse::words::digits::estimate_text;
use crate::analyse::words::digits::{last_digit, rounded};
use crate::report::text::{code, is_invisible, replaced, width};
use crate::units::{Micros, significant};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Title of a class, its key in `--json` and the style sheet, and its meaning.
fn class_texts(class: DurabilityClass) -> [&'static str; 3] {
    use DurabilityClass::{DeclaredStable, Delayed, Flushed, MayTear, NotApplicable, Unknown, Volatile};
    match class {
        NotApplicable => ["Not applicable", "not_applicable", "reads only, no commit to lose"],
        Flushed => ["Flushed", "flushed", "flushes reach every visible level"],
        DeclaredStable => {
            let meaning = "the device claims to need no flushes; this cannot be verified";
            ["Declared stable", "declared_stable", meaning]
        }
        MayTear => ["May tear", "may_tear", "a page torn by a power cut cannot be repaired"],
        Delayed => ["Delayed", "delayed", "loses the last commits on power loss"],
        Volatile => ["Volatile", "volatile", "may lose everything on power loss"],
        Unknown => ["Unknown", "unknown", "durability cannot be determined from the recorded facts"],
    }
}

/// ", 11 of them in block 3": where most of several disturbed trials lie; empty without two in one block.
pub(super) fn most_disturbed(run: &RunSummary) -> String {
    let most = run.disturbed_by_block.iter().max_by_key(|(_, trials)| **trials).filter(|(_, trials)| **trials > 1);
    most.map_or_else(String::new, |(block, trials)| match *trials == run.trials_disturbed {
        true => format!(", all of them in block {block}"),
        false => format!(", {trials} of them in block {block}"),
    })
}

/// Title of a class, one word.
pub(super) fn class_title(class: DurabilityClass) -> &'static str {
    class_texts(class)[0]
}

/// Key of a class in `--json` and the style sheet.
pub(super) fn class_key(class: DurabilityClass) -> &'static str {
    class_texts(class)[1]
}

/// Meaning of a class, a clause: its cost.
pub(super) fn class_meaning(class: DurabilityClass) -> &'static str {
    class_texts(class)[2]
}

/// Memory in which the data fit, in words.
pub(super) fn fits_title(fits: Fits) -> &'static str {
    match fits {
        Fits::SharedBuffers => "fit into shared_buffers",
        Fits::Memory => "fit into RAM",
        Fits::Neither => "larger than RAM",
    }
}

/// Range of some trials, with the digits of their mean.
pub(super) fn range_text(least: f64, most: f64, mean: &Estimate) -> String {
    let half = mean.low.zip(mean.high).map_or(0.0, |(low, high)| (high - low) / 2.0);
    let last = last_digit(mean.value, half);
    let (least, most) = (rounded(least, last), rounded(most, last));
    if least == most { least } else { format!("{least}–{most}") }
}

/// A comparison in words: the ratio of cases that differ, or the outcome; and the interval.
pub(super) fn comparison_text(compared: &Estimate, outcome: PairOutcome) -> (String, String) {
    let (ratio, interval) = estimate_text(compared);
    if compared.is_beyond_use() && !outcome.differs() {
        return (outcome.words(), interval);
    }
    match outcome {
        PairOutcome::Differs => (format!("{ratio}×"), interval),
        outcome => (outcome.words(), ratio_words(compared)),
    }
}

/// "1.27× (1.22–1.32)". Of a single trial nothing has an interval: that is said once, not in each row.
pub(super) fn ratio_words(ratio: &Estimate) -> String {
    let (value, interval) = estimate_text(ratio);
    if ratio.trials == 1 { format!("{value}×") } else { format!("{value}× ({interval})") }
}

/// A CSV field; empty for what is missing.
pub(super) fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The CSV fields of an estimate: the value and the ends of its interval.
pub(super) fn fields(estimate: Option<&Estimate>) -> Vec<String> {
    estimate.map_or([None; 3], |estimate| [Some(estimate.value), estimate.low, estimate.high]).map(optional).to_vec()
}

/// A share of 0 to 1 as per cent: `71 %`, `0.4 %`.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value != 0.0 && value.abs() < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// The interval of a share: `36–42 %`.
pub(super) fn percent_ends(share: &Estimate) -> Option<String> {
    share.low.zip(share.high).map(|(low, high)| format!("{}–{}", percent(low).trim_end_matches(" %"), percent(high)))
}

/// A latency in milliseconds, for a column whose heading has the unit. Latencies have a resolution of one microsecond:
/// a shorter one is shown as less than that, not as zero.
pub(super) fn millis(us: u64) -> String {
    mean_millis(us as f64)
}

/// The same for a mean latency.
pub(super) fn mean_millis(us: f64) -> String {
    if us == 0.0 { "<0.001".to_owned() } else { significant(us / 1e3) }
}

/// Microseconds to milliseconds.
pub(super) fn in_ms(us: &Estimate) -> Estimate {
    us.map(|us| us / 1e3)
}

/// "at least" or "at most" before what a log of a share of the operations bounds.
pub(super) fn bounded(word: &str, is_sampled: bool, figure: String) -> String {
    if is_sampled { format!("{word} {figure}") } else { figure }
}

/// A single latency with its unit.
pub(super) fn latency(us: u64) -> String {
    if us == 0 { "under 1 us".to_owned() } else { Micros(us).to_string() }
}

/// Consecutive numbers as ranges: `1–3, 5`.
pub(super) fn ranges(numbers: &[u32]) -> String {
    let sorted: Vec<u32> = numbers.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let parts = sorted.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, second] => format!("{first}, {second}"),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    });
    let parts: Vec<String> = parts.collect();
    parts.join(", ")
}

/// The noun with its numbers: `trial 3`, `blocks 1–3, 5`.
pub(super) fn numbered(noun: &str, numbers: &[u32]) -> String {
    format!("{noun}{} {}", if numbers.len() == 1 { "" } else { "s" }, ranges(numbers))
}

/// A time in RFC 3339 in readable form: `2026-03-02 09:14 UTC`; unchanged if it is invalid.
pub(super) fn moment(rfc3339: &str) -> String {
    let Ok(at) = rfc3339.parse::<jiff::Timestamp>() else { return rfc3339.to_owned() };
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// A time in RFC 3339 as seconds since 1970; `None` if it is invalid.
pub(super) fn seconds(rfc3339: &str) -> Option<f64> {
    let at: jiff::Timestamp = rfc3339.parse().ok()?;
    Some(at.as_millisecond() as f64 / 1e3)
}

/// Versions of the servers that ran, each once and without the package's name: `18.6 and 15.18`; `None` if none ran.
pub(super) fn server_versions(findings: &Findings) -> Option<String> {
    let versions = findings.trials.iter().filter_map(|trial| trial.server.as_ref()?.version.split(' ').next());
    let versions: Vec<&str> = versions.collect::<BTreeSet<&str>>().into_iter().rev().collect();
    (!versions.is_empty()).then(|| versions.join(" and "))
}

/// Longest list of names, characters; longer ones are abbreviated.
const NAMES_READ: usize = 200;

/// Cases that a caution concerns: their scope, or their names, or their number and one name if the list is long; empty
/// for the whole run.
pub(super) fn caution_cases(caution: &Caution, labels: &BTreeMap<String, String>) -> String {
    if let Some(scope) = &caution.scope {
        return scope.clone();
    }
    let names: Vec<&str> = caution.cases.iter().map(|id| labels.get(id).unwrap_or(id).as_str()).collect();
    match names.as_slice() {
        [first, _, ..] if names.iter().map(|name| width(name) + 2).sum::<usize>() > NAMES_READ => {
            format!("{} of {} cases, such as {first}", names.len(), labels.len())
        }
        _ => names.join("; "),
    }
}

/// True for a character that controls a terminal, or hides or reorders text; false for line ends and tabs.
pub(super) fn is_hidden(c: char) -> bool {
    is_invisible(c) || c.is_control() && !matches!(c, '\n' | '\r' | '\t')
}

/// Text for a page or a CSV: characters that [`is_hidden`] reports become their code, as on a terminal.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    replaced(text, |c| is_hidden(c).then(|| code(c))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_below_the_histogram_resolution_is_not_called_zero() {
        assert_eq!([millis(0), millis(1), millis(1499)], ["<0.001", "0.001", "1.5"]);
        assert_eq!([mean_millis(0.0), mean_millis(0.25)], ["<0.001", "0.00025"]);
        assert_eq!([latency(0), latency(950)], ["under 1 us", "950 us"]);
    }

    #[test]
    fn a_caution_names_its_cases_or_counts_too_many() {
        let labels: BTreeMap<String, String> =
            (0..9).map(|n| (n.to_string(), format!("{n} {}", "x".repeat(60)))).collect();
        let caution = |cases: &[&str]| Caution {
            text: String::new(),
            cases: cases.iter().map(|id| (*id).to_owned()).collect(),
            scope: None,
        };
        assert!(caution_cases(&caution(&["0", "1", "2"]), &labels).contains("; 2 xx"));
        let many = caution_cases(&caution(&["0", "1", "2", "3"]), &labels);
        assert!(many.starts_with("4 of 9 cases, such as 0 xx") && many.len() < 100, "{many}");
    }

    #[test]
    fn an_undecided_ratio_beyond_a_factor_of_ten_has_no_figures() {
        let wide = Estimate::of(1.5, Some((0.01, 200.0)), 3);
        let words = |outcome| comparison_text(&wide, outcome);
        let beyond = "interval reaches beyond 10×".to_owned();
        assert_eq!(words(PairOutcome::Undecided), ("undecided".to_owned(), beyond));
        let useful = Estimate::of(1.5, Some((0.9, 2.5)), 3);
        assert_eq!(comparison_text(&useful, PairOutcome::Undecided).1, "1.50× (0.90–2.50)");
    }

    #[test]
    fn trials_in_a_row_read_as_a_range() {
        assert_eq!(ranges(&[3, 1, 2, 5]), "1–3, 5");
        assert_eq!(ranges(&[1, 2]), "1, 2");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn timestamps_print_without_seconds_and_odd_ones_stay_unchanged() {
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
