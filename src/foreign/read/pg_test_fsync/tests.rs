//! Real outputs of every available version and language, and synthetic ones.

use super::read;
use crate::foreign::clean as web;
use crate::foreign::read::output::{Output, Row};
use crate::foreign::read::table::checks::numbers_not_read;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn fixture(path: &str) -> String {
    file(&format!("tests/fixtures/{path}"))
}

fn published(path: &str) -> String {
    file(&format!("shelf/{path}"))
}

fn file(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn one(text: &str) -> Output {
    let mut outputs = read(&web::lines(text));
    assert_eq!(outputs.len(), 1, "{text}");
    outputs.remove(0)
}

fn label<'a>(row: &'a Row, key: &str) -> &'a str {
    row.labels.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
}

fn row<'a>(output: &'a Output, test: &str, method: &str, writes: &str) -> &'a Row {
    let is =
        |row: &&Row| label(row, "test") == test && label(row, "method") == method && label(row, "writes") == writes;
    output.rows.iter().find(is).unwrap_or_else(|| panic!("no {test}, {method} {writes}: {output:#?}"))
}

fn figures(row: &Row) -> Vec<(&str, &str, f64)> {
    row.figures.iter().map(|figure| (figure.name.as_str(), figure.unit.as_str(), figure.value)).collect()
}

/// Asserts that every number is read, except the sizes and counts in row names and headings, which are labels.
fn assert_complete(name: &str, text: &str, outputs: &[Output]) {
    let mut sizes = vec!["16", "8", "4", "2", "1", "1", "16"];
    sizes.extend(["16", "8", "8", "8"]);
    let mut left = numbers_not_read(text, outputs);
    left.retain(|number| match sizes.iter().position(|size| size == number) {
        Some(at) => {
            sizes.remove(at);
            false
        }
        None => true,
    });
    assert!(left.is_empty(), "{name}: {left:?}");
}

const PUBLISHED: [(&str, &str); 6] = [
    ("freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-disabled.txt", "9.3 or 9.4"),
    ("freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-standard.txt", "9.3 or 9.4"),
    ("memory-filesystems-2018/pg_test_fsync-local-disk.txt", "9.5 or newer"),
    ("memory-filesystems-2018/pg_test_fsync-ramfs.txt", "9.5 or newer"),
    ("memory-filesystems-2018/pg_test_fsync-tmpfs.txt", "9.5 or newer"),
    ("wal-blocksize-2012/pg_test_fsync-9.1.txt", "9.1"),
];

#[test]
fn every_number_of_the_published_outputs_is_read() {
    for (name, version) in PUBLISHED {
        let text = published(name);
        let output = one(&text);
        assert_eq!(output.version.as_deref(), Some(version), "{name}");
        assert_eq!(output.rows.len(), 19, "{name}");
        assert!(output.unread.is_empty() && output.notes.is_empty(), "{name} {:?} {:?}", output.unread, output.notes);
        assert_eq!(output.facts, [("direct I/O".to_owned(), "O_DIRECT".to_owned())]);
        assert_complete(name, &text, std::slice::from_ref(&output));
    }
}

