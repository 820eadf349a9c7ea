//! Knobs on a fake tree, on loop devices, and on this machine.

use super::setting::shown;
use super::*;
use crate::host::loops;
use crate::provision::identity::BlockDevice;
use crate::provision::ledger::{Death, Ledger, Thing};
use crate::provision::test_site::{TestPlace, options_of, stack, text};
use crate::provision::undo::{undo_from, undo_own};
use std::fs;

const BOOT: &str = "proc/sys/kernel/random/boot_id";
const SWAPPINESS: &str = "proc/sys/vm/swappiness";
const SCHEDULER: &str = "sys/dev/block/7:1/queue/scheduler";

struct Fake {
    root: tempfile::TempDir,
    host: Host,
    ledger: Ledger,
}

impl Fake {
    fn new() -> Fake {
        let root = tempfile::tempdir().unwrap();
        let fake = Fake {
            host: Host::rooted(root.path()),
            ledger: Ledger::create(&root.path().join("ledger"), "r1").unwrap(),
            root,
        };
        for (path, value) in [
            (BOOT, "one\n"),
            (SWAPPINESS, "60\n"),
            (SCHEDULER, "[none] mq-deadline\n"),
            ("sys/dev/block/7:1/queue/nr_requests", "128\n"),
            ("sys/dev/block/7:1/diskseq", "5\n"),
        ] {
            fake.put(path, value);
        }
        fake
    }

    fn put(&self, path: &str, value: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap().trim().to_owned()
    }

    fn set_swappiness(&self, value: i64) -> Result<()> {
        set_machine(&self.host, &self.ledger, &swappiness(value))
    }

    fn set_scheduler(&self, value: &str) {
        let device = KnobOwner::device(&self.host, super::super::sysfs::DeviceNumber { major: 7, minor: 1 });
        set(&self.host, &self.ledger, of_device("scheduler").unwrap(), &device, value).unwrap();
    }

    /// Undoes everything and checks that the ledger is empty.
    fn undo(&self) {
        let failures = undo_from(&self.ledger, 0, undo_own, &self.host);
        assert!(failures.is_empty() && self.ledger.open_things().is_empty(), "{failures:?}");
    }
}

fn swappiness(value: i64) -> Options {
    options_of(&[("vm.swappiness", OptionValue::Integer(value))])
}

#[test]
fn a_knob_is_set_and_put_back() {
    let fake = Fake::new();
    fake.set_swappiness(10).unwrap();
    fake.set_scheduler("mq-deadline");
    assert_eq!((fake.get(SWAPPINESS), fake.get(SCHEDULER)), ("10".into(), "mq-deadline".into()));
    assert!(strayed(&fake.host, &fake.ledger, 0).is_empty());
    fake.undo();
    assert_eq!((fake.get(SWAPPINESS), fake.get(SCHEDULER)), ("60".into(), "none".into()));
}

#[test]
fn values_already_in_force_or_default_are_not_touched() {
    let fake = Fake::new();
    fake.set_swappiness(60).unwrap();
    set_machine(&fake.host, &fake.ledger, &options_of(&[("vm.dirty_bytes", text("default"))])).unwrap();
    assert!(fake.ledger.open_things().is_empty());
}

#[test]
fn a_knob_that_somebody_set_meanwhile_is_left_and_told() {
    let fake = Fake::new();
    fake.set_swappiness(10).unwrap();
    fake.put(SWAPPINESS, "33\n");
    let reported = strayed(&fake.host, &fake.ledger, 0);
    assert_eq!(
        reported,
        ["vm.swappiness (/proc/sys/vm/swappiness) is `33`, not `10` as set by the run: left unchanged"]
    );
    fake.undo();
    assert_eq!(fake.get(SWAPPINESS), "33");
}

