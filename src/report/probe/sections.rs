//! Sections after the table: devices, growth, stalls, credibility, recommendation, rank among devices, caveats.

use crate::analyse::compare::answer::capital;
use crate::analyse::findings::CredibilityKind;
use crate::analyse::probe::findings::{
    Family, FiredRule, GrowthFinding, IdleRates, ProbeFindings, RowFinding, StandingEntry,
};
use crate::report::probe::numbers::{rate, span, spoken};
use crate::report::probe::rows::shown_device;
use crate::report::text::{paragraph, printable, width};
use crate::units::{Bytes, significant};
use std::collections::BTreeSet;

/// Most stalls listed.
const MOST_STALLS: usize = 10;
/// Width of a device's name.
const DEVICE_NAME: usize = 31;

/// A credibility in words.
pub(super) fn title(kind: CredibilityKind) -> &'static str {
    match kind {
        CredibilityKind::Memory => "in memory",
        CredibilityKind::NoFlushSeen => "no flush seen",
        CredibilityKind::Flushed => "flushes reach every visible level",
        CredibilityKind::DeclaredStable => "declared stable",
        CredibilityKind::Implausible => "implausible",
        CredibilityKind::Unexplained => "unexplained",
        CredibilityKind::Unknown => "unknown",
    }
}

/// Work of the devices for the most relevant rows and while idle, and growth of the sync.
pub(super) fn devices(findings: &ProbeFindings) -> String {
    let credibility = &findings.credibility;
    let telling = findings.rows.iter().filter(|row| is_telling(findings, row)).filter_map(|row| {
        let work = shown_device(row)?;
        Some(format!("{} = {} at {}", row.spec.label.trim(), work.words, work.device))
    });
    let growth: Vec<String> = findings.growth.iter().map(growth_words).collect();
    let growth = (!growth.is_empty()).then(|| format!("A sync after {}", growth.join("; after ")));
    let seen = credibility.levels.iter().chain(&credibility.sight_ends).cloned().chain(telling);
    "\nWhat the device did\n".to_owned() + &indented(seen.chain(findings.idle.iter().map(idle_words)).chain(growth))
}

fn indented(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| paragraph("  ", &text)).collect()
}

/// A bulleted line each.
fn listed(texts: impl Iterator<Item = String>) -> String {
    texts.map(|text| paragraph("  - ", &text)).collect()
}

/// True for a row that equals a server's method; its device work is described in full.
fn is_telling(findings: &ProbeFindings, row: &RowFinding) -> bool {
    findings.server_equals.iter().any(|server| server.row_id == row.spec.id)
}

fn idle_words(idle: &IdleRates) -> String {
    let flushes =
        idle.flushes_per_s.map_or_else(String::new, |flushes| format!(" and {} flushes", significant(flushes)));
    format!("{} while the probe was idle: {} writes{flushes} per second", idle.device, significant(idle.writes_per_s))
}

fn growth_words(growth: &GrowthFinding) -> String {
    // A sync that writes nothing has no speed.
    let moved = growth.written_bytes >= 1 << 20 && growth.reached_device.is_some();
    let per_s = growth.sync_bytes_per_s.filter(|_| moved);
    let per_s = per_s.map_or_else(String::new, |per_s| format!(" ({} GB/s)", significant(per_s / 1e9)));
    let written =
        if growth.written_bytes == 0 { "nothing".to_owned() } else { Bytes(growth.written_bytes).to_string() };
    format!("{written} took {}{per_s}", spoken(growth.sync_ns))
}

/// The slowest stalls, with their times.
pub(super) fn stalls(findings: &ProbeFindings) -> String {
    let all = findings.rows.iter().flat_map(|row| row.stalls.iter().map(move |stall| (row, stall)));
    let mut all: Vec<(&RowFinding, u64, u64)> = all.map(|(row, stall)| (row, stall.at_us, stall.latency_ns)).collect();
    all.sort_by_key(|(_, _, latency)| std::cmp::Reverse(*latency));
    // Writers that wait for the same sync stall together; only one is listed.
    let mut shown = BTreeSet::new();
    all.retain(|(row, at_us, _)| shown.insert((row.spec.id.as_str(), at_us / 1_000_000)));
    let total = findings.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.stalls_in_all));
    let mut text = "\nStalls\n".to_owned();
    if total == 0 {
        return text + &paragraph("  ", &format!("None: {}.", findings.stall_rule));
    }
    for (row, at_us, latency) in all.iter().take(MOST_STALLS) {
        let label = row.spec.label.trim();
        let mark = printable(&format!("  {:>6}  {}  ", span(*latency), moment(&findings.started, *at_us)));
        text.push_str(&paragraph(&mark, label));
    }
    let listed = all.len().min(MOST_STALLS) as u64;
    let more = if total > listed { format!("{} more. ", total - listed) } else { String::new() };
    text + &paragraph("  ", &format!("{more}Rule: {}.", findings.stall_rule))
}

