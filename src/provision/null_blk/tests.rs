//! Real null_blk devices, if the kernel has it; and requests that are refused beforehand.

use super::*;
use crate::provision::test_site::{TestPlace, options_of, stack, stands_and_dies, text};
use crate::record::options::OptionValue;

#[test]
fn sizes_that_no_device_can_have_are_refused() {
    let check =
        |pairs: &[(&str, OptionValue)]| NullBlk.check(&options_of(pairs)).map_err(|problem| problem.key.unwrap());
    assert_eq!(check(&[("null_blk", text("1GiB"))]), Ok(()));
    assert_eq!(check(&[("null_blk", text("4KiB"))]), Err("null_blk".to_owned()));
    assert_eq!(check(&[("null_blk", text("1GiB")), ("cache", text("1KiB"))]), Err("cache".to_owned()));
    assert_eq!(
        check(&[("null_blk", text("1GiB")), ("block_size", OptionValue::Integer(8192))]),
        Err("block_size".to_owned())
    );
}

#[test]
fn null_blk_with_latency_is_undone_wherever_its_build_dies() {
    let options = options_of(&[
        ("null_blk", text("128MiB")),
        ("latency", text("50us")),
        ("block_size", OptionValue::Integer(4096)),
        ("cache", text("8MiB")),
    ]);
    let spec = |_: &TestPlace| stack("null", vec![("null_blk", options.clone()), ("ext4", Options::default())]);
    stands_and_dies("null_blk", spec, |place, built| {
        let node = built.facts.node("null_blk").unwrap();
        assert_eq!(node.details["completion_nsec"], "50000");
        let device = node.bases[0].device.as_ref().unwrap();
        assert_eq!(device.logical_block_bytes, Some(4096), "{device:?}");
        assert_eq!(device.write_cache, Some(crate::record::facts::WriteCache::WriteBack));
        assert!(built.facts.promise(built.facts.data.as_ref(), Claim::Volatile).is_some());
        let theirs = Thing::new("null_blk", DEVICE).with("name", "theirs");
        assert!(NullBlk.undo(&place.host, &theirs).is_err());
    });
}
