//! What the devices did: for an operation of each row, and while the probe did nothing.
//!
//! The counters belong to the whole device. What others did to it meanwhile is in them too; the idle interval tells how
//! much that is likely to be. FUA writes are counted by no kernel (block/blk-flush.c counts flush requests alone), but a
//! flush that carries no data is counted as a write of no bytes too: growth shows whether it is here, and it is taken off.

use super::findings::{DeviceWork, IdleTraffic};
use crate::record::claim::Claim;
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::probe::{DeviceCounts, Idle, ProbeRecord, RowRecord, RowSpec, Slice, Way};
use crate::units::{Bytes, significant};

/// Flushes, or writes, for an operation that count as "there was one": the kernel merges flushes that are due at the
/// same time, hence not 1.
pub(super) const SEEN: f64 = 0.5;
/// Idle traffic beyond this share of a row's makes its counters worthless.
const WORTHLESS: f64 = 0.1;

/// Counters of one device over some slices.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    writes: f64,
    flushes: Option<f64>,
    operations: f64,
    /// Operations that one sync served, where syncs were counted apart.
    operations_per_sync: Option<f64>,
    seconds: f64,
}

/// The devices' work for an operation of a row, in the order of `place.devices`; those without counters are left out.
pub(super) fn work(row: &RowRecord, record: &ProbeRecord) -> Vec<DeviceWork> {
    let devices = record.place.devices.iter().enumerate().filter(|(place, _)| counts_writes(record, *place));
    devices.filter_map(|(place, device)| one_device(row, record, place, device)).collect()
}

/// Whether a counter of a device has moved in anything that the probe did.
fn has_moved(record: &ProbeRecord, place: usize, counter: fn(&DeviceCounts) -> u64) -> bool {
    let rows = record.rows.iter().flat_map(|row| &row.slices).map(|slice| &slice.devices);
    let mut looks = rows.chain(record.growth.iter().map(|growth| &growth.devices)).chain([&record.test_sync]);
    looks.any(|devices| devices.get(place).copied().flatten().is_some_and(|counts| counter(&counts) > 0))
}

/// Whether a device counts what is written to it: one that has counted nothing since it appeared, our own writes
/// included, counts nothing at all (a multipath NVMe before Linux 6.4).
pub(super) fn counts_writes(record: &ProbeRecord, place: usize) -> bool {
    let counted_before = record.place.devices.get(place).is_some_and(|device| device.writes_before != Some(0));
    counted_before || has_moved(record, place, |counts| counts.writes)
}

/// Why a device's counter of flushes is not believed: it has never moved, so that nothing shows that it can.
fn never_flushed(record: &ProbeRecord, place: usize) -> Option<String> {
    // One that says write through is sent none.
    let device =
        record.place.devices.get(place).filter(|device| device.write_cache != Some(WriteCache::WriteThrough))?;
    let has_counted = device.flushes_before.is_some_and(|before| before > 0)
        || has_moved(record, place, |counts| counts.flushes.unwrap_or(0));
    (!has_counted)
        .then(|| "its counter stayed at zero even after a synced write: unknown whether it counts any".to_owned())
}

fn one_device(row: &RowRecord, record: &ProbeRecord, place: usize, device: &DeviceFacts) -> Option<DeviceWork> {
    let empty_flushes = counts_flushes_as_writes(record, place);
    let sum = sum(&row.slices, place, empty_flushes).filter(|sum| sum.operations > 0.0)?;
    let promises = record.place.promises_of(device);
    let flushes_uncounted = promises.into_iter().find(|promise| promise.claim == Claim::FlushesUncounted);
    let flushes_uncounted = flushes_uncounted.map(|promise| promise.why).or_else(|| never_flushed(record, place));
    let flushes = sum.flushes.filter(|_| flushes_uncounted.is_none());
    let idle_share = idle_share(record, place, &sum, flushes);
    let each = PerOperation::of(&row.slices, place, empty_flushes)?;
    let writes_per_op = each.writes;
    let flushes_per_op = flushes.and(each.flushes);
    let fua_presumed = asks_for_fua(&row.spec)
        && device.fua == Some(true)
        && device.write_cache == Some(WriteCache::WriteBack)
        && flushes_per_op.is_some_and(|flushes| flushes < SEEN)
        && writes_per_op >= SEEN;
    let mut work = DeviceWork {
        device: device.name.clone(),
        depth: device.depth,
        writes_per_op,
        bytes_per_op: each.bytes,
        flushes_per_op,
        flushes_per_sync: flushes_per_op.zip(sum.operations_per_sync).map(|(flushes, served)| flushes * served),
        flushes_uncounted,
        worthless: idle_share.is_some_and(|share| share > WORTHLESS),
        own_flushes_per_op: flushes.and_then(|flushes| own_flushes(record, place, &sum, flushes)),
        idle_share,
        fua_presumed,
        words: String::new(),
    };
    work.words = words(&work);
    Some(work)
}

