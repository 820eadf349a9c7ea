//! Every credibility rule, convicting and acquitting; the recommendation; findings of the rows.

mod counters;

use super::find;
use super::findings::{FiredRule, ProbeFindings};
use super::sample::{all_at, counted, device, failure, find as row_of, honest, paced, without_devices};
use crate::analyse::findings::CredibilityKind;
use crate::record::claim::{Claim, Promise};
use crate::record::facts::WriteCache;
use crate::record::probe::{DeviceCounts, ProbeRecord};
use crate::record::promise;
use std::collections::BTreeSet;

fn found(record: &ProbeRecord) -> ProbeFindings {
    find(record, 18)
}

fn rule<'a>(findings: &'a ProbeFindings, name: &str) -> Option<&'a FiredRule> {
    findings.credibility.rules.iter().find(|rule| rule.name == name)
}

/// Asserts the credibility, and that the rule fired with a source and a sentence.
fn assert_convicted(record: &ProbeRecord, kind: CredibilityKind, name: &str) {
    let findings = found(record);
    let fired = rule(&findings, name).unwrap_or_else(|| panic!("{name}: {:?}", findings.credibility));
    assert!(!fired.source.is_empty() && !fired.sentence.is_empty());
    assert_eq!(findings.credibility.kind, kind, "{name}: {:?}", findings.credibility);
}

/// Asserts the credibility, and that the rule did not fire.
fn assert_acquitted(record: &ProbeRecord, kind: CredibilityKind, name: &str) {
    let findings = found(record);
    assert_eq!(rule(&findings, name), None);
    assert_eq!(findings.credibility.kind, kind, "{name}: {:?}", findings.credibility);
}

fn changed(change: impl FnOnce(&mut ProbeRecord)) -> ProbeRecord {
    let mut record = honest();
    change(&mut record);
    record
}

fn write_through(record: &mut ProbeRecord) {
    record.place.devices.iter_mut().for_each(|device| device.write_cache = Some(WriteCache::WriteThrough));
    record.rows.iter_mut().for_each(|row| counted(row, 0, f64::from(row.spec.writes), Some(0.0)));
}

/// Adds a device with counters to every row.
fn below(record: &mut ProbeRecord, name: &str, flushes: Option<f64>) {
    let place = record.place.devices.len();
    record.place.devices.push(device(name, 1));
    record.rows.iter_mut().for_each(|row| counted(row, place, 1.0, flushes));
    record.growth.iter_mut().for_each(|growth| growth.devices.push(None));
}

#[test]
fn flushes_plausible_at_every_level_are_believed_but_not_proven() {
    let findings = found(&honest());
    assert_eq!(findings.credibility.kind, CredibilityKind::Flushed, "{:?}", findings.credibility);
    assert!(findings.credibility.reason.contains("1.0 flush per \"fdatasync\""), "{}", findings.credibility.reason);
    assert!(findings.credibility.would_settle_it.contains("plug"));
    assert!(findings.credibility.headline.is_none());
}

#[test]
fn memory_is_recognised_by_filesystem_device_or_end_of_chain() {
    for fstype in ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"] {
        let record = changed(|record| record.place.mount.as_mut().unwrap().fstype = fstype.to_owned());
        assert_convicted(&record, CredibilityKind::Memory, "memory_filesystem");
    }
    for name in ["zram0", "ram1", "nullb0"] {
        let record = changed(|record| record.place.devices[0].name = name.to_owned());
        assert_convicted(&record, CredibilityKind::Memory, "memory_device");
    }
    let record = changed(|record| record.place.devices[0].model = Some("scsi_debug      ".to_owned()));
    assert_convicted(&record, CredibilityKind::Memory, "memory_device");
    let record = changed(|record| record.place.ends.push(promise::of_end("/dev/shm", "tmpfs")));
    assert_convicted(&record, CredibilityKind::Memory, "memory_below");
    assert_acquitted(&honest(), CredibilityKind::Flushed, "memory_device");
}

