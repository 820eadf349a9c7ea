//! Tests of the walk from a folder to its devices, on fake trees in the kernel's layout.

use super::{DeviceWalk, DevicesBelow, WayEnd};
use crate::host::Host;
use crate::parse::mountinfo;
use crate::provision::identity::{Identity, unit_serial};
use crate::provision::sysfs::{DeviceNumber, chosen};
use crate::record::claim::Claim;
use crate::record::facts::{DeviceFacts, WriteCache};
use crate::record::stack::Role;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A fake `/sys` and `/proc`.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    fn host(&self) -> Host {
        Host::rooted(self.0.path())
    }

    fn write(&self, path: &str, text: &str) {
        let real = self.0.path().join(path);
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        fs::write(real, text).unwrap();
    }

    fn link(&self, from: &str, to: &str) {
        let real = self.0.path().join(from);
        fs::create_dir_all(real.parent().unwrap()).unwrap();
        symlink(self.0.path().join(to), real).unwrap();
    }

    /// A device below `/sys/devices/FOLDER`, with its attributes.
    fn device(&self, folder: &str, number: &str, attributes: &[(&str, &str)]) {
        let name = folder.rsplit('/').next().unwrap();
        let place = format!("sys/devices/{folder}");
        self.write(&format!("{place}/dev"), &format!("{number}\n"));
        self.write(&format!("{place}/uevent"), &format!("DEVNAME={name}\nDEVTYPE=disk\n"));
        for (attribute, value) in attributes {
            self.write(&format!("{place}/{attribute}"), &format!("{value}\n"));
        }
        self.link(&format!("sys/dev/block/{number}"), &place);
        self.link(&format!("sys/class/block/{name}"), &place);
        self.link(&format!("sys/block/{name}"), &place);
    }

    fn below(&self, mounts: &str, path: &str) -> DevicesBelow {
        let host = self.host();
        let mut walk = DeviceWalk {
            host: &host,
            table: mountinfo::parse(mounts).unwrap(),
            below: DevicesBelow::default(),
            overlays: 0,
        };
        walk.file(Path::new(path), 0, None);
        walk.below
    }
}

fn outline(below: &DevicesBelow) -> Vec<(u32, &str)> {
    below.devices.iter().map(|device| (device.depth, device.name.as_str())).collect()
}

#[test]
fn a_loop_on_a_partition_leads_to_the_whole_disk() {
    let tree = Tree::new();
    let file = ("loop/backing_file", "/var/lib/x.img");
    tree.device(
        "virtual/block/loop3",
        "7:3",
        &[
            file,
            ("loop/dio", "1"),
            ("queue/write_cache", "write back"),
            ("queue/atomic_write_unit_max_bytes", "16384"),
            ("size", "2048"),
        ],
    );
    tree.device(
        "pci/sda",
        "8:0",
        &[
            ("queue/write_cache", "write through"),
            ("queue/rotational", "1"),
            ("queue/scheduler", "[none] bfq"),
            ("device/model", "QEMU"),
        ],
    );
    tree.device("pci/sda/sda1", "8:1", &[("partition", "1"), ("size", "4")]);
    tree.write(
        "proc/diskstats",
        "8 0 sda 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 6\n8 1 sda1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n7 3 loop3 1 0 0 0 0 0 0 0 0 0 0\n",
    );
    let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 7:3 / /mnt rw - ext4 /dev/loop3 rw\n";
    let below = tree.below(mounts, "/mnt/data");
    assert_eq!(outline(&below), [(0, "loop3"), (1, "sda1"), (2, "sda")]);
    let [top, partition, disk] = below.devices.as_slice() else { panic!() };
    assert_eq!((top.direct_io, top.backing_file.as_deref()), (Some(true), Some("/var/lib/x.img")));
    assert_eq!((top.size_bytes, top.write_cache), (Some(1 << 20), Some(WriteCache::WriteBack)));
    assert_eq!((top.atomic_write_unit_max_bytes, disk.atomic_write_unit_max_bytes), (Some(16384), None));
    assert_eq!(top.counts_flushes, Some(false), "an old kernel's line has no flushes");
    assert_eq!((partition.size_bytes, partition.write_cache), (Some(2048), Some(WriteCache::WriteThrough)));
    assert_eq!(partition.model.as_deref(), Some("QEMU"));
    assert_eq!((partition.counts_flushes, disk.counts_flushes), (Some(false), Some(true)));
    assert_eq!((disk.rotational, disk.scheduler.as_deref(), disk.fua), (Some(true), Some("none"), None));
    assert_eq!(below.ends, []);
    assert_eq!(below.on, [vec![1], vec![2], vec![]]);
}

