//! Builds stacks of several devices for real, and opens stacks again. Tests need root, and report if they lack it.

use super::facts::Bases;
use super::ledger::Ledger;
use super::test_site::{TestPlace, at_every_entry, mounted, options_of, text};
use super::undo::{undo_from, undo_own};
use super::{Base, mount, stack};
use crate::record::claim::Claim;
use crate::record::options::{OptionValue, Options};
use crate::record::stack::{BaseName, Input, NodeSpec, Role, StackSpec};
use std::fs;

fn node(name: &str, layer: &str, options: Options, inputs: &[(&str, Role)]) -> NodeSpec {
    let input = |(from, role): &(&str, Role)| Input { from: BaseName((*from).to_owned()), role: *role, group: None };
    NodeSpec { name: name.to_owned(), layer: layer.to_owned(), options, inputs: inputs.iter().map(input).collect() }
}

/// A filesystem `fs` on the images `a` and `b`, in these roles.
fn on_two(place: &TestPlace, layer: &str, options: Options, size: &str, roles: [Role; 2]) -> StackSpec {
    let folder = place.path();
    let image = || {
        let sparse = ("sparse", OptionValue::Boolean(true));
        options_of(&[("loop", text(size)), ("in", text(folder.to_str().unwrap())), sparse])
    };
    let mut spec = StackSpec::linear("two", vec![("loop", image())]);
    let inputs = [("a", roles[0]), ("b", roles[1])];
    spec.nodes =
        vec![node("a", "loop", image(), &[]), node("b", "loop", image(), &[]), node("fs", layer, options, &inputs)];
    spec.data = BaseName("fs".to_owned());
    spec
}

#[test]
fn an_external_journal_or_log_is_made_mounted_and_wiped() {
    for (layer, size) in [("ext3", "64MiB"), ("ext4", "64MiB"), ("xfs", "320MiB")] {
        let Some(place) = TestPlace::new() else { return };
        let spec = on_two(&place, layer, Options::default(), size, [Role::Data, Role::Log]);
        let built = place.build(&spec).unwrap();
        fs::write(built.folder().join("file"), vec![1u8; 4 << 20]).unwrap();
        fs::File::open(built.folder().join("file")).unwrap().sync_all().unwrap();
        let devices: Vec<(String, Role)> =
            built.facts.devices_below(built.facts.data.as_ref()).iter().map(|b| (b.name().0, b.role)).take(2).collect();
        assert_eq!(devices, [("a".to_owned(), Role::Data), ("b".to_owned(), Role::Log)], "{layer}");
        // Undo the filesystems and keep the images: the devices must then be blank.
        let things = place.ledger().open_things();
        let first_wiped = things.iter().find(|(_, thing)| thing.owner == "ext4" || thing.owner == layer).unwrap().0;
        assert!(undo_from(place.ledger(), first_wiped, undo_own, &place.host).is_empty());
        for base in built.bases.values() {
            let Base::Device(path) = base else { continue };
            let device = super::identity::BlockDevice::find(path).unwrap();
            assert_eq!(super::guard::signatures(&place.host, &device).unwrap(), [], "{layer} on {}", path.display());
        }
        place.clean();
    }
}

#[test]
fn two_device_btrfs_has_the_requested_profiles_and_both_members() {
    let Some(place) = TestPlace::new() else { return };
    let options = options_of(&[("data", text("raid1")), ("metadata", text("raid1"))]);
    let built = place.build(&on_two(&place, "btrfs", options, "256MiB", [Role::Data, Role::Data])).unwrap();
    let facts = built.facts.node("fs").unwrap();
    assert_eq!((facts.details["num_devices"].as_str(), facts.details["profile of Data"].as_str()), ("2", "RAID1"));
    assert_eq!(facts.inputs.len(), 2, "what the kernel shows below is the same two: {:?}", facts.inputs);
    place.clean();
}

