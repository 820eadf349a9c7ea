//! Tests of the guard on real loop devices, to which a fake sysfs gives a serial.

use super::{RealDisk, USED, contents, this_process};
use crate::host::Host;
use crate::host::command::Command;
use crate::provision::identity::BlockDevice;
use crate::provision::images::Images;
use crate::provision::ledger::Thing;
use crate::provision::stack::{build_stack, unmet};
use crate::provision::test_site::{TestPlace, options_of, stack, text};
use crate::provision::undo::{undo_from, undo_own};
use crate::provision::{Base, Layer, Site, drives, guard};
use crate::record::options::{OptionValue, Options};
use std::fs;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;

/// A blank loop device, and a host whose sysfs gives it a serial.
struct Bench {
    place: TestPlace,
    device: BlockDevice,
    root: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Bench> {
        let place = TestPlace::new()?;
        let mut image = options_of(&[("loop", text("64MiB")), ("in", text(place.path().to_str().unwrap()))]);
        // It reads as zeros, like a blank disk.
        image.set("sparse", OptionValue::Boolean(true));
        let built = crate::provision::layer("loop").unwrap().build(&place.site("disk"), &[], &image).unwrap();
        let Base::Device(path) = built.bases[0].clone() else { panic!() };
        let device = BlockDevice::find(&path).unwrap();
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join(format!("sys/dev/block/{}:{}", device.node.major, device.node.minor));
        fs::create_dir_all(&sys).unwrap();
        fs::write(sys.join("serial"), "S5GX\n").unwrap();
        fs::write(sys.join("size"), "131072\n").unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(sys.join("uevent"), format!("DEVNAME={name}\n")).unwrap();
        symlink("/proc", root.path().join("proc")).unwrap();
        Some(Bench { place, device, root })
    }

    fn host(&self) -> Host {
        Host::rooted(self.root.path())
    }

    fn path(&self) -> &Path {
        &self.device.path
    }

    fn options(&self, serial: &str, overwrite: bool) -> Options {
        let path = text(self.path().to_str().unwrap());
        options_of(&[("disk", path), ("serial", text(serial)), ("overwrite", OptionValue::Boolean(overwrite))])
    }

