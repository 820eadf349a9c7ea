//! Work of the devices, per operation of each row and while the probe was idle.
//!
//! Counters belong to the whole device and include the work of others; the idle interval estimates how much. No kernel
//! counts FUA writes (block/blk-flush.c counts flush requests alone), but a flush without data is also counted as a
//! write of no bytes: growth shows whether this kernel does so, and then it is subtracted.

use super::findings::{IdleRates, WorkPerOperation};
use crate::record::claim::Claim;
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::probe::{DeviceCounts, ProbeRecord, RowRecord, RowSpec, Slice, Way};
use crate::record::promise;
use crate::stats::outliers;
use crate::units::{Bytes, significant};

/// Flushes, or writes, per operation that count as "there was one": less than 1, because the kernel merges flushes that
/// are due at the same time.
pub(super) const SEEN: f64 = 0.5;
/// Idle traffic beyond this share of a row's traffic makes its counters worthless.
const WORTHLESS: f64 = 0.1;

/// Work of the devices per operation of a row, in the order of `place.devices`, without devices that have no counters.
pub(super) fn work(row: &RowRecord, record: &ProbeRecord) -> Vec<WorkPerOperation> {
    let devices = record.place.devices.iter().enumerate().filter(|(place, _)| counts_writes(record, *place));
    devices.filter_map(|(place, device)| one_device(row, record, place, device)).collect()
}

/// True if a counter of a device has moved at any time in the probe.
fn has_moved(record: &ProbeRecord, place: usize, counter: fn(&DeviceCounts) -> u64) -> bool {
    let rows = record.rows.iter().flat_map(|row| &row.slices).map(|slice| &slice.devices);
    let mut looks = rows.chain(record.growth.iter().map(|growth| &growth.devices)).chain([&record.test_sync]);
    looks.any(|devices| counts_at(devices, place).is_some_and(|counts| counter(&counts) > 0))
}

fn counts_at(devices: &[Option<DeviceCounts>], place: usize) -> Option<DeviceCounts> {
    devices.get(place).copied().flatten()
}

/// True if a device counts its writes. One that has counted nothing since it appeared, not even ours, never counts (a
/// multipath NVMe before Linux 6.4).
pub(super) fn counts_writes(record: &ProbeRecord, place: usize) -> bool {
    let counted_before = record.place.devices.get(place).is_some_and(|device| device.writes_before != Some(0));
    counted_before || has_moved(record, place, |counts| counts.writes)
}

/// Reason to distrust a device's flush counter: it has never moved, so nothing shows that it works.
fn never_flushed(record: &ProbeRecord, place: usize) -> Option<String> {
    // A device that reports write through gets none.
    let device =
        record.place.devices.get(place).filter(|device| device.write_cache != Some(WriteCache::WriteThrough))?;
    let has_counted = device.flushes_before.is_some_and(|before| before > 0)
        || has_moved(record, place, |counts| counts.flushes.unwrap_or(0));
    (!has_counted)
        .then(|| "its counter stayed at zero even after a synced write: unknown whether it counts any".to_owned())
}

fn one_device(row: &RowRecord, record: &ProbeRecord, place: usize, device: &DeviceFacts) -> Option<WorkPerOperation> {
    let slices = counted(&row.slices, place, counts_flushes_as_writes(record, place));
    let operations: f64 = slices.iter().map(|(slice, _)| covered(slice)).sum();
    let seconds = slices.iter().map(|(slice, _)| slice.elapsed_ns as f64 / 1e9).sum();
    let total = slices.iter().map(|(_, counts)| *counts).reduce(|all, one| all.combined(&one, u64::wrapping_add))?;
    let writes_per_op = per_operation(&slices, |counts| Some(counts.writes)).filter(|_| operations > 0.0)?;
    let promises = promise::of_device_among(device, &record.place.devices);
    let flushes_uncounted = promises.into_iter().find(|promise| promise.claim == Claim::FlushesUncounted);
    let flushes_uncounted = flushes_uncounted.map(|promise| promise.why).or_else(|| never_flushed(record, place));
    let flushes = total.flushes.filter(|_| flushes_uncounted.is_none());
    let flushes_per_op = flushes.and(per_operation(&slices, |counts| counts.flushes));
    let idle_share = idle_share(record, place, seconds, &DeviceCounts { flushes, ..total });
    let fua_presumed = asks_for_fua(&row.spec)
        && device.fua == Some(true)
        && device.write_cache == Some(WriteCache::WriteBack)
        && flushes_per_op.is_some_and(|flushes| flushes < SEEN)
        && writes_per_op >= SEEN;
    let own_flushes = flushes.zip(others_flushes(record, place)).map(|(all, others)| all as f64 - others * seconds);
    let served = operations_per_sync(slices.iter().map(|(slice, _)| *slice));
    let mut work = WorkPerOperation {
        device: device.name.clone(),
        depth: device.depth,
        writes_per_op,
        bytes_per_op: per_operation(&slices, |counts| Some(counts.write_bytes))?,
        flushes_per_op,
        flushes_per_sync: flushes_per_op.zip(served).map(|(flushes, served)| flushes * served),
        flushes_uncounted,
        worthless: idle_share.is_some_and(|share| share > WORTHLESS),
        own_flushes_per_op: own_flushes.map(|own| own.max(0.0) / operations),
        idle_share,
        fua_presumed,
        words: String::new(),
    };
    work.words = words(&work);
    Some(work)
}