#[test]
fn labels_and_figures_of_published_output_belong_to_their_rows() {
    let old = one(&published("wal-blocksize-2012/pg_test_fsync-9.1.txt"));
    assert_eq!(figures(&old.rows[0]), [("operations_per_test", "count", 2000.0)]);
    let fdatasync = row(&old, "two writes", "fdatasync", "");
    assert_eq!((figures(fdatasync), label(fdatasync, "write_bytes")), (vec![("rate", "ops/s", 2957.193)], "8192"));
    let sizes = row(&old, "open_sync sizes", "open_sync", "16");
    assert_eq!((figures(sizes), label(sizes, "write_bytes")), (vec![("rate", "ops/s", 66.495)], "1024"));
    assert_eq!(old.lines, (1, 38));

    let zfs = one(&published("freebsd10-zfs-fsync-2014/pg_test_fsync-zfs-sync-standard.txt"));
    assert_eq!(figures(&zfs.rows[0]), [("seconds_per_test", "s", 5.0)]);
    let fsync = row(&zfs, "one write", "fsync", "");
    assert_eq!(figures(fsync), [("rate", "ops/s", 6676.001), ("latency_mean", "us", 150.0)]);
    assert_eq!(fsync.figures[0].text, "6676.001");
    assert!(row(&zfs, "one write", "fdatasync", "").absent.as_ref().unwrap().contains("not built in"));
    assert_eq!(figures(row(&zfs, "descriptor", "write, close, fsync", ""))[0].2, 5552.278);
    assert_eq!(figures(row(&zfs, "not synced", "write", ""))[1].2, 15.0);

    let tmpfs = one(&published("memory-filesystems-2018/pg_test_fsync-tmpfs.txt"));
    assert!(row(&tmpfs, "two writes", "open_sync", "").absent.as_ref().unwrap().contains("direct I/O"));
    assert!(row(&tmpfs, "open_sync sizes", "open_sync", "8").absent.is_some());
}

#[test]
fn outputs_of_this_machine_are_read_whole() {
    for (name, version) in [("15-en", "11 or newer"), ("15-en-tmpfs", "11 or newer"), ("18", "17 or newer")] {
        let text = fixture(&format!("pg_test_fsync/{name}.txt"));
        let output = one(&text);
        assert!(output.unread.is_empty() && output.notes.is_empty(), "{name} {:?} {:?}", output.unread, output.notes);
        assert_eq!((output.rows.len(), output.version.as_deref()), (19, Some(version)), "{name}");
        for (test, method, writes, bytes) in [
            ("one write", "fdatasync", "", "8192"),
            ("two writes", "fdatasync", "", "8192"),
            ("open_sync sizes", "open_sync", "1", "16384"),
            ("open_sync sizes", "open_sync", "16", "1024"),
            ("descriptor", "write, close, fsync", "", "8192"),
            ("not synced", "write", "", "8192"),
        ] {
            assert_eq!(label(row(&output, test, method, writes), "write_bytes"), bytes, "{name} {test}");
        }
        assert_complete(name, &text, std::slice::from_ref(&output));
    }
}

#[test]
fn the_command_of_an_output_is_known() {
    let text = published(PUBLISHED[5].0);
    let output = one(&format!("$ ls -l\nroot@db1:~# pg_test_fsync -f /mnt/a/x\n{text}"));
    assert!(
        output.facts.contains(&("command".to_owned(), "pg_test_fsync -f /mnt/a/x".to_owned())),
        "{:?}",
        output.facts
    );
}

#[test]
fn several_outputs_with_prose_between_are_told_apart() {
    let (first, second) = (published(PUBLISHED[0].0), published(PUBLISHED[5].0));
    let headless = first.lines().skip(2).collect::<Vec<_>>().join("\n");
    let text = format!(
        "Before, 12 disks:\n{first}\nand after 7 hours\n\n{second}\n again:\n{headless}\n 5 seconds per test is short"
    );
    let outputs = read(&web::lines(&text));
    assert_eq!(outputs.iter().map(|output| output.rows.len()).collect::<Vec<_>>(), [19, 19, 18]);
    assert_eq!(outputs[0].lines, (2, 34));
    assert_eq!(label(&outputs[2].rows[0], "test"), "one write");
    assert_eq!(outputs[2].notes, Vec::<String>::new());
    let prose = web::lines("5 seconds per test\nfsync took 7 ms and/or fdatasync 8\n");
    assert!(read(&prose).is_empty());
}

const ONE: &str = "Compare file sync methods using one 8kB write:\n(in wal_sync_method preference order, except fdatasync\nis Linux's default)\n";
const TWO: &str = "Compare file sync methods using two 8kB writes:\n";

/// Test and method of each row read, and the lines not read.
fn read_rows(text: &str) -> (Vec<(String, String)>, Vec<u32>) {
    let outputs = read(&web::lines(text));
    let rows = outputs.iter().flat_map(|output| &output.rows).filter(|row| !row.labels.is_empty());
    let rows = rows.map(|row| (label(row, "test").to_owned(), label(row, "method").to_owned())).collect();
    (rows, outputs.iter().flat_map(|output| &output.unread).map(|unread| unread.line).collect())
}

