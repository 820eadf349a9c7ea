//! Rules that compare times with hardware limits.

use super::evidence::{ProbeEvidence, flushed, work_of, writes_back};
use super::findings::{Family, FiredRule, GrowthFinding, RateFinding, Way, rule};
use super::latency::span;
use super::work::SEEN;
use crate::analyse::findings::CredibilityKind;
use crate::units::{Bytes, significant};

/// Tolerance of a tenth over the rotations of a disk, for the clock.
const TURNS_ALLOWED: f64 = 1.1;
/// No NAND without power-loss protection is known to flush faster: published figures are 0.6 ms and more; protected
/// caches take 0.15 ms and less. The threshold is in between, where few disks are, so that a disk is on the same side
/// in every probe.
const FASTEST_FLUSH_NS: u64 = 300_000;
/// Certainly too fast: a sixth of that, so that neither noise nor a better drive of that kind changes the credibility.
const SURELY_FAST_NS: u64 = 50_000;
/// Name of that rule.
pub(super) const FAST_FLUSH: &str = "fast_flush";
/// No device other than memory is known to sync more often with one writer.
const MOST_SYNCS_PER_S: f64 = 100_000.0;
/// 16 lanes of PCI Express 5.0 carry 63 GB/s.
const FASTEST_BUS_BYTES_PER_S: f64 = 64e9;
/// Faster writes went to memory: SATA carries 0.6 GB/s, a 10 Gbit/s network 1.25 GB/s.
const MEMORY_BYTES_PER_S: f64 = 1.25e9;
/// Amount at which the time of a sync exceeds noise.
const LARGE_BYTES: u64 = 1 << 20;
/// A large sync that costs less than this many times a small one is called flat.
const FLAT: f64 = 2.0;
/// Two writes and one fdatasync should cost at most this many times one write and its fdatasync.
const TWO_WRITES_COST: f64 = 1.5;
/// Two O_DSYNC writes should cost at least this many times one: they are two syncs.
const TWO_SYNCS_COST: f64 = 1.5;
/// Upper bound for two that cost no more than one: the whole interval is nearer to 1 than to 2.
const ONE_SYNC_COST: f64 = 1.25;

/// More flushes than rotations.
pub(super) fn rotation(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let lowest = evidence.lowest();
    // Only the speed that the disk itself reports: the kernel's flag is set for everything that does not report
    // non-rotational.
    let (device, rpm) = lowest.iter().find_map(|device| Some((device, device.rpm?)))?;
    let turns_per_s = TURNS_ALLOWED * f64::from(rpm) / 60.0;
    let row = evidence.main()?;
    let per_s = surely_above(row.rate.as_ref()?).filter(|per_s| *per_s > turns_per_s)?;
    let (kind, why) = match writes_back(device) {
        false => (CredibilityKind::DeclaredStable, "a protected cache in its controller explains it"),
        true => (CredibilityKind::Implausible, "without a protected cache each sync waits for a rotation"),
    };
    let (label, rate) = (row.spec.label.trim(), significant(per_s));
    let sentence = format!("{} reports {rpm} rpm, and \"{label}\" ran at {rate} per second: {why}", device.name);
    let source =
        "rpm reported by the disk (SCSI VPD page B1), plus 10 %: without a cache each sync waits for a rotation";
    Some(rule("rotation", Some(kind), Some((per_s, turns_per_s, "syncs per second")), source, sentence))
}

/// True for persistent memory: it is faster than these rules assume.
fn is_persistent_memory(evidence: &ProbeEvidence) -> bool {
    let options = evidence.record.place.mount.iter().flat_map(|mount| mount.options.iter().chain(&mount.super_options));
    evidence.record.place.devices.iter().any(|device| device.name.starts_with("pmem"))
        || options.into_iter().any(|option| option == "dax" || option == "dax=always")
}

/// Filesystems on other machines: the speed of the network is unknown here.
const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "9p", "virtiofs", "gpfs"];