    fn with_site<T>(&self, deed: impl FnOnce(&Site<'_>) -> T) -> T {
        let host = self.host();
        deed(&Site { host: &host, ..self.place.site("on-disk") })
    }

    fn error(&self, options: &Options) -> String {
        self.with_site(|site| RealDisk.build(site, &[], options)).unwrap_err().to_string()
    }

    fn run(&self, program: &str, args: &[&str]) {
        self.place.host.run(&Command::new(program).args(args).arg(self.path())).unwrap();
    }

    fn carried(&self) -> Vec<String> {
        guard::contents(&self.host(), &self.device).unwrap()
    }
}

#[test]
fn a_part_beyond_a_disk_is_refused_before_any_build() {
    let Some(bench) = Bench::new() else { return };
    let lacking = |size: &str| {
        let part = options_of(&[("start", text("50%")), ("size", text(size))]);
        let layers = vec![("disk", bench.options("S5GX", false)), ("linear", part), ("ext4", Options::default())];
        let unmet = unmet(&bench.host(), &stack("d", layers), &Images::default());
        unmet.into_iter().map(|unmet| unmet.what).find(|what| what.contains("below `linear`"))
    };
    let said = lacking("100MiB");
    assert_eq!(said.as_deref(), Some("room for 100MiB from 50% on the device below `linear`, which has 64 MiB"));
    assert_eq!(lacking("16MiB"), None);
    bench.place.clean();
}

#[test]
fn a_blank_disk_with_matching_serial_is_blank_again_afterwards() {
    let Some(bench) = Bench::new() else { return };
    let layers = vec![("disk", bench.options("S5GX", false)), ("ext4", Options::default())];
    let spec = stack("d", layers);
    for _ in 0..2 {
        let built = bench.with_site(|site| build_stack(site, &spec)).unwrap();
        assert_eq!(built.facts.nodes[0].details["serial"], "S5GX");
        assert_eq!(built.facts.devices()[0].1.serial.as_deref(), Some("S5GX"));
        assert!(bench.carried()[0].starts_with("ext4 labelled `pgstrata-"), "{:?}", bench.carried());
        let failures = undo_from(bench.place.ledger(), built.mark, undo_own, &bench.host());
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(bench.carried(), Vec::<String>::new());
        let start = crate::host::files::read_at(bench.path(), 0, 64).unwrap();
        assert!(start.starts_with(b"pgstrata used this disk"), "what the trial left on it is marked as free");
    }
    bench.place.clean();
}

#[test]
fn a_disk_of_a_killed_run_may_be_somebodys_by_now_and_is_not_marked_as_free() {
    let Some(bench) = Bench::new() else { return };
    let used = |process: &str| {
        let thing = Thing::new("disk", USED).with_path("device", bench.path()).unwrap();
        thing.with("serial", "S5GX").with("wwn", "").with("process", process).with("run", "r")
    };
    let start = || crate::host::files::read_at(bench.path(), 0, 8).unwrap();
    RealDisk.undo(&bench.host(), &used("another 17 4711")).unwrap();
    assert_eq!(start(), [0; 8]);
    RealDisk.undo(&bench.host(), &used(&this_process(&bench.host()))).unwrap();
    assert_eq!(start(), b"pgstrata");
    bench.place.clean();
}

#[test]
fn a_disk_with_bytes_but_no_signature_is_not_blank() {
    let Some(bench) = Bench::new() else { return };
    // At the very end, which only the last check of all reads.
    let file = fs::OpenOptions::new().write(true).open(bench.path()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"precious", (64 << 20) - 8).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let error = bench.error(&bench.options("S5GX", false));
    assert!(error.contains("holds data: unknown data") && error.contains("67108856"), "{error}");
    bench.with_site(|site| RealDisk.build(site, &[], &bench.options("S5GX", true))).unwrap();
    bench.place.clean();
}

#[test]
fn data_written_behind_the_run_mark_belongs_to_somebody_else() {
    let Some(bench) = Bench::new() else { return };
    let layers = vec![("disk", bench.options("S5GX", false)), ("ext4", Options::default())];
    let spec = stack("d", layers);
    let used = || {
        let built = bench.with_site(|site| build_stack(site, &spec))?;
        let failures = undo_from(bench.place.ledger(), built.mark, undo_own, &bench.host());
        assert!(failures.is_empty(), "{failures:#?}");
        Ok::<_, crate::error::Error>(())
    };
    used().unwrap();
    used().unwrap();
    // A device whose records are missing is unknown.
    let (records, away) = (bench.root.path().join("var/lib/pgstrata/disks"), bench.root.path().join("away"));
    fs::rename(&records, &away).unwrap();
    let error = bench.error(&bench.options("S5GX", false));
    assert!(error.contains("unknown data, first found at 0; a run has marked it as its own, but"), "{error}");
    fs::rename(&away, &records).unwrap();
    let file = fs::OpenOptions::new().write(true).open(bench.path()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &b"USERDATA".repeat(1 << 20), 1 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let error = used().unwrap_err().chain();
    assert!(error.contains("something was written since the run"), "{error}");
    bench.place.clean();
}

#[test]
fn data_between_evenly_spread_places_are_seen() {
    let Some(bench) = Bench::new() else { return };
    let file = fs::OpenOptions::new().write(true).open(bench.path()).unwrap();
    for place in 0..255 {
        let at = ((64 << 20) - (64 << 10)) * place / 255 + (65 << 10);
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 180 << 10], at).unwrap();
    }
    file.sync_all().unwrap();
    drop(file);
    assert!(bench.error(&bench.options("S5GX", false)).contains("unknown data"));
    bench.place.clean();
}

#[test]
fn a_second_name_of_a_disk_in_use_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let host = &bench.place.host;
    let file = bench.device.node.backing_file(host).unwrap();
    let twin = host.run(&Command::new("losetup").args(["--show", "-f"]).arg(&file)).unwrap().stdout;
    let twin = twin.trim();
    let used = |device: &BlockDevice| guard::uses(host, device).unwrap();
    let (before, target) = (used(&bench.device), tempfile::tempdir().unwrap());
    host.run(&Command::new("mkfs.ext4").args(["-q", twin])).unwrap();
    host.run(&Command::new("mount").arg(twin).arg(target.path())).unwrap();
    let during = used(&bench.device);
    host.run(&Command::new("umount").arg(target.path())).unwrap();
    host.run(&Command::new("losetup").args(["-d", twin])).unwrap();
    assert!(before.is_empty(), "{before:?}");
    assert!(
        during[0].contains(&format!("{twin} is the same disk (the same file): {twin} is mounted on")),
        "{during:?}"
    );
    // Two paths to a LUN, as sysfs shows them.
    let sys = |path: &str, text: &str| {
        let path = bench.root.path().join("sys").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (number, wwn, is_twin) in [("8:16", "naa.1", true), ("8:32", "naa.2", false)] {
        sys("block/sdb/dev", number);
        sys("class/block/sdb/dev", number);
        for (name, text) in [("serial", "S5GX"), ("size", "131072"), ("uevent", "DEVNAME=sdb"), ("wwid", wwn)] {
            sys(&format!("dev/block/{number}/{name}"), text);
        }
        sys(&format!("dev/block/{number}/holders/dm-3"), "");
        sys(&format!("dev/block/{}:{}/wwid", bench.device.node.major, bench.device.node.minor), "naa.1");
        let uses = guard::uses(&bench.host(), &bench.device).unwrap().join("; ");
        assert_eq!(uses.contains("/dev/sdb is the same disk (WWN naa.1): dm-3 uses sdb"), is_twin, "{uses}");
    }
    bench.place.clean();
}