#[test]
fn a_multi_device_stack_dying_at_any_entry_is_undone() {
    // Entry 0 is the run's folder; then two images (twice, once with the inode) and two loops, journal, filesystem,
    // mount point and mount.
    at_every_entry(10, |death| {
        let mut place = TestPlace::new()?;
        let spec = on_two(&place, "ext4", Options::default(), "64MiB", [Role::Data, Role::Log]);
        place.ledger().die(death);
        let died = place.build(&spec).is_err();
        drop(place.ledger.take());
        place.ledger = Some(Ledger::take(&place.ledger_folder(), &place.run_id).unwrap());
        place.clean();
        Some(died)
    });
}

#[test]
fn a_stack_is_reopened_on_its_devices_without_data_loss() {
    for (layer, size, roles) in [
        ("ext4", "64MiB", [Role::Data, Role::Log]),
        ("xfs", "320MiB", [Role::Data, Role::Log]),
        ("btrfs", "256MiB", [Role::Data, Role::Data]),
    ] {
        let Some(place) = TestPlace::new() else { return };
        let spec = on_two(&place, layer, mounted(&["noatime"]), size, roles);
        let built = place.build(&spec).unwrap();
        fs::write(built.folder().join("kept"), "x").unwrap();
        let things = place.ledger().open_things();
        let (number, mount) = things.iter().rev().find(|(_, thing)| thing.kind == "mount").unwrap();
        mount::undo(&place.host, mount).unwrap();
        place.ledger().undone(*number).unwrap();
        let devices: Bases = built.bases.into_iter().filter(|(_, base)| matches!(base, Base::Device(_))).collect();
        let again = stack::reopen_stack(&place.site("again"), &spec, devices).unwrap();
        assert_eq!(fs::read_to_string(again.folder().join("kept")).unwrap(), "x", "{layer}");
        assert_eq!(again.facts.node("fs").unwrap().inputs.len(), 2);
        place.clean();
    }
}

#[test]
fn what_cannot_be_opened_again_says_so() {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_loop("ext4", "64MiB", Options::default());
    let error = stack::reopen_stack(&place.site("x"), &spec, Bases::new()).unwrap_err().to_string();
    assert!(error.contains("the layer loop cannot be opened again"), "{error}");
    place.clean();
}

#[test]
fn durability_promises_come_from_mounts_devices_and_the_visible_end() {
    let Some(place) = TestPlace::new() else { return };
    let built = place.build(&place.on_loop("ext4", "64MiB", mounted(&["barrier=0"]))).unwrap();
    let (node, promise) = built.facts.promise(built.facts.data.as_ref(), Claim::HoldsFlushesBack).unwrap();
    assert_eq!((node.name.as_str(), promise.source.as_str()), ("ext4", "mount option nobarrier"));
    place.clean();
}

#[test]
fn one_disk_for_two_nodes_is_refused_before_formatting() {
    let disk = |path: &str| options_of(&[("disk", text(path)), ("serial", text("x"))]);
    let mut spec = StackSpec::linear("two", vec![("disk", disk("/dev/null"))]);
    spec.nodes.push(node("again", "disk", disk("/dev/../dev/null"), &[]));
    let unmet = stack::unmet(&crate::host::Host::this(), &spec, &super::images::Images::default());
    assert!(
        unmet.iter().any(|unmet| unmet.what == "a separate disk for `again`: `disk` already uses /dev/null"),
        "{unmet:?}"
    );
}

#[test]
fn an_existing_image_or_folder_is_neither_used_nor_removed() {
    let Some(place) = TestPlace::new() else { return };
    let spec = place.on_loop("ext4", "64MiB", Options::default());
    let theirs = place.path().join(format!("pgstrata-{}-1-ext4.loop.img", place.run_id));
    fs::write(&theirs, "precious").unwrap();
    let error = place.build(&spec).unwrap_err().to_string();
    assert!(error.contains("already exists"), "{error}");
    assert!(undo_from(place.ledger(), 0, undo_own, &place.host).is_empty());
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "precious");
    fs::remove_file(&theirs).unwrap();
    place.clean();
}
