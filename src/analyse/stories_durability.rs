//! What the analysis says a commit survives, story by story: each sets one fact and looks at the class and its reason.

use super::findings::{Durability, DurabilityClass};
use super::story::{Act, Floor, Story, disk};
use crate::record::facts::WriteCache;
use crate::record::operation::Writes;
use crate::record::promise::{Claim, Promise};

fn judged(act: &Act) -> Durability {
    Story::of(2, None).with(act).findings().cases[0].durability.clone()
}

fn assert_judged(act: &Act, class: DurabilityClass, reason: &str) {
    let found = judged(act);
    assert!(found.class == class && found.reason.contains(reason), "wanted {class:?} ... {reason}; got {found:?}");
}

/// ext4 on a loop device whose file lies on a disk.
fn on_loop() -> Act {
    let mut act = Act::on("ext4");
    let mut image = disk(0, "loop3");
    image.backing_file = Some("/var/lib/pgstrata/image".to_owned());
    act.stack.devices = vec![image, disk(1, "vda1"), disk(2, "vda")];
    act.flushes = vec![Some(1.0), Some(0.0), Some(1.0)];
    act
}

#[test]
fn flushes_on_the_disk_make_a_case_flushed_and_the_number_is_told() {
    assert_judged(&Act::on("ext4"), DurabilityClass::Flushed, "1 flushes per commit (1 per WAL sync) seen at vda");
}

#[test]
fn a_partition_counts_no_flushes_and_its_disk_is_asked() {
    assert_judged(&on_loop(), DurabilityClass::Flushed, "seen at the loop device, and flushes reach vda");
}

#[test]
fn a_folder_that_was_there_already_says_that_others_flush_its_device_too() {
    let mut act = on_loop();
    act.stack.layer = "directory";
    assert_judged(&act, DurabilityClass::Flushed, "the device is shared");
}

#[test]
fn flushes_that_stop_at_the_loop_device_are_not_enough() {
    let mut act = on_loop();
    act.flushes[2] = Some(0.01);
    assert_judged(&act, DurabilityClass::Unknown, "only 0.01 flushes per commit (0.01 per WAL sync) seen at vda");
}

#[test]
fn flushes_on_the_disk_that_others_cause_do_not_count_for_a_loop_device_without_any() {
    let mut act = on_loop();
    act.flushes = vec![Some(0.0), None, Some(5.0)];
    assert_judged(&act, DurabilityClass::Unknown, "seen at loop3");
}

#[test]
fn a_loop_device_over_something_invisible_stays_unknown() {
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.flushes.truncate(1);
    assert_judged(&act, DurabilityClass::Unknown, "the device below its file /var/lib/pgstrata/image cannot be seen");
}

/// A stack whose devices could not be followed to their end.
fn devices_end(why: &str) -> Vec<Promise> {
    vec![Promise::new(Claim::HiddenBelow, why)]
}

#[test]
fn where_the_devices_can_be_followed_no_further_the_reason_is_given() {
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.flushes.truncate(1);
    act.stack.promises = devices_end("nothing below / (overlay): it does not tell");
    assert_judged(&act, DurabilityClass::Unknown, "were counted at loop3, but nothing below / (overlay)");
    act.stack.devices.clear();
    act.flushes.clear();
    assert_judged(&act, DurabilityClass::Unknown, "visible below ext4: nothing below / (overlay)");
}

#[test]
fn several_devices_at_one_depth_are_judged_together() {
    let mut act = Act::on("btrfs");
    act.stack.devices = vec![disk(0, "vda"), disk(0, "vdb")];
    act.flushes = vec![Some(2.0)];
    assert_judged(&act, DurabilityClass::Flushed, "2 flushes per commit (2 per WAL sync) seen at vda+vdb");
    act.stack.devices[1].write_cache = Some(WriteCache::WriteThrough);
    assert_judged(&act, DurabilityClass::Unknown, "vda+vdb says write through");
}

#[test]
fn a_disk_that_says_write_through_is_sent_no_flush_and_only_its_word_is_left() {
    let mut act = Act::on("ext4");
    act.stack.devices[0].write_cache = Some(WriteCache::WriteThrough);
    act.flushes = vec![Some(0.0)];
    assert_judged(&act, DurabilityClass::Unknown, "vda says write through: the kernel sends it no flushes");
    let mut act = on_loop();
    act.stack.devices[2].write_cache = Some(WriteCache::WriteThrough);
    act.flushes[2] = Some(0.0);
    assert_judged(
        &act,
        DurabilityClass::Unknown,
        "1 flushes per commit (1 per WAL sync) were counted at loop3 above it",
    );
}

#[test]
fn memory_is_volatile_wherever_it_lies() {
    assert_judged(&Act::in_memory(), DurabilityClass::Volatile, "the data lies in memory: filesystem tmpfs");
    let mut act = Act::on("ext4");
    act.stack.devices[0].name = "zram0".to_owned();
    assert_judged(&act, DurabilityClass::Volatile, "block device zram0");
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.stack.promises =
        vec![Promise::new(Claim::Volatile, "nothing below /tmp (tmpfs): it keeps its files in memory")];
    assert_judged(&act, DurabilityClass::Volatile, "the data lies in memory: nothing below /tmp (tmpfs)");
    let mut act = Act::on("ext4");
    act.wal_stack = Some(Act::in_memory().stack);
    assert_judged(&act, DurabilityClass::Volatile, "pg_wal lies in memory: filesystem tmpfs");
}

