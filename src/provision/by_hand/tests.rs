//! Runs printed scripts on real devices: what they build has the facts of what the build makes.

use super::*;
use crate::host::Host;
use crate::provision::facts::{self, Bases};
use crate::provision::stack::{self, BuiltStack, reopen_stack};
use crate::provision::test_site::{TestPlace, mkfs, options_of, text, texts};
use crate::provision::undo::{undo_from, undo_own};
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseName, Input, Role};
use std::path::Path;

/// A private folder with a script, its mount points and its fstab.
struct Hand {
    folder: tempfile::TempDir,
    host: Host,
}

impl Hand {
    /// Writes a script, filled in, with names that reopening takes for ours.
    fn of(spec: &StackSpec, found: &BuiltStack, devices: &[&Path]) -> Hand {
        let mut script = Script::of(spec);
        stack::by_hand(&mut script, spec, Some(&found.facts)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display().to_string();
        let mut text = script.text(&[]).replace("/var/lib/postgresql", &format!("{place}/mount"));
        text = text.replace("/etc/fstab", &format!("{place}/fstab")).replace("pg-", "pgstrata-");
        for (number, device) in devices.iter().enumerate() {
            let name = if devices.len() > 1 { format!("DEVICE{}", number + 1) } else { "DEVICE".to_owned() };
            let empty = format!("\n{name}=\n");
            assert!(text.contains(&empty), "{text}");
            text = text.replace(&empty, &format!("\n{name}={}\n", device.display()));
        }
        std::fs::write(folder.path().join("script"), text).unwrap();
        Hand { folder, host: Host::this() }
    }

    fn run(&self) -> crate::error::Result<String> {
        Ok(self.host.run(&Command::new("sh").arg(self.folder.path().join("script")))?.stdout)
    }

    fn call(&self, words: &[&str]) -> String {
        let command = Command::new(words[0]).args(&words[1..]);
        self.host.run(&command).unwrap().stdout
    }

    /// Mounts by the script's line of fstab, and unmounts again.
    fn mounts_by_fstab(&self) {
        let [mount, fstab] = ["mount", "fstab"].map(|name| self.folder.path().join(name).display().to_string());
        let options = ["findmnt", "--noheadings", "--output", "FSTYPE,OPTIONS", &mount];
        let before = self.call(&options);
        self.call(&["umount", &mount]);
        self.call(&["mount", "--fstab", &fstab, &mount]);
        assert_eq!(self.call(&options), before);
        self.call(&["umount", &mount]);
    }
}

/// Flags that the driver of btrfs adds to a superblock with its first commit, after the run has read it.
const ADDED_LATER: [&str; 2] = ["COMPRESS_ZSTD ", "BIG_METADATA "];

/// Facts of the nodes above the images, without that of ReiserFS that has a random number.
fn above(built: &BuiltStack) -> Vec<(String, Vec<(String, String)>)> {
    let nodes = built.facts.nodes.iter().filter(|node| node.layer.as_ref().is_some_and(|layer| layer != "loop"));
    let plain = |value: String| ADDED_LATER.iter().fold(value, |value, flag| value.replace(flag, ""));
    let lasting = nodes.map(|node| {
        let facts = facts::lasting(node).into_iter().filter(|(name, _)| name != "Journal parameters");
        (node.name.clone(), facts.map(|(name, value)| (name, plain(value))).collect())
    });
    lasting.collect()
}

/// Builds a stack of images, undoes all but these, builds it on them by its script, and compares the facts. `close` takes
/// down what the script has mounted and started.
fn is_the_same_by_hand(spec: impl Fn(&TestPlace) -> StackSpec, close: impl Fn(&Hand)) {
    let Some(place) = TestPlace::new() else { return };
    let spec = spec(&place);
    if !place.can_build(&spec) {
        return;
    }
    let built = place.build(&spec).unwrap();
    let things = place.ledger().open_things();
    let above_images = things.iter().rev().find(|(_, thing)| thing.owner == "loop").unwrap().0 + 1;
    let undone = undo_from(place.ledger(), above_images, undo_own, &place.host);
    assert!(undone.is_empty(), "{undone:?}");
    let is_image = |name: &BaseName| spec.node(name.node()).is_some_and(|node| node.layer == "loop");
    let images: Bases = built.bases.clone().into_iter().filter(|(name, _)| is_image(name)).collect();
    let order = spec.nodes.iter().filter_map(|node| images.get(&BaseName(node.name.clone())));
    let devices: Vec<&Path> = order.filter_map(Base::device).collect();
    let hand = Hand::of(&spec, &built, &devices);
    let printed = hand.run().unwrap();
    assert!(!printed.is_empty(), "it reads back what it made");
    let again = hand.run().unwrap_err().to_string();
    assert!(again.contains("is not empty: it has the signature"), "{again}");
    close(&hand);
    let by_hand = reopen_stack(&place.site("again"), &spec, images.clone()).unwrap();
    assert_eq!(above(&by_hand), above(&built));
    let mounts = [&by_hand, &built].map(|built| built.facts.mount().unwrap().fstype.clone());
    assert_eq!(mounts[0], mounts[1]);
    drop(by_hand);
    let left = undo_from(place.ledger(), above_images, undo_own, &place.host);
    assert!(left.is_empty(), "{left:?}");
    for device in devices {
        hand.call(&["wipefs", "--all", device.to_str().unwrap()]);
    }
    place.clean();
}

#[test]
fn a_filesystem_built_by_its_script_has_the_runs_facts() {
    for (name, options) in [
        ("ext4", options_of(&[("mkfs", texts(&["-i", "8192", "-O", "^has_journal"])), ("mount", texts(&["noatime"]))])),
        ("ext3", Options::default()),
        ("xfs", options_of(&[("mkfs", texts(&["-i", "size=1024"])), ("mount", texts(&["noatime,logbsize=256k"]))])),
        (
            "btrfs",
            options_of(&[("nocow", OptionValue::Boolean(true)), ("mount", texts(&["noatime", "compress=zstd:1"]))]),
        ),
        ("f2fs", Options::default()),
        ("jfs", Options::default()),
        ("nilfs2", options_of(&[("mount", texts(&["order=strict"]))])),
        ("reiserfs", options_of(&[("mount", texts(&["notail"]))])),
    ] {
        is_the_same_by_hand(|place| place.on_loop(name, "320MiB", options.clone()), Hand::mounts_by_fstab);
    }
}

/// A filesystem named `fs` on images `d1` and `d2`, the second in this role.
fn on_two(place: &TestPlace, filesystem: &str, role: Role, options: Options) -> StackSpec {
    let mut spec = place.on_volume("md", Options::default(), 2, "320MiB");
    let fs = spec.nodes.len() - 1;
    spec.nodes.remove(fs - 1);
    let input = |name: &str, role| Input { from: BaseName(name.to_owned()), role, group: None };
    let fs = spec.nodes.last_mut().unwrap();
    (fs.layer, fs.options) = (filesystem.to_owned(), options);
    fs.inputs = vec![input("d1", Role::Data), input("d2", role)];
    spec
}

#[test]
fn filesystems_on_two_devices_built_by_script_have_the_runs_facts() {
    for (filesystem, role, options) in [
        ("ext4", Role::Log, Options::default()),
        ("xfs", Role::Log, Options::default()),
        ("btrfs", Role::Data, options_of(&[("data", text("raid1")), ("metadata", text("raid1"))])),
    ] {
        is_the_same_by_hand(|place| on_two(place, filesystem, role, options.clone()), Hand::mounts_by_fstab);
    }
}

#[test]
fn md_arrays_built_by_script_have_the_runs_facts() {
    let level = |number, more: &[(&str, OptionValue)]| {
        let mut options = options_of(more);
        options.set("level", OptionValue::Integer(number));
        options
    };
    let parity = [("chunk", text("64KiB")), ("stripe_cache", OptionValue::Integer(1024))];
    for (options, members) in
        [(level(1, &[("bitmap", text("internal"))]), 2), (level(5, &parity), 3), (level(0, &[]), 2)]
    {
        is_the_same_by_hand(|place| place.on_volume("md", options.clone(), members, "64MiB"), Hand::mounts_by_fstab);
    }
}

#[test]
fn logical_volumes_built_by_script_have_the_runs_facts() {
    let flag = |value| OptionValue::Boolean(value);
    for options in [
        Options::default(),
        options_of(&[("size", text("70%")), ("stripes", OptionValue::Integer(2)), ("stripe_size", text("128KiB"))]),
        options_of(&[("size", text("60%")), ("thin", flag(true)), ("zero", flag(false)), ("chunk", text("128KiB"))]),
    ] {
        is_the_same_by_hand(
            |place| place.on_volume("lvm", options.clone(), 2, "128MiB"),
            |hand| {
                hand.mounts_by_fstab();
                hand.call(&["lvm", "vgchange", "--activate", "n", "pgstrata-lvm"]);
            },
        );
    }
}

#[test]
fn a_zfs_dataset_built_by_script_has_the_runs_facts() {
    let properties = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
        options_of(&[("properties", OptionValue::Map(pairs.collect()))])
    };
    is_the_same_by_hand(
        |place| {
            let mut spec =
                on_two(place, "zfs", Role::Data, properties(&[("recordsize", "8k"), ("compression", "lz4")]));
            let fs = spec.nodes.last_mut().unwrap();
            let pool = vec![Input { from: BaseName("pool".to_owned()), role: Role::Data, group: None }];
            let inputs = std::mem::replace(&mut fs.inputs, pool).into_iter();
            let inputs = inputs.map(|input| Input { group: Some("mirror-0".to_owned()), ..input }).collect();
            let (name, layer, options) = ("pool".to_owned(), "zpool".to_owned(), properties(&[("ashift", "12")]));
            let last = spec.nodes.len() - 1;
            spec.nodes.insert(last, NodeSpec { name, layer, options, inputs });
            spec
        },
        |hand| {
            // Reopening sets its mount point before it mounts it.
            hand.call(&["zfs", "set", "canmount=noauto", "pgstrata-pool/fs"]);
            hand.call(&["zpool", "export", "pgstrata-pool"]);
        },
    );
}

