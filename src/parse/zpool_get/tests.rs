//! Tests of the reader of `zpool_get`: published outputs, outputs of this machine's tools, forms from manuals, mangled text.

use super::super::mangle::{any_mangling, numbers_not_read};
use super::super::output::{Output, Row};
use super::super::table::checks::{is_part, outputs_of};
use super::{looks_like, read};
use proptest::prelude::{any, prop_assert, proptest};

const ZPOOL: &str = include_str!("../../../shelf/freebsd10-zfs-fsync-2014/zpool-get-all.txt");
const ZFS: &str = include_str!("../../../shelf/freebsd10-zfs-fsync-2014/zfs-get-all.txt");

const STATUS: &str = "\
  pool: tank
 state: DEGRADED
status: One or more devices could not be used because the label is missing.
        Sufficient replicas exist.
  scan: scrub repaired 0B in 00:10:12 with 0 errors on Sun Mar  9 00:34:13 2025
config:

        NAME        STATE     READ WRITE CKSUM
        tank        DEGRADED     0     0     0
          raidz1-0  DEGRADED     0     0     0
            sda     ONLINE       0     1  1.2K
            sdb     UNAVAIL      0     0     0  was /dev/sdb1
        logs
          nvme0n1   ONLINE       0     0     0
        spares
          sdz       AVAIL

errors: No known data errors
";

const LIST: &str = "\
NAME        SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
teststore  2.27T  1.23T  1.04T        -         -     3%    54%  1.00x    ONLINE  -
";

const ZFS_LIST: &str = "NAME USED AVAIL REFER MOUNTPOINT\ntank 1.5G 2.5T 96K /tank\ntank/pg 1.4G 2.5T 1.4G /pg\n";

fn outputs(text: &str) -> Vec<Output> {
    outputs_of(text, looks_like, read)
}

fn one(text: &str) -> Output {
    let mut found = outputs(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn of<'a>(output: &'a Output, property: &str) -> &'a Row {
    output.rows.iter().find(|row| row.labels.contains(&("property", property.to_owned()))).unwrap()
}

fn label<'a>(row: &'a Row, name: &str) -> &'a str {
    row.labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value)
}

#[test]
fn every_published_property_is_read() {
    for (text, tool) in [(ZPOOL, "zpool get"), (ZFS, "zfs get")] {
        let found = one(text);
        assert_eq!(numbers_not_read(text, std::slice::from_ref(&found)), Vec::<String>::new());
        assert_eq!((found.tool, found.rows.len(), found.unread.len()), (tool, text.lines().count() - 1, 0));
    }
    let found = one(ZFS);
    assert_eq!(label(of(&found, "sync"), "value"), "disabled");
    assert_eq!(label(of(&found, "creation"), "value"), "Thu Jun 26 23:52 2014");
    assert_eq!((of(&found, "recordsize").figures[0].value, of(&found, "recordsize").figures[0].unit), (131_072.0, "B"));
    assert_eq!(
        (of(&found, "compressratio").figures[0].value, of(&found, "compressratio").figures[0].unit),
        (1.0, "ratio")
    );
    assert_eq!(of(&found, "quota").absent.as_deref(), Some("none"));
    let found = one(ZPOOL);
    assert!(of(&found, "guid").figures.is_empty(), "a guid is a name");
    assert_eq!((of(&found, "capacity").figures[0].value, of(&found, "capacity").figures[0].unit), (0.0, "%"));
}

#[test]
fn a_source_may_be_another_dataset_and_columns_may_be_fewer() {
    let found = one("NAME PROPERTY VALUE SOURCE\ntank/pg atime off inherited from tank\ntank/pg sync\n");
    assert_eq!(label(&found.rows[0], "source"), "inherited from tank");
    assert_eq!((found.unread.len(), found.unread[0].line), (1, 3));
    let found = one("PROPERTY VALUE\nrecordsize 8K\nand so on it went for a while\n");
    assert_eq!((found.rows.len(), label(&found.rows[0], "value")), (1, "8K"));
    let found = one("# zfs get -Hp used,sync tank\ntank\tused\t32768\t-\ntank\tsync\tstandard\tdefault\n# ls\n");
    assert_eq!((found.rows.len(), found.rows[0].figures[0].value), (2, 32768.0));
}