/// True if the kernel may use FUA instead of a flush for a row's writes: only for direct writes. Buffered ones are
/// written back first and then flushed (generic_write_sync in fs.h).
pub(crate) fn asks_for_fua(spec: &RowSpec) -> bool {
    spec.direct && matches!(spec.way, Way::OpenDatasync | Way::OpenSync | Way::RwfDsync)
}

/// True if the kernel counts a flush without data as a write: a sync with nothing to write showed as many writes as
/// flushes, and no byte.
fn counts_flushes_as_writes(record: &ProbeRecord, place: usize) -> bool {
    let empty = record.growth.iter().filter(|growth| growth.written_bytes == 0);
    let counts: Vec<DeviceCounts> = empty.filter_map(|growth| counts_at(&growth.devices, place)).collect();
    let as_writes = counts.iter().filter(|it| it.write_bytes == 0 && it.writes > 0 && it.flushes == Some(it.writes));
    2 * as_writes.count() > counts.len()
}

/// Writes per flush at which flushes count as writes without data. Not 2: occasionally two are merged.
const SURELY_EMPTY: f64 = 1.8;

/// Slices in which the device has counters, with empty flushes subtracted from its writes.
fn counted(slices: &[Slice], place: usize, empty_flushes: bool) -> Vec<(&Slice, DeviceCounts)> {
    let counted = slices.iter().filter(|slice| slice.operations > 0).filter_map(|slice| {
        let counts = counts_at(&slice.devices, place)?;
        // A write that carries its flush (PREFLUSH, FUA: a journal's commit) is one write and up to two flushes.
        // Flushes are certainly writes of their own only if there is at least one other write per flush.
        let flushes =
            counts.flushes.filter(|flushes| empty_flushes && counts.writes as f64 >= SURELY_EMPTY * *flushes as f64);
        Some((slice, DeviceCounts { writes: counts.writes.saturating_sub(flushes.unwrap_or(0)), ..counts }))
    });
    counted.collect()
}

/// Operations covered by a slice's counters.
fn covered(slice: &Slice) -> f64 {
    slice.device_operations.unwrap_or(slice.operations) as f64
}

/// Number of slices at which their median is used, so that a neighbor's burst in one of them does not count.
const SLICES_FOR_A_MEDIAN: usize = 5;

/// Work of a device per operation; `None` if a slice lacks that counter.
fn per_operation(slices: &[(&Slice, DeviceCounts)], of: fn(&DeviceCounts) -> Option<u64>) -> Option<f64> {
    let counts = slices.iter().map(|(slice, counts)| Some((of(counts)? as f64, covered(slice))));
    let counts: Vec<(f64, f64)> = counts.collect::<Option<_>>()?;
    if counts.len() < SLICES_FOR_A_MEDIAN {
        let (count, operations) = counts.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        return Some(count / operations);
    }
    let each: Vec<f64> = counts.iter().map(|(count, operations)| count / operations).collect();
    outliers::median(&each)
}

