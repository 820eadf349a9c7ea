//! pgbench's logs (`-l`) of unknown options and version, one line a transaction (PostgreSQL manuals 8.4 to 18, pgbench,
//! "Per-Transaction Logging", and pgbench.c). Optional columns are detected from the lines themselves. Logs of
//! `--aggregate-interval` are read in `foreign::log`.
//!
//! Files go through [`PgbenchLogReader`], piece by piece, in constant memory and by the fast path of `parse::pgbench_log`. Old
//! versions on Windows wrote a time of day of 0 everywhere, so nothing can be dated.

#[cfg(test)]
mod tests;

use super::output::Unread;
use crate::parse::pgbench_log::{self, LogColumns, Transaction};

/// The columns after the six that are always present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optional {
    None,
    /// Lag behind the schedule.
    Lag,
    LagAndRetries,
    /// One column that the lines do not identify; it is left out.
    Untold,
}

impl Optional {
    fn columns(self) -> LogColumns {
        let lag = matches!(self, Optional::Lag | Optional::LagAndRetries | Optional::Untold);
        LogColumns { lag, retries: self == Optional::LagAndRetries }
    }
}

/// Detects the optional columns from a sample of the beginning. `None` if no line is a log's.
pub fn kind(sample: &[u8]) -> Option<Optional> {
    const MOST_LINES: usize = 20_000;
    // Lags are microseconds, and some in a hundred exceed any number of retries.
    const NO_RETRIES_ABOVE: u64 = 1000;
    let end = sample.iter().rposition(|byte| *byte == b'\n').map_or(sample.len(), |at| at + 1);
    let mut by_columns = [0usize; 3];
    let mut is_lag = false;
    for line in sample[..end].split(|byte| *byte == b'\n').take(MOST_LINES) {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if is_transaction(&words) {
            by_columns[words.len() - 6] += 1;
            if words.len() == 7 {
                // Transactions are skipped only with a rate.
                is_lag |= words[2] == "skipped" || words[6].parse::<u64>().is_ok_and(|it| it > NO_RETRIES_ABOVE);
            }
        }
    }
    let most = by_columns.iter().copied().max().filter(|most| *most > 0)?;
    Some(match by_columns.iter().position(|count| *count == most) {
        Some(1) if is_lag => Optional::Lag,
        Some(1) => Optional::Untold,
        Some(2) => Optional::LagAndRetries,
        _ => Optional::None,
    })
}

/// True if the words are a transaction's. Its date distinguishes it from other tables of integers.
fn is_transaction(words: &[&str]) -> bool {
    const YEAR_2001: u64 = 1_000_000_000;
    const ENDINGS: [&str; 5] = ["skipped", "failed", "serialization", "deadlock", "other"];
    if !(6..=8).contains(&words.len()) {
        return false;
    }
    let whole = |at: usize| words[at].parse::<u64>().ok();
    let numbers = (0..words.len()).all(|at| whole(at).is_some() || (at == 2 && ENDINGS.contains(&words[2])));
    let (seconds, us) = (whole(4), whole(5));
    let dated =
        seconds.is_some_and(|s| (YEAR_2001..YEAR_2001 * 10).contains(&s)) && us.is_some_and(|us| us < 1_000_000);
    // Such a row with a shorter time belongs to another table.
    let of_windows = seconds == Some(0) && us == Some(0) && whole(2).is_none_or(|latency| latency >= 100);
    numbers && (dated || of_windows) && whole(0).is_some_and(|client| client < YEAR_2001)
}

/// Reads a log of transactions in pieces.
#[derive(Debug, Default)]
pub struct PgbenchLogReader {
    kind: Option<Optional>,
    /// The beginning of an incomplete line, or everything while the kind is unknown.
    held: Vec<u8>,
    /// True if the current line is too long for a log, and its beginning was dropped.
    overlong: bool,
    without_returns: Vec<u8>,
    transactions: Vec<Transaction>,
    end: LogEnd,
}

/// Summary at the end of a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogEnd {
    /// Detected columns; `None` if no line was a log's.
    pub kind: Option<Optional>,
    pub lines: u64,
    /// Lines that could not be read.
    pub lines_unread: u64,
    /// The first of them, at most 20.
    pub unread: Vec<Unread>,
}

/// What an unterminated last line lacks.
pub const CUT_OFF: &str = "a line feed: the line may be cut off";
/// Bytes examined before the columns are decided.
const SAMPLE: usize = 256 * 1024;
/// No line of a log is longer.
const LONGEST_LINE: usize = 4096;
/// Block size at which the transactions of a block stay in the CPU cache.
const BLOCK: usize = 64 * 1024;

impl PgbenchLogReader {
    /// A reader that detects the columns from the first 256 KiB.
    pub fn new() -> PgbenchLogReader {
        PgbenchLogReader::default()
    }

    /// Takes the next piece of the log and passes every complete transaction in it to `each`, in order.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Transaction)) {
        if self.kind.is_some() {
            return self.pieces(bytes, &mut each);
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() >= SAMPLE {
            self.decide(&mut each);
        }
    }

