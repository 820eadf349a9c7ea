//! Checks that a run folder exists, and if a process is writing to it.

use super::folder::{EVENTS, RunFolder};
use crate::error::{Error, Result};
use crate::host::files;
use std::path::Path;

/// True if a pgstrata is writing to the run in a folder.
pub(super) fn is_live(folder: &Path) -> bool {
    let events = files::open_within(folder, EVENTS);
    matches!(events, Ok(Some(events)) if files::soon(|| files::lock_shared(&events)).is_err())
}

impl RunFolder {
    /// True if a pgstrata is writing to it.
    pub fn is_live(&self) -> bool {
        is_live(self.path())
    }

    /// # Errors
    /// When it has been removed or moved.
    pub fn must_be_there(&self) -> Result<()> {
        if RunFolder::is_one(self.path()) {
            return Ok(());
        }
        let place = self.path().display();
        let what = format!("the run folder {place} is gone: it was removed or moved");
        let hint = format!("restore it and resume with: pgstrata run --resume {place}; or start the plan again");
        Err(Error::store(what).hint(hint))
    }
}