#[test]
fn a_mount_option_that_holds_flushes_back_is_named() {
    for option in ["nobarrier", "barrier=0"] {
        let record =
            changed(|record| record.place.mount.as_mut().unwrap().super_options = vec!["rw".into(), option.into()]);
        assert_convicted(&record, CredibilityKind::NoFlushSeen, "mount_option");
    }
    let below = "mount option nobarrier at /srv";
    let record = changed(|record| record.place.ends.push(Promise::new(Claim::HoldsFlushesBack, below)));
    assert_convicted(&record, CredibilityKind::NoFlushSeen, "mount_option");
    assert!(found(&record).credibility.reason.contains(below));
    let record = changed(|record| record.place.mount.as_mut().unwrap().super_options = vec!["barrier=1".into()]);
    assert_acquitted(&record, CredibilityKind::Flushed, "mount_option");
}

#[test]
fn a_volatile_cache_not_flushed_by_a_sync_is_suspect() {
    let record = changed(|record| counted(row_of(record, "one_write.fdatasync"), 0, 1.0, Some(0.1)));
    assert_convicted(&record, CredibilityKind::NoFlushSeen, "no_flush");
    let record = changed(|record| counted(row_of(record, "one_write.fdatasync"), 0, 1.0, Some(0.6)));
    assert_acquitted(&record, CredibilityKind::Flushed, "no_flush");
    let record = changed(|record| below(record, "sda", Some(0.0)));
    assert_convicted(&record, CredibilityKind::NoFlushSeen, "no_flush");
    let record = changed(|record| below(record, "sda", Some(1.0)));
    assert_acquitted(&record, CredibilityKind::Flushed, "no_flush");
}

#[test]
fn flushes_not_counted_by_the_kernel_lead_to_no_accusation() {
    // A partition and its disk; device mapper above a disk: neither counts.
    for (name, has_queue) in [("sda2", None), ("dm-0", Some(false))] {
        let record = changed(|record| {
            record.place.devices[0].name = name.to_owned();
            record.place.devices[0].has_queue = has_queue;
            record.rows.iter_mut().for_each(|row| counted(row, 0, f64::from(row.spec.writes), Some(0.0)));
            below(record, "sda", Some(1.0));
        });
        assert_acquitted(&record, CredibilityKind::Flushed, "no_flush");
    }
    assert_acquitted(&changed(write_through), CredibilityKind::DeclaredStable, "no_flush");
    // Two members, of which only the one that holds the block is flushed.
    let record = changed(|record| {
        record.place.devices.push(device("nvme1n1", 0));
        record.rows.iter_mut().for_each(|row| counted(row, 1, 0.0, Some(0.0)));
        record.growth.iter_mut().for_each(|growth| growth.devices.push(Some(DeviceCounts::default())));
    });
    assert!(rule(&found(&record), "no_flush").is_none());
}

#[test]
fn a_sync_after_which_nothing_is_written_is_suspect() {
    let record = changed(|record| counted(row_of(record, "one_write.fsync"), 0, 0.02, Some(1.0)));
    assert_convicted(&record, CredibilityKind::NoFlushSeen, "no_write");
    let record = changed(|record| counted(row_of(record, "one_write.fsync"), 0, 3.0, Some(1.0)));
    assert_acquitted(&record, CredibilityKind::Flushed, "no_write");
}

#[test]
fn data_not_reaching_the_device_are_suspect_unless_compressed() {
    let lost = |record: &mut ProbeRecord| {
        record.growth.iter_mut().for_each(|growth| growth.devices = vec![Some(DeviceCounts::default())]);
    };
    assert_convicted(&changed(lost), CredibilityKind::NoFlushSeen, "growth_did_not_arrive");
    let record = changed(|record| {
        lost(record);
        record.place.mount.as_mut().unwrap().super_options.push("compress=zstd:3".to_owned());
    });
    assert_acquitted(&record, CredibilityKind::Flushed, "growth_did_not_arrive");
}

#[test]
fn a_sync_beyond_bus_speed_is_suspect_where_nothing_arrived() {
    let instant = |mut record: ProbeRecord| {
        record.growth.iter_mut().for_each(|growth| growth.sync_ns = 5_000);
        record
    };
    let blind = instant(without_devices(honest(), "fuse.x"));
    assert_convicted(&blind, CredibilityKind::NoFlushSeen, "growth_beyond_the_bus");
    let uncounted = changed(|record| record.growth.iter_mut().for_each(|growth| growth.devices = vec![None]));
    assert_convicted(&instant(uncounted), CredibilityKind::Implausible, "growth_beyond_the_bus");
    // The data arrived during the writes: nothing was left to the sync.
    assert_acquitted(&instant(honest()), CredibilityKind::Flushed, "growth_beyond_the_bus");
    let slow = without_devices(honest(), "fuse.x");
    assert_acquitted(&slow, CredibilityKind::Unknown, "growth_beyond_the_bus");
    let mut synchronous = blind;
    synchronous.place.mount.as_mut().unwrap().options.push("sync".to_owned());
    assert_acquitted(&synchronous, CredibilityKind::Unknown, "growth_beyond_the_bus");
}

