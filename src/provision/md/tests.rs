//! Builds real arrays if the kernel has md, and checks what is refused before.

use super::*;
use crate::provision::test_site::{TestPlace, opens_again, options_of, stands_and_dies, text};
use crate::record::options::OptionValue;
use crate::record::stack::{BaseName, Input};

fn array(level: i64, more: &[(&str, OptionValue)]) -> Options {
    let mut options = options_of(more);
    options.set("level", OptionValue::Integer(level));
    options
}

fn details(built: &crate::provision::stack::BuiltStack) -> Details {
    built.facts.node("md").unwrap().details.clone()
}

#[test]
fn options_that_do_not_fit_the_level_are_refused() {
    let yes = || OptionValue::Boolean(true);
    assert_eq!(Md.check(&array(10, &[("chunk", text("64KiB")), ("bitmap", text("internal"))])), Ok(()));
    assert_eq!(Md.check(&array(5, &[("ppl", yes())])), Ok(()));
    for (level, key, value) in [
        (4, "level", OptionValue::Integer(4)),
        (1, "chunk", text("64KiB")),
        (0, "chunk", text("6KiB")),
        (0, "bitmap", text("internal")),
        (6, "ppl", yes()),
        (10, "journal_mode", text("write-back")),
        (1, "stripe_cache", OptionValue::Integer(1024)),
    ] {
        let problem = Md.check(&array(level, &[(key, value)])).unwrap_err();
        assert_eq!(problem.key.as_deref(), Some(key), "level {level}");
    }
}

#[test]
fn what_the_level_leaves_is_its_capacity() {
    let devices = [Bytes(30), Bytes(20), Bytes(20), Bytes(20)];
    let of = |level| Md.capacity(&array(level, &[]), &devices).unwrap().0;
    assert_eq!([of(0), of(1), of(10), of(5), of(6)], [90, 20, 40, 60, 40]);
}

#[test]
fn every_level_is_built_in_sync_read_back_and_undone() {
    for (level, members, more) in [
        (0, 2, vec![("chunk", text("64KiB"))]),
        (1, 2, vec![("bitmap", text("internal"))]),
        (5, 3, vec![("chunk", text("64KiB")), ("stripe_cache", OptionValue::Integer(1024))]),
        (6, 4, vec![]),
        (10, 4, vec![("chunk", text("64KiB"))]),
    ] {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_volume("md", array(level, &more), members, "64MiB");
        if !place.can_build(&spec) {
            continue;
        }
        let built = place.build(&spec).unwrap();
        std::fs::write(built.folder().join("file"), "x").unwrap();
        let shown = details(&built);
        assert_eq!(shown["members"], members.to_string());
        assert_eq!(shown.get("degraded").map_or("0", String::as_str), "0", "level {level}: {shown:?}");
        assert!(shown.get("sync action").is_none_or(|action| action == "idle"), "level {level}: {shown:?}");
        let below = built.facts.devices_below(built.facts.data.as_ref());
        assert_eq!(below.iter().filter(|below| below.depth == 1).count(), members, "level {level}");
        place.clean();
    }
}

#[test]
fn a_build_that_dies_anywhere_leaves_no_array() {
    let spec = |place: &TestPlace| place.on_volume("md", array(1, &[]), 2, "64MiB");
    stands_and_dies("md", spec, |place, built| {
        let Base::Device(member) = &built.bases[&BaseName("d1".to_owned())] else { panic!() };
        let theirs = Thing::new("md", MEMBER).with("uuid", "00000000-0000-0000-0000-000000000001");
        Md.undo(&place.host, &theirs.with_path("device", member).unwrap()).unwrap();
        Md.undo(&place.host, &Thing::new("md", ARRAY).with("uuid", "00000000-0000-0000-0000-000000000001")).unwrap();
        assert!(uuid_on(&place.host, member).is_ok(), "another array's superblock stays");
        find(&place.host, &details(built)["uuid"]).unwrap();
    });
}

#[test]
fn journal_and_partial_parity_log_are_as_requested() {
    let ppl = |place: &TestPlace| place.on_volume("md", array(5, &[("ppl", OptionValue::Boolean(true))]), 3, "64MiB");
    let journal = |place: &TestPlace| {
        let mut spec = place.on_volume("md", array(5, &[("journal_mode", text("write-back"))]), 3, "64MiB");
        let mut device = spec.nodes[0].clone();
        device.name = "j".to_owned();
        spec.nodes.insert(0, device);
        let md = spec.nodes.iter_mut().find(|node| node.name == "md").unwrap();
        md.inputs.push(Input { from: BaseName("j".to_owned()), role: Role::Log, group: None });
        spec
    };
    for (spec, policy) in [(&ppl as &dyn Fn(&TestPlace) -> _, "ppl"), (&journal, "journal")] {
        let Some(place) = TestPlace::new() else { return };
        let spec = spec(&place);
        if !place.can_build(&spec) {
            return;
        }
        let built = place.build(&spec).unwrap();
        assert_eq!(details(&built)["consistency policy"], policy);
        place.clean();
    }
}

#[test]
fn too_few_members_and_a_mirror_with_journal_are_refused() {
    let level = |number| Level::of(&array(number, &[])).unwrap();
    let refused = |number, members, journal| {
        options::check_members(level(number), &array(number, &[]), members, journal).unwrap_err().to_string()
    };
    assert!(refused(6, 3, false).contains("at least 4 members"));
    assert!(refused(1, 2, true).contains("no write journal"));
}

#[test]
fn an_array_is_assembled_again_from_its_members() {
    opens_again("md", array(1, &[]), 2, |thing| (thing.kind == ARRAY).then(|| thing.clone()));
}