/// A multipath NVMe as the kernel shows it: the device in front counts nothing and has no queue, its paths are hidden.
fn multipath(tree: &Tree) {
    let zeroes = "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    let wwid = ("wwid", "eui.01");
    tree.device("virtual/nvme0n1", "259:1", &[wwid, ("queue/write_cache", "write back"), ("stat", zeroes)]);
    for (name, wwid) in [("nvme0c0n1", "eui.01"), ("nvme0c1n1", "eui.01"), ("nvme0c1n2", "eui.02")] {
        let folder = format!("sys/class/block/{name}");
        let attributes = [
            ("wwid", wwid),
            ("hidden", "1"),
            ("queue/write_cache", "write back"),
            ("mq/0/nr_tags", "128"),
            ("stat", "1 0 8 0 10 0 80 0 0 0 0 0 0 0 0 3 0"),
        ];
        attributes.iter().for_each(|(attribute, value)| tree.write(&format!("{folder}/{attribute}"), value));
    }
}

#[test]
fn a_multipath_nvme_resolves_to_its_hidden_paths() {
    let tree = Tree::new();
    multipath(&tree);
    let below = tree.below("1 0 259:1 / / rw - ext4 /dev/nvme0n1 rw\n", "/srv");
    assert_eq!(outline(&below), [(0, "nvme0n1"), (1, "nvme0c0n1"), (1, "nvme0c1n1")]);
    let [head, path, _] = below.devices.as_slice() else { panic!() };
    assert_eq!((head.has_queue, head.writes_before, head.flushes_before), (Some(false), Some(0), Some(0)));
    assert_eq!((path.has_queue, path.writes_before, path.flushes_before), (Some(true), Some(10), Some(3)));
    assert_eq!((path.write_cache, path.counts_flushes), (Some(WriteCache::WriteBack), Some(true)));
    assert_eq!((head.stands_on_nothing, path.stands_on_nothing), (Some(false), Some(true)));
    assert_eq!(path.sysfs_folder(), "/sys/class/block/nvme0c0n1");
}

#[test]
fn a_rotation_rate_is_known_only_where_reported() {
    assert_eq!(super::turns_per_minute(&[0, 0xb1, 0, 0x3c, 0x1c, 0x20, 0]), Some(7200));
    assert_eq!(super::turns_per_minute(&[0, 0xb1, 0, 0x3c, 0, 1, 0]), None, "it does not rotate");
    assert_eq!(super::turns_per_minute(&[0, 0xb1, 0, 0x3c, 0, 0, 0]), None, "it does not say");
    assert_eq!(super::turns_per_minute(&[0, 0xb0, 0, 0x3c, 0x1c, 0x20, 0]), None, "another page");
}

#[test]
fn device_mapper_and_md_resolve_to_all_their_members() {
    let tree = Tree::new();
    tree.device("virtual/block/dm-0", "253:0", &[("dm/name", "vg-pg")]);
    tree.device("virtual/block/md0", "9:0", &[]);
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        tree.device(&format!("pci/{name}"), number, &[]);
        tree.link(&format!("sys/devices/virtual/block/md0/slaves/{name}"), &format!("sys/devices/pci/{name}"));
    }
    tree.link("sys/devices/virtual/block/dm-0/slaves/md0", "sys/devices/virtual/block/md0");
    let below = tree.below("1 0 253:0 / / rw - xfs /dev/mapper/vg-pg rw\n", "/srv");
    assert_eq!(outline(&below), [(0, "dm-0"), (1, "md0"), (2, "sda"), (2, "sdb")]);
    assert_eq!(below.devices[0].model, None, "the name of a mapping is no model");
    tree.write("sys/devices/virtual/block/dm-0/dm/name", "pgstrata-782f363b-10");
    let ours = tree.below("1 0 253:0 / / rw - xfs /dev/mapper/x rw\n", "/srv");
    assert_eq!(ours.devices[0].model, None, "trials that differ in a mapping's name do not differ");
}

#[test]
fn btrfs_with_its_anonymous_number_leads_to_all_its_members() {
    let tree = Tree::new();
    tree.device("pci/sdb", "8:16", &[]);
    tree.device("pci/sdc", "8:32", &[]);
    for name in ["sdb", "sdc"] {
        tree.link(&format!("sys/fs/btrfs/1111/devices/{name}"), &format!("sys/devices/pci/{name}"));
    }
    tree.write("sys/fs/btrfs/features/x", "");
    let below = tree.below("1 0 0:39 /@ / rw - btrfs /dev/sdb rw\n", "/srv");
    assert_eq!(outline(&below), [(0, "sdb"), (0, "sdc")]);
}

