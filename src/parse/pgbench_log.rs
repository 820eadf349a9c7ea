//! pgbench's per-transaction log (`pgbench -l`), versions 12 to 18:
//!
//! `client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]`
//!
//! `time` is the latency in microseconds, from the transaction's start, or with `-R` from the moment it was due, to its
//! end; in its place stands `skipped`, or `failed`, `serialization`, `deadlock`, `other` for a transaction that gave
//! none (PostgreSQL manual, pgbench, "Per-Transaction Logging"). Works on bytes: a log can grow by a million lines a
//! second (the parser takes 25 million, 870 MB, on one core of a 2020s server).

use crate::error::{Error, Result};

/// Which optional columns a log has; follows from pgbench's own options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Columns {
    /// `schedule_lag`: with `-R`.
    pub lag: bool,
    /// `retries`: with `--max-tries` other than 1.
    pub retries: bool,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was done; latency in microseconds.
    Done(u64),
    /// It was already later than the limit (`-R` with `-L`) and never begun.
    Skipped,
    /// It failed, and every retry of it too.
    Failed,
}

/// One transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// How it ended.
    pub ended: Ended,
    /// Which script, from 0.
    pub script: u32,
    /// Wall clock at its end, microseconds since 1970.
    pub at_us: u64,
    /// By how much it began later than it was due, microseconds.
    pub lag_us: Option<u64>,
    /// Retries, where the log has them.
    pub retries: u64,
}

/// Reads every whole line of `bytes`, in order, into `into` and returns how many bytes they take; what follows the last
/// line feed is the beginning of a line that has not come yet.
///
/// # Errors
/// With the line, the item and what was wanted. Lines before it have been read.
pub fn parse(bytes: &[u8], columns: Columns, into: &mut Vec<Transaction>) -> Result<usize> {
    let mut at = 0;
    while let Some(length) = line_length(&bytes[at..]) {
        let line = &bytes[at..at + length];
        into.push(transaction(line, columns).map_err(|wanted| bad_line(line, wanted))?);
        at += length + 1;
    }
    Ok(at)
}

/// Bytes before the next line feed. Lines are short: a simple loop beats a call.
fn line_length(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

fn bad_line(line: &[u8], wanted: &'static str) -> Error {
    Error::tool(format!("pgbench's transaction log, line `{}`: wanted {wanted}", String::from_utf8_lossy(line)))
}

/// One line without its line feed. The error says what was wanted.
fn transaction(line: &[u8], columns: Columns) -> std::result::Result<Transaction, &'static str> {
    let mut rest = line;
    number(&mut rest).ok_or("client_id as a whole number")?;
    number(&mut rest).ok_or("transaction_no as a whole number")?;
    let ended = match rest.first() {
        Some(b'0'..=b'9') => number(&mut rest).map(Ended::Done),
        _ => word(&mut rest),
    };
    let ended = ended.ok_or("time in microseconds, or `skipped`, `failed`, `serialization`, `deadlock`, `other`")?;
    let script = number(&mut rest).and_then(|script| u32::try_from(script).ok());
    let script = script.ok_or("script_no as a whole number")?;
    let epoch = number(&mut rest).and_then(|epoch| epoch.checked_mul(1_000_000));
    let epoch_us = epoch.ok_or("time_epoch in seconds")?;
    let us = number(&mut rest).filter(|us| *us < 1_000_000).ok_or("time_us below 1000000")?;
    let lag_us = match columns.lag {
        true => Some(number(&mut rest).ok_or("schedule_lag in microseconds")?),
        false => None,
    };
    let retries = match columns.retries {
        true => number(&mut rest).ok_or("retries as a whole number")?,
        false => 0,
    };
    if !rest.is_empty() {
        return Err("the end of the line");
    }
    Ok(Transaction { ended, script, at_us: epoch_us + us, lag_us, retries })
}

/// Takes a whole number of at most 18 digits and the single space behind it, or the end of the line.
#[inline]
fn number(rest: &mut &[u8]) -> Option<u64> {
    const MOST_DIGITS: usize = 18;
    let mut value = 0u64;
    let mut digits = 0;
    for byte in *rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        digits += 1;
    }
    if digits == 0 || digits > MOST_DIGITS {
        return None;
    }
    *rest = after_space(&rest[digits..])?;
    Some(value)
}

/// Takes the word that stands in place of a latency, and the space behind it.
fn word(rest: &mut &[u8]) -> Option<Ended> {
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let ended = match &rest[..end] {
        b"skipped" => Ended::Skipped,
        b"failed" | b"serialization" | b"deadlock" | b"other" => Ended::Failed,
        _ => return None,
    };
    *rest = after_space(&rest[end..])?;
    Some(ended)
}