#[test]
fn nothing_is_restored_after_reboot_or_on_a_renumbered_device() {
    for (path, value) in [(BOOT, "two\n"), ("sys/dev/block/7:1/diskseq", "6\n")] {
        let fake = Fake::new();
        fake.set_scheduler("mq-deadline");
        fake.put(path, value);
        assert!(strayed(&fake.host, &fake.ledger, 0).is_empty());
        fake.undo();
        assert_eq!(fake.get(SCHEDULER), "mq-deadline", "{path}");
    }
    let fake = Fake::new();
    fake.set_scheduler("mq-deadline");
    fs::remove_dir_all(fake.root.path().join("sys")).unwrap();
    fake.undo();
}

#[test]
fn a_run_dying_before_or_after_the_entry_changes_nothing() {
    for death in [Death::Before(0), Death::After(0)] {
        let fake = Fake::new();
        fake.ledger.die(death);
        assert!(fake.set_swappiness(10).is_err());
        assert_eq!(fake.get(SWAPPINESS), "60", "{death:?}");
        fake.undo();
        assert_eq!(fake.get(SWAPPINESS), "60", "{death:?}");
    }
}

#[test]
fn an_entry_that_names_another_file_is_refused() {
    let fake = Fake::new();
    fake.put("etc/passwd", "10");
    for (kind, path) in [
        ("vm.swappiness", "/etc/passwd"),
        ("scheduler", "/sys/dev/block/7:1/../../../../etc/passwd"),
        ("scheduler", "/sys/dev/block/7:1/x/queue/scheduler"),
        ("no-such", "/proc/sys/vm/swappiness"),
    ] {
        let thing = Thing::new(OWNER, kind).with("path", path).with("old", "60").with("ours", "10");
        assert!(undo(&fake.host, &thing.with("boot", "one").with("sequence", "")).is_err(), "{path}");
    }
    assert_eq!(fake.get("etc/passwd"), "10");
}

#[test]
fn rivals_and_unknown_knobs_are_refused() {
    let of = |pairs: &[(&str, &str)]| {
        options_of(&pairs.iter().map(|(name, value)| (*name, text(value))).collect::<Vec<_>>())
    };
    let refused = check(&of(&[("vm.dirty_bytes", "1GiB"), ("vm.dirty_ratio", "10")])).unwrap_err();
    assert!(refused.message.contains("conflicts with"), "{refused:?}");
    assert_eq!(check(&of(&[("vm.dirty_bytes", "default"), ("vm.dirty_ratio", "10")])), Ok(()));
    assert_eq!(check(&of(&[("vm.dirty_bytes", "1GiB"), ("vm.dirty_background_ratio", "10")])), Ok(()));
    assert!(check(&of(&[("vm.no_such", "1")])).is_err());
}

#[test]
fn a_knob_beyond_the_kernel_limit_is_refused_at_parsing() {
    let check_one = |name, value| check(&options_of(&[(name, OptionValue::Integer(value))]));
    assert!(check_one("vm.dirty_ratio", 101).unwrap_err().message.contains("at most 100"));
    assert_eq!(check_one("vm.dirty_ratio", 100), Ok(()));
    assert!(check_one("vm.swappiness", 201).is_err());
    assert_eq!(check_one("vm.vfs_cache_pressure", 1000), Ok(()));
}

#[test]
fn of_two_rivals_the_one_in_force_is_told() {
    let fake = Fake::new();
    fake.put("proc/sys/vm/dirty_bytes", "0\n");
    fake.put("proc/sys/vm/dirty_ratio", "20\n");
    fake.put("proc/sys/vm/dirty_background_bytes", "4096\n");
    fake.put("proc/sys/vm/dirty_background_ratio", "0\n");
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    let reported: Vec<String> =
        in_force(&fake.host).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let expected =
        ["transparent_hugepage madvise", "vm.dirty_background_bytes 4096", "vm.dirty_ratio 20", "vm.swappiness 60"];
    assert_eq!(reported, expected);
}

