//! Server cases compared with the stack alone: synced writes of one writer.

use crate::analyse::findings::{Findings, FlushShare};
use crate::analyse::stories::story::{Act, Floor, Story};
use crate::record::operation::Writes;

fn share(found: &Findings, case: usize) -> Option<FlushShare> {
    found.cases[case].strata.as_ref().unwrap().flush_share.clone()
}

/// A server case and a `sync` case on the same stack, both at this rate.
fn beside_sync(act: &Act, syncs: f64) -> Option<FlushShare> {
    share(&Story::of(3, None).with(act).with(&Act::sync_on("ext4").tps(syncs)).findings(), 0)
}

#[test]
fn one_client_gets_a_share_of_the_stacks_sync_rate() {
    let found = beside_sync(&Act::on("ext4").clients(1).tps(600.0), 1000.0).unwrap();
    assert_eq!((found.method.as_str(), found.sync_case.as_str(), found.clients), ("fdatasync", "ext4-sync-c1", 1));
    assert!((found.share.value - 0.6).abs() < 0.02, "{found:?}");
    assert!(found.share.low.unwrap() < 0.6 && found.share.high.unwrap() > 0.6, "{found:?}");
    assert_eq!(found.share.value, found.commits.value / found.syncs.value, "a reader may divide");
    let start = format!("{:.0} commits/s by 1 client are ", found.commits.value);
    assert!(found.sentence.starts_with(&start), "{}", found.sentence);
    assert!(found.sentence.ends_with(" fdatasync/s that one writer gets from this stack alone"), "{}", found.sentence);
}

#[test]
fn several_clients_may_share_flushes_and_the_sentence_says_so() {
    let below = beside_sync(&Act::on("ext4").clients(8).tps(600.0), 1000.0).unwrap();
    assert!(below.sentence.contains(" by 8 clients are "), "{}", below.sentence);
    assert!(below.sentence.ends_with("; group commit may let one flush serve several clients"), "{}", below.sentence);
    let above = beside_sync(&Act::on("ext4").clients(8).tps(2500.0), 1000.0).unwrap();
    assert!(above.share.value > 2.3, "{above:?}");
    assert!(above.sentence.ends_with(": group commit lets one flush serve several clients"), "{}", above.sentence);
}

#[test]
fn the_sync_rate_is_that_of_the_wal_sync_method() {
    let found = beside_sync(&Act::on("ext4").setting("wal_sync_method", "open_datasync"), 1000.0).unwrap();
    assert_eq!(found.method, "open_datasync");
    assert_eq!(beside_sync(&Act::on("ext4").setting("wal_sync_method", "open_sync"), 1000.0), None, "not measured");
}

#[test]
fn commits_without_a_flush_have_no_share_of_flushes() {
    for (name, value) in [("fsync", "off"), ("synchronous_commit", "off")] {
        assert_eq!(beside_sync(&Act::on("ext4").setting(name, value), 1000.0), None, "{name}");
    }
    let mut reading = Act::on("ext4");
    (reading.writes, reading.wal_records) = (Writes::Never, Some(0.0));
    assert_eq!(beside_sync(&reading, 1000.0), None);
}

#[test]
fn another_stack_without_the_server_says_nothing() {
    assert_eq!(beside_sync(&Act::on("xfs"), 1000.0), None);
    let alone = Story::of(3, None).with(&Act::on("ext4")).findings();
    assert_eq!(share(&alone, 0), None);
}

#[test]
fn pg_wal_on_a_separate_stack_is_compared_with_it() {
    let mut act = Act::on("ext4");
    act.wal_stack = Some(Floor { name: "xfs".to_owned(), ..act.stack.clone() });
    act.wal_flushes = vec![Some(1.0)];
    let found = Story::of(3, None)
        .with(&act)
        .with(&Act::sync_on("ext4").tps(9000.0))
        .with(&Act::sync_on("xfs").tps(2000.0))
        .findings();
    let found = share(&found, 0).unwrap();
    assert_eq!(found.sync_case, "xfs-sync-c1");
    assert!(found.sentence.contains("from the stack of pg_wal alone"), "{}", found.sentence);
}

#[test]
fn single_trials_have_a_share_without_an_interval() {
    let found = Story::of(1, None).with(&Act::on("ext4").tps(500.0)).with(&Act::sync_on("ext4").tps(1000.0)).findings();
    let found = share(&found, 0).unwrap();
    assert_eq!((found.share.low, found.share.high), (None, None));
    assert!(!found.sentence.contains("("), "{}", found.sentence);
}