/// Time of day of an event, to a hundredth of a second; relative to the start if that is not a valid time.
fn moment(started: &str, at_us: u64) -> String {
    let after = jiff::SignedDuration::from_micros(i64::try_from(at_us).unwrap_or(i64::MAX));
    let at = started.parse::<jiff::Timestamp>().and_then(|start| start.checked_add(after));
    at.map_or_else(
        |_| format!("{} s after the start", significant(at_us as f64 / 1e6)),
        |at| at.strftime("%Y-%m-%d %H:%M:%S%.2f UTC").to_string(),
    )
}

pub(super) fn credibility(findings: &ProbeFindings) -> String {
    let credibility = &findings.credibility;
    let said = credibility.headline.iter().chain([&credibility.reason]);
    // If the folder is in memory, no other remark is useful.
    let is_memory = credibility.kind == CredibilityKind::Memory;
    let rules = credibility.rules.iter().filter(|rule| !is_memory || rule.speaks_for == Some(credibility.kind));
    let rules = rules.filter(|rule| !credibility.reason.contains(&rule.sentence));
    format!("\nCredibility: {}\n", title(credibility.kind))
        + &indented(said.map(|text| sentence(findings, text)))
        + &listed(rules.map(rule_words))
        + &paragraph("  ", &format!("To verify: {}.", credibility.would_settle_it))
}

fn rule_words(rule: &FiredRule) -> String {
    let speaks = rule.speaks_for.map_or_else(|| "for information".to_owned(), |kind| title(kind).to_owned());
    format!("{} ({speaks}; {})", rule.sentence, rule.source)
}

/// Recommended method.
pub(super) fn recommendation(findings: &ProbeFindings) -> String {
    let found = &findings.recommendation;
    let excluded = found.candidates.iter().filter_map(|candidate| {
        Some(format!("not {}: {}", candidate.wal_sync_method, candidate.excluded_because.as_ref()?))
    });
    paragraph("\nRecommendation: ", found.line.as_deref().unwrap_or("no recommendation"))
        + &paragraph("  ", &sentence(findings, &found.reason))
        + &listed(excluded)
        + &server(findings)
}

/// Rows that equal a server's method, and the reason why it is not one of those with O_DIRECT.
fn server(findings: &ProbeFindings) -> String {
    let default = findings.server_equals.iter().filter(|row| row.default);
    let compatible = findings.rows.iter().find(|row| row.spec.direct && row.spec.family == Family::OneWrite);
    let compatible = compatible.and_then(|row| Some((row, row.server.as_ref()?)));
    let compatible =
        compatible.map(|(row, role)| format!("The row \"{}\" of One write: {role}.", row.spec.label.trim()));
    indented(default.map(|row| format!("{}, in the section WAL.", row.sentence)).chain(compatible))
}

/// Rank of the folder among other devices.
pub(super) fn standing(findings: &ProbeFindings) -> String {
    let standing = &findings.standing;
    let missing = standing.row_id.is_none().then(|| "This folder is missing: its row was not measured.".to_owned());
    paragraph("\nFor comparison: ", "8 kB write + fdatasync, per second")
        + &standing.entries.iter().map(standing_line).collect::<String>()
        + &indented(missing.into_iter())
}

fn standing_line(entry: &StandingEntry) -> String {
    let mark = if entry.here { "→" } else { " " };
    let name = if entry.here { "HERE".to_owned() } else { entry.device.clone() };
    let unverified = if entry.unverified { " (unverified)" } else { "" };
    let note = if entry.here { entry.note.clone() } else { format!("{}; {}{unverified}", entry.class, entry.source) };
    let name = printable(&name);
    let gap = " ".repeat(DEVICE_NAME.saturating_sub(width(&name)));
    paragraph(&format!("{mark} {:>9}  {name}{gap} ", rate(entry.fdatasync_per_s)), &note)
}

/// Caveats about the figures.
pub(super) fn caveats(findings: &ProbeFindings) -> String {
    "\nCaveats\n".to_owned() + &listed(findings.caveats.iter().map(|caveat| sentence(findings, caveat)))
}

/// A whole sentence, capitalised unless it begins with the name of a device or method.
fn sentence(findings: &ProbeFindings, text: &str) -> String {
    let first_word = text.split([' ', ',', ':']).next().unwrap_or_default();
    let is_device = findings.place.devices.iter().any(|device| device.name == first_word);
    let is_name = is_device || first_word.contains(|c: char| c.is_ascii_digit() || c == '_');
    let is_kept = is_name || first_word.contains("sync");
    if is_kept { format!("{text}.") } else { format!("{}.", capital(text)) }
}