#[test]
fn a_disk_with_another_serial_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let error = bench.error(&bench.options("S5GY", true));
    assert!(error.contains("its serial is `S5GX`, expected `S5GY`"), "{error}");
    let real = Site { host: &bench.place.host, ..bench.place.site("x") };
    let error = RealDisk.build(&real, &[], &bench.options("S5GX", true)).unwrap_err().to_string();
    assert!(error.contains("it reports no serial"), "{error}");
    bench.place.clean();
}

#[test]
fn a_disk_with_a_filesystem_requires_the_overwrite_option() {
    let Some(bench) = Bench::new() else { return };
    bench.run("mkfs.ext4", &["-q", "-L", "precious"]);
    let error = bench.error(&bench.options("S5GX", false));
    assert!(error.contains("holds data: ext4 labelled `precious`"), "{error}");
    assert_eq!(RealDisk.unmet(&bench.host(), &bench.options("S5GX", false)).len(), 1);
    assert_eq!(contents(&bench.host(), &bench.options("S5GX", false)).unwrap(), None);
    let shown = contents(&bench.host(), &bench.options("S5GX", true)).unwrap().unwrap();
    assert_eq!((shown.serial.as_deref(), shown.size.unwrap().0), (Some("S5GX"), 64 << 20));
    assert!(shown.signatures[0].contains("precious"));
    assert_eq!(bench.carried().len(), 1, "looking changes nothing");
    assert_eq!(RealDisk.unmet(&bench.host(), &bench.options("S5GX", true)), []);
    bench.with_site(|site| RealDisk.build(site, &[], &bench.options("S5GX", true))).unwrap();
    assert_eq!(bench.carried(), Vec::<String>::new());
    bench.place.clean();
}

#[test]
fn partition_tables_and_raid_members_are_seen() {
    let Some(bench) = Bench::new() else { return };
    // One Linux partition from sector 2048: the entry at byte 446, the table's mark at byte 510.
    let mut sector = [0u8; 512];
    sector[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::write(bench.path(), sector).unwrap();
    let error = bench.error(&bench.options("S5GX", false));
    assert!(error.contains("holds data: dos"), "{error}");
    bench.with_site(|site| RealDisk.build(site, &[], &bench.options("S5GX", true))).unwrap();
    // A member of an md array, superblock 1.2 at 4 KiB (drivers/md/md.c, struct mdp_superblock_1).
    let mut superblock = vec![0u8; 4096 + 256];
    superblock[4096..4100].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    superblock[4100..4104].copy_from_slice(&1u32.to_le_bytes());
    superblock[4096 + 144..4096 + 152].copy_from_slice(&8u64.to_le_bytes());
    fs::write(bench.path(), &superblock).unwrap();
    assert!(bench.carried()[0].starts_with("linux_raid_member"), "{:?}", bench.carried());
    assert!(bench.error(&bench.options("S5GX", false)).contains("linux_raid_member"));
    bench.place.clean();
}

#[test]
fn a_mounted_disk_is_refused_even_when_overwrite_is_allowed() {
    let Some(bench) = Bench::new() else { return };
    bench.run("mkfs.ext4", &["-q"]);
    let target = tempfile::tempdir().unwrap();
    bench.place.host.run(&Command::new("mount").arg(bench.path()).arg(target.path())).unwrap();
    let error = bench.error(&bench.options("S5GX", true));
    bench.place.host.run(&Command::new("umount").arg(target.path())).unwrap();
    assert!(error.contains("is in use") && error.contains("is mounted on"), "{error}");
    assert!(!error.contains("cannot be opened exclusively"), "a known use is enough: {error}");
    bench.place.clean();
}

#[test]
fn a_disk_that_something_else_stands_on_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let options = bench.options("S5GX", true);
    let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap();
    let held = fs::OpenOptions::new().read(true).custom_flags(exclusive).open(bench.path()).unwrap();
    assert!(bench.error(&options).contains("cannot be opened exclusively"));
    drop(held);

    let upper = bench.place.host.run(&Command::new("losetup").args(["--show", "-f"]).arg(bench.path())).unwrap();
    let uses = guard::uses(&bench.place.host, &bench.device).unwrap();
    bench.place.host.run(&Command::new("losetup").args(["-d", upper.stdout.trim()])).unwrap();
    assert!(uses.iter().any(|used| used.ends_with("uses it as its backing file")), "{uses:?}");

    let sys = bench.root.path().join(format!("sys/dev/block/{}:{}", bench.device.node.major, bench.device.node.minor));
    fs::create_dir_all(sys.join("holders/dm-0")).unwrap();
    assert!(bench.error(&options).contains("dm-0 uses loop"));
    fs::remove_dir_all(sys.join("holders")).unwrap();
    fs::write(sys.join("ro"), "1\n").unwrap();
    assert!(bench.error(&options).contains("write-protected"));
    fs::write(sys.join("ro"), "0\n").unwrap();

    let proc = bench.root.path().join("proc");
    fs::remove_file(&proc).unwrap();
    fs::create_dir_all(proc.join("self")).unwrap();
    fs::write(proc.join("self/mountinfo"), "").unwrap();
    let swap = format!("Filename Type Size Used Priority\n{} partition 1 0 -2\n", bench.path().display());
    fs::write(proc.join("swaps"), swap).unwrap();
    assert!(bench.error(&options).contains("is used for swap"));
    bench.place.clean();
}

