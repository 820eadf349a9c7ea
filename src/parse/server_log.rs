//! A server's log of checkpoints and autovacuum, versions 12 to 18, with `log_line_prefix = '%m [%p] '`,
//! `log_timezone = 'GMT'` and messages in English (`LogCheckpointStart`, `LogCheckpointEnd` in xlog.c, vacuumlazy.c).
//!
//! Skips all other lines.

use crate::error::{Error, Result};
use crate::record::window::{CheckpointDone, VacuumRecord};
use crate::units::Micros;

#[derive(Debug, Clone, PartialEq)]
pub enum LogEntry {
    CheckpointStarted {
        /// Wall clock, microseconds since 1970.
        at_us: u64,
        /// As logged: `time`, `wal`, `immediate force wait`.
        cause: String,
    },
    CheckpointEnded(CheckpointDone),
    /// Autovacuum finished a table.
    Vacuumed(VacuumRecord),
}

/// Reads a log line by line. Some messages span several lines.
#[derive(Debug, Clone, Default)]
pub struct LogReader {
    /// An autovacuum whose elapsed time has not been read yet.
    vacuum: Option<(u64, String)>,
}

impl LogReader {
    /// Takes the next line, without its line end.
    ///
    /// # Errors
    /// With the line, if a line about a checkpoint cannot be parsed.
    pub fn line(&mut self, line: &str) -> Result<Option<LogEntry>> {
        let Some((at_us, message)) = message(line) else { return Ok(self.continued(line)) };
        self.vacuum = None;
        if let Some(cause) = message.strip_prefix("checkpoint starting:") {
            return Ok(Some(LogEntry::CheckpointStarted { at_us, cause: cause.trim().to_owned() }));
        }
        if let Some(rest) = message.strip_prefix("checkpoint complete:") {
            let done = done(at_us, rest).map_err(|item| {
                Error::tool(format!("the server's log: expected {item} of a checkpoint, found `{line}`"))
            })?;
            return Ok(Some(LogEntry::CheckpointEnded(done)));
        }
        if message.starts_with("automatic ") {
            let what = message.split_once("\": ").map_or(message, |(what, _)| what);
            let what = what.split_once("\" system usage").map_or(what, |(what, _)| what).trim_end_matches('"');
            self.vacuum = Some((at_us, format!("{what}\"")));
            return Ok(self.continued(message));
        }
        Ok(None)
    }

    /// Takes a continuation line of a message.
    fn continued(&mut self, line: &str) -> Option<LogEntry> {
        let (_, elapsed) = line.rsplit_once("elapsed: ")?;
        let elapsed_us = Micros::parse(elapsed.trim()).ok()?.0;
        let (ended_us, what) = self.vacuum.take()?;
        Some(LogEntry::Vacuumed(VacuumRecord { ended_us, elapsed_us, what }))
    }
}

/// Time and text of a line of level LOG; `None` for all others.
pub(super) fn message(line: &str) -> Option<(u64, &str)> {
    let (at_us, message) = stamped(line)?;
    Some((at_us, message.strip_prefix("LOG:  ")?))
}

/// Time of a line (wall clock, microseconds since 1970), and its text with the level in front.
pub(super) fn stamped(line: &str) -> Option<(u64, &str)> {
    let (stamp, rest) = line.split_once(" GMT [")?;
    let (_, message) = rest.split_once("] ")?;
    let at: jiff::Timestamp = format!("{}Z", stamp.replacen(' ', "T", 1)).parse().ok()?;
    Some((u64::try_from(at.as_microsecond()).ok()?, message))
}

/// The figures after `checkpoint complete:`, or the name of the first missing one.
fn done(ended_us: u64, text: &str) -> Result<CheckpointDone, &'static str> {
    Ok(CheckpointDone {
        ended_us,
        buffers: count_before(text, " buffers (")?,
        slru_buffers: count_before(text, " SLRU buffers").ok(),
        wal_added: count_before(text, " WAL file(s) added")?,
        wal_removed: count_before(text, " removed")?,
        wal_recycled: count_before(text, " recycled")?,
        write_us: span_after(text, "write=")?,
        sync_us: span_after(text, "sync=")?,
        total_us: span_after(text, "total=")?,
        files: after(text, "sync files=")?.trim().parse().map_err(|_| "sync files=")?,
        longest_us: span_after(text, "longest=")?,
        distance_bytes: kilobytes_after(text, "distance=")?,
        estimate_bytes: kilobytes_after(text, "estimate=")?,
    })
}

fn count_before(text: &str, word: &'static str) -> Result<u64, &'static str> {
    let (head, _) = text.split_once(word).ok_or(word)?;
    head.trim_end().rsplit([' ', '=']).next().and_then(|number| number.parse().ok()).ok_or(word)
}

fn after<'a>(text: &'a str, word: &'static str) -> Result<&'a str, &'static str> {
    text.split_once(word).and_then(|(_, rest)| rest.split([',', ';']).next()).ok_or(word)
}

