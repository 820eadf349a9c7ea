//! Builds stacks for real: loop devices, filesystems, mounts. Tests need root, and report if they lack it.

use super::images::Images;
use super::ledger::Ledger;
use super::stack::BuiltStack;
use super::test_site::{TestPlace, at_every_entry, mkfs, mounted, options_of, stack, text};
use super::undo::{undo_from, undo_own};
use super::{ALL, Layer, LayerInput, stack as stacks};
use crate::host::Host;
use crate::host::command::Command;
use crate::record::claim::Claim;
use crate::record::facts::DeviceFacts;
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseKind, Role};
use std::collections::BTreeSet;
use std::fs;

/// Large enough for every mkfs; the images are sparse.
const SIZE: &str = "320MiB";

/// Each filesystem on a device that this machine can build, with a place for it.
fn on_device() -> impl Iterator<Item = (&'static str, TestPlace)> {
    let stands = |layer: &&dyn Layer| layer.info().takes.iter().any(|take| take.kind == BaseKind::Device);
    let layers = ALL.iter().copied().filter(|layer| layer.info().offers == BaseKind::Folder).filter(stands);
    layers.filter_map(|layer| Some((layer.name(), TestPlace::with_layer(layer.name())?)))
}

#[test]
fn every_filesystem_is_built_read_back_and_undone() {
    for (name, place) in on_device() {
        let built = place.build(&place.on_loop(name, SIZE, mounted(&["noatime"]))).unwrap();
        fs::write(built.folder().join("file"), "x").unwrap();
        let facts = &built.facts;
        let mount = facts.mount().unwrap();
        assert_eq!(mount.fstype, name);
        assert!(mount.options.contains(&"noatime".to_owned()), "{mount:?}");
        let built_layers: Vec<&str> = facts.nodes.iter().filter_map(|node| node.layer.as_deref()).collect();
        assert_eq!(built_layers, ["loop", name]);
        assert_eq!(facts.nodes[0].details["direct I/O"], "on");
        assert!(facts.nodes[1].details.len() > 3, "{:?}", facts.nodes[1]);
        let below = facts.devices_below(facts.data.as_ref());
        assert_eq!(below[0].name().0, "loop");
        let device = below[0].device;
        assert_eq!((device.depth, device.direct_io), (0, Some(true)), "{name}: {device:?}");
        assert!(device.backing_file.as_ref().unwrap().ends_with(".img"));
        assert_eq!(device.counts_flushes, Some(true), "this kernel counts flushes");
        assert!(facts.free_bytes.unwrap() > 1 << 20);
        place.clean();
    }
}

#[test]
fn stacks_without_a_device_are_built_and_undone() {
    let Some(place) = TestPlace::new() else { return };
    let tmpfs = options_of(&[("size", text("5000kB")), ("mount", OptionValue::List(vec![text("huge=never,noatime")]))]);
    let specs =
        [stack("tmp", vec![("tmpfs", tmpfs)]), stack("ram", vec![("ramfs", mounted(&["noatime", "mode=0700"]))])];
    for spec in &specs {
        assert_eq!(stacks::unmet(&place.host, spec, &Images::default()), []);
        let built = place.build(spec).unwrap();
        fs::write(built.folder().join("file"), "x").unwrap();
        assert!(built.facts.mount().unwrap().fstype.ends_with("fs"));
        assert!(built.facts.promise(built.facts.data.as_ref(), Claim::Volatile).is_some());
    }
    place.clean();
}

