//! Writes images in full and reuses them, on real loop devices. Tests need root, and report if they lack it.

use super::identity::BlockDevice;
use super::images::{self, Images};
use super::ledger::{Ledger, Thing};
use super::loop_image::{LoopWish, attach};
use super::stack::{BuiltStack, build_stack};
use super::test_site::{TestPlace, at_every_entry, options_of, stack, text};
use super::undo::{undo_from, undo_own};
use super::{Base, LayerInput, Site, guard, image_file};
use crate::error::Result;
use crate::host::command::Command;
use crate::host::extents::FileRange;
use crate::host::{Host, files, paths};
use crate::record::options::Options;
use crate::record::stack::{BaseName, Input, NodeSpec, Role, StackSpec};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

const FILESYSTEMS: &[(&str, &str)] = &[("ext4", "160MiB"), ("xfs", "320MiB"), ("btrfs", "256MiB")];

/// True if the filesystem of the tests reports file extents; prints a note otherwise.
fn reports_extents(place: &TestPlace) -> bool {
    let file = place.path().join("extents");
    fs::write(&file, vec![1; 1 << 16]).unwrap();
    let reports = unwritten(&file).unwrap().is_some();
    fs::remove_file(&file).unwrap();
    if !reports {
        println!("skipped: the filesystem of {} tells no extents", place.path().display());
    }
    reports
}

fn unwritten(path: &Path) -> Result<Option<Vec<FileRange>>> {
    image_file::unwritten(&files::open_regular(path)?, path)
}

/// Makes missing images, then builds the stack on them, like a run.
fn on_images(place: &TestPlace, images: &mut Images, spec: &StackSpec) -> Result<(u64, BuiltStack)> {
    images.make(&place.site(""), spec, &|_, _| Ok(()))?;
    let mark = place.ledger().mark();
    let by_node = images.by_node(spec);
    let built = build_stack(&Site { images: &by_node, ..place.site(&spec.name) }, spec)?;
    Ok((mark, built))
}

