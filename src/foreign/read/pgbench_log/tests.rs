//! Real logs of versions 15 and 18, made ones of every column layout, in pieces.

use super::{End, Kind, Optional, Reader, kind, looks_like, read};
use crate::foreign::clean as web;
use crate::foreign::read::table::checks::numbers_not_read;
use crate::parse::pgbench_log::{self, Columns, Ended, Transaction};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/pgbench/{name}.log", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn through(mut reader: Reader, bytes: &[u8], piece: usize) -> (Vec<Transaction>, End) {
    let mut all = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.push(piece, |transaction| all.push(transaction));
    }
    let end = reader.finish(|transaction| all.push(transaction));
    (all, end)
}

#[test]
fn logs_of_both_versions_at_hand_read_as_the_strict_reader_reads_them() {
    for version in ["15", "18"] {
        for name in ["failures", "rate-limit", "scripts", "statements", "unmeasured"] {
            let text = fixture(&format!("{version}-{name}"));
            let lag = name == "rate-limit";
            let mut strict = Vec::new();
            pgbench_log::parse(text.as_bytes(), Columns { lag, retries: false }, &mut strict).unwrap();
            for piece in [7, 100, usize::MAX] {
                let (all, end) = through(Reader::new(), text.as_bytes(), piece);
                assert_eq!(all, strict, "{version} {name}");
                let optional = if lag { Optional::Lag } else { Optional::None };
                assert_eq!((end.kind, end.lines_unread), (Some(Kind::Transactions(optional)), 0));
                assert_eq!(end.lines, all.len() as u64);
            }
            let outputs = read(&web::lines(&text));
            assert_eq!((outputs.len(), outputs[0].rows.len()), (1, strict.len()));
            assert_eq!(numbers_not_read(&text, &outputs), Vec::<String>::new());
        }
    }
}

#[test]
fn the_seventh_column_is_decided_by_what_it_can_be() {
    let told = |time: &str, value: u64, lines: usize| {
        let text = format!("0 1 {time} 0 1795229731 831364 {value}\n").repeat(lines);
        kind(text.as_bytes()).unwrap()
    };
    assert_eq!(told("skipped", 0, 1), Kind::Transactions(Optional::Lag));
    assert_eq!(told("5000", 4000, 1), Kind::Transactions(Optional::Lag));
    assert_eq!(told("5000", 0, 1), Kind::Transactions(Optional::Untold));
    assert_eq!(told("5000", 1, 200), Kind::Transactions(Optional::Retries));
    assert_eq!(told("5000", 300, 200), Kind::Transactions(Optional::Untold));
    assert_eq!(kind(b"0 1 5000 0 1795229731 831364 12 3\n"), Some(Kind::Transactions(Optional::LagAndRetries)));
    assert_eq!(kind(b"0 1 5000 0 0 0\n"), Some(Kind::Transactions(Optional::None)));
    assert_eq!(kind(b"1795229731 2 300 50000 100 200\n"), Some(Kind::Intervals));
    assert_eq!(kind(b" 1  0      0 123456  7890  1234\n"), None);
    let (all, end) = through(Reader::new(), b"0 1 5000 0 1795229731 831364 2\n", 9);
    assert_eq!((all[0].lag_us, all[0].retries, end.kind), (None, None, Some(Kind::Transactions(Optional::Untold))));
    let (all, _) = through(Reader::new(), "0 1 5000 0 1795229731 831364 2\n".repeat(200).as_bytes(), 9);
    assert_eq!((all[0].lag_us, all[0].retries), (None, Some(2)));
    let page = "0 1 5000 0 1795229731 831364 2\n0 2 5000 0 1795229731 831364 0\n".repeat(100);
    let rows = &read(&web::lines(&page))[0].rows;
    assert!(rows.iter().all(|row| row.figures.last().unwrap().name == "retries"), "no retry is a figure too");
}