#[test]
fn a_row_without_a_heading_or_duplicated_is_not_read() {
    let row = " fsync 100.000 ops/sec\n";
    let one = |method: &str| ("one write".to_owned(), method.to_owned());
    let two = |method: &str| ("two writes".to_owned(), method.to_owned());
    let other = " open_sync 50.000 ops/sec\n";
    for (text, rows, unread) in [
        (
            format!("{ONE}{other}{row}{TWO}{other}{row}"),
            vec![one("open_sync"), one("fsync"), two("open_sync"), two("fsync")],
            vec![],
        ),
        (format!("{ONE}{other}{row}{other}{row}"), vec![one("open_sync"), one("fsync")], vec![6, 7]),
        (format!("{ONE}{row}Compare file sync methods using two\n8kB writes:\n{other}"), vec![one("fsync")], vec![7]),
        (format!("{ONE}{row}and with two writes:\n{other}"), vec![one("fsync")], vec![6]),
        (
            format!("5 seconds per test\n{row} write 9.000 ops/sec\n"),
            vec![("not synced".into(), "write".into())],
            vec![2],
        ),
    ] {
        assert_eq!(read_rows(&text), (rows, unread), "{text}");
    }
}

#[test]
fn an_incomplete_row_is_skipped_and_its_line_reported() {
    for bad in [
        "fsync 3777",
        "fsync 3777.334 ops/s",
        "fsync 3777.33 ops/sec",
        "fsync 3777.334 ops/sec 265 usecs/",
        "fsync 3777.334 ops/sec 265",
        "fsync 3777.334 ops/sec 264 usecs/op <- 3",
        "kB open_sync write 5.000 ops/sec",
        "close, fsync 5.000 ops/sec",
        "fdatasync^C 5.000 ops/sec",
        "fsync 120.000 MB/s 5",
        "fsync 100.000 ops/sec 9 usecs/op",
        "fsync 1,234 ops/sec",
        "fsync 1,234.567 ops/sec 810 usecs/op",
        "fsync 1,234 ops/sec 810 usecs/op",
        "2 * 4kB open_sync writes 5.000 ops/sec",
        "write, fsync, close 5.000 ops/sec 3 ops/sec",
    ] {
        let text = format!("5 seconds per test\n{ONE} open_sync 100.000 ops/sec\n{bad}\nwrite 9.000 ops/sec\n");
        let (rows, unread) = read_rows(&text);
        assert_eq!((rows.len(), unread), (2, vec![6]), "{bad}");
    }
    let output = one(&format!("5 seconds per test\n{ONE} fsync 3777,334 ops/sec 265 usecs/op\n"));
    assert_eq!(figures(&output.rows[1]), [("rate", "ops/s", 3777.334), ("latency_mean", "us", 265.0)]);
    let failed =
        one(&format!("5 seconds per test\n{ONE}fsync 100.000 ops/sec 10000 usecs/op\nwrite failed: Invalid\n"));
    assert!(failed.notes.iter().any(|note| note.contains("ended early")));
    assert!(read(&web::lines("5 Sekunden pro Test\nfdatasync 100,000 Op./s 10000 µs/Op.\n")).is_empty(), "German");
}

#[test]
fn rows_of_two_versions_tell_none() {
    let text = format!("5 seconds per test\n{ONE}fdatasync 100.000 ops/sec 10000 usecs/op\nfsync 100.000 ops/sec\n");
    assert_eq!(one(&text).version, None);
    let text = format!("{ONE}fdatasync 100.000 ops/sec\nfsync 100.000 ops/sec\n");
    assert_eq!(one(&text).version.as_deref(), Some("9.2"));
}

/// Output formats of the versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    V91,
    V92,
    V93,
    V95,
    V11,
    V17,
}

