//! Stories of servers that skip syncs, of tables without WAL, and of clocks and windows with too little information.

use crate::analyse::findings::DurabilityClass;
use crate::analyse::probe::sample;
use crate::analyse::stories::durability::{assert_judged, lazy_script, on_loop};
use crate::analyse::stories::story::{Act, Story, disk};
use crate::record::claim::{Claim, Promise};
use crate::record::trial::TrialRecord;

/// Sets the number of WAL syncs in each trial's load, and the flushes per sync at each device.
fn exact(mut act: Act, per_sync: &[f64]) -> Act {
    let syncs = 6000;
    act.load = Some((syncs, per_sync.iter().map(|each| (each * syncs as f64).round() as u64).collect()));
    act
}

#[test]
fn a_server_that_skips_syncs_is_detected_by_sync_cost() {
    let btrfs = |fua: bool, option: &str| {
        let mut act = Act::on("btrfs");
        act.stack.devices[0].fua = Some(fua);
        act.stack.mount.super_options = vec![option.to_owned()];
        act.flushes = vec![Some(2.0)];
        act
    };
    let pair = || {
        let mut act = btrfs(false, "ssd");
        act.stack.devices.push(disk(0, "vdb"));
        act
    };
    let one_of = |skipped: f64, cost: f64| cost * (1.0 - 1.0 / skipped);
    let (flushed, unknown) = (DurabilityClass::Flushed, DurabilityClass::Unknown);
    for (act, per_sync, class, words) in [
        (
            Act::on("ext4"),
            &[1.0][..],
            flushed,
            "up to 6 % of WAL syncs, and all of data files, could be skipped unseen",
        ),
        (Act::on("ext4"), &[1.2], flushed, "up to 21 % of WAL syncs"),
        (
            Act::on("ext4"),
            &[one_of(2.0, 1.0)],
            unknown,
            "only 0.5 flushes per WAL sync (1 per commit) seen at vda: expected at least 0.949 per WAL sync",
        ),
        (Act::on("ext4"), &[one_of(10.0, 1.0)], unknown, "0.9 flushes per WAL sync"),
        (Act::on("ext4"), &[one_of(100.0, 1.0)], flushed, "up to 6 % of WAL syncs"),
        (Act::on("xfs"), &[one_of(3.0, 1.02)], unknown, "0.68 flushes per WAL sync"),
        (btrfs(false, "ssd"), &[2.02], flushed, "one sync is 2 on btrfs"),
        (
            btrfs(false, "ssd"),
            &[one_of(2.0, 2.02)],
            unknown,
            "expected at least 1.9 per WAL sync; one sync is 2 on btrfs",
        ),
        (btrfs(false, "ssd"), &[one_of(10.0, 2.02)], unknown, "1.82 flushes per WAL sync"),
        // A device with FUA gets the superblock without a second flush; without copy-on-write nothing is known of
        // btrfs.
        (btrfs(true, "ssd"), &[1.0], flushed, "one sync is 1 on btrfs"),
        (btrfs(false, "nodatacow"), &[1.0], flushed, "could be skipped unseen"),
        (pair(), &[2.0, 2.0], flushed, "one sync is 4 on btrfs"),
        (pair(), &[1.0, 1.0], unknown, "expected at least 3.8 per WAL sync"),
        // The loop device passes all on, the disk below drops every second one.
        (on_loop(), &[1.0, 0.0, 0.5], unknown, "0.5 flushes per WAL sync (1 per commit) seen at vda"),
        (on_loop(), &[1.0, 0.0, 1.0], flushed, "seen at the loop device"),
    ] {
        assert_judged(&exact(act, per_sync), class, words);
    }
    // Each device of a pool or array may need its own flush: claim no more than is known.
    let mut array = Act::on("xfs");
    array.stack.devices.push(disk(0, "vdb"));
    assert_judged(&exact(array, &[0.5, 0.5]), flushed, "up to 53 % of WAL syncs");
    // With so few syncs, those that the WAL writer reports late matter.
    let mut few = Act::on("ext4");
    few.load = Some((50, vec![45]));
    assert_judged(&few, flushed, "up to 15 % of WAL syncs");
}

#[test]
fn one_clients_commits_are_as_good_as_counted_syncs() {
    let mut act = Act::on("ext4").clients(1);
    (act.wal_syncs, act.load) = (None, Some((0, vec![48_000])));
    assert_judged(&act, DurabilityClass::Unknown, "seen at vda: expected at least 0.95 per commit");
    act.load = Some((0, vec![62_000]));
    assert_judged(&act, DurabilityClass::Flushed, "(expected at least 0.95 per commit)");
    act.clients = 8;
    assert_judged(
        &act,
        DurabilityClass::Flushed,
        "up to 94 % of WAL syncs, and all of data files, could be skipped unseen",
    );
}

#[test]
fn the_sync_cost_is_taken_from_the_probe_beside_it() {
    let judged = |flushes_of_probe: f64| {
        let mut act = exact(Act::on("ext4"), &[1.0]);
        act.flushes = vec![Some(1.0)];
        let mut synced = Act::sync_on("ext4");
        synced.touch = match flushes_of_probe {
            1.0 => |record| probed(record, 1.0),
            _ => |record| probed(record, 2.03),
        };
        Story::of(2, None).with(&act).with(&synced).findings().cases[0].durability.clone()
    };
    let honest = judged(1.0);
    assert_eq!(honest.class, DurabilityClass::Flushed, "{honest:?}");
    assert!(honest.reason.contains("one sync is 1 there, as case ext4-sync-c1 counted"), "{honest:?}");
    let skipping = judged(2.03);
    assert_eq!(skipping.class, DurabilityClass::Unknown, "{skipping:?}");
    assert!(skipping.reason.contains("at least 1.9 per WAL sync; one sync is 2 there, as case"), "{skipping:?}");
}

