//! The one stream of events: stored, and handed to whoever watches.

use crate::error::Result;
use crate::host::time;
use crate::record::event::{Event, Stamped};
use crate::store::folder::Writer;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Whoever watches a run, with the run's folder: the progress display, `--json`, a test.
pub type Watcher<'a> = &'a (dyn Fn(&Path, &Stamped) + Sync);

/// Takes events from every thread of a run.
pub struct Events<'a> {
    writer: Mutex<Writer>,
    folder: PathBuf,
    watcher: Watcher<'a>,
}

impl<'a> Events<'a> {
    /// A stream into a run folder.
    pub fn new(writer: Writer, watcher: Watcher<'a>) -> Events<'a> {
        let folder = writer.folder().path().to_path_buf();
        Events { writer: Mutex::new(writer), folder, watcher }
    }

    /// Stores an event and shows it. Seconds are only shown: their figures are in `seconds.parquet`. So is how far images and
    /// drives are written.
    ///
    /// # Errors
    /// When the run folder takes no more.
    pub fn emit(&self, event: Event) -> Result<()> {
        let stamped = Stamped { at_us: time::wall_us(), what: event };
        if !matches!(stamped.what, Event::Second { .. } | Event::ImagesWritten { .. } | Event::DriveFilled { .. }) {
            self.writer().append(&stamped)?;
        }
        (self.watcher)(&self.folder, &stamped);
        Ok(())
    }

    /// The run folder's writer.
    pub fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        // A thread that panicked while writing an event leaves at most a cut-off line, which reading tolerates.
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