#[test]
fn what_a_user_has_is_bytes_or_objects() {
    let found =
        one("NAME PROPERTY VALUE SOURCE\ntank userused@postgres 1.2G local\ntank userobjused@postgres 12 local\n\
                     tank feature@lz4_compress active local\n");
    let first = |row: usize| found.rows[row].figures.first().map(|figure| (figure.value, figure.unit));
    assert_eq!((first(0), first(1), first(2)), (Some((1.2 * 1024f64.powi(3), "B")), Some((12.0, "count")), None));
}

#[test]
fn lists_have_a_row_a_pool() {
    let found = one(LIST);
    let figures: Vec<&str> = found.rows[0].figures.iter().map(|figure| figure.name.as_str()).collect();
    let expected =
        ["size_bytes", "allocated_bytes", "free_bytes", "fragmentation_percent", "capacity_percent", "dedup_ratio"];
    assert_eq!((figures, label(&found.rows[0], "health")), (expected.to_vec(), "ONLINE"));
    let found = one(ZFS_LIST);
    assert_eq!((found.tool, found.rows.len(), label(&found.rows[1], "mountpoint")), ("zfs list", 2, "/pg"));
    assert_eq!(one("NAME USED AVAIL REFER MOUNTPOINT\ntank 1.5G 2.5T\n").unread[0].line, 2);
}

#[test]
fn status_tells_state_and_errors_of_each_device() {
    let found = one(STATUS);
    assert_eq!(found.facts[0], ("pool".to_owned(), "tank".to_owned()));
    assert!(found.facts[2].1.ends_with("Sufficient replicas exist."));
    assert_eq!((found.rows.len(), found.unread.len()), (6, 0));
    assert_eq!((label(&found.rows[2], "vdev"), label(&found.rows[2], "device")), ("raidz1-0", "sda"));
    assert_eq!(found.rows[2].figures[2].value, 1.2 * 1024.0);
    assert_eq!(label(&found.rows[3], "remark"), "was /dev/sdb1");
    assert_eq!((label(&found.rows[4], "section"), label(&found.rows[4], "vdev")), ("logs", ""));
    assert_eq!(numbers_not_read(STATUS, &[found]), Vec::<String>::new());
    let twice = outputs(&format!("{STATUS}\n{STATUS}"));
    assert_eq!(twice.len(), 2);
}

/// Labels but for the state and the remark, joined by slashes.
fn place(row: &Row) -> String {
    let labels = row.labels.iter().filter(|(name, _)| !matches!(*name, "state" | "remark" | "health" | "altroot"));
    labels.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("/")
}

#[test]
fn a_device_beside_one_that_is_replaced_is_told_from_it_by_the_indentation() {
    let text = "  pool: tank\n state: DEGRADED\nconfig:\n\n\tNAME STATE READ WRITE CKSUM\n\ttank DEGRADED 0 0 0\n\
                \t  raidz2-0 DEGRADED 0 0 0\n\t    sda ONLINE 0 0 0\n\t    replacing-1 DEGRADED 0 0 0\n\
                \t      1234567890123456 UNAVAIL 0 0 0 was /dev/sdb1\n\t      sdc ONLINE 0 0 0 (resilvering)\n\
                \t    sdd FAULTED 1.5K 23 0 too many errors\n\tlogs\n\t  mirror-1 ONLINE 0 0 0\n\
                \t    nvme0n1 ONLINE 0 0 0\n\tspares\n\t  sdz AVAIL\n";
    let found = one(text);
    let places: Vec<String> = found.rows.iter().map(place).collect();
    let expected = [
        "tank",
        "tank/raidz2-0",
        "tank/raidz2-0/sda",
        "tank/raidz2-0/replacing-1",
        "tank/raidz2-0/replacing-1/1234567890123456",
        "tank/raidz2-0/replacing-1/sdc",
        "tank/raidz2-0/sdd",
        "tank/logs/mirror-1",
        "tank/logs/mirror-1/nvme0n1",
        "tank/spares/sdz",
    ];
    assert_eq!(places, expected);
    assert_eq!((label(&found.rows[5], "group"), label(&found.rows[6], "vdev")), ("replacing-1", "raidz2-0"));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    let dedented: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    assert!(one(&dedented).notes.iter().any(|note| note.contains("cannot be known")));
}