#[test]
fn where_no_device_can_be_told_the_reason_is_kept() {
    let tree = Tree::new();
    tree.device("virtual/block/loop0", "7:0", &[("loop/backing_file", "/tmp/x.img (deleted)")]);
    let table = "1 0 0:30 / / rw - overlay overlay rw\n2 1 0:31 / /tmp rw - tmpfs none rw\n3 1 7:0 / /mnt rw - ext4 /dev/loop0 rw\n";
    let below = tree.below(table, "/mnt");
    assert_eq!(outline(&below), [(0, "loop0")]);
    assert_eq!(below.ends[0].promise.to_string(), "nothing below /tmp (tmpfs): its files are in memory");
    assert_eq!((below.ends.len(), below.ends[0].under), (1, Some(0)));
    assert!(tree.below(table, "/srv").ends[0].promise.source.contains("overlay"));
}

#[test]
fn mounts_without_barriers_below_an_image_are_reported() {
    let tree = Tree::new();
    tree.device("virtual/block/loop1", "7:1", &[("loop/backing_file", "/mnt/in/x.img")]);
    tree.device("virtual/block/loop0", "7:0", &[("loop/backing_file", "/srv/y.img")]);
    tree.device("virtual/block/dm-0", "253:0", &[]);
    tree.link("sys/devices/virtual/block/dm-0/slaves/loop1", "sys/devices/virtual/block/loop1");
    tree.device("pci/sda", "8:0", &[]);
    let of_mount = |inner: &str, outer: &str, folder: &str, device: &str| {
        let table = format!(
            "1 0 8:0 / / rw - ext4 /dev/sda rw\n2 1 8:0 / /srv rw - {outer}\n3 1 7:0 / /mnt rw - {inner}\n\
             4 1 {device} / /data rw - xfs /dev/x rw\n"
        );
        let below = tree.below(&table, folder);
        let name = |end: &WayEnd| end.under.map(|place| below.devices[place].name.clone());
        below.ends.iter().map(|end| (name(end), end.promise.to_string())).collect::<Vec<_>>()
    };
    let at =
        |device: &str, what: &str| vec![(Some(device.to_owned()), format!("{what}: the filesystem sends no flushes"))];
    let (ext4, xfs) = ("ext4 /dev/x rw", "xfs /dev/x rw");
    for (inner, outer, device, wanted) in [
        ("ext4 /dev/loop0 rw,nobarrier", xfs, "7:1", at("loop1", "mount option nobarrier at /mnt")),
        ("ext3 /dev/loop0 rw,barrier=0", ext4, "7:1", at("loop1", "mount option barrier=0 at /mnt")),
        ("btrfs /dev/loop0 rw,nobarrier,ssd", ext4, "253:0", at("loop1", "mount option nobarrier at /mnt")),
        ("reiserfs /dev/loop0 rw,barrier=none", ext4, "7:1", at("loop1", "mount option barrier=none at /mnt")),
        (
            "f2fs /dev/loop0 rw,fsync_mode=nobarrier",
            ext4,
            "7:1",
            at("loop1", "mount option fsync_mode=nobarrier at /mnt"),
        ),
        ("jfs /dev/loop0 rw", ext4, "7:1", at("loop1", "filesystem jfs at /mnt")),
        // Two loop devices further down.
        (xfs, "ext4 /dev/sda rw,nobarrier", "7:1", at("loop0", "mount option nobarrier at /srv")),
        (xfs, "ext4 /dev/sda rw,nobarrier", "253:0", at("loop0", "mount option nobarrier at /srv")),
        (ext4, xfs, "7:1", Vec::new()),
        ("ext4 /dev/loop0 rw,barrier=1", "xfs /dev/x rw,noatime", "7:1", Vec::new()),
    ] {
        assert_eq!(of_mount(inner, outer, "/data", device), wanted, "{inner}, {outer}, {device}");
    }
    // The options of the folder's own mount are recorded with its own node.
    assert_eq!(of_mount("ext4 /dev/loop0 rw,nobarrier", xfs, "/mnt", "7:1"), []);
}