#[test]
fn a_disk_cannot_turn_faster_than_disks_turn() {
    let disk = |per_s: u64| {
        changed(|record| {
            record.place.devices[0].name = "sda".to_owned();
            record.place.devices[0].rpm = Some(7200);
            all_at(record, per_s);
        })
    };
    assert_convicted(&disk(200), CredibilityKind::Implausible, "rotation");
    assert_acquitted(&disk(100), CredibilityKind::Flushed, "rotation");
    let mut controller = disk(200);
    write_through(&mut controller);
    assert_convicted(&controller, CredibilityKind::DeclaredStable, "rotation");
}

#[test]
fn the_rotational_flag_of_the_kernel_is_worth_nothing() {
    // The flag is set for everything that does not report non-rotational: RAID controllers, SAN LUNs, virtual disks.
    let spin = |record: &mut ProbeRecord, name: &str| {
        record.place.devices[0].name = name.to_owned();
        record.place.devices[0].rotational = Some(true);
        all_at(record, 2500);
    };
    for name in ["vda", "sda"] {
        assert_acquitted(&changed(|record| spin(record, name)), CredibilityKind::Flushed, "rotation");
    }
    let guest = changed(|record| {
        spin(record, "sda");
        record.place.hypervisor = Some("KVM".to_owned());
    });
    assert_acquitted(&guest, CredibilityKind::Flushed, "rotation");
    assert!(found(&guest).credibility.sight_ends[0].contains("sda is a virtual disk"));
}

#[test]
fn flushes_faster_than_flash_are_unexplained_without_power_loss_protection() {
    let metal = changed(|record| all_at(record, 25_000));
    assert_convicted(&metal, CredibilityKind::Unexplained, "fast_flush");
    assert!(found(&metal).recommendation.reason.contains("the times are unexplained"));
    // Between 50 and 300 us the rule fires without changing the credibility.
    assert_convicted(&changed(|record| all_at(record, 10_000)), CredibilityKind::Flushed, "fast_flush");
    assert_acquitted(&changed(|record| all_at(record, 3_000)), CredibilityKind::Flushed, "fast_flush");
    let protected = changed(|record| {
        all_at(record, 25_000);
        write_through(record);
    });
    assert_acquitted(&protected, CredibilityKind::DeclaredStable, "fast_flush");
}

#[test]
fn a_fast_flush_of_a_virtual_disk_has_unknown_credibility() {
    let as_disk = |record: &mut ProbeRecord| record.place.devices[0].name = "vda".to_owned();
    let in_guest = |record: &mut ProbeRecord| record.place.hypervisor = Some("KVM".to_owned());
    for virtual_disk in [as_disk, in_guest] {
        let record = changed(|record| {
            all_at(record, 20_000);
            virtual_disk(record);
        });
        assert_convicted(&record, CredibilityKind::Unknown, "fast_flush");
        let findings = found(&record);
        let said = &rule(&findings, "fast_flush").unwrap().sentence;
        for words in
            ["is 50 us", "the host's storage is protected or ignores flushes, which is not visible from the guest"]
        {
            assert!(said.contains(words), "{said}");
        }
        let settles = &findings.credibility.would_settle_it;
        assert!(settles.contains("cut the host's power"), "{settles}");
    }
}

