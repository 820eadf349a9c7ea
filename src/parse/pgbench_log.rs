//! pgbench's per-transaction log (`pgbench -l`), versions 12 to 18:
//!
//! `client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]`
//!
//! `time` is the latency in microseconds from the transaction's start, or with `-R` from its scheduled start, to its
//! end. It is replaced by `skipped`, `failed`, `serialization`, `deadlock` or `other` for a transaction without one
//! (PostgreSQL manual, pgbench, "Per-Transaction Logging"). Works on bytes, because a log can grow by a million lines a
//! second (the parser reads tens of millions on one core).

use crate::error::{Error, Result};

/// Optional columns of a log; they follow from pgbench's options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogColumns {
    /// `schedule_lag`: with `-R`.
    pub lag: bool,
    /// `retries`: with `--max-tries` other than 1.
    pub retries: bool,
}

/// Outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// Completed; latency in microseconds.
    Done(u64),
    /// Never begun, because it was already later than the limit (`-R` with `-L`).
    Skipped,
    /// Failed, including all retries.
    Failed(FailureKind),
}

/// Cause of a failure, if logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The log has only `failed`.
    Untold,
    /// Serialization failure.
    Serialization,
    Deadlock,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    /// Number of the client, from 0.
    pub client: u32,
    pub ended: TransactionOutcome,
    /// Number of the script, from 0.
    pub script: u32,
    /// Wall clock at its end, microseconds since 1970.
    pub at_us: u64,
    /// Delay of its start against the schedule, microseconds.
    pub lag_us: Option<u64>,
    /// Number of retries, if the log has them.
    pub retries: Option<u64>,
}

/// Appends every whole line of `bytes`, in order, to `into` and returns the number of bytes read; bytes after the last
/// line feed belong to an incomplete line.
///
/// # Errors
/// With the line, the item and its expected form. Lines before it have been read.
pub fn parse(bytes: &[u8], columns: LogColumns, into: &mut Vec<Transaction>) -> Result<usize> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut rest = &bytes[..end];
    while !rest.is_empty() {
        let line = rest;
        into.push(transaction(&mut rest, columns).map_err(|wanted| bad_line(line, wanted))?);
    }
    Ok(end)
}

/// Error for the first line of `lines`.
fn bad_line(lines: &[u8], wanted: &'static str) -> Error {
    let line = lines.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Error::tool(format!("pgbench's transaction log, line `{}`: expected {wanted}", String::from_utf8_lossy(line)))
}

/// Parses one line, which must end with a line feed. The error names the expected form.
///
/// Its callees are inlined by force: as calls, which pass `rest` through memory, they take half of the speed
/// (`benches/import.rs`).
#[inline]
fn transaction(rest: &mut &[u8], columns: LogColumns) -> Result<Transaction, &'static str> {
    let client = number(rest).and_then(|client| u32::try_from(client).ok()).ok_or("client_id as a whole number")?;
    next_number(rest).ok_or("transaction_no as a whole number")?;
    let ended = match rest.get(1) {
        Some(b'0'..=b'9') => next_number(rest).map(TransactionOutcome::Done),
        _ => next_word(rest),
    };
    let ended = ended.ok_or("time in microseconds, or `skipped`, `failed`, `serialization`, `deadlock`, `other`")?;
    let script =
        next_number(rest).and_then(|script| u32::try_from(script).ok()).ok_or("script_no as a whole number")?;
    let epoch_us = next_number(rest).and_then(|epoch| epoch.checked_mul(1_000_000)).ok_or("time_epoch in seconds")?;
    let us = next_number(rest).filter(|us| *us < 1_000_000).ok_or("time_us below 1000000")?;
    let lag_us = columns.lag.then(|| next_number(rest).ok_or("schedule_lag in microseconds")).transpose()?;
    let retries = columns.retries.then(|| next_number(rest).ok_or("retries as a whole number")).transpose()?;
    take(rest, b'\n').ok_or("the end of the line")?;
    let at_us = epoch_us.checked_add(us).ok_or("time_epoch in seconds")?;
    Ok(Transaction { client, ended, script, at_us, lag_us, retries })
}

#[inline(always)]
fn take(rest: &mut &[u8], byte: u8) -> Option<()> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    (*first == byte).then_some(())
}

/// Takes a single space and the whole number after it.
#[inline(always)]
fn next_number(rest: &mut &[u8]) -> Option<u64> {
    take(rest, b' ')?;
    number(rest)
}

/// Takes a whole number of at most 16 digits: microseconds since 1970 for 300 years.
///
/// Reads eight bytes at a time without a branch per byte: the number of digits changes from line to line, and a
/// mispredicted branch costs more than the arithmetic.
#[inline(always)]
fn number(rest: &mut &[u8]) -> Option<u64> {
    let (high, digits) = up_to_eight(rest);
    if digits == 0 {
        return None;
    }
    *rest = &rest[digits..];
    if digits < 8 {
        return Some(high);
    }
    let (low, further) = up_to_eight(rest);
    *rest = &rest[further..];
    let is_longer = rest.first().is_some_and(u8::is_ascii_digit);
    (!is_longer).then(|| high * TENS[further] + low)
}

