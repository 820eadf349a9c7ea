//! Log of a server's start after a crash, versions 12 to 18, with the settings that [`super::server_log`] needs
//! (`StartupXLOG` and `SyncDataDirectory`, `PerformWalRecovery` in the sources).
//!
//! Absent on purpose: durations; the caller knows when the outage began.

use super::server_log::{LogEntry, LogReader, message};
use crate::error::{Error, Result};
use crate::record::window::CheckpointDone;

/// Times of the phases of one start: wall clock, microseconds since 1970, to the millisecond. `None` if not logged: a
/// server that was shut down cleanly does not recover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryLog {
    /// The startup process found that the server was interrupted; it syncs the data directory next.
    pub interrupted_us: Option<u64>,
    /// The data directory has been synced and the last checkpoint read.
    pub recovering_us: Option<u64>,
    pub redo_began: Option<RedoMark>,
    pub redo_ended: Option<RedoMark>,
    /// The checkpoint at the end of recovery: its start, and its figures.
    pub checkpoint: Option<(u64, CheckpointDone)>,
    pub ready_us: Option<u64>,
}

/// Redo position at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoMark {
    pub at_us: u64,
    /// Position in the WAL, bytes.
    pub lsn: u64,
}

/// Reads the log of one start.
///
/// # Errors
/// With the line, if a line about redo or a checkpoint cannot be parsed.
pub fn parse(text: &str) -> Result<RecoveryLog> {
    let mut log = RecoveryLog::default();
    let mut reader = LogReader::default();
    let mut checkpoint_began = None;
    for line in text.lines() {
        match reader.line(line)? {
            Some(LogEntry::CheckpointStarted { at_us, cause }) => {
                checkpoint_began = cause.starts_with("end-of-recovery").then_some(at_us);
            }
            Some(LogEntry::CheckpointEnded(done)) => {
                let whole = checkpoint_began.take().map(|began_us| (began_us, done));
                log.checkpoint = log.checkpoint.or(whole);
            }
            _ => {}
        }
        let Some((at_us, said)) = message(line) else { continue };
        let mark = |rest: &str| {
            let lsn = rest.split_whitespace().next().and_then(position);
            let lsn = lsn.ok_or_else(|| {
                Error::tool(format!("the server's log: expected a position in the WAL, found `{line}`"))
            })?;
            Ok::<_, Error>(Some(RedoMark { at_us, lsn }))
        };
        if said.starts_with("database system was interrupted") {
            log.interrupted_us = Some(at_us);
        } else if said.starts_with("database system was not properly shut down") {
            log.recovering_us = Some(at_us);
        } else if let Some(rest) = said.strip_prefix("redo starts at ") {
            log.redo_began = mark(rest)?;
        } else if let Some(rest) = said.strip_prefix("redo done at ") {
            log.redo_ended = mark(rest)?;
        } else if said.starts_with("database system is ready to accept connections") {
            log.ready_us = Some(at_us);
            // Later lines do not belong to the start.
            break;
        }
    }
    Ok(log)
}

/// A WAL position in the server's notation: `1/9A3F`.
pub fn position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let [high, low] = [high, low].map(|part| u32::from_str_radix(part, 16).ok().map(u64::from));
    Some((high? << 32) + low?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    fn fixture(version: u32) -> String {
        let path = format!("{}/tests/fixtures/recovery_log/{version}.log", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn every_phase_of_crash_recovery_is_found_in_sequence() {
        for (version, wal, buffers) in [(15, 128_900_584, 15_126), (18, 116_697_520, 13_803)] {
            let log = parse(&fixture(version)).unwrap();
            let (began, ended) = (log.redo_began.unwrap(), log.redo_ended.unwrap());
            let (checkpoint_began, done) = log.checkpoint.clone().unwrap();
            let moments = [
                log.interrupted_us.unwrap(),
                log.recovering_us.unwrap(),
                began.at_us,
                ended.at_us,
                checkpoint_began,
                done.ended_us,
                log.ready_us.unwrap(),
            ];
            assert!(moments.is_sorted(), "{version}: {moments:?}");
            assert_eq!((ended.lsn - began.lsn, done.buffers), (wal, buffers), "{version}");
        }
    }

    #[test]
    fn a_start_after_a_clean_stop_recovers_nothing() {
        for version in [15, 18] {
            let text = fixture(version);
            let start = text.rfind("starting PostgreSQL").unwrap();
            let log = parse(&text[start..]).unwrap();
            assert_eq!(log, RecoveryLog { ready_us: log.ready_us, ..RecoveryLog::default() });
            assert!(log.ready_us.is_some());
        }
    }

    #[test]
    fn positions_are_read_in_both_halves_and_others_are_errors() {
        assert_eq!((position("0/900EC00"), position("2/10")), (Some(0x0900_EC00), Some((2 << 32) + 16)));
        assert_eq!((position("900EC00"), position("x/1")), (None, None));
        let line = "2026-11-22 14:40:08.652 GMT [1220] LOG:  redo starts at nowhere";
        assert!(parse(line).unwrap_err().to_string().contains(line));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(
            text in "(2026-11-22 05:17:22.460 GMT \\[1\\] LOG:  redo (starts|done) at )?[0-9A-F/ ]{0,12}|\\PC{0,60}"
        ) {
            drop(parse(&text));
        }
    }
}