#[test]
fn credibility_near_a_threshold_is_stable_over_twenty_probes() {
    // The fastest tenth of an unchanged disk varied by a sixth over twenty probes; ranges in us, the nearest end 5 %
    // from the threshold.
    for (name, from, to, kind) in [
        ("vda", 240.0, 285.0, CredibilityKind::Unknown),
        ("vda", 315.0, 375.0, CredibilityKind::Flushed),
        ("nvme0n1", 40.0, 47.5, CredibilityKind::Unexplained),
        ("nvme0n1", 52.5, 62.5, CredibilityKind::Flushed),
        ("nvme0n1", 285.0, 315.0, CredibilityKind::Flushed),
    ] {
        for probe in 0..20 {
            let us = from + (to - from) * f64::from(probe) / 19.0;
            let record = changed(|record| {
                record.place.devices[0].name = name.to_owned();
                all_at(record, (1e6 / us) as u64);
            });
            assert_eq!(found(&record).credibility.kind, kind, "{name} at {us} us");
        }
    }
}

#[test]
fn noise_of_an_unchanged_disk_does_not_change_its_credibility() {
    // Times of 20 to 220 us per operation, as one disk varies between probes; CPUs and neighbours are occasionally busy.
    use crate::record::probe::CpuWait;
    for name in ["vda", "nvme0n1"] {
        let kinds: BTreeSet<String> = (0..20u64)
            .map(|probe| {
                let record = changed(|record| {
                    record.place.devices[0].name = name.to_owned();
                    let fastest = if name == "vda" { 45_000 } else { 15_000 };
                    all_at(record, fastest - probe * fastest / 25);
                    let wait = 15_000 * probe;
                    record.cpu =
                        Some(CpuWait { elapsed_us: 1_000_000, own_us: Some(wait / 2), some_us: Some(2 * wait) });
                    let counts =
                        DeviceCounts { writes: 10 * probe, flushes: Some(10 * probe), ..DeviceCounts::default() };
                    record.idle.devices = vec![Some(counts)];
                });
                format!("{:?}", found(&record).credibility.kind)
            })
            .collect();
        assert_eq!(kinds.len(), 1, "{name}: {kinds:?}");
    }
}

/// A device that replaces the disk, with counters as if since boot.
fn uncounted(name: &str, writes: f64) -> ProbeRecord {
    changed(|record| {
        let device = &mut record.place.devices[0];
        (device.name, device.has_queue, device.flushes_before) = (name.to_owned(), Some(false), Some(0));
        device.writes_before = Some(if writes > 0.0 { 1000 } else { 0 });
        record.rows.iter_mut().for_each(|row| counted(row, 0, writes, Some(0.0)));
        let bytes = |written: u64| if writes > 0.0 { written } else { 0 };
        for growth in &mut record.growth {
            growth.devices = vec![Some(DeviceCounts {
                write_bytes: bytes(growth.written_bytes),
                flushes: Some(0),
                ..Default::default()
            })];
        }
    })
}

#[test]
fn drivers_that_count_no_flush_are_accused_of_nothing() {
    for name in ["nvme0n1", "zd0", "pmem0", "btt0"] {
        let record = uncounted(name, 1.0);
        assert_acquitted(&record, CredibilityKind::Unknown, "no_flush");
        let reason = found(&record).credibility.reason;
        assert!(reason.contains(&format!("flushes at {name} are not counted")), "{reason}");
    }
}

#[test]
fn a_multipath_nvme_without_counters_is_judged_by_hidden_path() {
    let head = uncounted("nvme0n1", 0.0);
    for rule in ["no_flush", "no_write", "growth_did_not_arrive"] {
        assert_acquitted(&head, CredibilityKind::Unknown, rule);
    }
    let mut through = head.clone();
    through.place.devices[0].write_cache = Some(WriteCache::WriteThrough);
    assert_acquitted(&through, CredibilityKind::Unknown, "no_write");
    let reason = found(&through).credibility.reason;
    assert!(reason.contains("reports write through, but 0 writes per operation were counted"), "{reason}");
    let mut with_path = head;
    with_path.place.devices[0].stands_on_nothing = Some(false);
    below(&mut with_path, "nvme0c0n1", Some(1.0));
    with_path.place.devices[1].stands_on_nothing = Some(true);
    assert_eq!(found(&with_path).credibility.kind, CredibilityKind::Flushed, "{:?}", found(&with_path).credibility);
    with_path.place.devices[1].write_cache = Some(WriteCache::WriteThrough);
    assert_eq!(found(&with_path).credibility.kind, CredibilityKind::DeclaredStable);
}

