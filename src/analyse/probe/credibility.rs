//! Credibility of the synced writes, from the rules that fired and the flushes seen at each level.
//!
//! Worst first: memory; no flush seen; implausible; unexplained; unknown, if devices are hidden or facts contradict
//! each other; declared stable; flushed. The last three are also durability classes of a run. A failed sync precedes
//! all of them.

use super::evidence::{ProbeEvidence, declared_stable, flushed, work_of, writes_back};
use super::findings::{Credibility, DeviceFacts, Failure, FiredRule, RowFinding, Way, WriteCache};
use super::rules;
use super::rules_speed::FAST_FLUSH;
use super::work::{SEEN, amount};
use crate::analyse::findings::CredibilityKind;
use crate::analyse::findings::durability::virtual_disk;
use crate::record::promise;
use crate::units::{Micros, significant};

/// Linux error numbers.
const EIO: i32 = 5;
/// EPERM, EINVAL, EROFS, ENOSYS, EOPNOTSUPP: the call was rejected, and nothing was acknowledged.
const REFUSED: [i32; 5] = [1, 22, 30, 38, 95];
/// EFBIG, ENOSPC, EDQUOT: the same for a write. A sync that fails with these has lost delayed data.
const NO_ROOM: [i32; 3] = [27, 28, 122];
/// Minimum number of operations of the deciding row for a favorable judgement.
const FEWEST_OPERATIONS: u64 = 10;

pub(super) fn credibility(evidence: &ProbeEvidence) -> Credibility {
    let mut fired = rules::fired(evidence);
    let (kind, mut reason) = decide(evidence, &fired);
    let mount = evidence.record.place.mount.as_ref().filter(|_| kind != CredibilityKind::Memory);
    reason.extend(mount.and_then(promise::unjournaled).map(|unjournaled| format!("; {unjournaled}")));
    // Rules that decided first, then those that speak for a class, then information.
    fired.sort_by_key(|rule| (rule.speaks_for.is_none(), rule.speaks_for != Some(kind)));
    Credibility {
        kind,
        headline: headline(evidence),
        reason,
        would_settle_it: would_settle(kind, &fired, evidence).to_owned(),
        levels: levels(evidence),
        sight_ends: evidence.sight_ends(),
        rules: fired,
    }
}

fn decide(evidence: &ProbeEvidence, fired: &[FiredRule]) -> (CredibilityKind, String) {
    let order = [
        CredibilityKind::Memory,
        CredibilityKind::NoFlushSeen,
        CredibilityKind::Implausible,
        CredibilityKind::Unexplained,
        CredibilityKind::Unknown,
    ];
    let spoken = order.into_iter().find_map(|kind| {
        let rule = fired.iter().find(|rule| rule.speaks_for == Some(kind))?;
        Some((kind, rule.sentence.clone()))
    });
    spoken.unwrap_or_else(|| match barred(evidence) {
        Some(why) => (CredibilityKind::Unknown, why),
        None if all_write_through(evidence) => (CredibilityKind::DeclaredStable, by_word(evidence)),
        None => (CredibilityKind::Flushed, by_flushes(evidence)),
    })
}

/// Reason that rules out a favorable judgement.
fn barred(evidence: &ProbeEvidence) -> Option<String> {
    let place = &evidence.record.place;
    let Some(row) = evidence.main() else {
        return Some("no fdatasync or fsync was measured".to_owned());
    };
    if let Some(headline) = headline(evidence) {
        return Some(headline);
    }
    if row.operations < FEWEST_OPERATIONS {
        let (done, label) = (row.operations, row.spec.label.trim());
        return Some(format!("too little was measured: {done} operations of \"{label}\""));
    }
    if let Some(end) = place.ends.first() {
        return Some(format!("the lowest device is not visible: {end}"));
    }
    if place.devices.is_empty() {
        return Some("no block device is visible below the folder".to_owned());
    }
    let device = evidence.lowest().into_iter().find_map(|device| not_good(device, row));
    device.or_else(|| unwritten(evidence, row).filter(|_| all_write_through(evidence)))
}

fn all_write_through(evidence: &ProbeEvidence) -> bool {
    evidence.lowest().iter().all(|device| declared_stable(device).is_some())
}

/// Reason if the lowest devices, which declare that they need no flushes, were not seen to receive the writes either.
fn unwritten(evidence: &ProbeEvidence, row: &RowFinding) -> Option<String> {
    let works = evidence.lowest().into_iter().filter_map(|device| work_of(row, &device.name));
    let writes = works.fold(0.0, |sum, work| sum + work.writes_per_op);
    let (names, counted) = (evidence.lowest_names(), amount(writes, "write", "writes"));
    (writes < SEEN).then(|| format!("{names} reports write through, but {counted} per operation were counted there"))
}

/// Reason that one of the lowest devices rules out a favorable judgement.
fn not_good(device: &DeviceFacts, row: &RowFinding) -> Option<String> {
    let name = &device.name;
    if declared_stable(device).is_some() {
        return None;
    }
    if device.write_cache.is_none() {
        return Some(format!("{name} does not report whether its cache is volatile"));
    }
    let Some(work) = work_of(row, name) else {
        return Some(format!("{name} has no counters"));
    };
    if let Some(why) = &work.flushes_uncounted {
        return Some(format!("flushes at {name} are not counted: {why}"));
    }
    if !flushed(work) {
        return Some(format!("too little was measured to count flushes at {name}"));
    }
    let others = significant(work.idle_share.unwrap_or(0.0) * 100.0);
    work.own_flushes_per_op.is_some_and(|own| own < SEEN).then(|| {
        format!(
            "flushes were seen at {name}, but other programs use it too: their rate while the probe paused is {others} % of \
             the count"
        )
    })
}