#[test]
fn slow_operations_are_counted_and_a_pool_has_none_of_its_own() {
    let text = "NAME STATE READ WRITE CKSUM SLOW\ntank ONLINE 0 0 0 -\n  sda ONLINE 0 0 0 2\n\
                  sdb ONLINE 0 0 0 0 block size: 512B configured, 4096B native\n";
    let found = one(text);
    let slow = |row: usize| found.rows[row].figures.get(3).map(|it| (it.name.as_str(), it.value, it.unit));
    assert_eq!((slow(0), slow(1)), (None, Some(("slow_ios", 2.0, "count"))));
    assert_eq!(
        (label(&found.rows[1], "remark"), label(&found.rows[2], "remark").starts_with("block size")),
        ("", true)
    );
    assert_eq!(one(&text.replace("0 0 2", "0 0 ?")).unread[0].wanted, "a count for SLOW");
}

#[test]
fn devices_of_a_list_stand_in_their_pool() {
    let text = "NAME SIZE ALLOC FREE CKPOINT EXPANDSZ FRAG CAP DEDUP HEALTH ALTROOT\n\
                tank 14.5T 5.12T 9.38T - - 3% 35% 1.00x ONLINE -\n  raidz2-0 14.5T 5.12T 9.38T - - 3% 35.3% - ONLINE\n\
                \u{20}   sda 3.64T - - - - - - - ONLINE\nlogs - - - - - - - - -\n  nvme0n1 15.5G 12.3M 15.5G - - 0% 0.07% - ONLINE\n";
    let places: Vec<String> = one(text).rows.iter().map(place).collect();
    assert_eq!(places, ["tank", "tank/raidz2-0", "tank/raidz2-0/sda", "tank/logs/nvme0n1"]);
    let dedented: String = text.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let found = one(&dedented);
    assert_eq!((place(&found.rows[2]).as_str(), found.notes.len()), ("sda", 1));
}

fn count(outputs: &[Output]) -> usize {
    outputs.iter().flat_map(|output| &output.rows).map(|row| row.figures.len()).sum()
}

const ALL: [&str; 5] = [ZPOOL, ZFS, STATUS, LIST, ZFS_LIST];

proptest! {
    #[test]
    fn mangled_text_gives_the_same_or_less(which in 0..ALL.len(), mangling in any_mangling()) {
        let (whole, mangled) = (outputs(ALL[which]), outputs(&mangling.apply(ALL[which])));
        prop_assert!(is_part(&mangled, &whole).is_ok(), "{:?} {}", is_part(&mangled, &whole), mangling.apply(ALL[which]));
        if mangling.keeps_lines() {
            prop_assert!(count(&mangled) == count(&whole), "{}", mangling.apply(ALL[which]));
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        text in "(NAME PROPERTY VALUE SOURCE|NAME SIZE CAP|NAME STATE READ WRITE CKSUM|pool: a|state: b|tank|sync|logs|ONLINE|default|-|[0-9.]{1,4}[KM%x]?|[ \\n]){0,60}",
        any in any::<String>(),
    ) {
        outputs(&text);
        outputs(&any);
    }
}