#[test]
fn a_counter_counts_only_once_it_has_moved() {
    let silent = |flushes_before| {
        changed(|record| {
            record.place.devices[0].flushes_before = Some(flushes_before);
            record.rows.iter_mut().for_each(|row| counted(row, 0, f64::from(row.spec.writes), Some(0.0)));
            record.growth.iter_mut().flat_map(|growth| &mut growth.devices).flatten().for_each(|counts| {
                counts.flushes = Some(0);
            });
        })
    };
    assert_convicted(&silent(7), CredibilityKind::NoFlushSeen, "no_flush");
    assert_acquitted(&silent(0), CredibilityKind::Unknown, "no_flush");
    let mut tested = silent(0);
    tested.test_sync = vec![Some(DeviceCounts { flushes: Some(1), ..DeviceCounts::default() })];
    assert_convicted(&tested, CredibilityKind::NoFlushSeen, "no_flush");
}

#[test]
fn a_filesystem_without_a_journal_is_said_to_be_one() {
    let record = changed(|record| record.place.mount.as_mut().unwrap().journal = Some(false));
    let credibility = found(&record).credibility;
    assert_eq!(credibility.kind, CredibilityKind::Flushed);
    assert!(credibility.reason.ends_with("ext4 without a journal: a power cut may destroy the filesystem"));
}

#[test]
fn syncs_that_reach_only_memory_are_implausible_on_any_device() {
    let record = changed(|record| {
        all_at(record, 200_000);
        write_through(record);
    });
    assert_convicted(&record, CredibilityKind::Implausible, "too_many_syncs");
    let record = changed(|record| {
        all_at(record, 40_000);
        write_through(record);
    });
    assert_acquitted(&record, CredibilityKind::DeclaredStable, "too_many_syncs");
}

#[test]
fn two_synced_writes_that_cost_one_contradict_each_other() {
    let record = changed(|record| {
        let row = row_of(record, "two_writes.open_datasync");
        paced(row, 980);
        counted(row, 0, 2.0, Some(2.0));
    });
    assert_convicted(&record, CredibilityKind::Unknown, "open_datasync_does_not_halve");
    assert_acquitted(&honest(), CredibilityKind::Flushed, "open_datasync_does_not_halve");
}

#[test]
fn what_only_informs_changes_no_credibility() {
    let dear = changed(|record| {
        let row = row_of(record, "two_writes.fdatasync");
        paced(row, 400);
        counted(row, 0, 2.0, Some(1.0));
    });
    assert_convicted(&dear, CredibilityKind::Flushed, "two_writes_cost_more");
    assert_acquitted(&honest(), CredibilityKind::Flushed, "two_writes_cost_more");
    let flat = changed(|record| record.growth.iter_mut().for_each(|growth| growth.sync_ns = 1_000_000));
    assert_convicted(&flat, CredibilityKind::Flushed, "flat_growth");
    assert_acquitted(&honest(), CredibilityKind::Flushed, "flat_growth");
    let findings = found(&changed(|record| {
        let row = row_of(record, "one_write.fsync");
        paced(row, 250);
        counted(row, 0, 3.0, Some(2.0));
    }));
    let journal = rule(&findings, "journal").unwrap();
    assert!((journal.number.unwrap() - 4.0).abs() < 0.1 && journal.speaks_for.is_none(), "{journal:?}");
}

#[test]
fn traffic_of_others_revokes_trust_but_not_suspicion() {
    let busy = |record: &mut ProbeRecord| {
        let counts = DeviceCounts { writes: 400, flushes: Some(400), ..DeviceCounts::default() };
        record.idle.devices = vec![Some(counts)];
    };
    // With idle traffic of only a tenth, the rest is certainly ours.
    let little = changed(|record| {
        let counts = DeviceCounts { writes: 60, flushes: Some(60), ..DeviceCounts::default() };
        record.idle.devices = vec![Some(counts)];
    });
    assert!(found(&little).rows[1].work[0].worthless);
    assert_eq!(found(&little).credibility.kind, CredibilityKind::Flushed);
    let findings = found(&changed(busy));
    assert_eq!(findings.credibility.kind, CredibilityKind::Unknown);
    assert!(findings.credibility.reason.contains("other programs use it too"), "{}", findings.credibility.reason);
    assert!(findings.rows[1].work[0].worthless && findings.rows[1].work[0].words.contains("not usable"));
    let record = changed(|record| {
        busy(record);
        counted(row_of(record, "one_write.fdatasync"), 0, 1.0, Some(0.1));
    });
    assert_convicted(&record, CredibilityKind::NoFlushSeen, "no_flush");
}

