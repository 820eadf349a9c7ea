//! Published outputs, outputs of this machine's tools, and forms from manuals.

use super::super::output::{Output, Row};
use super::super::table::checks::{numbers_not_read, outputs_of};
use super::read;
use proptest::prelude::{any, proptest};

const ZPOOL: &str = include_str!("../../../../shelf/freebsd10-zfs-fsync-2014/zpool-get-all.txt");
const ZFS: &str = include_str!("../../../../shelf/freebsd10-zfs-fsync-2014/zfs-get-all.txt");

fn outputs(text: &str) -> Vec<Output> {
    outputs_of(text, read)
}

fn one(text: &str) -> Output {
    let mut found = outputs(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn of<'a>(output: &'a Output, property: &str) -> &'a Row {
    output.rows.iter().find(|row| row.labels.contains(&("property".to_owned(), property.to_owned()))).unwrap()
}

fn label<'a>(row: &'a Row, name: &str) -> &'a str {
    row.labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value)
}

#[test]
fn every_published_property_is_read() {
    for (text, tool) in [(ZPOOL, "zpool get"), (ZFS, "zfs get")] {
        let found = one(text);
        assert_eq!(numbers_not_read(text, std::slice::from_ref(&found)), Vec::<String>::new());
        assert_eq!((found.tool.as_str(), found.rows.len(), found.unread.len()), (tool, text.lines().count() - 1, 0));
    }
    let found = one(ZFS);
    assert_eq!(label(of(&found, "sync"), "value"), "disabled");
    assert_eq!(label(of(&found, "creation"), "value"), "Thu Jun 26 23:52 2014");
    assert_eq!(label(of(&found, "recordsize"), "value"), "128K");
    assert_eq!(of(&found, "quota").absent.as_deref(), Some("none"));
}

#[test]
fn a_source_may_be_inherited_and_columns_may_be_missing() {
    let found = one("NAME PROPERTY VALUE SOURCE\ntank/pg atime off inherited from tank\ntank/pg sync\n");
    assert_eq!(label(&found.rows[0], "source"), "inherited from tank");
    assert_eq!((found.unread.len(), found.unread[0].line), (1, 3));
    let found = one("PROPERTY VALUE\nrecordsize 8K\nand so on it went for a while\n");
    assert_eq!((found.rows.len(), label(&found.rows[0], "value")), (1, "8K"));
}

#[test]
fn properties_without_a_heading_and_names_with_blanks_are_read() {
    let scripted = include_str!("../../../../tests/fixtures/zfs/zfs-get-H.txt");
    let found = one(scripted);
    assert_eq!((found.tool.as_str(), found.rows.len(), found.unread.len()), ("zfs get", 4, 0));
    assert_eq!(label(of(&found, "compression"), "source"), "inherited from tank");
    for (text, name, value) in [
        ("my pool/pg data\tsync\tdisabled\tlocal\n", "my pool/pg data", "disabled"),
        (
            "tank/pg\tcreation\tThu Jun  5 23:52 2014\t-\ntank/pg\tsync\tstandard\tinherited from my pool\n",
            "tank/pg",
            "standard",
        ),
        (
            "NAME             PROPERTY  VALUE     SOURCE\nmy pool/pg data  sync      disabled  inherited from my pool\n",
            "my pool/pg data",
            "disabled",
        ),
        ("PROPERTY  VALUE     NAME\n", "", ""),
        ("NAME     PROPERTY  VALUE\ntank/pg  sync      always\n", "tank/pg", "always"),
        ("NAME PROPERTY VALUE SOURCE\ntank/pg sync standard default\n", "tank/pg", "standard"),
        ("tank\tashift\t12\tlocal\ntank\tsync\t-\t-\n", "tank", "-"),
    ] {
        let found = outputs(text);
        let rows: Vec<&Row> =
            found.iter().flat_map(|it| &it.rows).filter(|row| label(row, "property") == "sync").collect();
        assert!(
            name.is_empty() || (label(rows[0], "name"), label(rows[0], "value")) == (name, value),
            "{text}{found:#?}"
        );
    }
    assert!(outputs("a\tb\tc\t-\n1\tx\t3\t-\n").is_empty(), "four columns of anything");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(NAME PROPERTY VALUE SOURCE|NAME SIZE CAP|NAME STATE READ WRITE CKSUM|pool: a|state: b|tank|sync|logs|ONLINE|default|-|[0-9.]{1,4}[KM%x]?|[ \\n]){0,60}",
        any in any::<String>(),
    ) {
        outputs(&text);
        outputs(&any);
    }
}
