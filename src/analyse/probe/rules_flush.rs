//! Rules on flushes, writes and bytes that reached the devices.

use super::evidence::{ProbeEvidence, work_of, writes_back};
use super::findings::{FiredRule, RowFinding, WorkPerOperation, rule};
use super::work::{SEEN, amount};
use crate::analyse::findings::CredibilityKind;
use crate::units::{Bytes, significant};
use std::collections::BTreeSet;

/// Source of the threshold of one half.
const MERGED: &str = "a sync asks for one flush; the kernel merges those due at the same time (block/blk-flush.c)";

/// A volatile cache that a sync did not flush. Each level is judged by its device with the most flushes.
pub(super) fn no_flush(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let depths: BTreeSet<u32> = evidence.record.place.devices.iter().map(|device| device.depth).collect();
    let found = depths
        .into_iter()
        .flat_map(|depth| evidence.sync_rows().filter_map(move |row| most_flushed(evidence, row, depth)));
    let (row, work, flushes) = found.filter(|(_, _, flushes)| *flushes < SEEN).min_by(|a, b| a.2.total_cmp(&b.2))?;
    let sentence = format!(
        "{} reports a volatile cache (write back), but only {} per operation of \"{}\" reached it: expected at least {SEEN}",
        work.device,
        amount(flushes, "flush", "flushes"),
        row.spec.label.trim()
    );
    let measured = (flushes, SEEN, "flushes per operation");
    Some(rule("no_flush", Some(CredibilityKind::NoFlushSeen), Some(measured), MERGED, sentence))
}

/// Device of a level with the most flushes per operation, among those that need flushes and count them.
fn most_flushed<'a>(
    evidence: &ProbeEvidence,
    row: &'a RowFinding,
    depth: u32,
) -> Option<(&'a RowFinding, &'a WorkPerOperation, f64)> {
    let devices = evidence.record.place.devices.iter().filter(|device| device.depth == depth && writes_back(device));
    let counted = devices.filter_map(|device| {
        let work = work_of(row, &device.name)?;
        Some((row, work, work.flushes_per_op?))
    });
    counted.max_by(|a, b| a.2.total_cmp(&b.2))
}

/// A sync after which nothing was written.
pub(super) fn no_write(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let unwritten = evidence.single_writes().filter_map(|row| {
        // Bytes, not writes: an empty flush is a write too, and a journal's commit carries its flush.
        let own = f64::from(row.spec.write_bytes.max(1)) * f64::from(row.spec.writes.max(1));
        let top = row.work.iter().filter(|work| work.depth == 0).map(|work| work.bytes_per_op);
        let share = top.reduce(std::ops::Add::add)? / own;
        // A pass-through driver may count nothing.
        let is_deeper = row.work.iter().any(|work| work.depth > 0 && work.bytes_per_op / own >= SEEN);
        (share < SEEN && !(share == 0.0 && is_deeper)).then_some((row, share))
    });
    let (row, share) = unwritten.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let sentence = format!(
        "only {} % of what \"{}\" wrote reached the device below the filesystem, although each operation syncs",
        significant(share * 100.0),
        row.spec.label.trim()
    );
    let source = "each operation dirties one block, and its sync must write it";
    let measured = (share, SEEN, "of the bytes written");
    Some(rule("no_write", Some(CredibilityKind::NoFlushSeen), Some(measured), source, sentence))
}

/// Megabytes that were synced but did not reach the devices.
pub(super) fn growth_did_not_arrive(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let compresses = evidence.record.place.mount.as_ref().is_some_and(|mount| {
        mount.super_options.iter().chain(&mount.options).any(|option| option.starts_with("compress"))
    });
    let largest = evidence.growth.iter().rfind(|growth| growth.written_bytes >= 1 << 20).filter(|_| !compresses)?;
    let reached = largest.reached_device.filter(|reached| *reached < SEEN)?;
    let (written, share) = (Bytes(largest.written_bytes), significant(reached * 100.0));
    let sentence = format!("{written} were written and synced, and {share} % of them reached the device");
    let source = "synced data must be on the device; half is allowed for a filesystem that compresses";
    let measured = (reached, SEEN, "share of the bytes");
    Some(rule("growth_did_not_arrive", Some(CredibilityKind::NoFlushSeen), Some(measured), source, sentence))
}
