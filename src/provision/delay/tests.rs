//! Builds real slow and failing devices if the kernel has the targets, and checks what is refused before.

use super::*;
use crate::host::command::Command;
use crate::host::time::now;
use crate::provision::test_site::{TestPlace, opens_again, options_of, stands_and_dies, text};
use rustix::io::Errno;

#[test]
fn times_that_the_targets_do_not_know_are_refused() {
    let check = |layer: &SlippedIn, key: &str, value: &str| layer.check(&options_of(&[(key, text(value))]));
    assert_eq!(check(&DELAY, "delay", "5ms"), Ok(()));
    assert!(check(&DELAY, "write", "100us").is_err() && check(&DELAY, "delay", "0ms").is_err());
    assert_eq!(check(&FLAKEY, "down", "5s"), Ok(()));
    assert!(check(&FLAKEY, "up", "10ms").is_err() && check(&FLAKEY, "up", "0s").is_err());
}

#[test]
fn arguments_are_those_of_the_targets() {
    let of = |layer: &SlippedIn, pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, text(value))).collect();
        (layer.arguments)(&options_of(&pairs), "7:0 0").join(" ")
    };
    assert_eq!(of(&DELAY, &[("delay", "2ms"), ("flush", "9ms")]), "7:0 0 2 7:0 0 2 7:0 0 9");
    assert_eq!(of(&FLAKEY, &[]), "7:0 0 60 0");
    assert_eq!(of(&FLAKEY, &[("down", "3s"), ("fault", "drop_writes")]), "7:0 0 60 3 1 drop_writes");
}

#[test]
fn the_kernel_adds_only_default_features_to_a_table() {
    for rest in ["", " 0", " 2 error_reads error_writes"] {
        assert!(shows(&format!("flakey 7:0 0 60 0{rest}"), "flakey 7:0 0 60 0"), "{rest}");
    }
    assert!(!shows("flakey 7:0 0 60 0 1 drop_writes", "flakey 7:0 0 60 0"));
    assert!(!shows("flakey 7:0 0 60 1", "flakey 7:0 0 60 0") && !shows("delay 7:0 0 2 0", "delay 7:0 0 2"));
}

#[test]
fn a_delayed_device_is_slow_and_dying_builds_leave_nothing() {
    let spec = |place: &TestPlace| place.on_volume("delay", options_of(&[("write", text("50ms"))]), 1, "64MiB");
    stands_and_dies("delay", spec, |_, built| {
        assert_eq!(built.facts.node("delay").unwrap().details["write"], "50 ms");
        let begun = now();
        let file = std::fs::File::create(built.folder().join("slow")).unwrap();
        file.set_len(4096).unwrap();
        file.sync_all().unwrap();
        assert!(begun.elapsed().as_millis() >= 50, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_device_that_drops_writes_keeps_nothing() {
    let Some(place) = TestPlace::new() else { return };
    let options = options_of(&[("up", text("60s")), ("down", text("1s")), ("fault", text("drop_writes"))]);
    let spec = place.on_volume("flakey", options, 1, "64MiB");
    if !place.can_build(&spec) {
        return;
    }
    let built = place.build(&spec).unwrap();
    let (node, _) = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap();
    assert_eq!(node.name, "flakey");
    place.clean();
}

#[test]
fn a_delayed_device_is_mapped_again() {
    opens_again("delay", options_of(&[("delay", text("1ms"))]), 1, |thing| Some(thing.clone()));
}

#[test]
fn a_disk_that_fails_completely_still_gets_its_stack_undone() {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_volume("flakey", options_of(&[("up", text("60s"))]), 1, "64MiB");
    if !place.can_build(&spec) {
        return;
    }
    let built = place.build(&spec).unwrap();
    let mut file = std::fs::File::create(built.folder().join("file")).unwrap();
    file.sync_all().unwrap();
    let things = place.ledger().open_things();
    let mapping = things.iter().find(|(_, thing)| thing.kind == "mapping").unwrap().1.mark("name").unwrap();
    let dmsetup = |args: &[&str]| place.host.run(&Command::new("dmsetup").args(args)).unwrap().stdout;
    let sectors = dmsetup(&["table", mapping]).split_whitespace().nth(1).unwrap().to_owned();
    // The target `error` rejects every request.
    dmsetup(&["load", mapping, "--table", &format!("0 {sectors} error")]);
    dmsetup(&["resume", mapping]);
    // EIO from the sync, or EROFS if the journal thread hit the errors first (ext4_sync_file, fs/ext4/fsync.c); then
    // the write itself may fail (ext4_journal_check_start, fs/ext4/ext4_jbd2.c).
    let refused = std::io::Write::write_all(&mut file, &[1; 8192]).and_then(|()| file.sync_all()).unwrap_err();
    let refused = Errno::from_io_error(&refused);
    assert!(matches!(refused, Some(Errno::IO | Errno::ROFS)), "{refused:?}");
    drop(file);
    place.clean();
}