#[test]
fn a_directory_stack_needs_no_root_and_keeps_existing_files() {
    let place = TestPlace::of_anybody();
    let others = tempfile::tempdir().unwrap();
    fs::write(others.path().join("theirs"), "x").unwrap();
    let at = |path: &str| stack("here", vec![("directory", options_of(&[("directory", text(path))]))]);
    let spec = at(others.path().to_str().unwrap());
    assert_eq!(stacks::unmet(&place.host, &spec, &Images::default()), []);
    let built = place.build(&spec).unwrap();
    fs::write(built.folder().join("file"), "x").unwrap();
    assert_eq!(fs::read_dir(others.path()).unwrap().count(), 2);
    assert!(built.facts.mount().is_some() && built.facts.free_bytes.is_some());
    place.clean();
    assert_eq!(fs::read_dir(others.path()).unwrap().count(), 1);
    assert!(stacks::unmet(&Host::this(), &at("/no/such"), &Images::default())[0].hint.contains("mkdir -p /no/such"));
}

#[test]
fn what_needs_root_says_so_without_it() {
    let spec = |name| stack(name, vec![("loop", options_of(&[("loop", text("1MiB"))])), (name, Options::default())]);
    let named = stacks::unmet(&Host::this(), &spec("ext4"), &Images::default())
        .iter()
        .filter(|unmet| unmet.what.starts_with("root"))
        .count();
    assert_eq!(named, usize::from(!crate::host::users::is_root()), "once for the whole stack");
}

#[test]
fn the_folder_of_a_run_is_made_and_undone() {
    let place = TestPlace::of_anybody();
    let folder = super::folder::make_for_run(place.ledger(), &place.run_id).unwrap();
    assert!(folder.is_dir() && folder.to_str().unwrap().contains("pgstrata-"));
    place.clean();
    assert!(!folder.exists());
}

#[test]
fn clean_undoes_a_run_that_dies_at_any_entry() {
    for (name, _place) in on_device() {
        dies_at_any_entry(name);
    }
}

fn dies_at_any_entry(name: &str) {
    // Entry 0 is the run's folder; then image, image with its inode, loop, filesystem, mount point and mount.
    at_every_entry(6, |death| {
        let mut place = TestPlace::new()?;
        let spec = place.on_loop(name, SIZE, Options::default());
        place.ledger().die(death);
        let died = place.build(&spec).is_err();
        let path = place.ledger().path().to_owned();
        drop(place.ledger.take());
        let before = fs::read(&path).unwrap();
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.undo_all();
        // As if `clean` was killed before it recorded anything: all entries are open again.
        drop(place.ledger.take());
        fs::write(&path, before).unwrap();
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.clean();
        Some(died)
    });
}

#[test]
fn what_mkfs_refuses_is_told_in_its_own_words() {
    for (name, size, arguments, words) in [
        ("ext4", "64MiB", &["-b", "999"][..], "invalid block size - 999"),
        ("xfs", "320MiB", &["-b", "size=999"], "Invalid value 999"),
        ("xfs", "64MiB", &[], "must be larger than 300MB"),
        ("btrfs", "256MiB", &["-d", "raid7"], "raid7"),
    ] {
        let Some(place) = TestPlace::new() else { return };
        let error = place.build(&place.on_loop(name, size, mkfs(arguments))).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
        place.clean();
    }
}

#[test]
fn a_refused_mount_option_is_reported_with_the_kernel_message() {
    let Some(place) = TestPlace::new() else { return };
    let error = place.build(&place.on_loop("ext4", "64MiB", mounted(&["bogus"]))).unwrap_err().to_string();
    assert!(error.contains("mount -t ext4 -o bogus"), "{error}");
    assert!(error.contains("Unknown parameter 'bogus'"), "{error}");
    place.clean();
}

#[test]
fn a_mount_option_that_the_kernel_drops_is_an_error() {
    let Some(place) = TestPlace::new() else { return };
    let ram = |option: &str| stack("ram", vec![("ramfs", mounted(&[option]))]);
    for (spec, option) in [
        (ram("size=64m"), "size=64m"),
        (ram("barrier=0"), "barrier=0"),
        (place.on_loop("ext4", "64MiB", mounted(&["noatime,sb=1"])), "sb=1"),
        (place.on_loop("ext4", "64MiB", mounted(&["discard,nodiscard"])), "discard"),
        (place.on_loop("xfs", "320MiB", mounted(&["dax=always"])), "dax=always"),
        (place.on_loop("btrfs", "256MiB", mounted(&["nodatacow,compress=zstd"])), "nodatacow"),
    ] {
        let mark = place.ledger().mark();
        let error = place.build(&spec).unwrap_err().to_string();
        assert!(error.contains(&format!("dropped the mount option `{option}`")), "{error}");
        assert!(undo_from(place.ledger(), mark, undo_own, &place.host).is_empty());
    }
    place.clean();
}

