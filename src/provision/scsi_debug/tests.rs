//! A real scsi_debug disk, if the kernel has it; and requests that are refused beforehand.

use super::*;
use crate::provision::test_site::{TestPlace, options_of, stack, stands_and_dies, text};
use crate::record::claim::Claim;
use crate::record::options::OptionValue;

#[test]
fn sizes_that_no_disk_can_have_are_refused() {
    let check =
        |pairs: &[(&str, OptionValue)]| ScsiDebug.check(&options_of(pairs)).map_err(|problem| problem.key.unwrap());
    assert_eq!(check(&[("scsi_debug", text("1GiB"))]), Ok(()));
    assert_eq!(check(&[("scsi_debug", text("1MiB"))]), Err("scsi_debug".to_owned()));
    assert_eq!(check(&[("sector_size", OptionValue::Integer(520))]), Err("sector_size".to_owned()));
    assert_eq!(vendor("1a2b-3c4d5e"), "1a2b3c4d");
}

#[test]
fn scsi_debug_with_latency_is_undone_wherever_its_build_dies() {
    let host = Host::this();
    let atomic = takes_atomic_writes(&host);
    let with = |atomic: bool| {
        options_of(&[
            ("scsi_debug", text("128MiB")),
            ("latency", text("20us")),
            ("sector_size", OptionValue::Integer(4096)),
            ("atomic_writes", OptionValue::Boolean(atomic)),
        ])
    };
    let lacking = ScsiDebug.unmet(&host, &with(true)).iter().any(|unmet| unmet.hint.contains("6.11"));
    assert_eq!(lacking, !atomic && needs::has_module(&host, MODULE));
    let options = with(atomic);
    let spec = |_: &TestPlace| stack("scsi", vec![("scsi_debug", options.clone()), ("ext4", Options::default())]);
    stands_and_dies("scsi_debug", spec, |place, built| {
        let details = &built.facts.node("scsi_debug").unwrap().details;
        assert_eq!(
            (details["latency in ns"].as_str(), details["atomic writes"].as_str()),
            ("20000", if atomic { "true" } else { "false" })
        );
        assert!(built.facts.promise(built.facts.data.as_ref(), Claim::Volatile).is_some());
        ScsiDebug.undo(&place.host, &Thing::new("scsi_debug", LOADED).with("vendor", "theirs")).unwrap();
        assert!(kernel_module::is_loaded(&place.host, MODULE));
    });
}