#[test]
fn a_failed_sync_is_reported_before_everything_else() {
    let findings = found(&changed(|record| row_of(record, "one_write.fsync").failure = Some(failure())));
    let headline = findings.credibility.headline.unwrap();
    assert!(headline.contains("a sync failed") && headline.contains("EIO"), "{headline}");
    assert_eq!(findings.recommendation.wal_sync_method, None);
    let findings = found(&changed(|record| {
        for (id, call, errno) in [("one_write.open_sync", "write", 22), ("one_write.open_datasync", "open", 28)] {
            let mut refused = failure();
            refused.call = call.to_owned();
            refused.errno = Some(errno);
            row_of(record, id).failure = Some(refused);
        }
    }));
    assert_eq!(findings.credibility.headline, None);
    let mut lost = honest();
    let mut broken = failure();
    broken.call = "write".to_owned();
    row_of(&mut lost, "one_write.open_sync").failure = Some(broken);
    assert!(found(&lost).credibility.headline.is_some(), "a write through O_SYNC that ends in EIO is a failed sync");
}

#[test]
fn device_writes_of_others_are_separated_from_a_rows_writes() {
    let has_caveat =
        |record: &ProbeRecord| found(record).caveats.iter().any(|caveat| caveat.contains("other programs wrote"));
    assert!(!has_caveat(&honest()));
    let record = changed(|record| {
        let row = row_of(record, "one_write.fsync");
        row.slices
            .iter_mut()
            .flat_map(|slice| &mut slice.devices)
            .flatten()
            .for_each(|counts| counts.write_bytes *= 40);
    });
    assert!(has_caveat(&record));
}

#[test]
fn what_cannot_be_seen_is_unknown_with_its_reason() {
    let reason = |record: &ProbeRecord| {
        let credibility = found(record).credibility;
        assert_eq!(credibility.kind, CredibilityKind::Unknown, "{credibility:?}");
        credibility.reason
    };
    assert!(reason(&changed(|record| record.rows.clear())).contains("no fdatasync or fsync was measured"));
    assert!(reason(&changed(|record| record.place.ends.push(promise::of_end("/x", "overlay")))).contains("overlay"));
    assert!(reason(&changed(|record| record.place.devices[0].write_cache = None)).contains("does not report"));
    let record = changed(|record| record.place.devices[0].counts_flushes = Some(false));
    assert!(reason(&record).contains("not counted"));
}

#[test]
fn synced_writes_without_flushes_are_presumed_fua_where_supported() {
    let record = changed(|record| {
        record.place.devices[0].fua = Some(true);
        counted(row_of(record, "one_write.open_datasync"), 0, 1.0, Some(0.0));
    });
    let findings = found(&record);
    let work = &findings.rows[0].work[0];
    assert!(work.fua_presumed && work.words.contains("FUA presumably"), "{}", work.words);
    assert_eq!(findings.credibility.kind, CredibilityKind::Flushed);
}

#[test]
fn a_method_is_recommended_only_if_surely_faster_and_flushing() {
    let line = |record: &ProbeRecord| found(record).recommendation.line;
    assert_eq!(line(&honest()).unwrap(), "wal_sync_method = fdatasync");
    let faster = |flushes: f64| {
        changed(|record| {
            let row = row_of(record, "wal.open_datasync.recycled");
            paced(row, 2000);
            counted(row, 0, 1.0, Some(flushes));
        })
    };
    assert_eq!(line(&faster(1.0)).unwrap(), "wal_sync_method = open_datasync");
    let unflushed = found(&faster(0.0)).recommendation;
    assert_eq!(unflushed.line.unwrap(), "wal_sync_method = fdatasync");
    let excluded = unflushed.candidates.iter().find(|candidate| candidate.wal_sync_method == "open_datasync").unwrap();
    assert!(excluded.excluded_because.as_ref().unwrap().contains("no flush"));
}