/// Rates that only memory can reach.
pub(super) fn too_many_syncs(evidence: &ProbeEvidence) -> Option<FiredRule> {
    if is_persistent_memory(evidence) {
        return None;
    }
    let rows = evidence.single_writes().filter_map(|row| Some((row, surely_above(row.rate.as_ref()?)?)));
    let (row, per_s) = rows.filter(|(_, per_s)| *per_s > MOST_SYNCS_PER_S).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (label, rate) = (row.spec.label.trim(), significant(per_s));
    let sentence =
        format!("\"{label}\" ran at {rate} per second: no durable storage is known to sync that fast for one writer");
    let measured = (per_s, MOST_SYNCS_PER_S, "syncs per second");
    let source = "fastest published: two mirrored NVMe SSDs with power-loss protection, 40 473 syncs/s \
                  (centminmod-sysbench); tmpfs 820 000";
    Some(rule("too_many_syncs", Some(CredibilityKind::Implausible), Some(measured), source, sentence))
}

/// A volatile cache that is flushed faster than NAND can be written. On a physical disk it speaks for a class only if
/// the figure is far from the threshold. Inside a virtual machine the two causes cannot be distinguished: unknown.
pub(super) fn fast_flush(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let row = evidence.main()?;
    let lowest = evidence.lowest();
    let mut caching = lowest.iter().filter(|device| writes_back(device));
    let device = caching.find(|device| work_of(row, &device.name).is_some_and(flushed))?;
    // The fastest tenth, not the median: a slow machine does not make a flush honest.
    let p10 = row.latency?.p10_ns;
    if p10 >= FASTEST_FLUSH_NS {
        return None;
    }
    let (kind, why) = match evidence.virtual_disk() {
        true => (
            Some(CredibilityKind::Unknown),
            "the host's storage is protected or ignores flushes, which is not visible from the guest; cut the power to \
             find out",
        ),
        false => (
            (p10 < SURELY_FAST_NS).then_some(CredibilityKind::Unexplained),
            "a protected cache that is reported as volatile, or ignored flushes",
        ),
    };
    let sentence = format!(
        "fast: 10th percentile of \"{}\" is {}, {} reports a volatile cache, and flash without power-loss protection is \
         not known to flush in under {}: {why}",
        row.spec.label.trim(),
        span(p10),
        device.name,
        span(FASTEST_FLUSH_NS)
    );
    let source = "published flushes of flash without power-loss protection take 0.6 ms and more";
    Some(rule(FAST_FLUSH, kind, Some((p10 as f64 / 1e3, FASTEST_FLUSH_NS as f64 / 1e3, "us")), source, sentence))
}

/// A sync that would have had to write faster than any bus can carry.
pub(super) fn growth_beyond_the_bus(evidence: &ProbeEvidence) -> Option<FiredRule> {
    // Data seen at the device may have been written before the sync, which then had nothing left to do.
    let largest = large(evidence).filter(|growth| growth.reached_device.is_none_or(|reached| reached < SEEN))?;
    let mount = evidence.record.place.mount.as_ref();
    let synchronous = mount.is_some_and(|mount| mount.options.iter().chain(&mount.super_options).any(|o| o == "sync"));
    let far = mount.is_some_and(|mount| NETWORK.contains(&mount.fstype.as_str()));
    let implied = largest.sync_bytes_per_s.filter(|implied| *implied > FASTEST_BUS_BYTES_PER_S)?;
    if synchronous || far {
        return None;
    }
    let nothing_visible = evidence.record.place.devices.is_empty();
    let kind = if nothing_visible { CredibilityKind::NoFlushSeen } else { CredibilityKind::Implausible };
    let (written, took) = (Bytes(largest.written_bytes), span(largest.sync_ns));
    let would_be = format!("that would be {} GB/s", significant(implied / 1e9));
    let sentence = format!("{written} were written at memory speed, and their sync took {took}: {would_be}");
    let source = "16 lanes of PCI Express 5.0 carry 63 GB/s";
    let measured = (implied / 1e9, FASTEST_BUS_BYTES_PER_S / 1e9, "GB/s");
    Some(rule("growth_beyond_the_bus", Some(kind), Some(measured), source, sentence))
}