#[test]
fn options_the_kernel_rewords_or_hides_count_as_kept() {
    let ext4 = [
        "barrier=1",
        "barrier=0",
        "commit=5",
        "commit=30,data=ordered",
        "auto_da_alloc=0",
        "data=writeback",
        "nodiscard,delalloc,strictatime",
        "init_itable=10",
        "dioread_lock",
        "noload",
        "iversion",
        "defaults",
        "stripe=64",
    ];
    let xfs =
        ["logbsize=262144", "allocsize=1m", "nodiscard,nolargeio,noquota", "dax=inode", "bsdgroups", "async,wsync"];
    let btrfs = [
        "compress=zstd",
        "compress=zlib:5",
        "discard=sync",
        "nodiscard",
        "commit=30",
        "commit=60",
        "nobarrier",
        "datacow,datasum,treelog",
        "max_inline=2048",
        "max_inline=0",
        "autodefrag",
        "compress-force=zstd",
        "space_cache=v2",
    ];
    for (name, size, lists) in [("ext4", "64MiB", &ext4[..]), ("xfs", "320MiB", &xfs), ("btrfs", "256MiB", &btrfs)] {
        for list in lists {
            let Some(place) = TestPlace::new() else { return };
            let built = place.build(&place.on_loop(name, size, mounted(&[list])));
            assert!(built.is_ok(), "{name} with {list}: {}", built.unwrap_err());
            place.clean();
        }
    }
}

#[test]
fn an_image_larger_than_free_space_is_refused_up_front() {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_loop("ext4", "512TiB", Options::default());
    assert!(
        stacks::unmet(&place.host, &spec, &Images::default())
            .iter()
            .any(|unmet| unmet.what.contains("512 TiB of space"))
    );
    let mark = place.ledger().mark();
    let error = place.build(&spec).unwrap_err().to_string();
    assert!(error.contains("does not fit"), "{error}");
    assert_eq!(place.ledger().mark(), mark);
    place.clean();
}

fn device_of(built: &BuiltStack) -> &DeviceFacts {
    built.facts.devices()[0].1
}

/// A small filesystem in memory below the place, also in the ledger.
fn small(place: &TestPlace, kind: &str) -> std::path::PathBuf {
    let options = if kind == "tmpfs" { options_of(&[("size", text("48MiB"))]) } else { Options::default() };
    place.build(&stack("small", vec![(kind, options)])).unwrap().folder().clone()
}

fn image_in(folder: &std::path::Path, size: &str, sparse: bool) -> Options {
    options_of(&[
        ("loop", text(size)),
        ("in", text(folder.to_str().unwrap())),
        ("sparse", OptionValue::Boolean(sparse)),
        ("direct_io", OptionValue::Boolean(false)),
    ])
}

#[test]
fn a_disk_filling_up_under_a_sparse_image_is_undone() {
    let Some(place) = TestPlace::new() else { return };
    let folder = small(&place, "tmpfs");
    let site = place.site("sparse");
    let base =
        super::layer("loop").unwrap().build(&site, &[], &image_in(&folder, "40MiB", true)).unwrap().bases[0].clone();
    let given = LayerInput { role: Role::Data, group: None, base };
    let filled = fs::write(folder.join("filler"), vec![1u8; 64 << 20]).unwrap_err();
    assert_eq!(filled.kind(), std::io::ErrorKind::StorageFull);
    let error = super::layer("ext4").unwrap().build(&site, &[given], &mkfs(&["-E", "nodiscard"])).unwrap_err();
    assert!(error.to_string().contains("mkfs.ext4"), "{error}");
    place.clean();
}

