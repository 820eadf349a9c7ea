//! Folders that contain outputs of tools: the argument may mean the content or the location.

use crate::error::{Error, Result};
use crate::foreign;
use crate::host::command::quoted;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};

/// Maximum number of folder entries that are listed; nobody saved more by hand.
const MOST_ENTRIES: usize = 10_000;
/// Maximum number of files that are examined, by name.
const MOST_FILES: usize = 100;
/// File that identifies a PostgreSQL data directory.
const DATA_DIRECTORY: &str = "PG_VERSION";

/// Refuses a folder with outputs unless it is named as a location: `.` or `..`, alone or after a folder.
///
/// # Errors
/// With the command that imports it.
pub(super) fn refuse(label: &str, folder: &Path) -> Result<()> {
    let is_place = matches!(label.rsplit('/').next(), Some("." | ".."));
    if is_place || folder.join(DATA_DIRECTORY).is_file() {
        return Ok(());
    }
    let Some(found) = first(folder) else { return Ok(()) };
    let name = quoted(folder.as_os_str());
    Err(Error::user(format!("{label} is not a run folder, but holds tool output: {found}")).hint(format!(
        "import it first with `pgstrata import {name} -o results` and compare the folder it prints; \
         to probe the folder itself, write `{label}/.`"
    )))
}

/// The first file directly in a folder that is a tool's output, with the tool. Reads only the beginnings of files.
pub(super) fn first(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.take(MOST_ENTRIES).flatten();
    let mut paths: Vec<PathBuf> = entries.filter(is_visible_file).map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().take(MOST_FILES).find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let tool = foreign::recognised(&mut File::open(path).ok()?)?;
        Some(format!("{name} of {tool}"))
    })
}

/// True for files that `pgstrata import` would read in a folder: regular, not hidden, not a link.
fn is_visible_file(entry: &DirEntry) -> bool {
    !entry.file_name().to_string_lossy().starts_with('.') && entry.file_type().is_ok_and(|kind| kind.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ending_in_dot_components_is_a_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mount.txt"), "/dev/sda1 on / type ext4 (rw,relatime)\n").unwrap();
        for place in [".", "..", "measured/.", "measured/..", "../.."] {
            assert!(refuse(place, folder.path()).is_ok(), "{place}");
        }
        for name in ["measured", "/measured", "../measured", "measured.", "a/..b"] {
            assert!(refuse(name, folder.path()).is_err(), "{name}");
        }
    }
}