#[test]
fn a_row_of_noughts_is_no_transaction() {
    assert!(!looks_like(&web::lines("     0     0     0     0    0   0 \n0 0 34 0 0 0\n")));
    assert!(looks_like(&web::lines("0 1 1543 0 0 0\n")));
}

#[test]
fn a_line_that_cannot_be_read_is_named_and_the_others_are_read() {
    let text =
        "0 1 5 0 1795229731 1\r\nhello\r\n\r\n0\t2  6 0 1795229731 2\r\n0 3 7 0 1795229731 1000000\r\n0 4 8 0 17952";
    let (all, end) = through(Reader::new(), text.as_bytes(), 5);
    assert_eq!(all.iter().map(|one| one.ended).collect::<Vec<_>>(), [Ended::Done(5), Ended::Done(6)]);
    assert_eq!((end.lines, end.lines_unread), (6, 3));
    let named: Vec<(u32, &str)> = end.unread.iter().map(|unread| (unread.line, unread.text.as_str())).collect();
    assert_eq!(named, [(2, "hello"), (5, "0 3 7 0 1795229731 1000000"), (6, "0 4 8 0 17952")]);
    assert!(end.unread[1].wanted.contains("time_us") && end.unread[2].wanted.contains("cut off"));
}

#[test]
fn a_file_without_line_feeds_is_not_held_in_memory() {
    let mut reader = Reader::new();
    for _ in 0..100 {
        reader.push(&[b'7'; 10_000], |_| {});
        assert!(reader.held.capacity() < 600_000);
    }
    reader.push(b"\n0 1 5 0 1795229731 1\n", |_| {});
    let end = reader.finish(|_| {});
    assert_eq!((end.lines, end.lines_unread, end.unread[0].text.len()), (2, 1, 200));
}

#[test]
fn aggregated_logs_of_every_version_read() {
    let six = "1345828501 5601 1542744 483552416 61 2573";
    let columns = [
        ("", 6),
        (" 5611 5711 1 9", 10),
        (" 5611 5711 1 9 3", 11),
        (" 0 0 0 0 0 4 5 6 7", 15),
        (" 0 0 0 0 0 4 5 6 7 8", 16),
    ];
    for (behind, count) in columns {
        let text = format!("{six}{behind}\n1345828503 0 0 0 0 0{}\n", " 0".repeat(count - 6));
        let outputs = read(&web::lines(&text));
        assert!(looks_like(&web::lines(&text)));
        assert_eq!((outputs[0].tool, outputs[0].rows.len()), ("pgbench --aggregate-interval", 2));
        let first = &outputs[0].rows[0];
        let figure = |name: &str| first.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        assert_eq!(first.labels, [("start_s", "1345828501".to_owned())]);
        assert_eq!((figure("transactions"), figure("latency_max")), (Some(5601.0), Some(2573.0)));
        let wanted = |value: f64, counts: &[usize]| counts.contains(&count).then_some(value);
        // 0 in every interval of version 15: the option was not given.
        assert_eq!((figure("lag_max"), figure("skipped")), (wanted(9.0, &[10, 11]), wanted(3.0, &[11])));
        assert_eq!(figure("retries"), wanted(5.0, &[15, 16]));
        assert_eq!(
            (figure("deadlock_failures"), figure("other_failures")),
            (wanted(7.0, &[15, 16]), wanted(8.0, &[16]))
        );
        let zeros = if count > 11 { 2 * 5 } else { 0 };
        assert_eq!(numbers_not_read(&text, &outputs), vec!["0"; zeros]);
        let (none, end) = through(Reader::new(), text.as_bytes(), 9);
        assert_eq!((none.len(), end.kind, end.lines), (0, Some(Kind::Intervals), 2));
    }
    // No version has seven columns, and a least value above the greatest is of nothing.
    assert!(!looks_like(&web::lines(&format!("{six} 1\n1345828503 2 300 50000 9 7\nx\n"))));
}

