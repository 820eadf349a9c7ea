//! Recommends a `wal_sync_method`: the fastest of those that reach the device, if significantly faster than the
//! default.

use super::evidence::{ProbeEvidence, work_of, writes_back};
use super::findings::{Candidate, Credibility, RateFinding, Recommendation, RowFinding};
use super::server::{at_default_settings, method};
use super::work::SEEN;
use crate::analyse::findings::CredibilityKind;
use crate::stats::slices::overlap;
use crate::units::significant;
use std::collections::BTreeSet;

/// PostgreSQL's default on Linux.
const DEFAULT: &str = "fdatasync";

/// Recommends a method for a server of the major version `server`.
pub(super) fn recommend(evidence: &ProbeEvidence, credibility: &Credibility, server: u32) -> Recommendation {
    let mut seen = BTreeSet::new();
    let rows = evidence.rows.iter().filter_map(|row| {
        let method = method(row.spec.way)?;
        (at_default_settings(&row.spec) && seen.insert(method)).then_some((method, row))
    });
    let rows: Vec<(&'static str, &RowFinding)> = rows.collect();
    let candidates = rows.iter().map(|(method, row)| Candidate {
        wal_sync_method: (*method).to_owned(),
        excluded_because: excluded(evidence, row),
    });
    let candidates: Vec<Candidate> = candidates.collect();
    let (wal_sync_method, reason) = choose(evidence, credibility, &rows, &candidates);
    let line = wal_sync_method.map(|method| format!("wal_sync_method = {method}"));
    let doubt = match credibility.kind {
        CredibilityKind::Implausible => "; the times are implausible: resolve that first",
        CredibilityKind::Unexplained => "; the times are unexplained: resolve that first",
        _ => "",
    };
    let scope = format!("it holds for PostgreSQL {server} with one committing backend");
    let reason = if line.is_some() { format!("{reason}{doubt}; {scope}") } else { reason };
    Recommendation { wal_sync_method: wal_sync_method.map(str::to_owned), line, reason, candidates }
}

/// Reason that a method is excluded.
fn excluded(evidence: &ProbeEvidence, row: &RowFinding) -> Option<String> {
    if let Some(why) = &row.unavailable {
        return Some(why.clone());
    }
    if let Some(failure) = &row.failure {
        return Some(format!("{} failed: {}", failure.call, failure.message));
    }
    if row.rate.is_none() {
        return Some("not measured".to_owned());
    }
    let needy = evidence.record.place.devices.iter().filter(|device| writes_back(device));
    let mut works = needy.filter_map(|device| work_of(row, &device.name));
    let unflushed =
        works.find(|work| !work.fua_presumed && work.flushes_per_op.is_some_and(|flushes| flushes < SEEN))?;
    Some(format!("no flush was seen at {}", unflushed.device))
}

fn choose(
    evidence: &ProbeEvidence,
    credibility: &Credibility,
    rows: &[(&'static str, &RowFinding)],
    candidates: &[Candidate],
) -> (Option<&'static str>, String) {
    let (method, why) = match credibility.kind {
        _ if credibility.headline.is_some() => (None, "a call failed: fix the storage first"),
        CredibilityKind::Memory => (None, "nothing here survives a power cut, whichever method is the fastest"),
        CredibilityKind::NoFlushSeen => (
            None,
            "no flush was seen: the fastest method may be the one that does the least, and none makes a commit durable; fix \
             the storage first",
        ),
        _ if evidence.record.place.devices.is_empty() => {
            (Some(DEFAULT), "no device is visible, so flushes cannot be verified for any method: the default on Linux")
        }
        _ => {
            let open = rows.iter().zip(candidates).filter(|(_, candidate)| candidate.excluded_because.is_none());
            return among(&open.map(|(row, _)| *row).collect::<Vec<_>>());
        }
    };
    (method, why.to_owned())
}

/// The fastest of the remaining methods, if its interval lies above the default's.
fn among(open: &[(&'static str, &RowFinding)]) -> (Option<&'static str>, String) {
    let Some((fastest, row)) = open.iter().max_by(|a, b| per_s(a.1).total_cmp(&per_s(b.1))) else {
        return (Some(DEFAULT), "no measured method reaches the device: the default on Linux".to_owned());
    };
    let Some((_, default)) = open.iter().find(|(method, _)| *method == DEFAULT) else {
        let why = format!("the default, {DEFAULT}, is not usable here; {fastest} is the fastest of the others");
        return (Some(fastest), why);
    };
    if *fastest == DEFAULT {
        let rate = significant(per_s(row));
        let why = match open.iter().all(|(method, other)| *method == DEFAULT || are_apart(row, other)) {
            true => format!("the default is the fastest, {rate} per second"),
            false => {
                format!("no difference seen between the default, {rate} per second, and the fastest of the others")
            }
        };
        return (Some(DEFAULT), why);
    }
    if are_apart(row, default) {
        let factor = significant(per_s(row) / per_s(default));
        return (Some(fastest), format!("{factor} times the default's rate, and the intervals do not overlap"));
    }
    (Some(DEFAULT), format!("no difference seen between the fastest, {fastest}, and the default"))
}

fn per_s(row: &RowFinding) -> f64 {
    row.rate.as_ref().map_or(0.0, |rate| rate.per_s)
}

/// True if both rates have intervals, and these do not overlap.
fn are_apart(one: &RowFinding, other: &RowFinding) -> bool {
    let [one, other] = [one, other].map(|row| row.rate.as_ref().and_then(RateFinding::interval));
    one.zip(other).is_some_and(|(one, other)| !overlap(one, other))
}