const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Value and number of the leading digits of `bytes`, eight at most.
#[inline(always)]
fn up_to_eight(bytes: &[u8]) -> (u64, usize) {
    let Some(eight) = bytes.first_chunk::<8>() else {
        let mut padded = [b'\n'; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        return first_digits(padded);
    };
    first_digits(*eight)
}

/// As [`up_to_eight`], for exactly eight bytes. The first is the lowest byte of a word.
#[inline(always)]
fn first_digits(eight: [u8; 8]) -> (u64, usize) {
    const ALL: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from_le_bytes(eight) ^ (ALL * u64::from(b'0'));
    // Digits are now 0 to 9. Larger bytes set their highest bit when 0x76 is added, or have it set already; the carry
    // of a sum affects only bytes after the first non-digit.
    let others = (bytes.wrapping_add(ALL * 0x76) | bytes) & (ALL * 0x80);
    let digits = others.trailing_zeros() / 8;
    if digits == 0 {
        return (0, 0);
    }
    // Shifts out the bytes after the digits, so that zeros lead.
    let ones = bytes << (64 - 8 * digits);
    // Adds neighbours: two digits in each second byte, then four, then eight.
    let twos = (ones.wrapping_mul(10) + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100) + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    let eights = (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff;
    (eights, digits as usize)
}

/// Takes the space and the word in place of a latency.
fn next_word(rest: &mut &[u8]) -> Option<TransactionOutcome> {
    take(rest, b' ')?;
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\n'))?;
    let ended = match &rest[..end] {
        b"skipped" => TransactionOutcome::Skipped,
        b"failed" => TransactionOutcome::Failed(FailureKind::Untold),
        b"serialization" => TransactionOutcome::Failed(FailureKind::Serialization),
        b"deadlock" => TransactionOutcome::Failed(FailureKind::Deadlock),
        b"other" => TransactionOutcome::Failed(FailureKind::Other),
        _ => return None,
    };
    *rest = &rest[end..];
    Some(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const PLAIN: LogColumns = LogColumns { lag: false, retries: false };
    const LAG: LogColumns = LogColumns { lag: true, retries: false };

    fn read(text: &str, columns: LogColumns) -> Result<Vec<Transaction>> {
        let mut into = Vec::new();
        assert_eq!(parse(text.as_bytes(), columns, &mut into)?, text.len());
        Ok(into)
    }

    #[test]
    fn lines_of_every_kind_read() {
        let done = read("0 1 2145 0 1795229731 831364\n", PLAIN).unwrap()[0];
        assert_eq!(
            done,
            Transaction {
                client: 0,
                ended: TransactionOutcome::Done(2145),
                script: 0,
                at_us: 1_795_229_731_831_364,
                lag_us: None,
                retries: None
            }
        );
        let late = read("0 2 skipped 0 1795229738 945106 0\n1 2 4500 1 1795229738 7 1234\n", LAG).unwrap();
        assert_eq!((late[0].ended, late[0].lag_us), (TransactionOutcome::Skipped, Some(0)));
        assert_eq!((late[1].at_us, late[1].script, late[1].lag_us), (1_795_229_738_000_007, 1, Some(1234)));
        let retried = read("3 8 serialization 0 1 2 50 4\n", LogColumns { lag: true, retries: true }).unwrap()[0];
        assert_eq!((retried.ended, retried.retries), (TransactionOutcome::Failed(FailureKind::Serialization), Some(4)));
        for (word, why) in
            [("failed", FailureKind::Untold), ("deadlock", FailureKind::Deadlock), ("other", FailureKind::Other)]
        {
            assert_eq!(read(&format!("0 1 {word} 0 1 2\n"), PLAIN).unwrap()[0].ended, TransactionOutcome::Failed(why));
        }
    }

    #[test]
    fn pgbench_logs_of_both_versions_parse_for_every_run_kind() {
        for (name, columns) in [("statements", PLAIN), ("rate-limit", LAG), ("scripts", PLAIN), ("failures", PLAIN)] {
            for version in ["15", "18"] {
                let path = format!("{}/tests/fixtures/pgbench/{version}-{name}.log", env!("CARGO_MANIFEST_DIR"));
                let read = read(&std::fs::read_to_string(path).unwrap(), columns).unwrap();
                assert!(read.iter().any(|line| matches!(line.ended, TransactionOutcome::Done(1..))));
                let failed = read.iter().any(|line| matches!(line.ended, TransactionOutcome::Failed(_)));
                assert_eq!(failed, name == "failures");
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
            ("0 1 5 0 1 2 ", "the end of the line"),
            ("0  1 5 0 1 2", "transaction_no"),
            ("", "client_id"),
            ("0 1 9999999999999999999999 0 1 2", "time in microseconds"),
            ("0 1 12345678901234567 0 1 2", "time in microseconds"),
            ("0 1 5 0 18446744073709 999999", "time_epoch"),
            ("0 1 5", "script_no"),
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
                client: u32::from(client),
                ended: TransactionOutcome::Done(u64::from(latency)),
                script: u32::from(script),
                at_us: u64::from(at) * 1_000_000 + us,
                lag_us: Some(u64::from(lag)),
                retries: None,
            });
        }

        #[test]
        fn a_number_ends_at_the_first_non_digit_byte(
            number in "[0-9]{1,16}", behind in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let digits = |byte: &u8| byte.is_ascii_digit();
            let behind = &behind[behind.iter().take_while(|byte| digits(byte)).count()..];
            let bytes = [number.as_bytes(), behind].concat();
            let mut rest = &bytes[..];
            prop_assert_eq!(super::number(&mut rest), number.parse().ok());
            prop_assert_eq!(rest, behind);
        }

        #[test]
        fn parsing_never_panics_or_reads_past_the_last_newline(bytes in any::<Vec<u8>>()) {
            let mut into = Vec::new();
            if let Ok(taken) = parse(&bytes, PLAIN, &mut into) {
                prop_assert!(!bytes[taken..].contains(&b'\n'));
                prop_assert!(taken == 0 || bytes[taken - 1] == b'\n');
            }
        }
    }
}