#[test]
fn a_knob_that_the_kernel_lacks_is_unmet() {
    let fake = Fake::new();
    let lacks = unmet(&fake.host, &options_of(&[("transparent_hugepage", text("never"))]));
    assert!(lacks.iter().any(|unmet| unmet.what.contains("the knob transparent_hugepage in this kernel")), "{lacks:?}");
    let only_root = unmet(&fake.host, &swappiness(1));
    assert_eq!(only_root.len(), usize::from(!crate::host::users::is_root()));
    assert_eq!(unmet(&fake.host, &options_of(&[("vm.dirty_bytes", text("default"))])), []);
}

fn device_of(place: &TestPlace) -> Base {
    let image = options_of(&[("loop", text("8MiB")), ("in", text(place.path().to_str().unwrap()))]);
    super::super::layer("loop").unwrap().build(&place.site("q"), &[], &image).unwrap().bases[0].clone()
}

fn path_of(device: &Base) -> &std::path::Path {
    match device {
        Base::Device(path) => path,
        _ => panic!("no device"),
    }
}

/// Values of its four knobs.
fn queue_of(host: &Host, device: &Base) -> Vec<String> {
    let of = KnobOwner::device(host, BlockDevice::find(path_of(device)).unwrap().node);
    OF_DEVICE.iter().map(|knob| shown(host, &of.path_of(knob)).unwrap()).collect()
}

fn queue(pairs: &[(&str, OptionValue)]) -> Options {
    options_of(&[("queue", OptionValue::Map(options_of(pairs).0))])
}

fn all_four() -> Options {
    queue(&[
        ("scheduler", text("mq-deadline")),
        ("nr_requests", OptionValue::Integer(64)),
        ("read_ahead_kb", OptionValue::Integer(64)),
        ("write_cache", text("write through")),
    ])
}