/// The script of a stack that is not built.
fn asked(layers: Vec<(&str, Options)>) -> crate::error::Result<String> {
    let spec = StackSpec::linear("s", layers);
    let mut script = Script::of(&spec);
    stack::by_hand(&mut script, &spec, None)?;
    Ok(script.text(&[]))
}

#[test]
fn a_plans_script_has_its_knobs_and_mounts_memory() {
    let queue = OptionValue::Map([("scheduler".to_owned(), text("none"))].into());
    let disk = options_of(&[("disk", text("/dev/sdx")), ("queue", queue)]);
    let script = asked(vec![("disk", disk), ("ext4", mkfs(&["-m", "it's"]))]).unwrap();
    for line in [
        "\nDEVICE=\n",
        "printf '%s\\n' none > \"$(sysfs \"$DEVICE\" queue/scheduler)\"\n",
        r"mkfs.ext4 -m 'it'\''s' -q -L pg-ext4 -U",
        "mount -t ext4 \"$DEVICE\" \"$MOUNT\"\n",
    ] {
        assert!(script.contains(line), "{line} in {script}");
    }
    assert!(!script.contains("the run read"), "{script}");
    let memory = asked(vec![("tmpfs", options_of(&[("size", text("1GiB"))]))]).unwrap();
    assert!(memory.contains("mount -t tmpfs -o size=1073741824 tmpfs \"$MOUNT\"\n"), "{memory}");
    assert!(!memory.contains("DEVICE=") && memory.contains("\"tmpfs $MOUNT tmpfs size=1073741824 0 0\""), "{memory}");
}