#[test]
fn refused_direct_io_is_an_error_with_a_remedy() {
    let Some(place) = TestPlace::new() else { return };
    let folder = small(&place, "ramfs");
    // ramfs reports no free space, so only the image's own check can refuse it.
    fs::write(folder.join("image"), vec![0u8; 1 << 20]).unwrap();
    let wish = super::loop_image::LoopWish { direct_io: true, discards: true, sector: None };
    let error = super::loop_image::attach(&place.site("x"), &folder.join("image"), &wish).unwrap_err();
    assert!(error.hint_text().unwrap().contains("direct_io = false"), "{error}");
    place.clean();
}

#[test]
fn two_concurrent_runs_get_different_loop_devices() {
    let Some(first) = TestPlace::new() else { return };
    let Some(second) = TestPlace::new() else { return };
    let devices = |place: &TestPlace| -> Vec<String> {
        let build = |number: usize| {
            let mut spec = place.on_loop("ext2", "4MiB", Options::default());
            spec.name = format!("s{number}");
            device_of(&place.build(&spec).unwrap()).name.clone()
        };
        (0..4).map(build).collect()
    };
    let all: Vec<String> = std::thread::scope(|scope| {
        let other = scope.spawn(|| devices(&second));
        devices(&first).into_iter().chain(other.join().unwrap()).collect()
    });
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 8, "{all:?}");
    first.clean();
    second.clean();
}

#[test]
fn a_busy_stack_stays_in_the_ledger_until_free() {
    let Some(place) = TestPlace::new() else { return };
    let built = place.build(&place.on_loop("ext4", "64MiB", Options::default())).unwrap();
    let open = fs::File::create(built.folder().join("file")).unwrap();
    let failures = undo_from(place.ledger(), built.mark, undo_own, &place.host);
    assert!(failures[0].to_string().contains("umount"), "{}", failures[0]);
    assert_eq!(failures.len(), place.ledger().open_things().len() - 1, "{failures:#?}");
    fs::write(built.folder().join("another"), "still there").unwrap();
    drop(open);
    place.clean();
}

#[test]
fn a_mount_of_somebody_else_on_our_mount_point_stays() {
    let Some(place) = TestPlace::new() else { return };
    let host = Host::this();
    let built = place.build(&stack("ram", vec![("ramfs", Options::default())])).unwrap();
    host.run(&Command::new("mount").args(["-t", "tmpfs", "theirs"]).arg(built.folder())).unwrap();
    let failures = undo_from(place.ledger(), built.mark, undo_own, &place.host);
    assert!(failures[0].to_string().contains("is not what pgstrata mounted there: theirs"), "{}", failures[0]);
    host.run(&Command::new("umount").arg(built.folder())).unwrap();
    place.clean();
}

#[test]
fn undoing_leaves_a_reused_device_alone() {
    let Some(place) = TestPlace::new() else { return };
    let built = place.build(&place.on_loop("ext4", "64MiB", Options::default())).unwrap();
    let device = format!("/dev/{}", device_of(&built).name);
    let thing = super::ledger::Thing::new("ext4", "filesystem").with("device", &device).with("uuid", "another");
    super::layer("ext4").unwrap().undo(&place.host, &thing).unwrap();
    fs::write(built.folder().join("file"), "x").unwrap();
    place.clean();
}

#[test]
fn layer_names_and_their_first_options_are_as_plans_expect() {
    let names: BTreeSet<&str> = ALL.iter().map(|layer| layer.name()).collect();
    assert_eq!(names.len(), ALL.len());
    for layer in ALL {
        if layer.info().takes.is_empty() && layer.info().offers == BaseKind::Device {
            assert_eq!(layer.info().options.first().map(|option| option.key), Some(layer.name()));
        }
        assert!(layer.info().doc.ends_with('.'), "{}", layer.name());
    }
}
