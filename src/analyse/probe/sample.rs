//! Synthetic probes for tests: an honest disk by default, and functions that change it.

use crate::record::facts::{DeviceFacts, MountFacts, WriteCache};
use crate::record::probe::{
    DeviceCounts, FORMAT, Failure, Family, Growth, Idle, PlaceFacts, ProbeRecord, RowRecord, RowSpec, SecondLatencies,
    Segment, Slice, Slow, Way,
};
use crate::record::promise;

const SLICES: u64 = 20;
const SLICE_NS: u64 = 50_000_000;

/// A device that reports write back.
pub fn device(name: &str, depth: u32) -> DeviceFacts {
    DeviceFacts {
        name: name.to_owned(),
        depth,
        write_cache: Some(WriteCache::WriteBack),
        fua: Some(false),
        rotational: Some(false),
        counts_flushes: Some(true),
        has_queue: Some(true),
        writes_before: Some(1000),
        flushes_before: Some(1000),
        ..DeviceFacts::default()
    }
}

/// A probe on ext4 on an NVMe drive: 1000 syncs per second, each one write and one flush.
pub fn honest() -> ProbeRecord {
    let mount = MountFacts { target: "/data".to_owned(), fstype: "ext4".to_owned(), ..MountFacts::default() };
    let mut record = ProbeRecord {
        format: FORMAT,
        tool_version: "0.0.0".to_owned(),
        started: "2026-03-02T09:14:33Z".to_owned(),
        precision: 0.05,
        budget_us: 10_000_000,
        elapsed_us: 9_000_000,
        place: PlaceFacts {
            folder: "/data/pg".to_owned(),
            mount: Some(mount),
            devices: vec![device("nvme0n1", 0)],
            kernel: "6.1.0".to_owned(),
            free_bytes: Some(1 << 40),
            ..PlaceFacts::default()
        },
        file_bytes: 16 << 20,
        segment_bytes: 16 << 20,
        idle: Idle { elapsed_us: 500_000, devices: vec![Some(DeviceCounts::default())] },
        ..ProbeRecord::default()
    };
    for family in [Family::OneWrite, Family::TwoWrites] {
        let (writes, per_s) = if family == Family::OneWrite { (1, 1000) } else { (2, 950) };
        let name = if writes == 1 { "one_write" } else { "two_writes" };
        for (way, label, direct) in ways() {
            let spec = spec(&format!("{name}.{label}"), family, label, way);
            let spec = RowSpec { writes, direct, ..spec };
            let per_s = if direct { 1000 / u64::from(writes) } else { per_s };
            record.rows.push(row(spec, per_s, u64::from(writes)));
        }
    }
    for (way, label, _) in ways() {
        let spec = spec(&format!("wal.{label}.recycled"), Family::Wal, label, way);
        record.rows.push(row(RowSpec { segment: Some(Segment::Recycled), ..spec }, 1000, 1));
    }
    for (bytes, sync_ns) in [(0u64, 100_000), (64 << 10, 900_000), (1 << 20, 1_500_000), (16 << 20, 9_000_000)] {
        let counts = DeviceCounts { writes: bytes.div_ceil(512 << 10), write_bytes: bytes, ..DeviceCounts::default() };
        record.growth.push(Growth {
            written_bytes: bytes,
            write_ns: bytes / 4,
            sync_ns,
            at_us: 1,
            devices: vec![Some(DeviceCounts { flushes: Some(1), ..counts })],
        });
    }
    record
}

fn ways() -> [(Way, &'static str, bool); 4] {
    [
        (Way::OpenDatasync, "open_datasync", true),
        (Way::Fdatasync, "fdatasync", false),
        (Way::Fsync, "fsync", false),
        (Way::OpenSync, "open_sync", true),
    ]
}

/// One buffered write of 8 kB by one writer.
pub fn spec(id: &str, family: Family, label: &str, way: Way) -> RowSpec {
    RowSpec {
        id: id.to_owned(),
        family,
        label: label.to_owned(),
        way,
        write_bytes: 8192,
        writes: 1,
        direct: false,
        writers: 1,
        segment: None,
    }
}

/// A row at rate `per_s` with `writes` writes and one flush per operation.
pub fn row(spec: RowSpec, per_s: u64, writes: u64) -> RowRecord {
    let mut row = RowRecord {
        spec,
        unavailable: None,
        failure: None,
        slices: Vec::new(),
        seconds: Vec::new(),
        slowest: Vec::new(),
        segments_us: Vec::new(),
    };
    paced(&mut row, per_s);
    counted(&mut row, 0, writes as f64, Some(1.0));
    row
}

/// Sets a row's rate to `per_s`, with little noise. Device counters are removed.
pub fn paced(row: &mut RowRecord, per_s: u64) {
    let latency = 1_000_000_000 / per_s.max(1);
    row.slices = (0..SLICES)
        .map(|i| {
            let operations = (SLICE_NS / latency.max(1)).max(1);
            // Slices vary slightly in speed.
            let elapsed_ns = operations * latency * (99 + i * 7 % 3) / 100;
            Slice { at_us: i * 100_000, elapsed_ns: elapsed_ns.max(1), operations, ..Slice::default() }
        })
        .collect();
    let operations = row.slices.iter().map(|slice| slice.operations).sum();
    row.seconds = vec![SecondLatencies { second: 1, latencies: vec![(latency, operations)] }];
    row.slowest = vec![Slow { at_us: 5, latency_ns: latency }];
}

/// Sets the work of the device at `place` per operation of a row.
pub fn counted(row: &mut RowRecord, place: usize, writes: f64, flushes: Option<f64>) {
    for slice in &mut row.slices {
        let operations = slice.operations as f64;
        slice.devices.resize((place + 1).max(slice.devices.len()), None);
        // Counters are whole numbers, rounded up.
        slice.devices[place] = Some(DeviceCounts {
            writes: (operations * writes).ceil() as u64,
            write_bytes: (operations * writes).ceil() as u64 * 8192,
            flushes: flushes.map(|flushes| (operations * flushes).ceil() as u64),
            reads: 0,
        });
    }
}

/// Sets the rate of every row; counters are unchanged.
pub fn all_at(record: &mut ProbeRecord, per_s: u64) {
    for row in &mut record.rows {
        let writes = row.spec.writes;
        paced(row, if writes == 2 && row.spec.direct { per_s / 2 } else { per_s });
        counted(row, 0, f64::from(writes), Some(1.0));
    }
}

/// The same probe on a filesystem with no visible device below.
pub fn without_devices(mut record: ProbeRecord, fstype: &str) -> ProbeRecord {
    record.place.devices.clear();
    record.place.ends = vec![promise::of_end("/data", fstype)];
    record.place.mount = Some(MountFacts { fstype: fstype.to_owned(), ..MountFacts::default() });
    record.idle.devices.clear();
    record.rows.iter_mut().flat_map(|row| &mut row.slices).for_each(|slice| slice.devices.clear());
    record.growth.iter_mut().for_each(|growth| growth.devices.clear());
    record
}

pub fn find<'a>(record: &'a mut ProbeRecord, id: &str) -> &'a mut RowRecord {
    record.rows.iter_mut().find(|row| row.spec.id == id).expect("the sample has this row")
}

pub fn failure() -> Failure {
    Failure {
        call: "fdatasync".to_owned(),
        errno: Some(5),
        message: "EIO: Input/output error".to_owned(),
        at_us: 2_500_000,
        after_operations: 17,
    }
}
