//! A file that only grows: a line at a time, each synced before it counts.

use super::files;
use crate::error::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// An open file of lines.
pub struct Appended {
    file: File,
    path: PathBuf,
}

impl Appended {
    /// Opens it, or makes it.
    ///
    /// # Errors
    /// With the path.
    pub(crate) fn open(path: &Path) -> Result<Appended> {
        Ok(Appended { file: files::append_to(path)?, path: path.to_path_buf() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line and syncs it. Lines of several writers do not mix.
    ///
    /// # Errors
    /// With the path.
    pub(crate) fn add(&mut self, line: &str) -> Result<()> {
        let adding = || format!("write to {}", self.path.display());
        // One write: appending is atomic only as a whole (open(2), O_APPEND).
        self.file.write_all(format!("{line}\n").as_bytes()).or_host(adding)?;
        self.file.sync_data().or_host(adding)
    }
}