#[test]
fn mount_options_that_hold_flushes_back_are_volatile_whatever_is_counted() {
    for option in ["nobarrier", "barrier=0"] {
        let mut act = Act::on("ext4");
        act.stack.mount.super_options = vec!["rw".to_owned(), option.to_owned()];
        assert_judged(&act, DurabilityClass::Volatile, &format!("mount option {option}"));
    }
    let mut act = Act::on("ext4");
    act.stack.mount.super_options = vec!["volatile".to_owned()];
    assert_judged(&act, DurabilityClass::Flushed, "");
    act.stack.mount.fstype = "overlay".to_owned();
    assert_judged(&act, DurabilityClass::Volatile, "mount option volatile");
}

#[test]
fn settings_decide_before_counters_and_the_worse_one_first() {
    let delayed = Act::on("ext4").setting("synchronous_commit", "off");
    assert_judged(&delayed, DurabilityClass::Delayed, "synchronous_commit = off");
    assert_judged(&delayed.setting("fsync", "off"), DurabilityClass::Volatile, "fsync = off");
    let local = Act::on("ext4").setting("synchronous_commit", "local");
    assert_judged(&local, DurabilityClass::Flushed, "");
}

#[test]
fn group_commit_may_share_a_flush_among_all_clients_but_not_among_more() {
    let mut act = Act::on("ext4").clients(16);
    (act.flushes, act.wal_syncs) = (vec![Some(0.0625)], Some(0.0625));
    assert_judged(&act, DurabilityClass::Flushed, "0.0625 flushes per commit");
    (act.flushes, act.wal_syncs) = (vec![Some(0.01)], Some(0.01));
    assert_judged(&act, DurabilityClass::Unknown, "at least 0.0312 were to be expected");
}

#[test]
fn a_server_that_does_not_count_its_syncs_is_judged_by_its_commits() {
    let mut act = Act::on("ext4").clients(1);
    act.wal_syncs = None;
    assert_judged(&act, DurabilityClass::Flushed, "1 flushes per commit seen at vda");
    act.flushes = vec![Some(0.3)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0.3 flushes per commit");
}

#[test]
fn writes_that_ask_for_fua_do_without_flushes_on_a_disk_that_takes_it() {
    let mut act = Act::on("xfs").clients(1).setting("wal_sync_method", "open_datasync");
    (act.flushes, act.wal_syncs) = (vec![Some(0.0)], Some(0.0));
    assert_judged(&act, DurabilityClass::Unknown, "only 0 flushes per commit");
    act.stack.devices[0].fua = Some(true);
    assert_judged(&act, DurabilityClass::Flushed, "1.02 writes per commit reached vda by a method that asks for FUA");
}

#[test]
fn a_workload_that_only_reads_needs_no_flush_and_none_is_claimed() {
    let mut act = Act::on("ext4");
    (act.writes, act.wal_records) = (Writes::Never, Some(0.0));
    assert_judged(&act, DurabilityClass::Unknown, "the workload only reads");
    (act.writes, act.wal_records) = (Writes::Unknown, Some(0.001));
    assert_judged(&act, DurabilityClass::Unknown, "the workload only reads");
}

#[test]
fn syncs_without_a_server_are_judged_by_flushes_per_sync() {
    let mut act = Act::on("ext4");
    (act.workload, act.settings) = ("sync", std::collections::BTreeMap::new());
    assert_judged(&act, DurabilityClass::Flushed, "1 flushes per sync seen at vda");
    act.flushes = vec![Some(0.02)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0.02 flushes per sync");
    // A third of the syncs are open_datasync and may use FUA: two thirds must flush, half of that is enough.
    act.stack.devices[0].fua = Some(true);
    act.flushes = vec![Some(0.35)];
    assert_judged(&act, DurabilityClass::Flushed, "0.35 flushes per sync");
}

#[test]
fn devices_that_count_nothing_are_not_taken_for_devices_that_got_nothing() {
    let mut act = Act::on("ext4");
    act.flushes = vec![None];
    assert_judged(&act, DurabilityClass::Unknown, "no flushes of vda were recorded");
    let mut act = Act::on("ext4");
    act.stack.devices[0].counts_flushes = Some(false);
    assert_judged(&act, DurabilityClass::Unknown, "this kernel does not count its flushes");
    let mut act = Act::on("ext4");
    act.stack.devices = vec![disk(0, "dm-0"), disk(1, "vda")];
    act.flushes = vec![Some(0.0), Some(1.0)];
    assert_judged(&act, DurabilityClass::Flushed, "seen at vda");
    act.stack.devices.clear();
    act.flushes.clear();
    assert_judged(&act, DurabilityClass::Unknown, "no block device with counters is visible below ext4");
}

#[test]
fn pg_wal_on_a_disk_of_its_own_is_judged_by_that_disk() {
    let mut act = Act::on("ext4");
    act.flushes = vec![Some(0.0)];
    act.wal_stack = Some(Floor { devices: vec![disk(0, "vdb")], ..Act::on("xfs").stack });
    act.wal_flushes = vec![Some(1.0)];
    assert_judged(&act, DurabilityClass::Flushed, "seen at vdb");
    let strata = Story::of(1, None).with(&act).findings().cases[0].strata.clone().unwrap();
    assert_eq!(
        strata.sentence,
        "one commit = 1.02 device writes of 16.4 KiB + 0 flushes at vda, 1.02 device writes of 16.4 KiB + 1 flushes at vdb"
    );
    assert!((strata.write_amplification.unwrap() - 2.0 * 1.02 * 16.4 * 1024.0 / 800.0).abs() < 0.1);
}

#[test]
fn a_workload_of_ones_own_may_commit_less_than_once() {
    let mut act = Act::on("ext4").clients(1);
    (act.writes, act.wal_records, act.wal_syncs, act.flushes) =
        (Writes::Unknown, Some(1.0), Some(0.2), vec![Some(0.2)]);
    assert_judged(&act, DurabilityClass::Flushed, "0.2 flushes per transaction (1 per WAL sync)");
}