/// Mean number of operations per sync, if syncs were counted separately.
pub(super) fn operations_per_sync<'a>(slices: impl IntoIterator<Item = &'a Slice>) -> Option<f64> {
    let counted = slices.into_iter().filter_map(|slice| Some((slice.operations as f64, slice.syncs? as f64)));
    let (operations, syncs) = counted.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (syncs > 0.0).then(|| operations / syncs)
}

/// Work of the device at `place` while the probe was idle, before and between its rounds, and that time in seconds.
fn idle_of(record: &ProbeRecord, place: usize) -> Option<(DeviceCounts, f64)> {
    let [before, between] = [&record.idle, &record.pauses]
        .map(|idle| Some((counts_at(&idle.devices, place)?, idle.elapsed_us as f64 / 1e6)));
    let ((before, before_s), (between, between_s)) = (before?, between.unwrap_or_default());
    let seconds = before_s + between_s;
    let between = DeviceCounts { flushes: between.flushes.or(Some(0)), ..between };
    (seconds > 0.0).then(|| (before.combined(&between, u64::wrapping_add), seconds))
}

/// Flushes per second of others: the smaller of the rates before the rows and in the pauses between them, since a burst
/// in only one of them does not affect the rows.
fn others_flushes(record: &ProbeRecord, place: usize) -> Option<f64> {
    let rates = [&record.idle, &record.pauses].into_iter().filter_map(|idle| {
        let flushes = counts_at(&idle.devices, place)?.flushes?;
        (idle.elapsed_us > 0).then(|| flushes as f64 / (idle.elapsed_us as f64 / 1e6))
    });
    rates.reduce(f64::min)
}

/// Largest share that idle traffic would have in the writes and flushes counted in `seconds`.
fn idle_share(record: &ProbeRecord, place: usize, seconds: f64, counted: &DeviceCounts) -> Option<f64> {
    let (idle, idle_s) = idle_of(record, place)?;
    let pairs = std::iter::once((idle.writes, counted.writes)).chain(idle.flushes.zip(counted.flushes));
    let counted = pairs.filter(|(_, counted)| *counted > 0);
    counted.map(|(idle, counted)| (idle as f64 / idle_s * seconds / counted as f64).min(1.0)).reduce(f64::max)
}

/// "1.0 write of 8 KiB + 1.0 flush".
fn words(work: &WorkPerOperation) -> String {
    let mut text = if work.writes_per_op > 0.0 {
        let each = Bytes((work.bytes_per_op / work.writes_per_op).round() as u64);
        format!("{} of {each}", amount(work.writes_per_op, "write", "writes"))
    } else {
        "no write".to_owned()
    };
    match (work.flushes_per_op, &work.flushes_uncounted) {
        (Some(_), _) if work.fua_presumed => text.push_str(", FUA presumably (the kernel counts no FUA writes)"),
        (Some(flushes), _) if flushes > 0.0 => {
            text.push_str(&format!(" + {}", amount(flushes, "flush", "flushes")));
        }
        (Some(_), _) => text.push_str(", no flush"),
        (None, Some(why)) => text.push_str(&format!("; flushes not counted: {why}")),
        (None, None) => text.push_str("; flushes not counted"),
    }
    text.extend(work.flushes_per_sync.map(|per_sync| format!(" ({} per sync)", amount(per_sync, "flush", "flushes"))));
    if let (true, Some(share)) = (work.worthless, work.idle_share) {
        let percent = significant(share * 100.0);
        text.push_str(&format!("; not usable: other programs' traffic is {percent} % of it"));
    }
    text
}

/// "1.0 write", "2.0 writes", "0.98 flushes".
pub(super) fn amount(value: f64, one: &str, many: &str) -> String {
    let text = if (0.995..9.95).contains(&value) { format!("{value:.1}") } else { significant(value) };
    let noun = if text == "1.0" { one } else { many };
    format!("{text} {noun}")
}

/// Traffic of each device with counters while the probe was idle.
pub(super) fn idle(record: &ProbeRecord) -> Vec<IdleRates> {
    let rates = record.place.devices.iter().enumerate().filter_map(|(place, device)| {
        let (counts, seconds) = idle_of(record, place)?;
        Some(IdleRates {
            device: device.name.clone(),
            writes_per_s: counts.writes as f64 / seconds,
            write_bytes_per_s: counts.write_bytes as f64 / seconds,
            flushes_per_s: counts.flushes.map(|flushes| flushes as f64 / seconds),
        })
    });
    rates.collect()
}