/// A sync whose time does not depend on the amount to write.
pub(super) fn flat_growth(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let largest = large(evidence)?;
    let smallest = evidence.growth.iter().find(|growth| growth.written_bytes > 0)?;
    let factor = largest.sync_ns as f64 / smallest.sync_ns.max(1) as f64;
    if smallest.written_bytes >= largest.written_bytes || factor >= FLAT {
        return None;
    }
    let sentence = format!(
        "a sync after {} took {}, one after {} took {}: sync time hardly grows with the amount of data",
        Bytes(largest.written_bytes),
        span(largest.sync_ns),
        Bytes(smallest.written_bytes),
        span(smallest.sync_ns)
    );
    let source = "flushing a fuller cache takes longer";
    Some(rule("flat_growth", None, Some((factor, FLAT, "times the small sync")), source, sentence))
}

/// The largest amount, if it was written at a speed that only memory reaches.
fn large<'a>(evidence: &ProbeEvidence<'a>) -> Option<&'a GrowthFinding> {
    let largest = evidence.growth.iter().rfind(|growth| growth.written_bytes >= LARGE_BYTES)?;
    largest.write_bytes_per_s.is_some_and(|per_s| per_s > MEMORY_BYTES_PER_S).then_some(largest)
}

/// Two O_DSYNC writes that cost little more than one.
pub(super) fn open_datasync_does_not_halve(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let (_, most) = cost_of_two(evidence, Way::OpenDatasync).filter(|(_, most)| *most < TWO_SYNCS_COST)?;
    let sentence = format!(
        "two open_datasync writes cost at most {} times one: they are two syncs and should cost about twice as much",
        significant(most)
    );
    let kind = (most < ONE_SYNC_COST).then_some(CredibilityKind::Unknown);
    let source = "each write through O_DSYNC is a sync of its own (open(2))";
    Some(rule("open_datasync_does_not_halve", kind, Some((most, TWO_SYNCS_COST, "times one write")), source, sentence))
}

/// Two writes with one fdatasync that cost much more than one write.
pub(super) fn two_writes_cost_more(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let (least, _) = cost_of_two(evidence, Way::Fdatasync).filter(|(least, _)| *least > TWO_WRITES_COST)?;
    let sentence = format!(
        "two writes and one fdatasync cost at least {} times one write and its fdatasync: the time goes into the write, \
         not into the sync",
        significant(least)
    );
    let source = "both wait for a single flush";
    Some(rule("two_writes_cost_more", None, Some((least, TWO_WRITES_COST, "times one write")), source, sentence))
}

/// Bounds of the cost of two writes relative to one.
fn cost_of_two(evidence: &ProbeEvidence, way: Way) -> Option<(f64, f64)> {
    cost(evidence.rate(Family::OneWrite, way)?, evidence.rate(Family::TwoWrites, way)?)
}

/// Bounds of the cost of an operation of the second rate relative to the first, from their intervals.
fn cost(one: &RateFinding, two: &RateFinding) -> Option<(f64, f64)> {
    let least = one.low_per_s? / two.high_per_s.filter(|per_s| *per_s > 0.0)?;
    let most = one.high_per_s? / two.low_per_s.filter(|per_s| *per_s > 0.0)?;
    Some((least, most))
}

/// Cost of fsync over fdatasync: the journal.
pub(super) fn journal(evidence: &ProbeEvidence) -> Option<FiredRule> {
    let [fdatasync, fsync] =
        [Way::Fdatasync, Way::Fsync].map(|way| evidence.rate(Family::OneWrite, way).filter(|rate| rate.per_s > 0.0));
    let (fdatasync, fsync) = (fdatasync?, fsync?);
    let ratio = fdatasync.per_s / fsync.per_s;
    let apart = cost(fdatasync, fsync).is_some_and(|(least, most)| least > 1.0 || most < 1.0);
    let sentence = if apart {
        let times = significant(ratio);
        format!(
            "fsync of one write costs {times} times its fdatasync: the cost of writing the file's timestamps, through the \
             journal if there is one"
        )
    } else {
        "no difference seen between fsync and fdatasync of back-to-back writes; at a slower pace each write changes the \
         file's timestamps, and fsync may cost more"
            .to_owned()
    };
    let source = "fdatasync(2): it skips metadata that reads do not need";
    Some(rule("journal", None, Some((ratio, 1.0, "times fdatasync")), source, sentence))
}

/// Lower bound of the row's rate: the lower end of its interval, or the rate without an interval.
fn surely_above(rate: &RateFinding) -> Option<f64> {
    Some(rate.low_per_s.unwrap_or(rate.per_s)).filter(|per_s| per_s.is_finite())
}
