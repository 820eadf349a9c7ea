//! The single stream of events: stored, and passed to the watcher.

use crate::error::Result;
use crate::host::time;
use crate::record::event::{Event, Stamped};
use crate::store::folder::Writer;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Watches a run, given its folder: the progress display, `--json`, a test.
pub type Watcher<'a> = &'a (dyn Fn(&Path, &Stamped) + Sync);

/// Accepts events from every thread of a run.
pub struct Events<'a> {
    writer: Mutex<Writer>,
    folder: PathBuf,
    watcher: Watcher<'a>,
}

impl<'a> Events<'a> {
    pub fn new(writer: Writer, watcher: Watcher<'a>) -> Events<'a> {
        let folder = writer.folder().path().to_path_buf();
        Events { writer: Mutex::new(writer), folder, watcher }
    }

    /// Stores an event and shows it. Seconds are only shown: their figures are in `seconds.parquet`. So is the progress
    /// of writing images and drives.
    ///
    /// # Errors
    /// When the run folder cannot be written.
    pub fn emit(&self, event: Event) -> Result<()> {
        let stamped = Stamped { at_us: time::wall_us(), what: event };
        if !matches!(stamped.what, Event::Second { .. } | Event::ImagesWritten { .. } | Event::DriveFilled { .. }) {
            self.writer().append(&stamped)?;
        }
        (self.watcher)(&self.folder, &stamped);
        Ok(())
    }

    pub fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        // A panic while writing an event leaves at most a truncated line, which reading tolerates.
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