/// Whether the kernel may make a row's write durable by FUA instead of a flush: direct writes alone. A buffered one is
/// written back first and then flushed (generic_write_sync in fs.h).
pub(crate) fn asks_for_fua(spec: &RowSpec) -> bool {
    spec.direct && matches!(spec.way, Way::OpenDatasync | Way::OpenSync | Way::RwfDsync)
}

/// Whether the kernel counts a flush without data as a write: a sync with nothing to write showed as many writes as
/// flushes, and no byte.
fn counts_flushes_as_writes(record: &ProbeRecord, place: usize) -> bool {
    let empty = record.growth.iter().filter(|growth| growth.written_bytes == 0);
    let counts: Vec<DeviceCounts> = empty.filter_map(|growth| growth.devices.get(place).copied().flatten()).collect();
    let as_writes =
        |counts: &&DeviceCounts| counts.write_bytes == 0 && counts.writes > 0 && counts.flushes == Some(counts.writes);
    2 * counts.iter().filter(as_writes).count() > counts.len()
}

/// Writes for each flush from which on flushes are taken for writes without data. Not 2: now and then two are merged.
const SURELY_EMPTY: f64 = 1.8;

/// The slices in which the device was counted, its writes without empty flushes.
fn counted(slices: &[Slice], place: usize, empty_flushes: bool) -> Vec<(&Slice, DeviceCounts)> {
    let of = |slice: &Slice| {
        let counts = slice.devices.get(place).copied().flatten()?;
        // A write that carries its flush with it (PREFLUSH, FUA: a journal's commit) is one write and up to two flushes:
        // only where there is at least another write for each flush, flushes are surely writes of their own.
        let flushes =
            counts.flushes.filter(|flushes| empty_flushes && counts.writes as f64 >= SURELY_EMPTY * *flushes as f64);
        Some(DeviceCounts { writes: counts.writes.saturating_sub(flushes.unwrap_or(0)), ..counts })
    };
    slices.iter().filter(|slice| slice.operations > 0).filter_map(|slice| Some((slice, of(slice)?))).collect()
}

/// Operations that a slice's counters cover.
fn covered(slice: &Slice) -> f64 {
    slice.device_operations.unwrap_or(slice.operations) as f64
}

/// From this many slices on the median of the slices is taken, so that what a neighbour did in one of them does not
/// count.
const SLICES_FOR_A_MEDIAN: usize = 5;

/// What a device did for one operation.
struct PerOperation {
    writes: f64,
    bytes: f64,
    flushes: Option<f64>,
}

impl PerOperation {
    fn of(slices: &[Slice], place: usize, empty_flushes: bool) -> Option<PerOperation> {
        let counts = counted(slices, place, empty_flushes);
        let figure = |value: fn(&DeviceCounts) -> Option<u64>| {
            let values: Option<Vec<(f64, f64)>> =
                counts.iter().map(|(slice, counts)| Some((value(counts)? as f64, covered(slice)))).collect();
            let values = values.filter(|values| !values.is_empty())?;
            if values.len() < SLICES_FOR_A_MEDIAN {
                let (count, operations) =
                    values.iter().fold((0.0, 0.0), |(count, operations), one| (count + one.0, operations + one.1));
                return Some(count / operations);
            }
            let mut each: Vec<f64> = values.iter().map(|(count, operations)| count / operations).collect();
            each.sort_by(f64::total_cmp);
            let middle = each.len() / 2;
            Some(if each.len().is_multiple_of(2) {
                f64::midpoint(each[middle - 1], each[middle])
            } else {
                each[middle]
            })
        };
        Some(PerOperation {
            writes: figure(|counts| Some(counts.writes))?,
            bytes: figure(|counts| Some(counts.write_bytes))?,
            flushes: figure(|counts| counts.flushes),
        })
    }
}