fn undo(place: &TestPlace, mark: u64) {
    let failures = undo_from(place.ledger(), mark, undo_own, &place.host);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn no_filesystem_starts_above_a_hole_or_unwritten_extent() {
    for (name, size) in FILESYSTEMS {
        let Some(place) = TestPlace::new() else { return };
        if !reports_extents(&place) {
            return;
        }
        let built = place.build(&place.on_written(name, size)).unwrap();
        let details = &built.facts.nodes[0].details;
        let fact = |what: &str| details[what].as_str();
        assert_eq!((fact("allocation"), fact("holes and unwritten ranges")), ("written", "0"), "{name}");
        assert_eq!(fact("discards"), "off", "{name}: this kernel has queue/discard_max_bytes");
        let image = PathBuf::from(fact("image"));
        // Data, trimming and the filesystem's own zeroing must not deallocate a block.
        fs::write(built.folder().join("file"), vec![1u8; 8 << 20]).unwrap();
        fs::File::open(built.folder().join("file")).unwrap().sync_all().unwrap();
        fs::remove_file(built.folder().join("file")).unwrap();
        let trimmed = place.host.run(&Command::new("fstrim").arg(built.folder()));
        assert!(trimmed.is_err(), "{name}: the device takes discards");
        assert_eq!(unwritten(&image).unwrap().unwrap(), [], "{name}");
        place.clean();
    }
}

#[test]
fn the_sectors_are_those_of_the_disk_below() {
    let Some(place) = TestPlace::new() else { return };
    let below = super::devices::below(&place.host, &place.path()).unwrap();
    let Some(physical) = below.devices.first().and_then(|device| device.physical_block_bytes) else {
        println!("skipped: {} lies on no device", place.path().display());
        return;
    };
    let built = place.build(&place.on_written("xfs", "320MiB")).unwrap();
    assert_eq!(built.facts.nodes[0].details["sector size"], format!("{} B", physical.min(4096)));
    assert_eq!(built.facts.nodes[1].details["meta-data sectsz"], physical.min(4096).to_string());
    place.clean();
}

#[test]
fn ranges_punched_by_mkfs_are_rewritten_before_the_mount() {
    for (name, size) in FILESYSTEMS {
        let Some(place) = TestPlace::new() else { return };
        if !reports_extents(&place) {
            return;
        }
        let mut images = Images::default();
        let spec = place.on_written(name, size);
        images.make(&place.site(""), &spec, &|_, _| Ok(())).unwrap();
        let image = images.by_node(&spec)["loop"].clone();
        // A device whose discards this kernel cannot disable.
        let wish = LoopWish { direct_io: true, discards: true, sector: None };
        let device = attach(&place.site("x"), &image, &wish).unwrap();
        let given = LayerInput { role: Role::Data, group: None, base: Base::Device(device) };
        let built = super::layer(name).unwrap().build(&place.site(name), &[given], &Options::default()).unwrap();
        // ext4 writes its tables itself and may leave none.
        let left = built.details.get("holes that mkfs left below").map_or("none left; written again", String::as_str);
        assert!(left.ends_with("written again"), "{left}");
        assert_eq!(unwritten(&image).unwrap().unwrap(), [], "{name}: {left}");
        place.clean();
    }
}

#[test]
fn trials_share_an_image_and_see_no_earlier_data() {
    let Some(place) = TestPlace::new() else { return };
    let mut images = Images::default();
    let mut inodes = Vec::new();
    for name in ["btrfs", "xfs", "ext4", "btrfs", "ext4"] {
        let spec = place.on_written(name, "320MiB");
        let (mark, built) = on_images(&place, &mut images, &spec).unwrap();
        assert!(fs::read_dir(built.folder()).unwrap().all(|entry| entry.unwrap().file_name() == "lost+found"));
        fs::write(built.folder().join(format!("of-{name}")), vec![1u8; 1 << 20]).unwrap();
        let image = images.by_node(&spec)["loop"].clone();
        inodes.push(fs::metadata(&image).unwrap().ino());
        undo(&place, mark);
        // As if the walk had not wiped it: the checks of the next trial must be enough.
        image_file::blank(&files::open_regular(&image).unwrap(), &image).unwrap();
        let wish = LoopWish { direct_io: false, discards: true, sector: None };
        let again = place.ledger().mark();
        let device = attach(&place.site("look"), &image, &wish).unwrap();
        let found = guard::signatures(&place.host, &BlockDevice::find(&device).unwrap()).unwrap();
        assert_eq!(found, [], "{name}");
        let target = place.path().join("mounted");
        fs::create_dir(&target).unwrap();
        for options in ["ro", "ro,sb=131072"] {
            let mount = Command::new("mount").args(["-t", name, "-o", options]).arg(&device).arg(&target);
            assert!(place.host.run(&mount).is_err(), "{name} is still there, with {options}");
        }
        fs::remove_dir(&target).unwrap();
        undo(&place, again);
    }
    assert!(inodes.windows(2).all(|two| two[0] == two[1]), "{inodes:?}");
    undo(&place, 0);
    place.clean();
}

#[test]
fn images_stay_separate_and_a_kept_stack_has_its_own() {
    let Some(place) = TestPlace::new() else { return };
    let folder = place.path();
    let image = || options_of(&[("loop", text("4MiB")), ("in", text(folder.to_str().unwrap()))]);
    let node = |name: &str, layer: &str, on: Option<&str>| NodeSpec {
        name: name.to_owned(),
        layer: layer.to_owned(),
        options: if layer == "loop" { image() } else { Options::default() },
        inputs: on
            .into_iter()
            .map(|from| Input { from: BaseName(from.to_owned()), role: Role::Data, group: None })
            .collect(),
    };
    let mut two = StackSpec::linear("two", vec![("loop", image())]);
    two.nodes = vec![
        node("a", "loop", None),
        node("b", "loop", None),
        node("fs", "ext2", Some("a")),
        node("log", "ext2", Some("b")),
    ];
    two.data = BaseName("fs".to_owned());
    two.wal = Some(BaseName("log".to_owned()));
    let one = stack("one", vec![("loop", image()), ("ext2", Options::default())]);
    let kept = StackSpec { reuse: true, ..one.clone() };
    let specs = [one.clone(), two.clone(), one.clone(), kept.clone()];
    assert_eq!(images::of_run(&specs.iter().map(|spec| vec![spec]).collect::<Vec<_>>()).len(), 3);
    let mut images = Images::default();
    for spec in &specs {
        images.make(&place.site(""), spec, &|_, _| Ok(())).unwrap();
    }
    let of = |spec: &StackSpec| images.by_node(spec);
    assert_ne!(of(&two)["a"], of(&two)["b"]);
    assert_eq!(of(&one)["loop"], of(&two)["a"]);
    assert!(of(&two).values().all(|path| *path != of(&kept)["loop"]));
    let images_there = fs::read_dir(&folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "img"));
    assert_eq!(images_there.count(), 3);
    place.clean();
}

