//! The answer in six lines: speed of PostgreSQL's own WAL writes here, its credibility, the recommended setting, its
//! rank among devices.

use super::numbers::{half_width, rate, spoken};
use super::sections::title;
use crate::analyse::findings::CredibilityKind;
use crate::analyse::probe::findings::{ProbeFindings, RowFinding, StandingEntry};
use crate::analyse::probe::requirements::{Compliance, RequirementFinding};
use crate::report::text::{paragraph, printable};
use crate::units::Micros;

/// Renders the six lines; a device or folder with a long name may need more.
pub(super) fn head(findings: &ProbeFindings) -> String {
    let row = findings.answer_row();
    let failed = findings.credibility.headline.clone().map(|headline| ("FAILED", headline));
    let answers = [
        ("WAL writes", rate_words(row)),
        ("Latency", latency_words(row)),
        ("Credibility", credibility_words(findings)),
        ("Recommendation", recommendation(findings)),
        ("Published", place(findings)),
        ("Measured", measured(findings)),
    ];
    failed.into_iter().chain(answers).map(|(title, text)| paragraph(&format!("{title:<16}"), &text)).collect()
}

fn rate_words(row: Option<&RowFinding>) -> String {
    let found = row.and_then(|row| row.rate.as_ref());
    let Some(found) = found else { return "not measured".to_owned() };
    let width = found.relative_half_width.map_or_else(String::new, |half| format!(" {}", half_width(half)));
    format!("{}/s{width} by one backend (wal_sync_method = fdatasync)", rate(found.per_s))
}

fn latency_words(row: Option<&RowFinding>) -> String {
    let Some(latency) = row.and_then(|row| row.latency) else { return "not measured".to_owned() };
    let p99 = latency.p99_ns.map_or_else(String::new, |p99| format!("p99 {}, ", spoken(p99)));
    format!("{p99}median {}, maximum {}", spoken(latency.p50_ns), spoken(latency.max_ns))
}

fn credibility_words(findings: &ProbeFindings) -> String {
    let credibility = &findings.credibility;
    let mut words = title(credibility.kind).to_owned();
    if credibility.kind != CredibilityKind::Flushed {
        return words;
    }
    if credibility.rules.iter().any(|rule| rule.name == "fast_flush") {
        words.push_str("; fast: see below");
    } else if !credibility.sight_ends.is_empty() {
        words.push_str("; host not visible");
    }
    words
}

fn recommendation(findings: &ProbeFindings) -> String {
    let found = &findings.recommendation;
    let Some(line) = &found.line else { return "none, see below".to_owned() };
    let mut defaults = findings.server_equals.iter().filter(|row| row.default);
    let is_default = defaults.any(|row| Some(&row.wal_sync_method) == found.wal_sync_method.as_ref());
    let default = if is_default { " (the default)" } else { "" };
    format!("{line}{default}, PostgreSQL {}", findings.server_major)
}

/// Rank of the folder, with the next faster device. What is in memory is ranked with others that are.
fn place(findings: &ProbeFindings) -> String {
    let in_memory = findings.credibility.kind == CredibilityKind::Memory;
    let entries = findings.standing.entries.iter().filter(|entry| in_memory || entry.class != "memory");
    let entries: Vec<&StandingEntry> = entries.collect();
    let Some(here) = entries.iter().position(|entry| entry.here) else { return "not compared".to_owned() };
    // Published figures are for single writes, not for the WAL writes of the first line.
    let own = rate(entries[here].fdatasync_per_s);
    let nth = format!("{} of {}, {own} fdatasync/s", ordinal(here + 1), entries.len());
    match here.checked_sub(1).and_then(|above| entries.get(above)) {
        Some(above) => {
            let name = above.device.split(',').next().unwrap_or_default();
            format!("{nth}; faster: {name}")
        }
        None => nth,
    }
}

fn ordinal(n: usize) -> String {
    let suffix = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{suffix}")
}

fn measured(findings: &ProbeFindings) -> String {
    let place = &findings.place;
    let on = place.mount.as_ref().map_or_else(String::new, |mount| format!(" on {}", mount.fstype));
    let devices: Vec<&str> = place.devices.iter().map(|device| device.name.as_str()).collect();
    let over = if devices.is_empty() { String::new() } else { format!(", {}", devices.join(", ")) };
    format!("{}{on}{over}, {}", place.folder, Micros(findings.elapsed_us))
}

/// Requirements, one line each.
pub(super) fn requirements(all: &[RequirementFinding]) -> String {
    let lines: String = all.iter().map(requirement).collect();
    if lines.is_empty() { lines } else { format!("Requirements\n{lines}\n") }
}

/// One requirement: `pass  rate=1000  5 960 per second (95 % CI 5 800–6 120)`.
pub fn requirement(one: &RequirementFinding) -> String {
    let outcome = match one.outcome {
        Compliance::Pass => "pass",
        Compliance::Fail => "FAIL",
        Compliance::Undecided => "UNDECIDED",
    };
    paragraph(&format!("  {outcome:<9}  {:<12}  ", printable(&one.requirement)), &one.found)
}
