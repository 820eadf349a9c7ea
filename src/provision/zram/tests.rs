//! Real zram devices, if the kernel has it; and requests that are refused beforehand.

use super::*;
use crate::provision::test_site::{TestPlace, options_of, stack, stands_and_dies, text};
use crate::record::claim::Claim;

fn spec(_: &TestPlace) -> crate::record::stack::StackSpec {
    stack("zram", vec![("zram", options_of(&[("zram", text("128MiB"))])), ("ext4", Options::default())])
}

#[test]
fn a_size_that_is_no_whole_page_is_refused() {
    assert!(Zram.check(&options_of(&[("zram", text("1000B"))])).is_err());
    assert_eq!(Zram.check(&options_of(&[("zram", text("1GiB"))])), Ok(()));
}

#[test]
fn a_device_stands_and_goes_wherever_its_build_dies() {
    let devices = || Host::this().names_in("/sys/block").into_iter().filter(|name| name.starts_with("zram")).count();
    let before = devices();
    stands_and_dies("zram", spec, |place, built| {
        assert!(built.facts.node("zram").unwrap().details["algorithm"].len() > 2);
        assert!(built.facts.promise(built.facts.data.as_ref(), Claim::Volatile).is_some());
        let ours = place.ledger().open_things().into_iter().find(|(_, thing)| thing.kind == DEVICE).unwrap().1;
        let mut theirs = ours.clone();
        theirs.marks.insert("sequence".to_owned(), "0".to_owned());
        Zram.undo(&place.host, &theirs).unwrap();
        theirs.kind = NUMBER.to_owned();
        Zram.undo(&place.host, &theirs).unwrap();
        assert!(DeviceNumber::named(&place.host, &format!("zram{}", ours.marks["number"])).is_some());
    });
    assert_eq!(devices(), before);
}