#[test]
fn an_image_in_use_is_not_given_to_another_trial() {
    let Some(place) = TestPlace::new() else { return };
    let mut images = Images::default();
    let spec = place.on_written("ext2", "4MiB");
    on_images(&place, &mut images, &spec).unwrap();
    let again = StackSpec { name: "again".to_owned(), ..spec };
    let error = on_images(&place, &mut images, &again).unwrap_err().to_string();
    assert!(error.contains("still has a loop device"), "{error}");
    place.clean();
}

#[test]
fn an_image_is_free_of_the_devices_of_an_earlier_boot() {
    let Some(place) = TestPlace::new() else { return };
    let mut images = Images::default();
    let spec = place.on_written("ext2", "4MiB");
    images.make(&place.site(""), &spec, &|_, _| Ok(())).unwrap();
    let image = images.by_node(&spec)["loop"].clone();
    let device = Thing::new("loop", "device").with("number", "0").with("boot", "before the crash");
    place.ledger().enter(image_file::known_by(device, &paths::look_at(&image).unwrap())).unwrap();
    on_images(&place, &mut images, &spec).unwrap();
    place.clean();
}

#[test]
fn images_exceeding_the_free_space_are_refused_before_any_write() {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_written("ext4", "512TiB");
    let mark = place.ledger().mark();
    let error = Images::default().make(&place.site(""), &spec, &|_, _| Ok(())).unwrap_err();
    assert!(error.to_string().contains("512 TiB of space on the filesystem of"), "{error}");
    assert!(error.hint_text().unwrap().contains("smaller size"), "{error}");
    assert_eq!(place.ledger().mark(), mark);
    place.clean();
}

#[test]
fn a_host_filesystem_that_tells_no_extents_is_named() {
    let Some(place) = TestPlace::new() else { return };
    let memory = place.build(&stack("small", vec![("tmpfs", options_of(&[("size", text("48MiB"))]))])).unwrap();
    let folder = text(memory.folder().to_str().unwrap());
    let image = options_of(&[
        ("loop", text("40MiB")),
        ("in", folder),
        ("direct_io", crate::record::options::OptionValue::Boolean(false)),
    ]);
    let built = place.build(&stack("one", vec![("loop", image), ("ext2", Options::default())])).unwrap();
    let details = &built.facts.nodes[0].details;
    assert_eq!(details["holes and unwritten ranges"], "unknown: tmpfs does not report extents");
    assert_eq!(details["allocated"], "40 MiB");
    place.clean();
}

/// Tampering with an image between two trials, given its folder, its path and a foreign file.
type Deed = fn(&Path, &Path, &Path);

/// Renames the image, and puts something else in its place.
fn swapped(image: &Path, put: impl FnOnce(&Path) -> std::io::Result<()>) {
    fs::rename(image, image.with_file_name("stolen")).unwrap();
    put(image).unwrap();
}

fn node_of(image: &Path, kind: rustix::fs::FileType, device: u64) -> std::io::Result<()> {
    Ok(rustix::fs::mknodat(rustix::fs::CWD, image, kind, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, device)?)
}

