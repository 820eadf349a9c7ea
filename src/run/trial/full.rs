//! A stack that has no room left: whether that is what a step met, when, and what is kept of it.
//!
//! The server's log is asked first, then whatever failed. Absent on purpose: data that do not fit when they are loaded: then the
//! plan must change.

use super::Trial;
use crate::error::Error;
use crate::host::command::last_lines;
use crate::host::files;
use crate::host::time::{micros, wall_us};
use crate::parse::no_space;
use crate::record::event::Step;
use crate::record::full::FullRecord;

/// Lines of the server's log that are kept in the record; all of it is in `raw/`.
const LOG_LINES: usize = 12;

impl Trial<'_, '_> {
    /// Notes that the stack was full, where that is what ended the step under way.
    pub(super) fn note_full(&mut self, failure: &Error) {
        if !matches!(self.step, Step::Age | Step::Start | Step::WarmUp | Step::Measure) {
            return;
        }
        let said = failure.chain();
        // While it is aged, the cluster may lie beside the stack for a while, on a disk that is none of it.
        // What makes snapshots names the mount point or the pool, and not the folder of the cluster.
        let names_stack = || {
            self.folder.as_ref().is_some_and(|folder| said.contains(&folder.display().to_string()))
                || self.stack.as_ref().is_some_and(|stack| stack.is_named_in(&said))
        };
        let is_of_stack = self.step != Step::Age || names_stack();
        let began_us = wall_us().saturating_sub(micros(self.step_began.elapsed()));
        self.record.full = self.full(no_space::line(&said).filter(|_| is_of_stack), began_us);
    }

    /// The same after a measurement, by when its first operation began and why it ended before its time.
    pub(super) fn note_full_load(&mut self, ended: Option<&str>, began_us: u64) {
        self.record.full = self.full(ended, began_us);
    }

    fn full(&self, said: Option<&str>, began_us: u64) -> Option<FullRecord> {
        // None without a server.
        let log = files::read(&self.staging.raw().join("server.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let (at_us, reason) = no_space::logged(&log).or_else(|| Some((wall_us(), said?)))?;
        // A filesystem that has gone offline tells nothing.
        let room = self.folder.as_ref().and_then(|folder| files::room(folder).ok().flatten());
        Some(FullRecord {
            step: self.step,
            after_us: at_us.saturating_sub(began_us),
            reason: reason.to_owned(),
            size_bytes: room.map(|room| room.used + room.free),
            used_bytes: room.map(|room| room.used),
            server_log: last_lines(&log, LOG_LINES),
        })
    }
}
