//! Builds real encrypted devices if the kernel has dm-crypt, and checks what is refused before.

use super::*;
use crate::provision::test_site::{TestPlace, opens_again, options_of, stands_and_dies, text, texts};
use crate::record::options::OptionValue;

fn all_options() -> Options {
    options_of(&[
        ("sector_size", OptionValue::Integer(4096)),
        ("perf", texts(&["no_write_workqueue", "no_read_workqueue"])),
        ("discards", OptionValue::Boolean(true)),
        ("key_bits", OptionValue::Integer(256)),
    ])
}

#[test]
fn flags_and_sizes_unknown_to_dm_crypt_are_refused() {
    assert_eq!(Luks.check(&all_options()), Ok(()));
    for (key, value) in [
        ("sector_size", OptionValue::Integer(8192)),
        ("perf", texts(&["no_workqueue"])),
        ("cipher", text("--help")),
        ("key_bits", OptionValue::Integer(100)),
    ] {
        assert_eq!(Luks.check(&options_of(&[(key, value)])).unwrap_err().key.as_deref(), Some(key));
    }
}

#[test]
fn the_length_of_a_key_is_read_in_both_forms() {
    assert_eq!(key_bits(":64:logon:cryptsetup:0123-d0"), "512");
    assert_eq!(key_bits(&"0".repeat(64)), "256");
}

#[test]
fn every_option_is_in_force_and_dying_builds_leave_nothing() {
    let spec = |place: &TestPlace| place.on_volume("luks", all_options(), 1, "64MiB");
    stands_and_dies("luks", spec, |place, built| {
        let details = &built.facts.node("luks").unwrap().details;
        assert_eq!((details["sector size"].as_str(), details["key bits"].as_str()), ("4096", "256"));
        assert_eq!(details["flags"], "no_read_workqueue no_write_workqueue");
        let shown = place.host.take_command_log();
        let uuid = place
            .ledger()
            .open_things()
            .into_iter()
            .find_map(|(_, thing)| (thing.kind == HEADER_KIND).then(|| thing.marks["uuid"].clone()));
        let key = passphrase(&uuid.unwrap());
        assert!(shown.iter().all(|command| !command.command.contains(&key)), "the key is in no argument");
        let theirs = Thing::new("luks", MAPPING).with("name", &details["mapping"]).with("uuid", "other");
        assert!(Luks.undo(&place.host, &theirs).unwrap_err().to_string().contains("not the one"));
    });
}

#[test]
fn an_encrypted_device_is_opened_again() {
    opens_again("luks", Options::default(), 1, |thing| (thing.kind == MAPPING).then(|| thing.clone()));
}