#[test]
fn zeros_of_options_that_were_not_given_are_absent() {
    let line = |start: u64, behind: &str| format!("{start} 5601 1542744 483552416 61 2573 {behind}\n");
    let names = |text: &str| {
        let outputs = read(&web::lines(text));
        let names = |row: &crate::foreign::read::output::Row| {
            row.figures.iter().map(|it| it.name.clone()).skip(5).collect::<Vec<_>>()
        };
        (outputs[0].rows.iter().map(names).collect::<Vec<_>>(), outputs[0].notes.clone())
    };
    let plain = line(1_345_828_501, "0 0 0 0 0 0 0 0 0").repeat(2);
    let (left, notes) = names(&plain);
    assert_eq!(left, [Vec::<String>::new(), Vec::new()]);
    let wanted = "left out, since they are 0 in every interval, as without the option: lag (--rate), skipped \
                  (--latency-limit), retries (--max-tries), failures (--failures-detailed)";
    assert_eq!(notes, [wanted]);
    // One interval that is late tells that the option was given, so the zeros of the other are measured.
    let late = line(1_345_828_501, "0 0 0 0 0 0 0 0 0") + &line(1_345_828_502, "5611 5711 1 9 0 0 0 0 2");
    let (left, notes) = names(&late);
    let kept = ["lag_sum", "lag_sum_of_squares", "lag_min", "lag_max", "serialization_failures", "deadlock_failures"];
    assert_eq!(left, [kept, kept]);
    assert!(notes[0].ends_with(": skipped (--latency-limit), retries (--max-tries)"), "{notes:?}");
    // Before version 15 a column is there by its option.
    let (left, notes) = names(&line(1_345_828_501, "0 0 0 0 0").repeat(2));
    assert_eq!((left[0].len(), notes.len()), (5, 0));
}

/// Lines of a log with one layout of columns.
fn any_log() -> impl Strategy<Value = String> {
    let ended = prop::sample::select(vec!["", "", "", "", "skipped", "failed", "serialization", "deadlock", "other"]);
    let line = (ended, 0u32..9_000_000, any::<u8>(), 1_000_000_000u64..2_000_000_000, 0u32..1_000_000, any::<u16>());
    (0usize..3, prop::collection::vec(line, 1..60)).prop_map(|(optional, lines)| {
        let line = |(ended, time, script, at, us, more): (&str, u32, u8, u64, u32, u16)| {
            let time = if ended.is_empty() { time.to_string() } else { ended.to_owned() };
            format!(
                "{script} {more} {time} {script} {at} {us}{}\n",
                [String::new(), format!(" {more}"), format!(" {more} 2")][optional]
            )
        };
        lines.into_iter().map(line).collect()
    })
}

proptest! {
    #[test]
    fn every_log_reads_the_same_in_pieces_of_any_size(text in any_log(), piece in 1usize..200) {
        let whole = through(Reader::new(), text.as_bytes(), usize::MAX);
        prop_assert_eq!(whole.0.len(), text.lines().count());
        prop_assert_eq!(through(Reader::new(), text.as_bytes(), piece), whole.clone());
        prop_assert_eq!(through(Reader::new(), text.replace('\n', "\r\n").as_bytes(), piece), whole);
    }

    #[test]
    fn no_bytes_make_it_panic_and_every_line_is_counted(bytes in any::<Vec<u8>>(), text in "[0-9a-z \\n\\r]{0,200}", piece in 1usize..50) {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let (all, end) = through(Reader::new(), bytes, piece);
            prop_assert!(all.len() as u64 + end.lines_unread <= end.lines);
            let feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            prop_assert!(end.lines == feeds || end.lines == feeds + 1);
            prop_assert!(kind(bytes).is_none() || !bytes.is_empty());
        }
        prop_assert!(read(&web::lines(&text)).iter().all(|output| output.lines.0 <= output.lines.1));
    }
}