#[test]
fn a_disk_without_path_or_identity_is_refused_at_parsing() {
    let check = |disk: &str, serial: &str| {
        RealDisk
            .check(&options_of(&[("disk", text(disk)), ("serial", text(serial))]))
            .map_err(|problem| problem.message)
    };
    assert_eq!(check("/dev/disk/by-id/x", "S5GX"), Ok(()));
    assert!(check("/dev/sda", " ").unwrap_err().contains("gives no `serial` or `wwn`"));
    assert!(check("sda", "S5GX").unwrap_err().contains("full path"));
    assert!(check("/dev/../tmp/x", "S5GX").unwrap_err().contains("full path"));
    let missing = options_of(&[("disk", text("/dev/no-such-disk")), ("serial", text("1"))]);
    if crate::host::users::is_root() {
        let unmet = RealDisk.unmet(&Host::this(), &missing);
        assert!(unmet[0].what.contains("/dev/no-such-disk"), "{unmet:?}");
    } else {
        println!("skipped: looking at a device needs root");
    }
}

/// An ext4 on the disk, which is to be brought to its steady state.
fn preconditioned(bench: &Bench) -> crate::record::stack::StackSpec {
    let mut options = bench.options("S5GX", false);
    options.set("precondition", OptionValue::Boolean(true));
    stack("d", vec![("disk", options), ("ext4", Options::default())])
}

#[test]
fn a_preconditioned_drive_is_recognised_until_somebody_else_uses_it() {
    let Some(bench) = Bench::new() else { return };
    let wanted = drives::of_stack(&preconditioned(&bench)).unwrap().remove(0);
    assert_eq!(wanted.key, format!("{}, serial S5GX", bench.path().display()));
    let run = bench.place.ledger().run_id();
    assert!(!wanted.is_still_of(&bench.host(), run), "nobody has used it");
    let mark = bench.place.ledger().mark();
    let standing = bench.with_site(|site| wanted.stand(site)).unwrap();
    assert_eq!((standing.path.as_path(), standing.bytes), (bench.path(), 64 << 20));
    assert_eq!(wanted.bytes(&bench.host()).unwrap().0, 64 << 20);
    let failures = undo_from(bench.place.ledger(), mark, undo_own, &bench.host());
    assert!(failures.is_empty() && wanted.is_still_of(&bench.host(), run), "{failures:#?}");
    assert!(!wanted.is_still_of(&bench.host(), "another"), "another run was the last to use it");
    bench.run("mkfs.ext4", &["-q", "-L", "precious"]);
    let error = bench.with_site(|site| wanted.stand(site)).unwrap_err().to_string();
    assert!(error.contains("holds data: ext4 labelled `precious`"), "{error}");
    bench.run("wipefs", &["--all"]);
    bench.run("blkdiscard", &["--zeroout"]);
    assert!(!wanted.is_still_of(&bench.host(), run), "it was emptied");
    bench.place.clean();
}

#[test]
fn no_discards_reach_a_preconditioned_drive_below_a_stack() {
    let Some(bench) = Bench::new() else { return };
    let node = bench.device.node;
    let queue = bench.root.path().join(format!("sys/dev/block/{}:{}/queue", node.major, node.minor));
    fs::create_dir_all(&queue).unwrap();
    let (most, shown) = (queue.join("discard_max_bytes"), |path: &Path| fs::read_to_string(path).unwrap());
    fs::write(&most, "2147450880\n").unwrap();
    let plain = stack("d", vec![("disk", bench.options("S5GX", false)), ("ext4", Options::default())]);
    for (spec, during) in [(plain, "2147450880"), (preconditioned(&bench), "0")] {
        let built = bench.with_site(|site| build_stack(site, &spec)).unwrap();
        assert_eq!(shown(&most).trim(), during);
        let failures = undo_from(bench.place.ledger(), built.mark, undo_own, &bench.host());
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(shown(&most).trim(), "2147450880");
    }
    bench.place.clean();
}
