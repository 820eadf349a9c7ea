//! An append-only file: each line is synced before `add` returns.

use super::files;
use crate::error::{Context, Result};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub struct Appended {
    file: File,
    path: PathBuf,
}

impl Appended {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// An I/O error that names the path.
    pub(crate) fn open(path: &Path) -> Result<Appended> {
        Ok(Appended { file: files::append_to(path)?, path: path.to_path_buf() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line and syncs it. Lines of concurrent writers do not interleave.
    ///
    /// # Errors
    /// An I/O error that names the path.
    pub(crate) fn add(&mut self, line: &str) -> Result<()> {
        // One write: appending is atomic only as a whole (open(2), O_APPEND).
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.and_then(|()| self.file.sync_data()).or_host(|| format!("write to {}", self.path.display()))
    }
}