#[test]
fn memory_gets_no_recommendation_and_invisible_devices_the_default() {
    let memory = changed(|record| record.place.mount.as_mut().unwrap().fstype = "tmpfs".to_owned());
    assert_eq!(found(&memory).recommendation.line, None);
    let mut blind = without_devices(honest(), "nfs4");
    paced(row_of(&mut blind, "wal.open_sync.recycled"), 9000);
    assert_eq!(found(&blind).recommendation.wal_sync_method.as_deref(), Some("fdatasync"));
}

#[test]
fn the_folder_stands_in_its_place_among_the_devices() {
    let standing = found(&honest()).standing;
    assert_eq!(standing.row_id.as_deref(), Some("one_write.fdatasync"));
    let here = standing.entries.iter().position(|entry| entry.here).unwrap();
    assert!(standing.entries[here - 1].fdatasync_per_s >= standing.entries[here].fdatasync_per_s);
    assert!(standing.entries[here + 1].fdatasync_per_s <= standing.entries[here].fdatasync_per_s);
    assert_eq!(found(&changed(|record| record.rows.clear())).standing.row_id, None);
}

#[test]
fn a_rate_says_whether_it_is_known_and_why_not() {
    let findings = found(&honest());
    let rate = findings.rows[0].rate.as_ref().unwrap();
    assert!(rate.precise && (rate.per_s - 1000.0).abs() < 10.0, "{rate:?}");
    let why = |change: &dyn Fn(&mut ProbeRecord)| {
        let mut record = honest();
        record.precision = 1e-6;
        change(&mut record);
        found(&record).rows[0].rate.clone().unwrap().imprecise_because.unwrap()
    };
    assert!(why(&|record| record.rows[0].slices.truncate(1)).contains("one slice"));
    assert!(why(&|record| record.rows[0].slices.truncate(5)).contains("too few slices, 5"));
    assert!(why(&|record| record.elapsed_us = record.budget_us).contains("time limit was reached"));
    assert!(why(&|record| record.elapsed_us = record.budget_us / 2).contains("variance between slices is too high"));
}

#[test]
fn commits_that_share_a_sync_are_exempt_from_flush_rules() {
    let record = changed(|record| {
        let row = row_of(record, "wal.fdatasync.recycled");
        row.spec.writers = 8;
        counted(row, 0, 0.25, Some(0.25));
        row.slices.iter_mut().for_each(|slice| slice.syncs = Some(slice.operations / 4));
    });
    let findings = found(&record);
    let row = findings.rows.iter().find(|row| row.spec.writers == 8).unwrap();
    assert!((row.commits_per_sync.unwrap() - 4.0).abs() < 0.2);
    assert!((row.work[0].flushes_per_sync.unwrap() - 1.0).abs() < 0.1, "{:?}", row.work);
    assert_eq!(findings.credibility.kind, CredibilityKind::Flushed);
}

#[test]
fn device_work_outside_the_counted_interval_covers_all_commits() {
    let record = changed(|record| {
        let row = row_of(record, "wal.fdatasync.recycled");
        row.spec.writers = 8;
        // The counters include a ramp and a tail as long as the counted part.
        counted(row, 0, 0.5, Some(0.5));
        for slice in &mut row.slices {
            slice.syncs = Some(slice.operations / 4);
            slice.device_operations = Some(slice.operations * 2);
        }
    });
    let findings = found(&record);
    let work = &findings.rows.iter().find(|row| row.spec.writers == 8).unwrap().work[0];
    assert!((work.flushes_per_op.unwrap() - 0.25).abs() < 0.01, "{work:?}");
    assert!((work.flushes_per_sync.unwrap() - 1.0).abs() < 0.1 && (work.writes_per_op - 0.25).abs() < 0.01, "{work:?}");
}

#[test]
fn the_findings_survive_being_written_and_read() {
    let findings = found(&honest());
    let text = serde_json::to_string(&findings).unwrap();
    let read = serde_json::from_str::<ProbeFindings>(&text).unwrap();
    // A parsed fraction may differ in its last binary digit, so figures are compared by their shapes.
    assert_eq!((&read.credibility, &read.server_equals), (&findings.credibility, &findings.server_equals));
    assert_eq!((read.rows.len(), read.rows[3].latency), (findings.rows.len(), findings.rows[3].latency));
    assert!(text.contains("\"p99_ns\"") && text.contains("\"kind\":\"flushed\""));
}
