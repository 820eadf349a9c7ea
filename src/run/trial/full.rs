//! Determines whether a step failed because the stack was full, when that was, and what is recorded of it.
//!
//! Checks the server's log first, then the failure. On a full thin pool filesystems fail as if their device were
//! broken: if writes were refused, the layers below are asked. Not here: data that do not fit when loaded, which need
//! another plan.

use super::Trial;
use crate::error::Error;
use crate::host::command::last_lines;
use crate::host::files;
use crate::host::time::{micros, wall_us};
use crate::parse::no_space;
use crate::record::event::Step;
use crate::record::full::FullRecord;
use crate::run::session::Session;

/// Lines of the server's log kept in the record; all of it is in `raw/`.
const LOG_LINES: usize = 12;

impl Trial<'_> {
    /// Records that the stack was full, if that ended the current step.
    pub(super) fn note_full(&mut self, session: &Session<'_>, failure: &Error) {
        if !matches!(self.step, Step::Age | Step::Start | Step::WarmUp | Step::Measure) {
            return;
        }
        let said = failure.chain();
        // During ageing, the cluster may temporarily be outside the stack, on an unrelated disk. Snapshot commands name
        // the mount point or the pool, not the cluster's folder.
        let is_of_stack = self.step != Step::Age
            || self.folder.as_ref().is_some_and(|folder| said.contains(&folder.display().to_string()))
            || self.stack.as_ref().is_some_and(|stack| stack.is_named_in(&said));
        let began_us = wall_us().saturating_sub(self.step_began.map_or(0, |began| micros(began.elapsed())));
        let no_room = no_space::line(&said, no_space::FULL).filter(|_| is_of_stack);
        let refused = no_space::line(&said, no_space::REFUSED);
        self.record.full = self.full(session, no_room, refused, began_us);
    }

    /// Based on messages about missing space, and about refused writes, of a step or an operation that began then.
    pub(super) fn full(
        &self,
        session: &Session<'_>,
        no_room: Option<&str>,
        refused: Option<&str>,
        began_us: u64,
    ) -> Option<FullRecord> {
        // No log without a server.
        let log = files::read(&self.staging.raw().join("server.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        // What a layer below the filesystems reports about itself; unreachable layers are skipped.
        let below = || self.stack.as_ref()?.full_below(&session.host, &self.case.stack).ok().flatten();
        let (at_us, reason) = first(&log, no_room, refused, wall_us(), below)?;
        // A filesystem that has gone offline reports nothing.
        let room = self.folder.as_ref().and_then(|folder| files::room(folder).ok().flatten());
        Some(FullRecord {
            step: self.step,
            after_us: at_us.saturating_sub(began_us),
            reason,
            size_bytes: room.map(|room| room.used + room.free),
            used_bytes: room.map(|room| room.used),
            server_log: last_lines(&log, LOG_LINES),
        })
    }
}

/// When the stack first refused data, and the message. Messages about a broken device count only if a layer below is
/// full; that layer's report is always added, since the space of a filesystem on it says nothing.
fn first(
    log: &str,
    no_room: Option<&str>,
    refused: Option<&str>,
    now_us: u64,
    below: impl FnOnce() -> Option<String>,
) -> Option<(u64, String)> {
    let logged = no_space::logged(log, no_space::FULL).or_else(|| Some((now_us, no_room?)));
    let logged_refusal = || no_space::logged(log, no_space::REFUSED);
    let (at_us, words) = logged.or_else(logged_refusal).or_else(|| Some((now_us, refused?)))?;
    match below() {
        Some(full) => Some((at_us, format!("{words} ({full})"))),
        None => logged.map(|(at_us, words)| (at_us, words.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "2026-11-22 05:17:22.460 GMT [31] LOG:  checkpoint starting: wal\n\
         2026-11-22 05:17:23.500 GMT [42] PANIC:  could not fsync file \"base/5/16396\": Input/output error\n";
    const POOL: &str = "the thin pool is full: 100.00 % of its data space";

    #[test]
    fn eio_counts_as_full_only_on_a_full_thin_pool() {
        let (at_us, reason) = first(LOG, None, None, 7, || Some(POOL.to_owned())).unwrap();
        assert_eq!(at_us % 60_000_000, 23_500_000, "the time of the message");
        assert_eq!(reason, format!("PANIC:  could not fsync file \"base/5/16396\": Input/output error ({POOL})"));
        assert_eq!(first(LOG, None, None, 7, || None), None);
        let tool = first("", None, Some("cp: Read-only file system"), 7, || Some(POOL.to_owned()));
        assert_eq!(tool, Some((7, format!("cp: Read-only file system ({POOL})"))));
        assert_eq!(first("", None, None, 7, || Some(POOL.to_owned())), None, "what failed is not about writes");
    }

    #[test]
    fn a_filesystem_without_room_needs_no_pool() {
        assert_eq!(
            first("", Some("No space left on device"), None, 7, || None),
            Some((7, "No space left on device".into()))
        );
    }
}