/// Prints rates of the seventeen rows and of the writethrough ones; `None` becomes `n/a`, or `n/a*` for methods that
/// open.
fn print(form: Form, comma: bool, kilobytes: u32, rates: &[Option<f64>]) -> String {
    let mut rates = rates.iter().copied().cycle();
    let mut row = |name: &str| {
        let Some(rate) = rates.next().flatten() else {
            let absent = if name.contains("open") && form >= Form::V92 { "n/a*" } else { "n/a" };
            return format!("        {name:<32}{absent:>20}\n");
        };
        let number = format!("{rate:13.3}");
        let number = if comma { number.replace('.', ",") } else { number };
        match form {
            Form::V91 | Form::V92 => format!("        {name:<32}{number} ops/sec\n"),
            _ => format!("        {name:<32}{number} ops/sec  {:6.0} usecs/op\n", 1e6 / rate),
        }
    };
    let mut text = match form {
        Form::V91 => "2000 operations per test\n".to_owned(),
        _ => "5 seconds per test\n".to_owned(),
    };
    text += "O_DIRECT supported on this platform for open_datasync and open_sync.\n";
    for writes in ["one", "two"] {
        text += &format!(
            "\nCompare file sync methods using {writes} {kilobytes}kB write{}:\n",
            if writes == "two" { "s" } else { "" }
        );
        text += match form {
            Form::V91 | Form::V92 | Form::V93 => {
                "(in wal_sync_method preference order, except fdatasync\nis Linux's default)\n"
            }
            Form::V17 => "(in \"wal_sync_method\" preference order, except fdatasync is Linux's default)\n",
            _ => "(in wal_sync_method preference order, except fdatasync is Linux's default)\n",
        };
        for method in super::METHODS {
            text += &row(method);
        }
    }
    text += "\nCompare open_sync with different write sizes:\n";
    text += "(This is designed to compare the cost of writing 16kB in different write\nopen_sync sizes.)\n";
    for (writes, kilobytes) in [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)] {
        let plural = if writes == 1 { "" } else { "s" };
        text += &match form {
            Form::V91 => row(&format!("{kilobytes:2}kB open_sync write{plural}")),
            _ => row(&format!("{writes:2} * {kilobytes:2}kB open_sync write{plural}")),
        };
    }
    text += "\nTest if fsync on non-write file descriptor is honored:\n";
    text += "(If the times are similar, fsync() can sync data written on a different\ndescriptor.)\n";
    text += &row("write, fsync, close");
    text += &row("write, close, fsync");
    let sync = if form < Form::V95 { "Sync" } else { "sync" };
    text += &format!("\nNon-{sync}'ed {kilobytes}kB writes:\n");
    text + &row("write")
}

impl PartialOrd for Form {
    fn partial_cmp(&self, other: &Form) -> Option<std::cmp::Ordering> {
        (*self as u8).partial_cmp(&(*other as u8))
    }
}

fn any_output() -> impl Strategy<Value = (Form, bool, u32, Vec<Option<f64>>)> {
    let form = prop::sample::select(vec![Form::V91, Form::V92, Form::V93, Form::V95, Form::V11, Form::V17]);
    let rate = prop_oneof![8 => (0.4f64..3e6).prop_map(Some), 1 => Just(None)];
    let comma = any::<bool>();
    (form, comma, prop::sample::select(vec![1u32, 4, 8, 16, 64]), prop::collection::vec(rate, 18))
}

proptest! {
    #[test]
    fn what_any_version_prints_reads_back_whole((form, comma, kilobytes, rates) in any_output()) {
        // Without a time beside it, a comma before three digits may be a thousands separator.
        let comma = comma && form >= Form::V93;
        let output = one(&print(form, comma, kilobytes, &rates));
        prop_assert_eq!((output.rows.len(), output.unread.len()), (19, 0));
        let mut rates = rates.iter().cycle();
        for row in &output.rows[1..] {
            match rates.next().and_then(|rate| *rate) {
                Some(rate) => prop_assert_eq!(&row.figures[0].text.replace(',', "."), &format!("{rate:.3}")),
                None => prop_assert!(row.absent.is_some()),
            }
        }
    }
}
