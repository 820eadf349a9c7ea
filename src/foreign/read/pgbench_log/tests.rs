//! Real logs of versions 15 and 18, and synthetic ones of every column layout, in pieces.

use super::{LogEnd, Optional, PgbenchLogReader, kind};
use crate::parse::pgbench_log::{self, LogColumns, Transaction, TransactionOutcome};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/pgbench/{name}.log", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn through(mut reader: PgbenchLogReader, bytes: &[u8], piece: usize) -> (Vec<Transaction>, LogEnd) {
    let mut all = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.push(piece, |transaction| all.push(transaction));
    }
    let end = reader.finish(|transaction| all.push(transaction));
    (all, end)
}

#[test]
fn logs_of_15_and_18_read_like_the_strict_reader() {
    for version in ["15", "18"] {
        for name in ["failures", "rate-limit", "scripts", "statements", "unmeasured"] {
            let text = fixture(&format!("{version}-{name}"));
            let lag = name == "rate-limit";
            let mut strict = Vec::new();
            pgbench_log::parse(text.as_bytes(), LogColumns { lag, retries: false }, &mut strict).unwrap();
            for piece in [7, 100, usize::MAX] {
                let (all, end) = through(PgbenchLogReader::new(), text.as_bytes(), piece);
                assert_eq!(all, strict, "{version} {name}");
                let optional = if lag { Optional::Lag } else { Optional::None };
                assert_eq!((end.kind, end.lines_unread), (Some(optional), 0));
                assert_eq!(end.lines, all.len() as u64);
            }
        }
    }
}

#[test]
fn the_seventh_column_is_decided_by_what_it_can_be() {
    let column = |time: &str, value: u64, lines: usize| {
        let text = format!("0 1 {time} 0 1795229731 831364 {value}\n").repeat(lines);
        kind(text.as_bytes()).unwrap()
    };
    assert_eq!(column("skipped", 0, 1), Optional::Lag);
    assert_eq!(column("5000", 4000, 1), Optional::Lag);
    assert_eq!(column("5000", 0, 1), Optional::Untold);
    assert_eq!(column("5000", 1, 200), Optional::Untold);
    assert_eq!(column("5000", 300, 200), Optional::Untold);
    assert_eq!(kind(b"0 1 5000 0 1795229731 831364 12 3\n"), Some(Optional::LagAndRetries));
    assert_eq!(kind(b"0 1 5000 0 0 0\n"), Some(Optional::None));
    assert_eq!(kind(b"1795229731 2 300 50000 100 200\n"), None, "of an interval");
    assert_eq!(kind(b" 1  0      0 123456  7890  1234\n"), None);
    let (all, end) = through(PgbenchLogReader::new(), b"0 1 5000 0 1795229731 831364 2\n", 9);
    assert_eq!((all[0].lag_us, all[0].retries, end.kind), (None, None, Some(Optional::Untold)));
}

#[test]
fn a_row_of_noughts_is_no_transaction() {
    assert_eq!(kind(b"     0     0     0     0    0   0 \n0 0 34 0 0 0\n"), None);
    assert!(kind(b"0 1 1543 0 0 0\n").is_some());
}

#[test]
fn an_unreadable_line_is_named_and_the_others_are_read() {
    let text =
        "0 1 5 0 1795229731 1\r\nhello\r\n\r\n0\t2  6 0 1795229731 2\r\n0 3 7 0 1795229731 1000000\r\n0 4 8 0 17952";
    let (all, end) = through(PgbenchLogReader::new(), text.as_bytes(), 5);
    assert_eq!(
        all.iter().map(|one| one.ended).collect::<Vec<_>>(),
        [TransactionOutcome::Done(5), TransactionOutcome::Done(6)]
    );
    assert_eq!((end.lines, end.lines_unread), (6, 3));
    let named: Vec<(u32, &str)> = end.unread.iter().map(|unread| (unread.line, unread.text.as_str())).collect();
    assert_eq!(named, [(2, "hello"), (5, "0 3 7 0 1795229731 1000000"), (6, "0 4 8 0 17952")]);
    assert!(end.unread[1].wanted.contains("time_us") && end.unread[2].wanted.contains("cut off"));
}

#[test]
fn a_file_without_line_feeds_is_not_held_in_memory() {
    let mut reader = PgbenchLogReader::new();
    for _ in 0..100 {
        reader.push(&[b'7'; 10_000], |_| {});
        assert!(reader.held.capacity() < 600_000);
    }
    reader.push(b"\n0 1 5 0 1795229731 1\n", |_| {});
    let end = reader.finish(|_| {});
    assert_eq!((end.lines, end.lines_unread, end.unread[0].text.len()), (2, 1, 200));
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
        let whole = through(PgbenchLogReader::new(), text.as_bytes(), usize::MAX);
        prop_assert_eq!(whole.0.len(), text.lines().count());
        prop_assert_eq!(through(PgbenchLogReader::new(), text.as_bytes(), piece), whole.clone());
        prop_assert_eq!(through(PgbenchLogReader::new(), text.replace('\n', "\r\n").as_bytes(), piece), whole);
    }

    #[test]
    fn no_bytes_make_it_panic_and_every_line_is_counted(bytes in any::<Vec<u8>>(), text in "[0-9a-z \\n\\r]{0,200}", piece in 1usize..50) {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let (all, end) = through(PgbenchLogReader::new(), bytes, piece);
            prop_assert!(all.len() as u64 + end.lines_unread <= end.lines);
            let feeds = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            prop_assert!(end.lines == feeds || end.lines == feeds + 1);
            prop_assert!(kind(bytes).is_none() || !bytes.is_empty());
        }
    }
}