#[test]
fn flushes_of_others_do_not_raise_the_sync_cost() {
    let mut act = exact(Act::on("ext4"), &[1.0, 1.0]);
    (act.stack.devices, act.flushes) = (vec![disk(0, "sdx"), disk(1, "vda")], vec![Some(1.0); 2]);
    let synced = Act::sync_on("ext4").touched(|record| {
        let mut probe = sample::honest();
        probe.place.devices.push(sample::device("vda", 1));
        probe.rows.iter_mut().for_each(|row| sample::counted(row, 1, 1.0, Some(4.0)));
        probe.growth.iter_mut().for_each(|growth| growth.devices.push(None));
        record.counts.as_mut().unwrap().probe = Some(Box::new(probe));
    });
    let found = Story::of(2, None).with(&act).with(&synced).findings().cases[0].durability.clone();
    assert_eq!(found.class, DurabilityClass::Flushed, "{found:?}");
    assert!(found.reason.contains("one sync is 1 there"), "{found:?}");
}

fn probed(record: &mut TrialRecord, flushes: f64) {
    let mut probe = sample::honest();
    sample::counted(sample::find(&mut probe, "wal.fdatasync.recycled"), 0, 1.0, Some(flushes));
    record.counts.as_mut().unwrap().probe = Some(Box::new(probe));
}

#[test]
fn unlogged_tables_are_named_and_transactions_only_there_lose_all() {
    let unlogged = |record: &mut TrialRecord| record.server.as_mut().unwrap().unlogged.push("hot".to_owned());
    let beside = exact(Act::on("ext4"), &[1.0]).touched(unlogged);
    let words = "unlogged table hot is empty after a power cut";
    assert_judged(&beside, DurabilityClass::Flushed, words);
    let found = Story::of(2, None).with(&beside).findings();
    assert!(found.cautions.iter().any(|caution| caution.text == words), "{:?}", found.cautions);
    let alone = |xids: f64, records: f64| {
        let mut act = exact(lazy_script(), &[1.0]);
        (act.xids, act.wal_records) = (Some(xids), Some(records));
        act
    };
    let why = "these transactions write no WAL that a commit waits for";
    assert_judged(&alone(1.0, 1.02), DurabilityClass::Unknown, &format!("{why}: unlogged or temporary tables alone"));
    assert_judged(&alone(1.0, 1.02).touched(unlogged), DurabilityClass::Volatile, &format!("{words}, and {why}"));
    assert_judged(&alone(0.3, 0.32).touched(unlogged), DurabilityClass::Volatile, why);
    // A change and its commit are two records; subtransactions have ids but no commits.
    assert_judged(
        &alone(1.0, 2.0).touched(unlogged),
        DurabilityClass::Unknown,
        "only 1 flush per WAL sync (0.00206 per transaction)",
    );
    assert_judged(&alone(100.0, 101.0), DurabilityClass::Unknown, "per transaction)");
}

#[test]
fn a_window_without_two_readings_is_too_short_to_judge() {
    let mut act = Act::on("ext4");
    act.seconds = 0;
    assert_judged(&act, DurabilityClass::Unknown, "the measurement is too short");
    assert_judged(&act.setting("synchronous_commit", "off"), DurabilityClass::Delayed, "synchronous_commit = off");
}

#[test]
fn a_changed_wall_clock_is_reported_and_changes_no_class() {
    let clock_remark = |touch| {
        let act = Act::on("ext4").touched(touch);
        assert_judged(&act, DurabilityClass::Flushed, "seen at vda");
        let cautions = Story::of(2, None).with(&act).findings().cautions;
        cautions.into_iter().map(|caution| caution.text).find(|text| text.contains("wall clock"))
    };
    let back = clock_remark(|record| record.clock_step_us = Some(-86_400_000_000)).unwrap();
    assert!(back.starts_with("trial 2: wall clock set back 24 h 0 min, or not the clients'"), "{back}");
    let forward = clock_remark(|record| record.clock_step_us = Some(i64::from(record.trial) * 3_000_000)).unwrap();
    assert!(forward.starts_with("trial 2: wall clock set forward 6 s,"), "{forward}");
    assert_eq!(clock_remark(|record| record.clock_step_us = Some(400_000)), None);
}

#[test]
fn a_mount_option_is_quoted_from_mount_table_and_plan() {
    use crate::record::options::OptionValue;
    let planned = Act::on("ext4").touched(|record| {
        let stack = record.stack.as_mut().unwrap();
        stack.nodes[0].promises.push(Promise::new(Claim::HoldsFlushesBack, "mount option nobarrier"));
        let options = &mut record.case.stack.nodes[0].options;
        options.set("mount", OptionValue::Text("noatime,barrier=0".to_owned()));
    });
    let mut story = Story::of(2, None).with(&planned);
    for case in &mut story.input.run.cases {
        case.stack.nodes[0].options.set("mount", OptionValue::Text("noatime,barrier=0".to_owned()));
    }
    let found = story.findings().cases[0].durability.clone();
    assert!(found.reason.contains("mount option nobarrier, `barrier=0` in the plan of ext4"), "{found:?}");
    // No plan option can put one below an image.
    let mut below = on_loop();
    below.stack.promises = vec![Promise::new(Claim::HoldsFlushesBack, "mount option nobarrier at /srv")];
    assert_judged(&below, DurabilityClass::Volatile, "mount option nobarrier at /srv of ext4 (ext4)");
}