/// What follows a single space; a space at the end of the line is one too many.
#[inline]
fn after_space(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [] => Some(rest),
        [b' ', rest @ ..] if !rest.is_empty() => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    const PLAIN: Columns = Columns { lag: false, retries: false };
    const LAG: Columns = Columns { lag: true, retries: false };

    fn read(text: &str, columns: Columns) -> Result<Vec<Transaction>> {
        let mut into = Vec::new();
        assert_eq!(parse(text.as_bytes(), columns, &mut into)?, text.len());
        Ok(into)
    }

    #[test]
    fn lines_of_every_kind_read() {
        let done = read("0 1 2145 0 1795229731 831364\n", PLAIN).unwrap()[0];
        assert_eq!(
            done,
            Transaction { ended: Ended::Done(2145), script: 0, at_us: 1_795_229_731_831_364, lag_us: None, retries: 0 }
        );
        let late = read("0 2 skipped 0 1795229738 945106 0\n1 2 4500 1 1795229738 7 1234\n", LAG).unwrap();
        assert_eq!((late[0].ended, late[0].lag_us), (Ended::Skipped, Some(0)));
        assert_eq!((late[1].at_us, late[1].script, late[1].lag_us), (1_795_229_738_000_007, 1, Some(1234)));
        let retried = read("3 8 serialization 0 1 2 50 4\n", Columns { lag: true, retries: true }).unwrap()[0];
        assert_eq!((retried.ended, retried.retries), (Ended::Failed, 4));
        for word in ["failed", "deadlock", "other"] {
            assert_eq!(read(&format!("0 1 {word} 0 1 2\n"), PLAIN).unwrap()[0].ended, Ended::Failed);
        }
    }

    #[test]
    fn logs_of_both_versions_at_hand_read_for_every_kind_of_run() {
        for (name, columns) in [("statements", PLAIN), ("rate-limit", LAG), ("scripts", PLAIN), ("failures", PLAIN)] {
            for version in ["15", "18"] {
                let path = format!("{}/tests/fixtures/pgbench/{version}-{name}.log", env!("CARGO_MANIFEST_DIR"));
                let read = read(&std::fs::read_to_string(path).unwrap(), columns).unwrap();
                assert!(read.iter().any(|line| matches!(line.ended, Ended::Done(1..))));
                assert_eq!(read.iter().any(|line| line.ended == Ended::Failed), name == "failures");
                assert_eq!(read.iter().any(|line| line.script == 1), name == "scripts");
            }
        }
    }

    #[test]
    fn a_line_that_is_not_whole_is_left_for_later() {
        let mut into = Vec::new();
        assert_eq!(parse(b"0 1 5 0 1 2\n0 2 7 0 1", PLAIN, &mut into).unwrap(), 12);
        assert_eq!(into.len(), 1);
    }

    #[test]
    fn a_bad_line_is_named_with_what_was_wanted() {
        for (line, wanted) in [
            ("x 1 5 0 1 2", "client_id"),
            ("0 1 slow 0 1 2", "`skipped`"),
            ("0 1 -5 0 1 2", "time in microseconds"),
            ("0 1 5 0 1 1000000", "time_us"),
            ("0 1 5 0 1", "time_us"),
            ("0 1 5 0 1 2 3", "the end of the line"),
            ("0 1 5 0 1 2 ", "time_us"),
            ("0  1 5 0 1 2", "transaction_no"),
            ("", "client_id"),
            ("0 1 9999999999999999999999 0 1 2", "time in microseconds"),
        ] {
            let error = read(&format!("{line}\n"), PLAIN).unwrap_err().to_string();
            assert!(error.contains(wanted) && error.contains(&format!("`{line}`")), "{line}: {error}");
        }
        assert!(read("0 1 5 0 1 2\n", LAG).unwrap_err().to_string().contains("schedule_lag"));
    }

    proptest! {
        #[test]
        fn every_line_that_pgbench_could_write_reads_back(
            client in any::<u16>(), n in any::<u32>(), latency in any::<u32>(), script in any::<u8>(),
            at in any::<u32>(), us in 0u64..1_000_000, lag in any::<u32>(),
        ) {
            let line = format!("{client} {n} {latency} {script} {at} {us} {lag}\n");
            let read = read(&line, LAG).unwrap()[0];
            prop_assert_eq!(read, Transaction {
                ended: Ended::Done(u64::from(latency)),
                script: u32::from(script),
                at_us: u64::from(at) * 1_000_000 + us,
                lag_us: Some(u64::from(lag)),
                retries: 0,
            });
        }

        #[test]
        fn no_bytes_make_it_panic_or_read_beyond_the_last_line_feed(bytes in any::<Vec<u8>>()) {
            let mut into = Vec::new();
            if let Ok(taken) = parse(&bytes, PLAIN, &mut into) {
                prop_assert!(!bytes[taken..].contains(&b'\n'));
                prop_assert!(taken == 0 || bytes[taken - 1] == b'\n');
            }
        }
    }
}
