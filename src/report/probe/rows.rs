//! The table of rows.

use super::super::cases::section_title;
use super::super::layout::{ABSENT, takes_tables};
use super::numbers::{amount, bytes, half_width, histogram, rate, span};
use crate::analyse::findings::groups::by_key;
use crate::analyse::probe::findings::{ProbeFindings, RowFinding, WorkPerOperation};
use crate::report::probe::numbers::spoken;
use crate::report::text::{columns, paragraph, printable, width};
use crate::units::{Micros, count, significant};

/// Width of all columns: row, rate, its interval, four latencies, histogram, device work, a blank between them and two
/// in front. Narrower tables omit the histogram and p99.9.
const WIDE: usize = 100;
const LABEL: usize = 26;
const WORK: usize = 14;

/// Renders the table with its legend.
pub(super) fn table(findings: &ProbeFindings) -> String {
    let names = ["ops/s", "±", "p50", "p99", "p99.9", "max"];
    let mut text = if takes_tables() { line("", names, "latency", "device work") } else { String::new() };
    for (family, rows) in by_key(findings.rows.iter().map(|row| (row.spec.family, row))) {
        text.push_str(&format!("{}\n", section_title(family)));
        text.extend(rows.into_iter().map(row_lines));
    }
    text + &legend(findings)
}

fn row_lines(row: &RowFinding) -> String {
    let label = printable(row.spec.label.trim());
    let (mut text, label) =
        if width(&label) > LABEL { (paragraph("  ", &label), String::new()) } else { (String::new(), label) };
    if let Some(why) = &row.unavailable {
        text.push_str(&paragraph(&format!("  {label:<LABEL$} "), &format!("n/a: {why}")));
        return text;
    }
    if row.rate.is_some() || row.latency.is_some() {
        text.push_str(&measured(&label, row));
    } else if row.failure.is_none() {
        text.push_str(&paragraph(&format!("  {label:<LABEL$} "), "not measured"));
    } else {
        text.push_str(&format!("  {label}\n"));
    }
    if let Some(failure) = &row.failure {
        let errno = failure.errno.map_or_else(String::new, |errno| format!(" (errno {errno})"));
        let said = format!(
            "{} failed {} after the start, after {} operations: {}{errno}",
            failure.call,
            Micros(failure.at_us),
            failure.after_operations,
            failure.message
        );
        text.push_str(&paragraph("    FAILED: ", &said));
    }
    if let Some(each_us) = row.segment_us_mean {
        let segments = count(row.segments_made, "new segment");
        let made = format!("{segments}, {} each, not in the rate", Micros(each_us as u64));
        text.push_str(&paragraph("    ", &made));
    }
    if let Some(commits) = row.commits_per_sync {
        text.push_str(&paragraph("    ", &format!("{} commits per sync", significant(commits))));
    }
    text
}

fn measured(label: &str, row: &RowFinding) -> String {
    let latency = row.latency.as_ref();
    let figures = [
        row.rate.as_ref().map(|found| rate(found.per_s)),
        row.rate.as_ref().and_then(|rate| rate.relative_half_width).map(half_width),
        latency.map(|latency| span(latency.p50_ns)),
        latency.and_then(|latency| latency.p99_ns).map(span),
        latency.and_then(|latency| latency.p999_ns).map(span),
        latency.map(|latency| span(latency.max_ns)),
    ];
    let figures = figures.each_ref().map(|figure| figure.as_deref().unwrap_or(ABSENT));
    line(label, figures, &histogram(&row.histogram), &work(row))
}

fn line(label: &str, figures: [&str; 6], histogram: &str, work: &str) -> String {
    let [rate, half, p50, p99, p999, max] = figures;
    if !takes_tables() {
        let label = if label.is_empty() { String::new() } else { format!("  {label}\n") };
        return label
            + &paragraph("    ops/s: ", &format!("{rate} {half}"))
            + &paragraph("    p50, p99, p99.9, max: ", &format!("{p50}, {p99}, {p999}, {max}"))
            + &paragraph("    device work: ", work);
    }
    let line = match columns() >= WIDE {
        true => format!(
            "  {label:<LABEL$} {rate:>8} {half:>6} {p50:>6} {p99:>6} {p999:>6} {max:>6} {histogram:<12} {work:<WORK$}"
        ),
        false => format!("  {label:<LABEL$} {rate:>8} {half:>6} {p50:>6} {p99:>6} {max:>6} {work:<WORK$}"),
    };
    format!("{}\n", line.trim_end())
}

/// The lowest device that counts flushes, or the lowest one.
pub(super) fn shown_device(row: &RowFinding) -> Option<&WorkPerOperation> {
    row.work.iter().rfind(|work| work.flushes_per_op.is_some()).or_else(|| row.work.last())
}

/// Device work per operation: `1.0w 8k 1.0f`.
fn work(row: &RowFinding) -> String {
    let Some(work) = shown_device(row) else { return ABSENT.to_owned() };
    let flushes = match work.flushes_per_op {
        _ if work.fua_presumed => "FUA?".to_owned(),
        Some(flushes) => format!("{}f", amount(flushes)),
        None => "?f".to_owned(),
    };
    let doubt = if work.worthless { "~" } else { "" };
    let text = format!("{doubt}{}w {} {flushes}", amount(work.writes_per_op), bytes(work.bytes_per_op));
    if width(&text) > WORK { text.chars().take(WORK - 1).chain(['…']).collect() } else { text }
}

fn legend(findings: &ProbeFindings) -> String {
    let works: Vec<&WorkPerOperation> = findings.rows.iter().filter_map(shown_device).collect();
    let device = match works.first().map(|work| &work.device) {
        Some(name) => format!("what {name} did for one operation: w writes, bytes (k = KiB), f flushes"),
        None => "no device with counters is visible".to_owned(),
    };
    let fua = if works.iter().any(|work| work.fua_presumed) {
        "; FUA?: no flush, presumably a FUA write, which the kernel does not count"
    } else {
        ""
    };
    let is_doubtful = works.iter().any(|work| work.worthless);
    let doubt = if is_doubtful { "; ~: over 10 % may be other programs' traffic" } else { "" };
    let bounds = [findings.histogram.first(), findings.histogram.last()].map(|ns| spoken(ns.copied().unwrap_or(0)));
    let latency = format!(
        "latency: one character per half decade, from {} or less (left) to {} or more (right); height: log of the number \
         of operations.",
        bounds[0], bounds[1]
    );
    let intervals = match columns() >= WIDE || !takes_tables() {
        true => "± is half the 95 % CI. p99 needs 100 operations, p99.9 needs 1000.",
        false => "± is half the 95 % CI. p99 needs 100 operations. p99.9 and a histogram need 100 columns.",
    };
    let device = format!("device work: {device}{fua}{doubt}.");
    let histogram = Some(latency.as_str()).filter(|_| columns() >= WIDE);
    [Some(intervals), histogram, Some(&device)].into_iter().flatten().map(|text| paragraph("  ", text)).collect()
}
