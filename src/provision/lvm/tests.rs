//! Builds real volume groups if the kernel has the device mapper, and checks what is refused before.

use super::*;
use crate::provision::test_site::{TestPlace, opens_again, options_of, stands_and_dies, text};
use crate::record::options::OptionValue;
use crate::record::stack::{BaseName, Input, NodeSpec};

fn volumes(sizes: &[(&str, &str)]) -> OptionValue {
    OptionValue::Map(sizes.iter().map(|(name, size)| ((*name).to_owned(), text(size))).collect())
}

#[test]
fn sizes_and_stripes_that_cannot_be_are_refused() {
    let check = |pairs: &[(&str, OptionValue)]| Lvm.check(&options_of(pairs)).map_err(|problem| problem.key.unwrap());
    assert_eq!(check(&[("size", text("80%")), ("stripes", OptionValue::Integer(2))]), Ok(()));
    assert_eq!(check(&[("volumes", volumes(&[("data", "70%"), ("wal", "1GiB")]))]), Ok(()));
    for bad in ["0%", "101%", "x", "5MiB", "-1%"] {
        assert_eq!(check(&[("size", text(bad))]), Err("size".to_owned()), "{bad}");
    }
    for bad in [&[("a", "70%"), ("b", "40%")][..], &[("pool", "1GiB")], &[("a-b", "1GiB")], &[]] {
        assert_eq!(check(&[("volumes", volumes(bad))]), Err("volumes".to_owned()), "{bad:?}");
    }
    assert_eq!(check(&[("stripe_size", text("64KiB"))]), Err("stripe_size".to_owned()));
    assert_eq!(check(&[("chunk", text("64KiB"))]), Err("chunk".to_owned()));
}

#[test]
fn names_of_mappings_and_uuids_are_as_lvm_writes_them() {
    assert_eq!(mapped_name("pgstrata-1a-7", "wal"), "pgstrata--1a--7-wal");
    assert_eq!(physical_uuid("01234567-89ab-cdef-0123-456789abcdef"), "012345-6789-abcd-ef01-2345-6789-abcdef");
}

/// Output of lvs 2.03.31 for a fresh pool.
const THIN: &str = include_str!("../../../tests/fixtures/lvm/2.03.31-thin.json");

/// The pool's row of it, with some columns changed.
fn pool(changed: &[(&str, &str)]) -> BTreeMap<String, String> {
    let rows = lvm::parse_report(THIN, "lv").unwrap();
    let mut row = rows.into_iter().find(|row| row["segtype"] == "thin-pool").unwrap();
    row.extend(changed.iter().map(|(column, value)| ((*column).to_owned(), (*value).to_owned())));
    row
}

#[test]
fn a_pool_is_full_by_data_or_metadata_alone() {
    let full = |data: &str, metadata: &str, health: &str| {
        options::full(&pool(&[("data_percent", data), ("metadata_percent", metadata), ("lv_health_status", health)]))
    };
    assert_eq!(full("100.00", "12.50", "out_of_data").unwrap(), "the thin pool is full: 100.00 % of its data space");
    assert_eq!(full("100.00", "12.50", "").unwrap(), "the thin pool is full: 100.00 % of its data space");
    assert!(full("50.00", "91.41", "metadata_read_only").unwrap().ends_with("91.41 % of its metadata space"));
    for (data, metadata, health) in
        [("99.95", "12.50", ""), ("50.00", "12.50", "metadata_read_only"), ("50.00", "95.00", ""), ("", "", "failed")]
    {
        assert_eq!(full(data, metadata, health), None, "{data} {metadata} {health}");
    }
}

#[test]
fn a_thin_pool_that_queues_writes_when_full_is_rejected() {
    let options = options_of(&[("thin", OptionValue::Boolean(true))]);
    assert_eq!(options::when_full_arguments("g"), ["--errorwhenfull=y", "g/pool"]);
    options::verify_pool(&options, &pool(&[("lv_when_full", "error")])).unwrap();
    let error = options::verify_pool(&options, &pool(&[("lv_when_full", "queue")])).unwrap_err().to_string();
    assert!(error.contains("lv_when_full of the volume pool was to be `error`, but LVM shows `queue`"), "{error}");
}

#[test]
fn linear_striped_and_thin_volumes_are_read_back_and_undone() {
    let yes = || OptionValue::Boolean(true);
    for (options, kind) in [
        (options_of(&[("size", text("80%"))]), "linear"),
        (options_of(&[("stripes", OptionValue::Integer(2)), ("stripe_size", text("128KiB"))]), "striped"),
        (options_of(&[("thin", yes()), ("chunk", text("128KiB")), ("size", text("48MiB"))]), "thin"),
    ] {
        let Some(place) = TestPlace::new() else { return };
        let spec = place.on_volume("lvm", options, 2, "64MiB");
        if !place.can_build(&spec) {
            continue;
        }
        let built = place.build(&spec).unwrap();
        std::fs::write(built.folder().join("file"), "x").unwrap();
        let details = &built.facts.node("lvm").unwrap().details;
        assert_eq!(details["type"], kind, "{details:?}");
        let when_full = (kind == "thin").then_some("error");
        assert_eq!(details.get("pool: when full").map(String::as_str), when_full, "{details:?}");
        assert_eq!(built.full_below(&place.host, &spec).unwrap(), None, "it has room");
        let below = built.facts.devices_below(built.facts.data.as_ref());
        let names: Vec<String> = below.iter().map(|below| below.name().0).collect();
        assert!(names.contains(&"d1".to_owned()) && names.contains(&"lvm".to_owned()), "{names:?}");
        place.clean();
    }
}

#[test]
fn several_volumes_of_one_group_are_several_bases() {
    let Some(place) = TestPlace::new() else { return };
    let options = options_of(&[("volumes", volumes(&[("data", "60%"), ("wal", "40%")]))]);
    let mut spec = place.on_volume("lvm", options, 1, "96MiB");
    let base = |name: &str| vec![Input { from: BaseName(format!("lvm.{name}")), role: Role::Data, group: None }];
    spec.nodes.last_mut().unwrap().inputs = base("data");
    let wal = NodeSpec { name: "wal".to_owned(), inputs: base("wal"), ..spec.nodes.last().unwrap().clone() };
    spec.nodes.push(wal);
    spec.wal = Some(BaseName("wal".to_owned()));
    if !place.can_build(&spec) {
        return;
    }
    let built = place.build(&spec).unwrap();
    assert_eq!(built.folders.len(), 2);
    assert_eq!(built.facts.node("lvm").unwrap().bases.len(), 2);
    place.clean();
}

#[test]
fn a_build_that_dies_anywhere_leaves_no_group() {
    let options = || options_of(&[("thin", OptionValue::Boolean(true))]);
    let spec = |place: &TestPlace| place.on_volume("lvm", options(), 1, "96MiB");
    stands_and_dies("lvm", spec, |place, _| {
        let theirs = Lvm.undo(&place.host, &Thing::new("lvm", GROUP).with("name", "vg0")).unwrap_err().to_string();
        assert!(theirs.contains("not one of pgstrata"), "{theirs}");
        Lvm.undo(&place.host, &Thing::new("lvm", GROUP).with("name", "pgstrata-none-1")).unwrap();
    });
}

#[test]
fn a_group_is_activated_again() {
    opens_again("lvm", Options::default(), 2, |thing| {
        let name = thing.mark("name").ok()?;
        (thing.kind == GROUP).then(|| Thing::new("lvm", ACTIVE).with("name", name))
    });
}