    /// Ends the log. A last line without a line feed may be cut off, so it counts as unread.
    pub fn finish(mut self, mut each: impl FnMut(Transaction)) -> LogEnd {
        if self.kind.is_none() {
            self.decide(&mut each);
        }
        if self.overlong || self.held.iter().any(|byte| !byte.is_ascii_whitespace()) {
            let held = std::mem::take(&mut self.held);
            self.unread(&held, CUT_OFF);
        }
        self.end.kind = self.kind;
        self.end
    }

    /// Detects the columns from the held bytes, then reads them.
    fn decide(&mut self, each: &mut impl FnMut(Transaction)) {
        self.kind = kind(&self.held);
        let held = std::mem::take(&mut self.held);
        // If nothing in the sample is a log's, its lines are reported by what they lack.
        let unknown = self.kind.is_none();
        self.kind.get_or_insert(Optional::None);
        self.pieces(&held, each);
        if unknown {
            self.kind = None;
        }
    }

    fn pieces(&mut self, bytes: &[u8], each: &mut impl FnMut(Transaction)) {
        let mut rest = bytes;
        if !self.held.is_empty() || self.overlong {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return self.hold(rest) };
            self.hold(&rest[..=end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.held);
            match std::mem::take(&mut self.overlong) {
                true => self.unread(&line, "a line of a pgbench log"),
                false => self.block(&line, each),
            }
        }
        while rest.len() > BLOCK {
            let Some(end) = rest[..BLOCK].iter().rposition(|byte| *byte == b'\n') else { break };
            self.block(&rest[..=end], each);
            rest = &rest[end + 1..];
        }
        // A line that fills a block is not a log's; it is dropped with its continuation.
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.block(&rest[..end], each);
        self.hold(&rest[end..]);
    }

    /// Keeps the beginning of a line.
    fn hold(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.held.len());
        self.overlong |= bytes.len() > room;
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn block(&mut self, bytes: &[u8], each: &mut impl FnMut(Transaction)) {
        if !bytes.contains(&b'\r') {
            return self.lines(bytes, each);
        }
        let mut without = std::mem::take(&mut self.without_returns);
        without.clear();
        without.extend(bytes.iter().filter(|byte| **byte != b'\r'));
        self.lines(&without, each);
        self.without_returns = without;
    }

    fn lines(&mut self, bytes: &[u8], each: &mut impl FnMut(Transaction)) {
        let Some(optional) = self.kind else {
            self.end.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            return;
        };
        let mut transactions = std::mem::take(&mut self.transactions);
        let mut rest = bytes;
        while !rest.is_empty() {
            transactions.clear();
            let read = pgbench_log::parse(rest, optional.columns(), &mut transactions);
            self.end.lines += transactions.len() as u64;
            for transaction in &transactions {
                each(without_unknown(*transaction, optional));
            }
            let Err(error) = read else { break };
            // The lines before the bad one have been read.
            let mut left = rest.splitn(transactions.len() + 2, |byte| *byte == b'\n').skip(transactions.len());
            let bad = left.next().unwrap_or_default();
            rest = left.next().unwrap_or_default();
            match lenient(bad, optional) {
                Some(transaction) => {
                    self.end.lines += 1;
                    each(transaction);
                }
                None if bad.iter().all(u8::is_ascii_whitespace) => self.end.lines += 1,
                None => self.unread(bad, error.to_string().rsplit("expected ").next().unwrap_or_default()),
            }
        }
        self.transactions = transactions;
    }

    fn unread(&mut self, line: &[u8], wanted: &str) {
        const MOST_NAMED: usize = 20;
        self.end.lines += 1;
        self.end.lines_unread += 1;
        if self.end.unread.len() < MOST_NAMED {
            self.end.unread.push(Unread {
                line: u32::try_from(self.end.lines).unwrap_or(u32::MAX),
                text: String::from_utf8_lossy(line).trim_end().chars().take(200).collect(),
                wanted: wanted.to_owned(),
            });
        }
    }
}

/// Removes the column whose meaning is unknown.
fn without_unknown(transaction: Transaction, optional: Optional) -> Transaction {
    match optional {
        Optional::Untold => Transaction { lag_us: None, ..transaction },
        _ => transaction,
    }
}

/// Reads a line not in pgbench's exact format: different blanks, or the columns of another run in the same file.
fn lenient(line: &[u8], optional: Optional) -> Option<Transaction> {
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
    if !is_transaction(&words) {
        return None;
    }
    let optional = match (words.len(), optional) {
        (6, _) => Optional::None,
        (7, Optional::Lag) => optional,
        (7, _) => Optional::Untold,
        _ => Optional::LagAndRetries,
    };
    let mut read = Vec::new();
    let line = words.join(" ") + "\n";
    pgbench_log::parse(line.as_bytes(), optional.columns(), &mut read).ok()?;
    Some(without_unknown(*read.first()?, optional))
}