#[test]
fn delays_and_folders_of_the_machine_have_no_commands() {
    let zram = options_of(&[("zram", text("1GiB"))]);
    let delayed = vec![("zram", zram), ("delay", Options::default()), ("ext4", Options::default())];
    let error = asked(delayed).unwrap_err().to_string();
    assert!(error.contains("no commands for the layer `delay`"), "{error}");
    let folder = options_of(&[("directory", text("/srv"))]);
    let error = asked(vec![("directory", folder)]).unwrap_err().to_string();
    assert!(error.contains("`directory` builds nothing: it uses a folder of the machine"), "{error}");
}

#[test]
fn the_shell_expands_variables_and_nothing_else() {
    let hostile = "a b'\"$HOME`id`$(id)\\;*\n~";
    let script = format!(
        "A=1; B=2; printf '%s' {} {}",
        word(hostile),
        word(&format!("{}x{hostile}{}", variable("A"), variable("B")))
    );
    let printed = Host::this().run(&Command::new("sh").args(["-c", &script])).unwrap().stdout;
    assert_eq!(printed, format!("{hostile}1x{hostile}2"));
    assert_eq!(word(&format!("{}/data", variable("MOUNT"))), "\"$MOUNT/data\"");
    assert_eq!(word("\u{1}a;id\u{2}"), "\"a;id\u{2}\"");
    assert_eq!(comment("a\nreboot"), "# a reboot");
}
