//! Builds real parts of devices if the kernel has the device mapper, and checks what is refused before.

use super::*;
use crate::host::command::Command;
use crate::provision::images::Images;
use crate::provision::stack;
use crate::provision::test_site::{TestPlace, opens_again, options_of, stands_and_dies, text};
use std::fs;

fn asked(start: &str, size: &str) -> Options {
    options_of(&[(START, text(start)), (SIZE, text(size))])
}

#[test]
fn a_part_is_a_size_or_share_within_its_device() {
    const GIB: u64 = 1 << 30;
    assert_eq!(range(&asked("90%", "10%"), 10 * GIB), Some((9 * GIB, GIB)));
    assert_eq!(range(&asked("1GiB", "50%"), 4 * GIB), Some((GIB, 2 * GIB)));
    assert_eq!(range(&asked("3GiB", "2GiB"), 4 * GIB), None);
    assert_eq!(range(&options_of(&[(SIZE, text("1GiB"))]), 4 * GIB), Some((0, GIB)));
    assert_eq!(Linear.capacity(&asked("50%", "25%"), &[Bytes(4 * GIB)]), Some(Bytes(GIB)));
    let refused = |start, size| Linear.check(&asked(start, size)).err().and_then(|problem| problem.key);
    assert_eq!(refused("95%", "5%"), None);
    for (start, size, key) in
        [("95%", "6%", SIZE), ("0%", "0%", SIZE), ("x", "1%", START), ("101%", "1%", START), ("100kB", "1MiB", START)]
    {
        assert_eq!(refused(start, size).as_deref(), Some(key), "{start} {size}");
    }
}

#[test]
fn a_part_works_and_dying_builds_leave_nothing() {
    let spec = |place: &TestPlace| place.on_volume("linear", asked("50%", "64MiB"), 1, "192MiB");
    stands_and_dies("linear", spec, |place, built| {
        assert_eq!(built.facts.node("linear").unwrap().details["start"], "96 MiB");
        // Data written to the part are in the image from the part's start on.
        fs::write(built.folder().join("there"), [0xA5; 1 << 20]).unwrap();
        place.host.run(&Command::new("sync")).unwrap();
        let image = fs::read_dir(place.path()).unwrap().filter_map(|entry| fs::read(entry.ok()?.path()).ok());
        let image = image.max_by_key(Vec::len).unwrap();
        let found = image.windows(4096).step_by(4096).position(|page| page == [0xA5; 4096]).unwrap() * 4096;
        assert!((96 << 20..160 << 20).contains(&found), "{found}");
    });
}

#[test]
fn a_part_beyond_its_device_is_refused_with_available_size() {
    let Some(place) = TestPlace::new() else { return };
    let on = |size| place.on_volume("linear", asked("50MiB", size), 1, "64MiB");
    if !place.can_build(&on("8MiB")) {
        return;
    }
    let refused = place.build(&on("100MiB")).unwrap_err().to_string();
    assert!(refused.contains("no 100MiB from 50MiB in 64 MiB"), "{refused}");
    place.clean();
}

#[test]
fn a_part_beyond_a_known_size_is_refused_before_building() {
    let Some(place) = TestPlace::new() else { return };
    let lacking = |start, size| {
        let spec = place.on_volume("linear", asked(start, size), 1, "64MiB");
        let unmet = stack::unmet(&place.host, &spec, &Images::default());
        unmet.into_iter().map(|unmet| unmet.what).find(|what| what.contains("below `linear`"))
    };
    let said = lacking("50MiB", "100MiB");
    assert_eq!(said.as_deref(), Some("room for 100MiB from 50MiB on the device below `linear`, which has 64 MiB"));
    assert_eq!(lacking("50%", "32MiB"), None);
}

#[test]
fn a_part_is_mapped_again() {
    opens_again("linear", asked("10%", "80%"), 1, |thing| Some(thing.clone()));
}