#[test]
fn without_a_mount_table_the_lower_layers_are_unknown() {
    let (machine, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let host = Host::rooted(machine.path());
    let below = super::below(&host, folder.path()).unwrap();
    assert!(below.devices.is_empty());
    assert_eq!(below.ends.len(), 1);
    assert_eq!(below.ends[0].promise.claim, Claim::HiddenBelow);
    assert_eq!(below.ends[0].promise.to_string(), "there is no mount table (/proc/self/mountinfo)");
    assert!(super::below(&host, &folder.path().join("missing")).is_err());
}

#[test]
fn a_device_that_stands_on_itself_ends_the_walk() {
    let tree = Tree::new();
    tree.device("virtual/block/loop0", "7:0", &[("loop/backing_file", "/mnt/x.img")]);
    let below = tree.below("1 0 7:0 / /mnt rw - ext4 /dev/loop0 rw\n", "/mnt");
    assert_eq!(outline(&below), [(0, "loop0")]);
}

#[test]
fn serials_are_read_where_each_driver_puts_them() {
    let tree = Tree::new();
    tree.device(
        "nvme/nvme0n1",
        "259:0",
        &[("device/serial", "S5GX  "), ("wwid", "eui.0025"), ("device/model", "Samsung")],
    );
    tree.device("virtio/vdb", "254:16", &[("serial", "disk-1")]);
    tree.device("ata/sda", "8:0", &[("device/wwid", "naa.5000"), ("device/vpd_pg80", "")]);
    fs::write(tree.0.path().join("sys/devices/ata/sda/device/vpd_pg80"), b"\x00\x80\x00\x08  WD-X1  ").unwrap();
    tree.device("usb/sdb", "8:16", &[]);
    tree.write("run/udev/data/b8:16", "E:ID_SERIAL=Brand_0042\nE:ID_SERIAL_SHORT=0042\nE:ID_WWN=0x5\n");
    let host = tree.host();
    let serial = |major, minor| Identity::of(&host, DeviceNumber { major, minor }).serial;
    assert_eq!(serial(259, 0).as_deref(), Some("S5GX"));
    assert_eq!(serial(254, 16).as_deref(), Some("disk-1"));
    assert_eq!(serial(8, 0).as_deref(), Some("WD-X1"));
    assert_eq!(serial(8, 16).as_deref(), Some("0042"));
    assert_eq!(Identity::of(&host, DeviceNumber { major: 259, minor: 0 }).wwn.as_deref(), Some("eui.0025"));
    assert_eq!(Identity::of(&host, DeviceNumber { major: 8, minor: 16 }).wwn.as_deref(), Some("0x5"));
    assert_eq!(serial(8, 99), None);
}

#[test]
fn a_page_that_is_cut_off_has_no_serial() {
    for page in [&b""[..], b"\x00\x80", b"\x00\x80\x00\x09abc", b"\x00\x83\x00\x03abc", b"\x00\x80\x00\x00"] {
        assert_eq!(unit_serial(page), None, "{page:?}");
    }
    assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
    assert_eq!(chosen("none"), "none");
}

#[test]
fn the_devices_of_this_machine_are_found() {
    let below = super::below(&Host::this(), Path::new("/tmp")).unwrap();
    assert!(!below.devices.is_empty() || !below.ends.is_empty());
    for device in &below.devices {
        assert!(device.size_bytes.is_some() && !device.name.is_empty(), "{device:?}");
    }
}

#[test]
fn a_sync_reaches_the_zpool_log_and_never_the_l2arc() {
    let pool = |roles: &[Role]| {
        // A loop device on a file of the pool, then the pool's partitions, each on a disk of its own.
        let named = |name: String| DeviceFacts { name, ..DeviceFacts::default() };
        let mut below = DevicesBelow { devices: vec![named("loop0".to_owned())], ..DevicesBelow::default() };
        below.on.push((0..roles.len()).map(|number| 1 + 2 * number).collect());
        for (number, role) in roles.iter().enumerate() {
            let place = below.devices.len();
            below.devices.extend([named(format!("sd{number}1")), named(format!("sd{number}"))]);
            below.on.extend([vec![place + 1], Vec::new()]);
            below.roles.insert(place, *role);
        }
        below.reached_by_a_sync().into_iter().map(|device| device.name).collect::<Vec<_>>()
    };
    assert_eq!(pool(&[Role::Data, Role::Log, Role::Cache]), ["loop0", "sd11", "sd1"]);
    assert_eq!(pool(&[Role::Data, Role::Special, Role::Cache]), ["loop0", "sd01", "sd0", "sd11", "sd1"]);
    assert_eq!(pool(&[]), ["loop0"]);
}