fn span_after(text: &str, word: &'static str) -> Result<u64, &'static str> {
    Micros::parse(after(text, word)?).map(|span| span.0).map_err(|_| word)
}

fn kilobytes_after(text: &str, word: &'static str) -> Result<u64, &'static str> {
    let number = after(text, word)?.trim().strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
    number.map(|number| number * 1024).ok_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    fn entries(log: &str) -> Vec<LogEntry> {
        let mut reader = LogReader::default();
        log.lines().filter_map(|line| reader.line(line).unwrap()).collect()
    }

    fn fixture(version: u32) -> Vec<LogEntry> {
        let path = format!("{}/tests/fixtures/server_log/{version}.log", env!("CARGO_MANIFEST_DIR"));
        entries(&std::fs::read_to_string(path).unwrap())
    }

    fn causes(entries: &[LogEntry]) -> Vec<&str> {
        let mut causes: Vec<&str> = Vec::new();
        for entry in entries {
            if let LogEntry::CheckpointStarted { cause, .. } = entry {
                causes.push(cause);
            }
        }
        causes
    }

    #[test]
    fn checkpoints_of_every_kind_have_their_cause_and_end() {
        for version in [15, 18] {
            let entries = fixture(version);
            let causes = causes(&entries);
            assert_eq!(causes.first(), Some(&"wal"), "{version}");
            for wanted in ["time", "immediate force wait", "shutdown immediate"] {
                let there = causes.iter().any(|cause| cause.starts_with(wanted));
                assert!(there, "{version}: {wanted} in {causes:?}");
            }
            let ends = entries.iter().filter(|entry| matches!(entry, LogEntry::CheckpointEnded(_))).count();
            assert_eq!(ends, causes.len(), "{version}");
        }
    }

    #[test]
    fn a_checkpoint_is_parsed_in_full_from_each_version() {
        let line = "2026-11-22 05:17:22.460 GMT [16865] LOG:  checkpoint complete: wrote 3591 buffers (21.9%); 0 WAL file(s) \
                    added, 3 removed, 2 recycled; write=0.427 s, sync=0.001 s, total=0.429 s; sync files=14, longest=0.004 s, \
                    average=0.001 s; distance=28668 kB, estimate=28669 kB";
        let done = CheckpointDone {
            ended_us: 1_795_324_642_460_000,
            buffers: 3591,
            slru_buffers: None,
            wal_added: 0,
            wal_removed: 3,
            wal_recycled: 2,
            write_us: 427_000,
            sync_us: 1_000,
            total_us: 429_000,
            files: 14,
            longest_us: 4_000,
            distance_bytes: 28_668 << 10,
            estimate_bytes: 28_669 << 10,
        };
        assert_eq!(entries(line), [LogEntry::CheckpointEnded(done.clone())]);
        let newer = line.replace("(21.9%);", "(21.9%), wrote 4 SLRU buffers;") + "; lsn=0/5003A70, redo lsn=0/4003AB0";
        let done = CheckpointDone { slru_buffers: Some(4), ..done };
        assert_eq!(entries(&newer), [LogEntry::CheckpointEnded(done)]);
    }

    #[test]
    fn autovacuum_elapsed_time_is_found_on_any_of_its_lines() {
        let log = "2026-11-22 05:17:16.079 GMT [9] LOG:  automatic analyze of table \"postgres.public.a\"\n\
                   \tavg read rate: 0.000 MB/s\n\tsystem usage: CPU: user: 0.06 s, system: 0.00 s, elapsed: 0.20 s\n\
                   2026-11-22 05:17:17.079 GMT [9] LOG:  automatic analyze of table \"postgres.public.b\" system usage: CPU: \
                   user: 0.00 s, system: 0.00 s, elapsed: 1.50 s\n\
                   2026-11-22 05:17:18.000 GMT [9] LOG:  automatic vacuum of table \"postgres.public.c\": index scans: 1\n\
                   2026-11-22 05:17:19.000 GMT [9] LOG:  something else\n\tsystem usage: elapsed: 7.00 s\n";
        let seen: Vec<(String, u64)> = entries(log)
            .into_iter()
            .filter_map(|entry| match entry {
                LogEntry::Vacuumed(VacuumRecord { what, elapsed_us, .. }) => Some((what, elapsed_us)),
                _ => None,
            })
            .collect();
        let of = |table: &str, us| (format!("automatic analyze of table \"postgres.public.{table}\""), us);
        assert_eq!(seen, [of("a", 200_000), of("b", 1_500_000)]);
        for version in [15, 18] {
            assert!(
                fixture(version)
                    .iter()
                    .any(|entry| matches!(entry, LogEntry::Vacuumed(vacuum) if vacuum.elapsed_us > 0))
            );
        }
    }

    #[test]
    fn only_a_checkpoint_in_unknown_wording_is_an_error() {
        let line = "2026-11-22 05:17:22.460 GMT [1] LOG:  checkpoint complete: wrote all";
        let error = LogReader::default().line(line).unwrap_err().to_string();
        assert!(error.contains("buffers (") && error.contains(line), "{error}");
        for line in ["", "FATAL", "2026-11-22 05:17:22.460 CET [1] LOG:  checkpoint starting: time"] {
            assert_eq!(LogReader::default().line(line).unwrap(), None);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            text in "(2026-11-22 05:17:22.460 GMT \\[1\\] LOG:  checkpoint complete:)?[a-z=0-9 ,;.(]{0,80}|\\PC{0,60}"
        ) {
            drop(LogReader::default().line(&text));
        }
    }
}