const DEEDS: [(&str, Deed); 10] = [
    ("a symbolic link to a file", |_, image, theirs| swapped(image, |image| symlink(theirs, image))),
    ("a hard link to a file", |_, image, theirs| swapped(image, |image| fs::hard_link(theirs, image))),
    ("a pipe", |_, image, _| swapped(image, |image| node_of(image, rustix::fs::FileType::Fifo, 0))),
    ("a device", |_, image, _| {
        swapped(image, |image| node_of(image, rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(1, 5)));
    }),
    ("another file", |_, image, theirs| swapped(image, |image| fs::copy(theirs, image).map(drop))),
    ("the folder renamed", |folder, _, _| fs::rename(folder, folder.with_file_name("elsewhere")).unwrap()),
    ("the folder replaced by a link", |folder, _, theirs| {
        fs::rename(folder, folder.with_file_name("elsewhere")).unwrap();
        symlink(theirs.parent().unwrap(), folder).unwrap();
    }),
    ("the folder above renamed, too", |folder, _, _| {
        let above = folder.parent().unwrap();
        fs::rename(folder, folder.with_file_name("elsewhere")).unwrap();
        fs::rename(above, above.with_file_name("moved")).unwrap();
    }),
    ("another name", |_, image, _| swapped(image, |_| Ok(()))),
    ("removed", |_, image, _| fs::remove_file(image).unwrap()),
];

#[test]
fn a_replacement_of_an_image_is_not_written_to() {
    for (what, deed) in DEEDS {
        let Some(place) = TestPlace::new() else { return };
        let (above, theirs) = (place.path().join("above"), place.path().join("theirs"));
        let folder = above.join("images");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(&theirs).unwrap();
        let file = theirs.join("precious");
        fs::write(&file, vec![7; 4 << 20]).unwrap();
        let image = options_of(&[("loop", text("4MiB")), ("in", text(folder.to_str().unwrap()))]);
        let spec = stack("s", vec![("loop", image), ("ext2", Options::default())]);
        let mut images = Images::default();
        let (mark, _) = on_images(&place, &mut images, &spec).unwrap();
        let path = images.by_node(&spec)["loop"].clone();
        undo(&place, mark);
        deed(&folder, &path, &file);
        let built = on_images(&place, &mut images, &spec);
        // Without a name it has no path that identifies its filesystem.
        assert_eq!(built.is_ok(), what != "removed", "{what}: {:?}", built.err());
        // As after a kill: nothing is held open any more.
        let (mut place, host) = (place, Host::this());
        drop(place.ledger.take());
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        let failures = undo_from(place.ledger(), 0, undo_own, &host);
        assert!(failures.is_empty(), "{what}: {failures:#?}");
        assert!(fs::read(&file).unwrap().iter().all(|byte| *byte == 7), "{what}: somebody else's file was written");
        let left = place.host.run(&Command::new("find").arg(place.path()).args(["-size", "+3M"])).unwrap().stdout;
        assert!(left.lines().all(|line| !line.ends_with("stolen") && !line.contains("elsewhere")), "{what}: {left}");
        for folder in ["above", "moved", "theirs"] {
            drop(fs::remove_dir_all(place.path().join(folder)));
        }
        place.clean();
    }
}

#[test]
fn a_moved_away_image_is_an_incomplete_cleanup() {
    let Some(place) = TestPlace::new() else { return };
    let (mut images, spec) = (Images::default(), place.on_written("ext2", "4MiB"));
    let (mark, _) = on_images(&place, &mut images, &spec).unwrap();
    undo(&place, mark);
    let path = images.by_node(&spec)["loop"].clone();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let error = on_images(&place, &mut images, &spec).unwrap_err().to_string();
    assert!(error.contains("has 1 MiB by now, not 4 MiB"), "{error}");
    let other = place.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::rename(&path, other.join("stolen")).unwrap();
    let failures = undo_from(place.ledger(), 0, undo_own, &place.host);
    assert!(failures.len() == 1 && failures[0].to_string().contains("was moved to another folder"), "{failures:?}");
    fs::remove_dir_all(&other).unwrap();
    place.clean();
}

#[test]
fn an_image_is_removed_although_its_filesystem_has_another_number_since_a_reboot() {
    let Some(place) = TestPlace::new() else { return };
    let (mut images, spec) = (Images::default(), place.on_written("ext2", "4MiB"));
    let (mark, _) = on_images(&place, &mut images, &spec).unwrap();
    undo(&place, mark);
    let things = place.ledger().open_things();
    let (_, thing) = things.into_iter().rev().find(|(_, thing)| thing.kind == "image").unwrap();
    image_file::remove(&place.host, &thing.with("filesystem", "1")).unwrap();
    assert!(!images.by_node(&spec)["loop"].exists());
    assert!(undo_from(place.ledger(), 0, undo_own, &place.host).is_empty());
    place.clean();
}

