//! Whether a run folder is there, and whether somebody writes to it.

use super::folder::{EVENTS, RUN, RunFolder};
use crate::error::{Error, Result};
use crate::host::files;
use std::fs::File;

impl RunFolder {
    /// Whether a pgstrata is writing to it.
    #[must_use]
    pub fn is_live(&self) -> bool {
        let events = File::open(self.path().join(EVENTS));
        events.is_ok_and(|events| files::soon(|| files::lock_shared(&events)).is_err())
    }

    /// # Errors
    /// When somebody has removed or moved it.
    pub fn must_be_there(&self) -> Result<()> {
        if self.path().join(RUN).exists() {
            return Ok(());
        }
        Err(Error::store(format!("the run folder {} is gone: it was removed or moved", self.path().display())).hint(
            format!(
                "restore it and resume with: pgstrata run --resume {}; or start the plan again",
                self.path().display()
            ),
        ))
    }
}
