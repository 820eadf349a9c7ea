//! Durability classes, story by story: each sets one fact and asserts the class and its reason.

use crate::analyse::findings::{Durability, DurabilityClass};
use crate::analyse::probe::sample;
use crate::analyse::stories::story::{Act, Floor, Story, disk};
use crate::record::claim::{Claim, Promise};
use crate::record::facts::{DeviceFacts, FoundSetting, WriteCache};
use crate::record::operation::Writes;
use crate::record::probe::DeviceCounts;
use crate::record::promise;
use crate::record::stack::BaseName;
use crate::record::trial::{IdleTraffic, TrialRecord};

fn judged(act: &Act) -> Durability {
    Story::of(2, None).with(act).findings().cases[0].durability.clone()
}

pub(crate) fn assert_judged(act: &Act, class: DurabilityClass, reason: &str) {
    let found = judged(act);
    assert!(found.class == class && found.reason.contains(reason), "wanted {class:?} ... {reason}; got {found:?}");
}

/// ext4 on a loop device whose file is on a disk.
pub(crate) fn on_loop() -> Act {
    let mut act = Act::on("ext4");
    let mut image = disk(0, "loop3");
    image.backing_file = Some("/var/lib/pgstrata/image".to_owned());
    act.stack.devices = vec![image, disk(1, "vda1"), disk(2, "vda")];
    act.flushes = vec![Some(1.0), Some(0.0), Some(1.0)];
    act
}

#[test]
fn flushes_seen_on_the_disk_make_a_case_flushed() {
    assert_judged(&Act::on("ext4"), DurabilityClass::Flushed, "1 flush per WAL sync (1 per commit) seen at vda");
}

#[test]
fn a_partition_counts_no_flushes_and_its_disk_is_asked() {
    assert_judged(&on_loop(), DurabilityClass::Flushed, "seen at the loop device, and flushes reach vda");
}

/// A folder on a disk that others flush too, at a rate seen in the second before each trial.
fn shared(flushes_a_second: u64, flushes_per_commit: f64) -> Act {
    let mut act = Act::on("ext4").clients(1);
    act.stack.layer = "directory";
    act.flushes = vec![Some(flushes_per_commit)];
    let touch: fn(&mut TrialRecord) = match flushes_a_second {
        0 => |record| idle(record, 0),
        100 => |record| idle(record, 100),
        400 => |record| idle(record, 400),
        other => panic!("{other}: no such neighbour"),
    };
    act.touched(touch)
}

fn idle(record: &mut TrialRecord, flushes: u64) {
    let counts = DeviceCounts { flushes: Some(flushes), ..DeviceCounts::default() };
    record.idle = Some(IdleTraffic { elapsed_us: 1_000_000, devices: [("vda".to_owned(), counts)].into() });
}

#[test]
fn a_preexisting_folder_is_flushed_after_subtracting_flushes_of_others() {
    assert_judged(&shared(0, 1.0), DurabilityClass::Flushed, "1 flush per WAL sync (1 per commit) seen at vda");
    let quiet = "device shared with other programs: they did not flush";
    assert_judged(&shared(0, 1.0), DurabilityClass::Flushed, quiet);
    // 1000 commits per second and 100 flushes of others: 1.1 are counted, of which 110 are not ours.
    let busy = shared(100, 1.1);
    assert_judged(&busy, DurabilityClass::Flushed, "0.99 flushes per WAL sync");
    assert_judged(&busy, DurabilityClass::Flushed, "their flush rate before the trials is subtracted");
}

#[test]
fn flushes_of_neighbours_make_no_folder_flushed() {
    // A stack that drops half of its flushes, and a neighbor that lifts the count over the threshold.
    assert_judged(&shared(100, 0.55), DurabilityClass::Unknown, "only 0.44 flushes per WAL sync");
    assert_judged(
        &shared(400, 1.0),
        DurabilityClass::Unknown,
        "42 % of the flushes at vda may come from other programs",
    );
    let mut unwatched = shared(0, 1.0);
    unwatched.touch = |_| {};
    assert_judged(&unwatched, DurabilityClass::Unknown, "at a rate that was not measured");
}

