//! Limits of counters: empty flushes, journals, legs of a stack, busy CPUs.

use super::*;
use crate::record::facts::DeviceFacts;

#[test]
fn journal_commits_that_carry_flushes_do_not_hide_writes() {
    use crate::record::probe::Growth;
    let counts =
        |writes, write_bytes, flushes| Some(DeviceCounts { writes, write_bytes, flushes: Some(flushes), reads: 0 });
    let record = changed(|record| {
        record.growth.retain(|growth| growth.written_bytes > 0);
        let devices = vec![counts(1, 0, 1)];
        record.growth.push(Growth { written_bytes: 0, write_ns: 0, sync_ns: 1, at_us: 0, devices });
        for slice in &mut row_of(record, "one_write.fsync").slices {
            let n = slice.operations;
            slice.devices = vec![counts(2 * n, 12_288 * n, 2 * n)];
        }
    });
    let findings = found(&record);
    let row = findings.rows.iter().find(|row| row.spec.id == "one_write.fsync").unwrap();
    assert_eq!(row.work[0].writes_per_op, 2.0);
    assert_eq!(rule(&findings, "no_write"), None);
}

#[test]
fn busy_cpus_are_said_and_change_no_credibility() {
    use crate::record::probe::CpuWait;
    let busy = |own_us, some_us| CpuWait { elapsed_us: 1_000_000, own_us: Some(own_us), some_us: Some(some_us) };
    let idle = found(&changed(|record| record.cpu = Some(busy(1000, 10_000))));
    assert!(!idle.caveats.iter().any(|caveat| caveat.contains("CPU")), "{:?}", idle.caveats);
    for wait in [busy(200_000, 10_000), busy(0, 500_000)] {
        let findings = found(&changed(|record| record.cpu = Some(wait)));
        assert_eq!(findings.credibility.kind, CredibilityKind::Flushed);
        assert!(findings.caveats.iter().any(|caveat| caveat.contains("CPU")), "{:?}", findings.caveats);
    }
}

#[test]
fn the_bottom_device_of_the_shorter_leg_is_checked_too() {
    let record = changed(|record| {
        let leaf = |name: &str, depth, leaf| DeviceFacts { stands_on_nothing: Some(leaf), ..device(name, depth) };
        let mut short = leaf("sda", 1, true);
        short.write_cache = None;
        record.place.devices =
            vec![leaf("dm-0", 0, false), short, leaf("nvme0n1p1", 1, false), leaf("nvme0n1", 2, true)];
    });
    assert!(found(&record).credibility.reason.contains("sda"), "{:?}", found(&record).credibility);
}

#[test]
fn empty_flushes_counted_as_writes_are_subtracted_from_writes() {
    use crate::record::probe::Growth;
    let counts =
        |writes, write_bytes, flushes| Some(DeviceCounts { writes, write_bytes, flushes: Some(flushes), reads: 0 });
    let mut record = honest();
    let row = row_of(&mut record, "one_write.fdatasync");
    for slice in &mut row.slices {
        slice.devices = vec![counts(2 * slice.operations, 8192 * slice.operations, slice.operations)];
    }
    // A neighbor's burst in one slice.
    row.slices[0].devices = vec![counts(900, 1 << 30, row.slices[0].operations)];
    let empty = Growth { written_bytes: 0, write_ns: 0, sync_ns: 1, at_us: 0, devices: vec![counts(1, 0, 1)] };
    record.growth.retain(|growth| growth.written_bytes > 0);
    let work = |record: &ProbeRecord| {
        let findings = find(record, 18);
        let row = findings.rows.iter().find(|row| row.spec.id == "one_write.fdatasync").unwrap().clone();
        (row.work[0].writes_per_op, row.work[0].bytes_per_op, row.work[0].flushes_per_op)
    };
    assert_eq!(work(&record), (2.0, 8192.0, Some(1.0)));
    record.growth.push(empty);
    assert_eq!(work(&record), (1.0, 8192.0, Some(1.0)));
}

#[test]
fn a_buffered_synced_write_without_a_flush_is_not_recommended() {
    let record = changed(|record| {
        record.place.devices[0].fua = Some(true);
        let row = row_of(record, "wal.open_datasync.recycled");
        paced(row, 5000);
        counted(row, 0, 1.0, Some(0.0));
    });
    let recommendation = found(&record).recommendation;
    assert!(recommendation.candidates[0].excluded_because.as_ref().unwrap().contains("no flush was seen"));
    assert_ne!(recommendation.wal_sync_method.as_deref(), Some("open_datasync"));
}

#[test]
fn steady_traffic_of_others_lowers_credibility_but_bursts_do_not() {
    use crate::record::probe::Idle;
    let idle = |flushes| Idle {
        elapsed_us: 500_000,
        devices: vec![Some(DeviceCounts { writes: flushes, flushes: Some(flushes), ..DeviceCounts::default() })],
    };
    let kind = |before, between| {
        let record = changed(|record| (record.idle, record.pauses) = (idle(before), idle(between)));
        found(&record).credibility.kind
    };
    assert_eq!(kind(2000, 10), CredibilityKind::Flushed);
    assert_eq!(kind(10, 2000), CredibilityKind::Flushed);
    assert_eq!(kind(400, 2000), CredibilityKind::Unknown);
}