#[test]
fn knobs_of_a_stack_device_are_set_and_restored_afterwards() {
    let Some(place) = TestPlace::new() else { return };
    let mut options = all_four();
    options.set("loop", text("64MiB"));
    options.set("in", text(place.path().to_str().unwrap()));
    let built = place.build(&stack("q", vec![("loop", options), ("ext4", Options::default())])).unwrap();
    let facts = built.facts.devices()[0].1.clone();
    assert_eq!(facts.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((facts.nr_requests, facts.read_ahead_kb), (Some(64), Some(64)));
    assert_eq!(facts.write_cache, Some(WriteCache::WriteThrough));
    let held_back = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap().1;
    assert_eq!(held_back.source, "queue.write_cache = write through", "it is the plan's word and not the device's");
    let device = built.bases.values().find(|base| matches!(base, Base::Device(_))).unwrap();
    let knobs: Vec<Thing> =
        place.ledger().open_things().into_iter().map(|(_, thing)| thing).filter(|thing| thing.owner == OWNER).collect();
    let old = |kind: &str| knobs.iter().find(|thing| thing.kind == kind).unwrap().mark("old").unwrap().to_owned();
    let before_scheduler = knobs.iter().find(|thing| thing.kind == "scheduler").unwrap().mark("dragged").unwrap();
    let expected = [
        old("write_cache"),
        old("scheduler"),
        before_scheduler.to_owned(),
        knobs[0].mark("dragged").unwrap().to_owned(),
    ];
    for thing in knobs.iter().rev() {
        undo(&place.host, thing).unwrap();
    }
    assert_eq!(queue_of(&place.host, device), expected);
    place.clean();
}

#[test]
fn a_run_dying_at_any_knob_leaves_the_device_unchanged() {
    let Some(place) = TestPlace::new() else { return };
    let device = device_of(&place);
    // Not the kernel's own defaults: these return by themselves when a scheduler changes.
    let host = &place.host;
    let node = KnobOwner::device(host, BlockDevice::find(path_of(&device)).unwrap().node);
    let first = shown(host, &node.path_of(of_device("nr_requests").unwrap())).unwrap();
    host.write(node.path_of(of_device("nr_requests").unwrap()), "96").unwrap();
    host.write(node.path_of(of_device("read_ahead_kb").unwrap()), "512").unwrap();
    let before = queue_of(host, &device);
    for entry in 0..4 {
        for after in [false, true] {
            let mark = place.ledger().mark();
            let at = mark + entry;
            place.ledger().die(if after { Death::After(at) } else { Death::Before(at) });
            assert!(set_queue(host, place.ledger(), std::slice::from_ref(&device), &all_four()).is_err());
            assert!(undo_from(place.ledger(), mark, undo_own, host).is_empty());
            assert_eq!(queue_of(host, &device), before, "at entry {entry}");
        }
    }
    // A walk that dies between a knob and the one that the kernel reset with it.
    place.ledger().die(Death::Before(u64::MAX));
    let mark = place.ledger().mark();
    set_queue(host, place.ledger(), std::slice::from_ref(&device), &queue(&[("scheduler", text("mq-deadline"))]))
        .unwrap();
    host.write(node.path_of(of_device("scheduler").unwrap()), &before[1]).unwrap();
    assert_ne!(queue_of(host, &device), before, "the kernel has reset nr_requests");
    assert!(undo_from(place.ledger(), mark, undo_own, host).is_empty());
    assert_eq!(queue_of(host, &device), before);
    host.write(node.path_of(of_device("nr_requests").unwrap()), &first).unwrap();
    place.clean();
}

#[test]
fn a_rejected_device_value_is_an_error_naming_the_choices() {
    let Some(place) = TestPlace::new() else { return };
    let device = device_of(&place);
    let before = queue_of(&place.host, &device);
    for (knob, value, words) in [
        ("scheduler", text("no-such"), "valid values: none"),
        // Below the kernel's minimum, which it silently raises.
        ("nr_requests", OptionValue::Integer(2), "the kernel then reports `4`"),
        ("nr_requests", OptionValue::Integer(1 << 30), "Invalid argument"),
        ("read_ahead_kb", OptionValue::Integer(130), "not a multiple of the page size"),
        ("elevator", text("none"), "no device knob `elevator`"),
    ] {
        let error = set_queue(&place.host, place.ledger(), std::slice::from_ref(&device), &queue(&[(knob, value)]));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(queue_of(&place.host, &device), before, "{knob}");
    }
    place.clean();
}

/// One test for all of them: they belong to the machine, and there is only one.
#[test]
fn knobs_of_this_machine_are_set_verified_and_restored() {
    let Some(place) = TestPlace::new() else { return };
    let (host, before) = (&place.host, in_force(&place.host));
    let number = |name: &str| before[name].parse::<i64>().unwrap();
    let wanted = options_of(&[
        ("vm.dirty_bytes", text("512MiB")),
        ("vm.dirty_background_bytes", text("256MiB")),
        ("vm.swappiness", OptionValue::Integer(number("vm.swappiness") + 1)),
        ("vm.vfs_cache_pressure", OptionValue::Integer(number("vm.vfs_cache_pressure") + 1)),
        ("transparent_hugepage", text(if before["transparent_hugepage"] == "never" { "madvise" } else { "never" })),
    ]);
    assert_eq!(unmet(host, &wanted), []);
    let mark = place.ledger().mark();
    for death in [None, Some(Death::Before(mark + 8)), Some(Death::After(mark + 10))] {
        place.ledger().die(death.unwrap_or(Death::Before(u64::MAX)));
        let set = set_machine(host, place.ledger(), &wanted);
        assert_eq!(set.is_err(), death.is_some());
        if death.is_none() {
            let now = in_force(host);
            assert_eq!((now["vm.dirty_bytes"].as_str(), now.get("vm.dirty_ratio")), ("536870912", None));
            assert_ne!(now["transparent_hugepage"], before["transparent_hugepage"]);
        }
        assert!(undo_from(place.ledger(), mark, undo_own, host).is_empty());
        assert_eq!(in_force(host), before, "{death:?}");
    }
    // The bytes knob was in force, and the plan requests a ratio.
    place.ledger().die(Death::Before(u64::MAX));
    set_machine(host, place.ledger(), &options_of(&[("vm.dirty_bytes", text("512MiB"))])).unwrap();
    let inner = place.ledger().mark();
    set_machine(host, place.ledger(), &options_of(&[("vm.dirty_ratio", OptionValue::Integer(7))])).unwrap();
    assert_eq!(in_force(host)["vm.dirty_ratio"], "7");
    assert!(undo_from(place.ledger(), inner, undo_own, host).is_empty());
    assert_eq!(in_force(host)["vm.dirty_bytes"], "536870912");
    assert!(undo_from(place.ledger(), mark, undo_own, host).is_empty());
    assert_eq!(in_force(host), before);
    place.clean();
}

#[test]
fn a_kernel_that_cannot_restore_discards_is_reported_without_failure() {
    let fake = Fake::new();
    let queue = "sys/dev/block/7:1/queue";
    fake.put(&format!("{queue}/discard_max_bytes"), "8192\n");
    fake.put(&format!("{queue}/discard_granularity"), "4096\n");
    let device = KnobOwner::device(&fake.host, super::super::sysfs::DeviceNumber { major: 7, minor: 1 });
    set(&fake.host, &fake.ledger, &DISCARDS, &device, "0").unwrap();
    assert!(strayed(&fake.host, &fake.ledger, 0).is_empty());
    fake.put(&format!("{queue}/discard_granularity"), "0\n");
    let reported = strayed(&fake.host, &fake.ledger, 0);
    assert!(
        reported.len() == 1 && reported[0].contains("until it is reattached or the machine reboots"),
        "{reported:?}"
    );
    fs::create_dir(fake.root.path().join("sys/dev/block/7:1/dm")).unwrap();
    assert!(strayed(&fake.host, &fake.ledger, 0).is_empty(), "a mapping goes with the trial");
    fake.undo();
    assert_eq!(fake.get(&format!("{queue}/discard_max_bytes")), "8192");
}

/// On a device whose shown limit the kernel rejects: not a multiple of its granularity.
#[test]
fn discards_of_a_real_device_are_off_during_a_stack() {
    let Some(place) = TestPlace::new() else { return };
    let file = place.path().join("sparse");
    fs::File::create(&file).unwrap().set_len(8 << 20).unwrap();
    let host = &place.host;
    // On a device of our own: the kernel may refuse to re-enable its discards for the rest of its life.
    let Some(own) = loops::OwnLoop::on(&file) else { return };
    let path = own.0.clone();
    let owner = KnobOwner::device(host, BlockDevice::find(&path).unwrap().node);
    let limit = || shown(host, &owner.path_of(&DISCARDS)).unwrap().parse::<u64>().unwrap();
    let old = limit();
    let mark = place.ledger().mark();
    without_discards(host, place.ledger(), &[Base::Device(path.clone())]).unwrap();
    let (off, entries) = (limit(), place.ledger().open_things().len());
    let granularity = shown(host, &owner.path_of(&DISCARDS).replace("max_bytes", "granularity")).unwrap();
    let failures = undo_from(place.ledger(), mark, undo_own, host);
    let back = limit();
    drop(own);
    assert!(failures.is_empty() && place.ledger().open_things().len() + 1 == entries, "{failures:?}");
    assert!(!path.exists() && old > 0 && off == 0, "{old}, then {off}");
    println!("{old}, then {off}, then {back}; granularity {granularity} between");
    let expected = if granularity == "0" { 0..=0 } else { old.min(u64::from(u32::MAX)) - 4096..=old };
    assert!(expected.contains(&back), "{old}, then {back}");
    fs::remove_file(&file).unwrap();
    place.clean();
}