#[test]
fn flushes_that_stop_at_the_loop_device_are_not_enough() {
    let mut act = on_loop();
    act.flushes[2] = Some(0.01);
    assert_judged(&act, DurabilityClass::Unknown, "only 0.01 flushes per WAL sync (0.01 per commit) seen at vda");
}

#[test]
fn flushes_of_others_do_not_count_for_a_loop_device() {
    let mut act = on_loop();
    act.flushes = vec![Some(0.0), None, Some(5.0)];
    assert_judged(&act, DurabilityClass::Unknown, "seen at loop3");
}

#[test]
fn a_loop_device_over_something_invisible_stays_unknown() {
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.flushes.truncate(1);
    assert_judged(&act, DurabilityClass::Unknown, "the device below its file /var/lib/pgstrata/image is not visible");
}

/// A stack whose devices could not be followed to the end.
fn devices_end(why: &str) -> Vec<Promise> {
    vec![Promise::new(Claim::HiddenBelow, why)]
}

#[test]
fn an_untraceable_end_of_the_device_chain_is_explained() {
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.flushes.truncate(1);
    act.stack.promises = devices_end("nothing below / (overlay): it does not tell");
    assert_judged(&act, DurabilityClass::Unknown, "at loop3, but nothing below / (overlay)");
    act.stack.devices.clear();
    act.flushes.clear();
    assert_judged(&act, DurabilityClass::Unknown, "visible below ext4: nothing below / (overlay)");
}

