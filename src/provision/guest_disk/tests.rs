//! Disks that a plan needs from a guest, and their recognition in fake kernel files. That they work is tested in a
//! guest: `tests/guest/disks.rs`.

use super::*;
use crate::provision::test_site::{options_of, stack, text};
use std::fs;

fn disk(size: &str, bus: &str) -> (&'static str, Options) {
    (NAME, options_of(&[(NAME, text(size)), (BUS, text(bus))]))
}

fn of(name: &str, disks: &[(&str, &str)]) -> StackSpec {
    stack(name, disks.iter().map(|(size, bus)| disk(size, bus)).collect())
}

fn shown(disks: &[GuestDisk]) -> Vec<String> {
    disks.iter().map(|disk| format!("{} {} {}", disk.serial, disk.kind.bus.name(), disk.kind.size)).collect()
}

#[test]
fn stacks_share_equal_guest_disks_unless_they_are_kept() {
    let one = of("one", &[("1GiB", "nvme")]);
    let two = of("two", &[("1GiB", "nvme"), ("1GiB", "nvme"), ("2GiB", "scsi")]);
    let loops = stack("loops", vec![("loop", Options::default())]);
    assert_eq!(
        shown(&needed([&one, &two, &one, &loops].into_iter())),
        ["pgstrata-1 nvme 1 GiB", "pgstrata-2 nvme 1 GiB", "pgstrata-3 scsi 2 GiB"]
    );
    let kept = |name| StackSpec { reuse: true, ..of(name, &[("1GiB", "nvme")]) };
    assert_eq!(needed([&one, &kept("a"), &kept("b"), &kept("a")].into_iter()).len(), 3);
    assert_eq!(needed(std::iter::empty()), []);
    let without_bus = stack("x", vec![(NAME, options_of(&[(NAME, text("1GiB"))]))]);
    assert_eq!(shown(&needed([&without_bus].into_iter())), ["pgstrata-1 virtio 1 GiB"]);
}

#[test]
fn a_size_of_no_whole_mib_is_refused() {
    let check = |size: &str| OwnDisk.check(&options_of(&[(NAME, text(size))])).map_err(|problem| problem.key.unwrap());
    assert_eq!(check("64MiB"), Ok(()));
    assert_eq!(check("1000kB"), Err(NAME.to_owned()));
}

#[test]
fn a_missing_guest_or_guest_disk_is_named() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::rooted(root.path());
    let whats = |options: &Options| -> Vec<String> {
        let unmet = OwnDisk.unmet(&host, options).into_iter();
        unmet.map(|unmet| unmet.what).filter(|what| what.contains("guest")).collect()
    };
    let options = disk("1GiB", "nvme").1;
    assert_eq!(whats(&options), ["a guest: these disks exist only there"]);
    let hint = OwnDisk.unmet(&host, &options).into_iter().find(|unmet| unmet.what.contains("guest")).unwrap().hint;
    assert!(hint.contains("--guest"), "{hint}");
    let list = host.path(guest_disk::LIST);
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(&list, "pgstrata-1 scsi 1073741824\n").unwrap();
    assert_eq!(whats(&options), ["a disk of 1 GiB on nvme of this guest"]);
    assert_eq!(whats(&disk("1GiB", "scsi").1), Vec::<String>::new());
    assert_eq!(whats(&Options::default()), Vec::<String>::new());
}

#[test]
fn the_bus_is_what_the_kernel_sorts_a_device_under() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::rooted(root.path());
    let buses = [("virtio", Some(Bus::Virtio)), ("scsi", Some(Bus::Scsi)), ("nvme", Some(Bus::Nvme))];
    let more = [("nvme-subsystem", Some(Bus::Nvme)), ("usb", None)];
    for ((name, bus), minor) in buses.into_iter().chain(more).zip(0..) {
        let node = DeviceNumber { major: 8, minor };
        let device = host.path(node.path_of("device"));
        let subsystem = root.path().join("sys/bus").join(name);
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(&subsystem).unwrap();
        std::os::unix::fs::symlink(&subsystem, device.join("subsystem")).unwrap();
        assert_eq!(super::bus(&host, node), bus, "{name}");
    }
    assert_eq!(super::bus(&host, DeviceNumber { major: 9, minor: 0 }), None);
}

#[test]
fn resources_held_before_a_guest_was_killed_are_free_again() {
    use crate::provision::test_site::TestPlace;
    let place = TestPlace::of_anybody();
    let used = |serial: &str, boot: &str| Thing::new(NAME, USED).with(SERIAL, serial).with("boot", boot);
    place.ledger().enter(used("pgstrata-1", "before")).unwrap();
    place.ledger().enter(used("pgstrata-2", &knobs::boot(&place.host))).unwrap();
    place.ledger().enter(Thing::new("ext4", "mount").with(SERIAL, "pgstrata-3")).unwrap();
    assert_eq!(taken(&place.site("x")), ["pgstrata-2"]);
    assert!(OwnDisk.undo(&place.host, &used("pgstrata-2", "now")).is_ok());
    assert!(OwnDisk.undo(&place.host, &Thing::new(NAME, "image")).is_err());
    // A ledger entry of another layer cannot be undone: that thing was never made.
    let things = place.ledger().open_things();
    place.ledger().undone(things.last().unwrap().0).unwrap();
    place.clean();
}
