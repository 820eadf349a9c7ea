//! Real outputs of every version and language at hand, and made ones.

use super::{looks_like, read};
use crate::foreign::clean as web;
use crate::foreign::read::output::{Output, Row};
use crate::foreign::read::table::checks::{numbers, numbers_not_read};
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
    row.figures.iter().map(|figure| (figure.name.as_str(), figure.unit, figure.value)).collect()
}

/// Every number is read but the sizes and counts of the rows' names and headings, which are labels.
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
        assert!(looks_like(&web::lines(&text)), "{name}");
        let output = one(&text);
        assert_eq!(output.version.as_deref(), Some(version), "{name}");
        assert_eq!(output.rows.len(), 19, "{name}");
        assert!(output.unread.is_empty() && output.notes.is_empty(), "{name} {:?} {:?}", output.unread, output.notes);
        assert_eq!(output.facts, [("direct I/O".to_owned(), "O_DIRECT".to_owned())]);
        assert_complete(name, &text, std::slice::from_ref(&output));
    }
}

#[test]
fn labels_and_figures_of_a_published_output_are_those_of_its_rows() {
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
fn every_language_reads_like_english() {
    for name in
        ["de", "el", "en", "es", "fr", "it", "ja", "ka", "ko", "pt_BR", "ru", "sv", "uk", "fr-tmpfs", "sv-tmpfs"]
    {
        let text = fixture(&format!("pg_test_fsync/15-{name}.txt"));
        assert!(looks_like(&web::lines(&text)), "{name}");
        let output = one(&text);
        assert_eq!(output.rows.len(), 19, "{name} {output:#?}");
        assert!(output.unread.is_empty() && output.notes.is_empty(), "{name} {:?} {:?}", output.unread, output.notes);
        assert_eq!(output.version.as_deref(), Some("11 or newer"), "{name}");
        for (test, method, writes, bytes) in [
            ("one write", "fdatasync", "", "8192"),
            ("two writes", "fdatasync", "", "8192"),
            ("open_sync sizes", "open_sync", "1", "16384"),
            ("open_sync sizes", "open_sync", "2", "8192"),
            ("open_sync sizes", "open_sync", "16", "1024"),
            ("descriptor", "write, fsync, close", "", "8192"),
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
    let headless = first.lines().skip(3).collect::<Vec<_>>().join("\n");
    let text = format!(
        "Before, 12 disks:\n{first}\nand after 7 hours\n\n{second}\n again:\n{headless}\n 5 seconds per test is short"
    );
    let outputs = read(&web::lines(&text));
    assert_eq!(outputs.iter().map(|output| output.rows.len()).collect::<Vec<_>>(), [19, 19, 18]);
    assert_eq!(outputs[0].lines, (2, 34));
    assert_eq!(label(&outputs[2].rows[0], "test"), "one write");
    assert_eq!(outputs[2].notes, Vec::<String>::new());
    let prose = web::lines("5 seconds per test\nfsync took 7 ms and/or fdatasync 8\n");
    assert!(read(&prose).is_empty() && !looks_like(&prose));
}

#[test]
fn a_broken_unit_commas_and_a_lost_head_are_no_hindrance() {
    let output = one("fdatasync 3777,334 ops/sec 265 usecs/\nop\nfsync 100,000 ops/sec 10000 usecs/op\n");
    assert_eq!(figures(&output.rows[0]), [("rate", "ops/s", 3777.334), ("latency_mean", "us", 265.0)]);
    assert_eq!((output.rows.len(), label(&output.rows[0], "test")), (2, "one write or two"));
    assert_eq!(output.notes.len(), 2, "{:?}", output.notes);
    assert_eq!(output.lines, (1, 3));
}

#[test]
fn a_time_that_does_not_fit_its_rate_and_a_line_without_a_figure_are_told() {
    let output = one(
        "5 seconds per test\nfsync 100.000 ops/sec 9 usecs/op\nopen_sync 12 of 13\n write 5.000 ops/sec 200000 usecs/op\n",
    );
    assert!(output.notes.iter().any(|note| note.starts_with("line 2: 100")), "{:?}", output.notes);
    assert_eq!(output.unread.len(), 1);
    assert_eq!((output.unread[0].line, output.unread[0].text.as_str()), (3, "open_sync 12 of 13"));
    let failed = one("5 seconds per test\nfsync 100.000 ops/sec 10000 usecs/op\nwrite failed: Invalid argument\n");
    assert!(failed.notes.iter().any(|note| note.contains("ended early")));
}

/// Test, method and rate of each row.
fn named(text: &str) -> Vec<(String, String, f64)> {
    let outputs = read(&web::lines(text));
    let rows = outputs.iter().flat_map(|output| &output.rows).filter(|row| !row.labels.is_empty());
    let rate = |row: &Row| row.figures.first().map_or(-1.0, |figure| figure.value);
    rows.map(|row| (label(row, "test").to_owned(), label(row, "method").to_owned(), rate(row))).collect()
}

fn assert_named(text: &str, wanted: &[(&str, &str, f64)]) {
    let found = named(text);
    let found: Vec<(&str, &str, f64)> = found.iter().map(|(test, method, rate)| (&**test, &**method, *rate)).collect();
    assert_eq!(found, wanted, "{text}");
}

const ONE: &str = "Compare file sync methods using one 8kB write:\n(in wal_sync_method preference order)\n";
const TWO: &str = "Compare file sync methods using two 8kB writes:\n(in wal_sync_method preference order)\n";
const UNTOLD: &str = "one write or two";

#[test]
fn a_row_has_the_test_of_its_heading_whatever_the_order() {
    let rows =
        |rates: [u32; 2]| format!(" open_datasync {}.000 ops/sec\n fsync {}.000 ops/sec\n\n", rates[0], rates[1]);
    let (one, two) = (format!("{ONE}{}", rows([5, 6])), format!("{TWO}{}", rows([7, 8])));
    let of_one = [("one write", "open_datasync", 5.0), ("one write", "fsync", 6.0)];
    let of_two = [("two writes", "open_datasync", 7.0), ("two writes", "fsync", 8.0)];
    let write = " write 9.000 ops/sec\n";
    let not_synced = ("not synced", "write", 9.0);
    let all = |tables: &[&[(&'static str, &'static str, f64)]]| tables.concat();
    assert_named(&format!("{two}{one}"), &all(&[&of_two, &of_one]));
    assert_named(&format!("5 seconds per test\n{two}"), &of_two);
    assert_named(&format!("{write}{two}{one}"), &all(&[&[not_synced], &of_two, &of_one]));
    // The rows of a heading were left out.
    assert_named(&format!("{ONE}{two}"), &of_two);
    assert_named(&format!("5 seconds per test\n{ONE}\n{TWO}\n{one}"), &of_one);
}

#[test]
fn sorted_rows_keep_their_heading_and_rows_without_one_are_of_neither() {
    assert_named(
        &format!("5 seconds per test\n{ONE} fsync 9.000 ops/sec\n fdatasync 8.000 ops/sec\n open_sync 7.000 ops/sec\n"),
        &[("one write", "fsync", 9.0), ("one write", "fdatasync", 8.0), ("one write", "open_sync", 7.0)],
    );
    // A second table without its heading, by a row that was there or by a gap.
    for second in ["fsync 5.000 ops/sec", "\nfdatasync 5.000 ops/sec"] {
        let found = named(&format!("{ONE}fsync 9.000 ops/sec\n{second}\n"));
        assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("one write", UNTOLD), "{second}");
    }
    assert_named(
        &format!("{TWO}fsync 9.000 ops/sec\nand with one write:\nopen_sync 20.000 ops/sec\n"),
        &[("two writes", "fsync", 9.0), (UNTOLD, "open_sync", 20.0)],
    );
    // Every run's line of one method.
    assert!(named(&"fdatasync 80.000 ops/sec\n".repeat(4)).iter().all(|row| row.0 == UNTOLD));
    // A single table in a language that is not known.
    let foreign = "5 seconds per test\nYi bi 8kB:\n(wal_sync_method de)\nfsync 9.000 ops/sec\n";
    assert_eq!(named(foreign)[0].0, UNTOLD);
    assert!(one(foreign).notes.iter().any(|note| note.contains("cannot be told")));
}

#[test]
fn what_is_left_of_a_name_is_no_other_name() {
    for line in ["kB open_sync write", "close, fsync", "fsync, close", "Ko, écriture avec open_sync"] {
        let output =
            one(&format!("5 seconds per test\nfsync 9.000 ops/sec\n{line} 5.000 ops/sec\nopen_sync 7.000 ops/sec\n"));
        assert_eq!((output.rows.len(), output.unread.len(), output.unread[0].line), (3, 1, 3), "{line}");
    }
}

#[test]
fn a_size_in_prose_is_not_the_size_of_the_writes() {
    let output = one("The array has 64 kB stripes:\nfsync 9.000 ops/sec\nopen_sync 7.000 ops/sec\n");
    assert_eq!(label(&output.rows[0], "write_bytes"), "");
    let text = format!(
        "{ONE}fsync 9.000 ops/sec\n\nNon-sync'ed 16kB writes:\nwrite 99.000 ops/sec\nwrite, fsync, close 7.000 ops/sec\n"
    );
    let outputs = read(&web::lines(&text));
    let sizes: Vec<&str> =
        outputs.iter().flat_map(|output| &output.rows).map(|row| label(row, "write_bytes")).collect();
    assert_eq!(sizes, ["8192", "16384", ""]);
}

#[test]
fn a_comma_is_what_fits_the_time_of_the_row() {
    for (row, rate, us) in [
        ("1,234 ops/sec 810 usecs/op", 1234.0, 810.0),
        ("1,234 ops/sec 810373 usecs/op", 1.234, 810_373.0),
        ("1,234 ops/sec 810,373 usecs/op", 1.234, 810_373.0),
        ("1.234 ops/sec 810 usecs/op", 1234.0, 810.0),
        ("810.373 ops/sec 1,234 usecs/op", 810.373, 1234.0),
        ("1,234.567 ops/sec 810 usecs/op", 1234.567, 810.0),
    ] {
        let output = one(&format!("5 seconds per test\nfsync {row}\n"));
        assert_eq!(figures(&output.rows[1]), [("rate", "ops/s", rate), ("latency_mean", "us", us)], "{row}");
        assert!(!output.notes.iter().any(|note| note.contains("a second take")), "{:?}", output.notes);
    }
    for row in ["1,234 ops/sec 999 usecs/op", "1.234 ops/sec 9,999 usecs/op"] {
        let text = format!("5 seconds per test\nopen_sync 100.000 ops/sec\nfsync {row}\nwrite 9.000 ops/sec\n");
        let output = one(&text);
        assert_eq!((output.rows.len(), output.unread.len(), output.unread[0].line), (3, 1, 3), "{row}");
    }
}

#[test]
fn figures_of_other_units_are_no_rates_and_no_times() {
    for row in ["120 MB/s", "808 usecs/op", "7 ms/op", "100 read/write", "5 ops/min", "108 µs/Op."] {
        let text = format!("5 seconds per test\nopen_sync 100.000 ops/sec\nfsync {row}\nwrite 9.000 ops/sec\n");
        let output = one(&text);
        assert_eq!((output.rows.len(), output.unread.len(), output.unread[0].line), (3, 1, 3), "{row}");
    }
    for second in ["10 ms/op", "90.000 ops/sec"] {
        let output = one(&format!("5 seconds per test\nopen_sync 100.000 ops/sec {second}\nwrite 9.000 ops/sec\n"));
        assert_eq!((figures(&output.rows[1]).len(), output.unread[0].line), (1, 2));
    }
}

#[test]
fn rows_of_two_versions_in_one_output_are_noted() {
    let output =
        one(&format!("5 seconds per test\n{ONE}fdatasync 100.000 ops/sec 10000 usecs/op\nfsync 100.000 ops/sec\n"));
    assert!(
        output.notes.iter().any(|note| note.starts_with("lines 4 and 5 are of two versions")),
        "{:?}",
        output.notes
    );
    assert_eq!(output.version, None);
    let old = one("2000 operations per test\nfdatasync 100.000 ops/sec 10000 usecs/op\n");
    assert!(old.notes.iter().any(|note| note.starts_with("lines 2 and 1 are of two versions")), "{:?}", old.notes);
}

#[test]
fn a_table_that_stands_twice_is_of_two_outputs() {
    let sizes = " 1 * 16kB open_sync write 5.000 ops/sec\n 2 * 8kB open_sync writes 4.000 ops/sec\n";
    for table in [sizes, "write 5.000 ops/sec\n", "write, fsync, close 5.000 ops/sec\n"] {
        assert_eq!(read(&web::lines(&table.repeat(2))).len(), 2, "{table}");
    }
}

/// The forms in which versions print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    V91,
    V92,
    V93,
    V95,
    V11,
    V17,
}

/// Rates of the seventeen rows and of the writethrough ones; none is `n/a`, or `n/a*` for methods that open.
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
        text += &format!("\nCompare file sync methods using {writes} {kilobytes}kB write:\n");
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
    (form, any::<bool>(), prop::sample::select(vec![1u32, 4, 8, 16, 64]), prop::collection::vec(rate, 18))
}

proptest! {
    #[test]
    fn what_any_version_prints_reads_back_whole((form, comma, kilobytes, rates) in any_output()) {
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

    #[test]
    fn no_text_makes_it_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "fsync", "open_sync", "write", "write,", "close,", "1", "16kB", "*", "2*", "n/a*", "ops/sec", "usecs/", "op",
            "5", "per", "test", "\n", "на", "тест", "ej", "8", "Ko", "O_DIRECT", "18446744073709551615kB", "é/é", "|",
        ]), 0..60),
    ) {
        let text = words.join(" ");
        let there = numbers(&text);
        for output in read(&web::lines(&text)) {
            prop_assert!(output.rows.iter().flat_map(|row| &row.figures).all(|figure| there.contains(&figure.text)));
        }
    }
}