#[test]
fn several_devices_at_one_depth_are_judged_together() {
    let mut act = Act::on("btrfs");
    act.stack.devices = vec![disk(0, "vda"), disk(0, "vdb")];
    act.flushes = vec![Some(2.0)];
    assert_judged(&act, DurabilityClass::Flushed, "2 flushes per WAL sync (2 per commit) seen at vda+vdb");
    // One of them declares its writes stable: the other must be flushed, and the declaration is needed as well.
    act.stack.devices[1].write_cache = Some(WriteCache::WriteThrough);
    let word = "/sys/block/vdb/queue/write_cache: write through";
    assert_judged(&act, DurabilityClass::DeclaredStable, word);
    assert_judged(&act, DurabilityClass::DeclaredStable, "2 flushes per WAL sync (2 per commit) seen at vda+vdb");
    act.flushes = vec![Some(0.0)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0 flushes");
}

/// tpcb on a disk that reports write through: the kernel sends it no flush.
fn write_through() -> Act {
    let mut act = Act::on("ext4");
    act.stack.devices = vec![DeviceFacts { write_cache: Some(WriteCache::WriteThrough), ..disk(0, "nvme0n1") }];
    act.flushes = vec![Some(0.0)];
    act
}

#[test]
fn a_disk_that_reports_write_through_is_declared_stable() {
    let word = "/sys/block/nvme0n1/queue/write_cache: write through: the kernel sends it no flushes";
    assert_judged(&write_through(), DurabilityClass::DeclaredStable, word);
    assert_judged(&write_through(), DurabilityClass::DeclaredStable, "1.02 writes per commit reached it");
    let mut act = on_loop();
    act.stack.devices[2].write_cache = Some(WriteCache::WriteThrough);
    act.flushes[2] = Some(0.0);
    let above = "1 flush per WAL sync (1 per commit) counted at the loop device above it";
    assert_judged(&act, DurabilityClass::DeclaredStable, above);
    // A loop device above it that drops flushes.
    act.flushes[0] = Some(0.01);
    assert_judged(&act, DurabilityClass::Unknown, "only 0.01 flushes per WAL sync (0.01 per commit) seen at loop3");
}

#[test]
fn a_disk_that_no_write_reached_is_not_believed() {
    let mut act = write_through();
    act.writes_each = 0.0;
    assert_judged(&act, DurabilityClass::Unknown, "but only 0 writes per commit were counted there");
}

#[test]
fn what_is_declared_stable_stands_beside_what_is_flushed() {
    let found = Story::of(2, None).with(&write_through().named("protected")).with(&Act::on("ext4")).findings();
    let classes: Vec<DurabilityClass> = found.rankings[0].classes.iter().map(|class| class.class).collect();
    assert_eq!(classes, [DurabilityClass::Flushed, DurabilityClass::DeclaredStable]);
    let alone = Story::of(2, None).with(&write_through().named("one")).with(&write_through().named("two")).findings();
    assert!(alone.headline.contains("whose device declares its writes stable"), "{}", alone.headline);
}

#[test]
fn a_virtual_disk_is_named_as_such_in_every_class() {
    let sight_ends = |found: Durability| found.sight_ends;
    assert_eq!(sight_ends(judged(&Act::on("ext4"))), ["vda is a virtual disk: nothing below it is visible"]);
    let metal = |touch| {
        let mut act = write_through().touched(touch);
        (act.stack.devices[0].write_cache, act.flushes) = (Some(WriteCache::WriteBack), vec![Some(1.0)]);
        sight_ends(judged(&act))
    };
    assert_eq!(metal(|_| {}), Vec::<String>::new());
    let in_guest = metal(|record| record.host.is_virtual = Some(true));
    assert!(
        in_guest.iter().all(|sight_ends| sight_ends.starts_with("nvme0n1 is a virtual disk")) && in_guest.len() == 1,
        "{in_guest:?}"
    );
}

#[test]
fn memory_is_volatile_wherever_it_lies() {
    assert_judged(&Act::in_memory(), DurabilityClass::Volatile, "the data is in memory: filesystem tmpfs");
    let mut act = Act::on("ext4");
    act.stack.devices[0].name = "zram0".to_owned();
    assert_judged(&act, DurabilityClass::Volatile, "block device zram0");
    let mut act = on_loop();
    act.stack.devices.truncate(1);
    act.stack.promises = vec![promise::of_end("/tmp", "tmpfs")];
    assert_judged(&act, DurabilityClass::Volatile, "the data is in memory: nothing below /tmp (tmpfs)");
    let mut act = Act::on("ext4");
    act.wal_stack = Some(Act::in_memory().stack);
    assert_judged(&act, DurabilityClass::Volatile, "pg_wal is in memory: filesystem tmpfs");
}

#[test]
fn mount_options_that_suppress_flushes_are_volatile_whatever_is_counted() {
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
fn without_full_page_writes_a_case_may_have_torn_pages() {
    let torn = Act::on("ext4").setting("full_page_writes", "off");
    let words = "full_page_writes = off: a page torn by a power cut cannot be repaired; otherwise flushed: 1 flush per";
    assert_judged(&torn, DurabilityClass::MayTear, words);
    let both = torn.clone().setting("synchronous_commit", "off");
    assert_judged(&both, DurabilityClass::MayTear, "otherwise delayed: synchronous_commit = off");
    assert_judged(&torn.clone().setting("fsync", "off"), DurabilityClass::Volatile, "fsync = off");
    // It does not win against the safe ones.
    let found = Story::of(2, None).with(&torn.tps(2000.0).named("torn")).with(&Act::on("ext4")).findings();
    let classes: Vec<DurabilityClass> = found.rankings[0].classes.iter().map(|class| class.class).collect();
    assert_eq!(classes, [DurabilityClass::Flushed, DurabilityClass::MayTear]);
    assert!(found.headline.contains("torn (2.0"), "{}", found.headline);
    assert!(found.headline.contains("may be left with torn pages by a power cut"), "{}", found.headline);
}

#[test]
fn cases_that_may_tear_rank_only_with_equal_commit_waits() {
    let torn = Act::on("ext4").setting("full_page_writes", "off");
    let early = torn.clone().setting("synchronous_commit", "off").tps(2000.0).named("early");
    let found = Story::of(3, None).with(&torn.named("torn")).with(&early).findings();
    let classes = &found.rankings[0].classes;
    let kinds: Vec<_> = classes.iter().map(|class| (class.class, class.rows.len())).collect();
    assert_eq!(kinds, [(DurabilityClass::MayTear, 1), (DurabilityClass::MayTear, 1)]);
    assert_eq!(classes[0].rows[0].durability.otherwise, Some(DurabilityClass::Flushed));
    assert_eq!(classes[1].rows[0].durability.otherwise, Some(DurabilityClass::Delayed));
}

#[test]
fn group_commit_shares_a_flush_among_at_most_all_clients() {
    let mut act = Act::on("ext4").clients(16);
    (act.flushes, act.wal_syncs) = (vec![Some(0.0625)], Some(0.0625));
    assert_judged(&act, DurabilityClass::Flushed, "1 flush per WAL sync (0.0625 per commit)");
    (act.flushes, act.wal_syncs) = (vec![Some(0.01)], Some(0.01));
    assert_judged(&act, DurabilityClass::Unknown, "expected at least 0.0312");
}

#[test]
fn a_server_without_sync_counts_is_judged_by_its_commits() {
    let mut act = Act::on("ext4").clients(1);
    act.wal_syncs = None;
    assert_judged(&act, DurabilityClass::Flushed, "1 flush per commit seen at vda");
    act.flushes = vec![Some(0.3)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0.3 flushes per commit");
}

#[test]
fn fua_writes_need_no_flushes_on_disks_that_support_fua() {
    let mut act = Act::on("xfs").clients(1).setting("wal_sync_method", "open_datasync");
    (act.flushes, act.wal_syncs) = (vec![Some(0.0)], Some(0.0));
    assert_judged(&act, DurabilityClass::Unknown, "only 0 flushes per commit");
    act.stack.devices[0].fua = Some(true);
    // Written through the page cache: written back and then flushed, so that a missing flush has no excuse.
    assert_judged(&act, DurabilityClass::Unknown, "only 0 flushes per commit");
    let by_fua = "1.02 writes per commit reached vda by a method that requests FUA with direct I/O";
    let minimal = act.clone().setting("wal_level", "minimal");
    assert_judged(&minimal.clone().touched(|record| version(record, 150_008)), DurabilityClass::Flushed, by_fua);
    assert_judged(&minimal.touched(|record| version(record, 160_004)), DurabilityClass::Unknown, "only 0 flushes");
    let direct = act.setting("debug_io_direct", "data, wal").touched(|record| version(record, 160_004));
    assert_judged(&direct, DurabilityClass::Flushed, by_fua);
}

fn version(record: &mut TrialRecord, number: u32) {
    record.server.as_mut().unwrap().version_num = number;
}

#[test]
fn a_read_only_workload_needs_no_flush_and_claims_none() {
    let mut act = Act::on("ext4");
    (act.writes, act.wal_records) = (Writes::Never, Some(0.0));
    assert_judged(&act, DurabilityClass::NotApplicable, "the workload only reads");
    (act.writes, act.wal_records, act.xids) = (Writes::Unknown, Some(0.001), Some(0.001));
    assert_judged(&act, DurabilityClass::NotApplicable, "the workload only reads");
    // The counter of WAL records may lag behind in a short window, but a transaction with an id has written. At one
    // query per second, the records of other processes dominate.
    (act.wal_records, act.xids) = (Some(0.2), Some(0.0));
    assert_judged(&act, DurabilityClass::NotApplicable, "the workload only reads");
    (act.wal_records, act.xids) = (Some(0.001), Some(0.95));
    assert_judged(&act, DurabilityClass::Flushed, "1 flush per WAL sync");
}

#[test]
fn syncs_without_a_server_are_judged_by_flushes_per_sync() {
    let mut act = Act::on("ext4");
    (act.workload, act.settings) = ("sync", std::collections::BTreeMap::new());
    assert_judged(&act, DurabilityClass::Flushed, "1 flush per sync seen at vda");
    act.flushes = vec![Some(0.02)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0.02 flushes per sync");
    act.stack.devices[0].fua = Some(true);
    act.flushes = vec![Some(0.4)];
    assert_judged(&act, DurabilityClass::Unknown, "only 0.4 flushes per sync");
    // Some of the probe's rows bypass the page cache and may use FUA: only the others must flush.
    let act = act.touched(|record| record.counts.as_mut().unwrap().probe = Some(Box::new(sample::honest())));
    assert_judged(&act, DurabilityClass::Flushed, "0.4 flushes per sync");
}

#[test]
fn devices_without_counters_are_not_mistaken_for_idle_devices() {
    let mut act = Act::on("ext4");
    act.flushes = vec![None];
    assert_judged(&act, DurabilityClass::Unknown, "no flushes of vda were recorded");
    let mut act = Act::on("ext4");
    act.stack.devices[0].counts_flushes = Some(false);
    assert_judged(&act, DurabilityClass::Unknown, "this kernel does not count its flushes");
    let mut act = Act::on("ext4");
    act.stack.devices = vec![DeviceFacts { has_queue: Some(false), ..disk(0, "dm-0") }, disk(1, "vda")];
    act.flushes = vec![Some(0.0), Some(1.0)];
    assert_judged(&act, DurabilityClass::Flushed, "seen at vda");
    act.stack.devices.clear();
    act.flushes.clear();
    assert_judged(&act, DurabilityClass::Unknown, "no block device with counters is visible below ext4");
}

#[test]
fn drivers_without_a_queue_are_accused_of_nothing() {
    for name in ["nvme0n1", "zd0", "pmem0", "btt0"] {
        let mut act = Act::on("ext4");
        act.stack.devices = vec![DeviceFacts { has_queue: Some(false), flushes_before: Some(0), ..disk(0, name) }];
        act.flushes = vec![Some(0.0)];
        let why = format!("flushes at {name} are not counted: its driver bypasses the request queue");
        assert_judged(&act, DurabilityClass::Unknown, &why);
    }
    // The hidden path of a multipath NVMe counts what the device in front does not.
    let head = DeviceFacts { has_queue: Some(false), ..disk(0, "nvme0n1") };
    let mut act = Act::on("ext4");
    act.stack.devices = vec![head, disk(1, "nvme0c0n1")];
    act.flushes = vec![Some(0.0), Some(1.0)];
    assert_judged(&act, DurabilityClass::Flushed, "seen at nvme0c0n1");
}

#[test]
fn a_counter_that_never_moved_is_not_known_to_count() {
    let mut act = Act::on("ext4");
    act.stack.devices[0].flushes_before = Some(0);
    act.flushes = vec![Some(0.0)];
    assert_judged(&act, DurabilityClass::Unknown, "vda has never counted a flush: unknown whether");
    act.stack.devices[0].flushes_before = Some(7);
    assert_judged(&act, DurabilityClass::Unknown, "only 0 flushes per WAL sync");
}

#[test]
fn a_filesystem_without_a_journal_keeps_its_durability_class() {
    let mut act = Act::on("ext2");
    assert_judged(&act, DurabilityClass::Flushed, "filesystem ext2: a power cut may destroy the filesystem");
    act.stack.mount.fstype = "ext4".to_owned();
    assert!(!judged(&act).reason.contains("journal"));
    act.stack.mount.journal = Some(false);
    let why = "filesystem ext4 without a journal: a power cut may destroy the filesystem";
    assert_judged(&act, DurabilityClass::Flushed, why);
    let found = Story::of(2, None).with(&act).findings();
    let said: Vec<&str> = found.cautions.iter().map(|caution| caution.text.as_str()).collect();
    assert!(said.contains(&why), "{said:?}");
}

/// Data and WAL on separate disks, with this many flushes of the data per commit.
fn apart(data_flushes: f64) -> Act {
    let mut act = Act::on("ext4");
    act.flushes = vec![Some(data_flushes)];
    act.wal_stack = Some(Floor { devices: vec![disk(0, "vdb")], ..Act::on("xfs").stack });
    act.wal_flushes = vec![Some(1.0)];
    act
}

#[test]
fn the_lower_class_of_data_and_wal_is_named() {
    // 60 seconds of 1000 commits with three checkpoints, one flush for each: 0.00005 flushes per commit.
    assert_judged(&apart(0.001), DurabilityClass::Flushed, "pg_wal: 1 flush per WAL sync (1 per commit) seen at vdb");
    assert_judged(&apart(0.001), DurabilityClass::Flushed, "; the data: ");
    let swallowed = "the data: only 0 flushes per checkpoint seen at vda: expected at least 0.5";
    assert_judged(&apart(0.0), DurabilityClass::Unknown, swallowed);
    let mut unasked = apart(0.0);
    unasked.checkpoints = 0;
    assert_judged(&unasked, DurabilityClass::Unknown, "the data: only 0 flushes per measurement without a checkpoint");
    let mut protected = apart(0.0);
    protected.stack.devices[0].write_cache = Some(WriteCache::WriteThrough);
    assert_judged(&protected, DurabilityClass::DeclaredStable, "the data: /sys/block/vda/queue/write_cache");
    let mut lying_log = apart(0.001);
    lying_log.wal_flushes = vec![Some(0.01)];
    assert_judged(&lying_log, DurabilityClass::Unknown, "pg_wal: only 0.01 flushes per WAL sync");
}

#[test]
fn a_tablespace_is_judged_where_the_workload_uses_it() {
    let place = |record: &mut TrialRecord| {
        record.stack.as_mut().unwrap().tablespaces.insert("hot".to_owned(), BaseName("hot".to_owned()));
    };
    let found = judged(&Act::on("ext4").touched(place));
    assert!(found.class == DurabilityClass::Flushed && !found.reason.contains("the data:"), "{found:?}");
    let used = Act::on("ext4").touched(|record| {
        record.stack.as_mut().unwrap().tablespaces.insert("hot".to_owned(), BaseName("hot".to_owned()));
        record.operation.settings.insert("tablespace".to_owned(), "hot".to_owned());
    });
    assert_judged(&used, DurabilityClass::Unknown, "tablespace hot: no block device with counters is visible");
}

#[test]
fn device_work_per_commit_covers_data_and_wal_disks() {
    let act = apart(0.0);
    let strata = Story::of(1, None).with(&act).findings().cases[0].strata.clone().unwrap();
    assert_eq!(
        strata.sentence,
        "one commit = 1.02 device writes of 16.4 KiB + 0 flushes at vda, 1.02 device writes of 16.4 KiB + 1 flushes at vdb"
    );
    let amplification = strata.write_amplification.unwrap();
    assert!((amplification - 2.0 * 1.02 * 16.4 * 1024.0 / 800.0).abs() < 0.1, "{amplification}");
}

#[test]
fn a_workload_of_ones_own_may_commit_less_than_once() {
    let mut act = Act::on("ext4").clients(1);
    (act.writes, act.wal_records, act.wal_syncs, act.flushes) =
        (Writes::Unknown, Some(1.0), Some(0.2), vec![Some(0.2)]);
    act.xids = Some(0.2);
    assert_judged(&act, DurabilityClass::Flushed, "1 flush per WAL sync (0.2 per transaction)");
    act.xids = None;
    assert_judged(&act, DurabilityClass::Unknown, "the number of transactions that wrote was not counted");
}

/// A user's script whose every transaction writes, at the pace of the WAL writer's flushes.
pub(crate) fn lazy_script() -> Act {
    let mut act = Act::on("ext4").clients(4);
    act.writes = Writes::Unknown;
    (act.wal_syncs, act.flushes) = (Some(0.00198), vec![Some(0.00206)]);
    act
}

#[test]
fn a_script_with_asynchronous_commits_is_not_flushed() {
    // As observed with SET LOCAL synchronous_commit = off: a flush for each WAL sync, and no sync for most
    // transactions.
    let why = "only 1.04 flushes per WAL sync (0.00206 per transaction) seen at vda: expected at least 0.125";
    assert_judged(&lazy_script(), DurabilityClass::Unknown, why);
}

#[test]
fn settings_in_scripts_and_functions_count_like_server_settings() {
    let set = |value: Option<&str>| {
        let found = FoundSetting {
            name: "synchronous_commit".to_owned(),
            value: value.map(str::to_owned),
            place: "line 2 of own.sql".to_owned(),
        };
        let mut act = Act::on("ext4");
        act.script_settings = vec![found];
        act
    };
    assert_judged(&set(Some("off")), DurabilityClass::Delayed, "synchronous_commit = off (line 2 of own.sql)");
    assert_judged(&set(Some("local")), DurabilityClass::Flushed, "1 flush per WAL sync");
    let why = "line 2 of own.sql sets synchronous_commit to a value that its text does not show";
    assert_judged(&set(None), DurabilityClass::Unknown, why);
    let function = Act::on("ext4").touched(|record| {
        let place = "function lazy()".to_owned();
        let value = Some("off".to_owned());
        let found = FoundSetting { name: "synchronous_commit".to_owned(), value, place };
        record.server.as_mut().unwrap().found_after.push(found);
    });
    assert_judged(&function, DurabilityClass::Delayed, "synchronous_commit = off (function lazy())");
}