fn by_word(evidence: &ProbeEvidence) -> String {
    let words: Vec<String> =
        evidence.lowest().into_iter().filter_map(declared_stable).map(|it| it.to_string()).collect();
    words.join("; ") + &below_virtual(evidence)
}

/// Caveat on a lowest device that is virtual.
fn below_virtual(evidence: &ProbeEvidence) -> String {
    if evidence.virtual_disk() { format!("; {}", virtual_disk(&evidence.lowest_names())) } else { String::new() }
}

fn by_flushes(evidence: &ProbeEvidence) -> String {
    let (seen, ends) = (levels(evidence).join("; "), below_virtual(evidence));
    format!("flushes were counted at every level that counts them ({seen}){ends}")
}

/// The first failed call that concerns durability.
fn headline(evidence: &ProbeEvidence) -> Option<String> {
    let of_rows = evidence.rows.iter().filter_map(|row| Some((Some(&row.spec), row.failure.as_ref()?)));
    let of_growth = evidence.record.growth_failure.iter().map(|failure| (None, failure));
    let mut failures = of_rows.chain(of_growth);
    let (spec, failure) = failures.find(|(spec, failure)| is_about_durability(spec.map(|spec| spec.way), failure))?;
    let Failure { call, message, at_us, after_operations, .. } = failure;
    let at = Micros(*at_us);
    Some(match spec {
        None => {
            format!("a sync failed: {call} after a larger amount was written returned {message}, {at} after the start")
        }
        Some(spec) => format!(
            "a sync failed: {call} of \"{}\" returned {message}, {at} after the start and {after_operations} operations; the \
             kernel may have dropped the data, and a second fsync would not say so",
            spec.label.trim()
        ),
    })
}

/// True if a failed call concerns durability: a sync, or a synced write. Calls that are unavailable here or refused for
/// lack of space do not count.
fn is_about_durability(way: Option<Way>, failure: &Failure) -> bool {
    let writes_are_syncs = matches!(way, Some(Way::OpenDatasync | Way::OpenSync | Way::RwfDsync | Way::IoUring));
    let may_be_lost = failure.errno.is_some_and(|errno| !NO_ROOM.contains(&errno));
    let is_write = writes_are_syncs && failure.call.contains("write") && may_be_lost;
    failure.errno.is_none_or(|errno| !REFUSED.contains(&errno))
        && (failure.call.contains("sync") || failure.errno == Some(EIO) || is_write)
}

/// Flushes and writes seen at each device.
fn levels(evidence: &ProbeEvidence) -> Vec<String> {
    let devices = evidence.record.place.devices.iter();
    devices.map(|device| format!("{}: {}", device.name, seen_at(evidence, device))).collect()
}

fn seen_at(evidence: &ProbeEvidence, device: &DeviceFacts) -> String {
    let says = match device.write_cache {
        Some(WriteCache::WriteBack) => "reports write back",
        Some(WriteCache::WriteThrough) => "reports write through, gets no flushes",
        None => "does not report its cache mode",
    };
    let Some((row, work)) = evidence.main().and_then(|row| Some((row, work_of(row, &device.name)?))) else {
        return format!("{says}; no counters");
    };
    let operation = row.spec.label.trim();
    match (work.flushes_per_op, &work.flushes_uncounted) {
        (Some(flushes), _) if writes_back(device) || flushes > 0.0 => {
            format!("{says}; {} per \"{operation}\"", amount(flushes, "flush", "flushes"))
        }
        (_, Some(why)) => format!("{says}; flushes not counted: {why}"),
        _ => says.to_owned(),
    }
}

fn would_settle(kind: CredibilityKind, fired: &[FiredRule], evidence: &ProbeEvidence) -> &'static str {
    let too_fast = fired.iter().any(|rule| rule.name == FAST_FLUSH);
    let below_host = evidence.virtual_disk() && (kind != CredibilityKind::Unknown || too_fast);
    match kind {
        CredibilityKind::Memory => "nothing to verify: memory is not durable; probe a folder on a disk",
        CredibilityKind::NoFlushSeen if evidence.record.place.devices.is_empty() => {
            "probe on the machine that stores the data, or cut its power during writes and check what survived"
        }
        CredibilityKind::NoFlushSeen | CredibilityKind::Implausible | CredibilityKind::Unknown if below_host => {
            "probe on the host, check the cache mode of the virtual disk, or cut the host's power during writes"
        }
        CredibilityKind::NoFlushSeen | CredibilityKind::Implausible | CredibilityKind::Unexplained => {
            "check the data sheet for power-loss protection, then pull the plug during writes"
        }
        CredibilityKind::Flushed | CredibilityKind::DeclaredStable => {
            "pull the plug during writes: no measurement with the power on proves it"
        }
        CredibilityKind::Unknown => {
            "probe again on an idle machine, or where the devices are visible; pull the plug to be certain"
        }
    }
}