fn sum(slices: &[Slice], place: usize, empty_flushes: bool) -> Option<Sum> {
    let counts = counted(slices, place, empty_flushes);
    if counts.is_empty() {
        return None;
    }
    let of = |value: fn(&(&Slice, DeviceCounts)) -> f64| counts.iter().map(value).sum::<f64>();
    let flushes: Option<Vec<u64>> = counts.iter().map(|(_, counts)| counts.flushes).collect();
    let syncs: Option<Vec<u64>> = counts.iter().map(|(slice, _)| slice.syncs).collect();
    let total = |values: Vec<u64>| values.iter().map(|value| *value as f64).sum::<f64>();
    let counted_operations = of(|(slice, _)| slice.operations as f64);
    Some(Sum {
        writes: of(|(_, counts)| counts.writes as f64),
        flushes: flushes.map(total),
        operations: of(|(slice, _)| covered(slice)),
        operations_per_sync: syncs.map(total).filter(|syncs| *syncs > 0.0).map(|syncs| counted_operations / syncs),
        seconds: of(|(slice, _)| slice.elapsed_ns as f64 / 1e9),
    })
}

/// What the device at `place` did while the probe did nothing, before and between its rounds, and for how long, seconds.
fn idle_of(record: &ProbeRecord, place: usize) -> Option<(DeviceCounts, f64)> {
    let of = |idle: &Idle| Some((idle.devices.get(place).copied().flatten()?, idle.elapsed_us as f64 / 1e6));
    let (before, before_s) = of(&record.idle)?;
    let (between, between_s) = of(&record.pauses).unwrap_or_default();
    let counts = DeviceCounts {
        writes: before.writes + between.writes,
        write_bytes: before.write_bytes + between.write_bytes,
        flushes: before.flushes.map(|flushes| flushes + between.flushes.unwrap_or(0)),
        reads: before.reads + between.reads,
    };
    let seconds = before_s + between_s;
    (seconds > 0.0).then_some((counts, seconds))
}

/// Flushes for an operation without those that others would have caused meanwhile. Others' steady rate is the smaller of
/// those before the rows and in the pauses between them: a burst in one of them is none of the rows'.
fn own_flushes(record: &ProbeRecord, place: usize, sum: &Sum, flushes: f64) -> Option<f64> {
    let rate = |idle: &Idle| {
        let flushes = idle.devices.get(place).copied().flatten()?.flushes?;
        (idle.elapsed_us > 0).then(|| flushes as f64 / (idle.elapsed_us as f64 / 1e6))
    };
    let others = [&record.idle, &record.pauses].into_iter().filter_map(rate).reduce(f64::min)?;
    Some((flushes - others * sum.seconds).max(0.0) / sum.operations)
}

/// The greatest share that the idle traffic would have of what was counted.
fn idle_share(record: &ProbeRecord, place: usize, sum: &Sum, flushes: Option<f64>) -> Option<f64> {
    let (idle, idle_s) = idle_of(record, place)?;
    let share = |idle: u64, counted: f64| {
        let expected = idle as f64 / idle_s * sum.seconds;
        (counted > 0.0).then(|| (expected / counted).min(1.0))
    };
    let of_flushes = idle.flushes.zip(flushes).and_then(|(idle, counted)| share(idle, counted));
    let of_writes = share(idle.writes, sum.writes);
    of_writes.into_iter().chain(of_flushes).reduce(f64::max)
}

/// "1.0 write of 8 KiB + 1.0 flush".
fn words(work: &DeviceWork) -> String {
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
    if let Some(per_sync) = work.flushes_per_sync {
        text.push_str(&format!(" ({} per sync)", amount(per_sync, "flush", "flushes")));
    }
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

/// Traffic of each device that has counters while the probe did nothing.
pub(super) fn idle(record: &ProbeRecord) -> Vec<IdleTraffic> {
    let one = |(place, device): (usize, &DeviceFacts)| {
        let (counts, seconds) = idle_of(record, place)?;
        Some(IdleTraffic {
            device: device.name.clone(),
            writes_per_s: counts.writes as f64 / seconds,
            write_bytes_per_s: counts.write_bytes as f64 / seconds,
            flushes_per_s: counts.flushes.map(|flushes| flushes as f64 / seconds),
        })
    };
    record.place.devices.iter().enumerate().filter_map(one).collect()
}