/// Numbers of the existing loop devices.
fn loop_devices() -> BTreeMap<String, u64> {
    let names = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let discards = |name: &str| fs::read_to_string(format!("/sys/block/{name}/queue/discard_max_bytes"));
    let loops = names.filter(|name| name.starts_with("loop"));
    loops.filter_map(|name| Some((name.clone(), discards(&name).ok()?.trim().parse().ok()?))).collect()
}

#[test]
fn the_loop_device_is_removed_and_foreign_ones_are_kept() {
    let Some(place) = TestPlace::new() else { return };
    let built = place.build(&place.on_written("ext2", "4MiB")).unwrap();
    let name = built.facts.devices()[0].1.name.clone();
    assert_eq!(loop_devices()[&name], 0);
    // The number in the ledger may belong to another device when the walk runs.
    let theirs = place.path().join("theirs.img");
    fs::write(&theirs, vec![0u8; 1 << 20]).unwrap();
    let attached = place.host.run(&Command::new("losetup").args(["--show", "-f"]).arg(&theirs)).unwrap();
    let number = attached.stdout.trim().trim_start_matches("/dev/loop").to_owned();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let thing = |number: &str, boot: &str| {
        let thing = Thing::new("loop", "device").with("number", number).with("boot", boot.trim());
        thing.with("image", "/pgstrata-another.img").with("filesystem", "0").with("inode", "0").with("made", "true")
    };
    let layer = super::layer("loop").unwrap();
    layer.undo(&place.host, &thing(&number, &boot)).unwrap();
    layer.undo(&place.host, &thing("0", "another boot")).unwrap();
    assert!(loop_devices().contains_key(&format!("loop{number}")));
    place.host.run(&Command::new("losetup").args(["-d", &format!("/dev/loop{number}")])).unwrap();
    fs::remove_file(&theirs).unwrap();
    undo(&place, 0);
    assert!(!Path::new("/sys/block").join(&name).exists(), "{name} is left");
    place.clean();
}

#[test]
fn a_run_dying_at_any_image_entry_leaves_nothing() {
    // Entry 0 is the run's folder; then image, image with its inode, device, filesystem, mount point and mount.
    at_every_entry(6, |death| {
        let mut place = TestPlace::new()?;
        let spec = place.on_written("ext2", "4MiB");
        place.ledger().die(death);
        let died = on_images(&place, &mut Images::default(), &spec).is_err();
        drop(place.ledger.take());
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.clean();
        Some(died)
    });
}

/// Sectors of 512 bytes written to a device.
fn sectors_written(device: &str) -> u64 {
    let stat = fs::read_to_string(format!("/sys/block/{device}/stat")).unwrap();
    stat.split_whitespace().nth(6).unwrap().parse().unwrap()
}

#[test]
fn ext4_on_a_written_image_zeroes_nothing_after_mount() {
    let Some(place) = TestPlace::new() else { return };
    let (_, built) = on_images(&place, &mut Images::default(), &place.on_written("ext4", "512MiB")).unwrap();
    let devices = built.facts.devices();
    let (_, looped) = devices.iter().find(|(_, device)| device.name.starts_with("loop")).unwrap();
    place.host.run(&Command::new("sync").args(["-f"]).arg(built.folder())).unwrap();
    let before = sectors_written(&looped.name);
    let groups = place.host.run(&Command::new("dumpe2fs").arg(format!("/dev/{}", looped.name))).unwrap().stdout;
    let groups: Vec<&str> =
        groups.lines().filter(|line| line.starts_with("Group ") && line.contains("Blocks")).collect();
    assert!(groups.len() >= 4 && groups.iter().all(|line| line.contains("ITABLE_ZEROED")), "{groups:#?}");
    // The kernel's thread would start within 5 s of the mount and write 8 MiB. A journal commit may still come.
    crate::host::time::sleep(std::time::Duration::from_secs(8));
    let idle_bytes = (sectors_written(&looped.name) - before) * 512;
    assert!(idle_bytes <= 256 << 10, "{idle_bytes} bytes");
    place.clean();
}
