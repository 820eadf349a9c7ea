//! Folders that hold outputs of tools: what they hold may be meant, or the place where they lie.

use crate::error::{Error, Result};
use crate::host::command::quoted;
use crate::import;
use std::fs::{self, DirEntry, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most entries of a folder that are listed; more than these nobody saved by hand.
const MOST_ENTRIES: usize = 10_000;
/// Most files that are looked at, by name, and how much of each.
const MOST_FILES: usize = 100;
const MOST_BYTES: u64 = 256 * 1024;
/// What a data directory of PostgreSQL has.
const DATA_DIRECTORY: &str = "PG_VERSION";

/// Refuses a folder with outputs unless it is named as a place: `.`, or with `/.` at its end.
///
/// # Errors
/// With the command that imports it.
pub(super) fn refuse(label: &str, folder: &Path) -> Result<()> {
    if label == "." || label.ends_with("/.") || folder.join(DATA_DIRECTORY).is_file() {
        return Ok(());
    }
    let Some(found) = first(folder) else { return Ok(()) };
    let name = quoted(folder.as_os_str());
    Err(Error::user(format!("{label} is no run folder, but it holds outputs of tools: {found}")).hint(format!(
        "import it first: `pgstrata import {name} -o results`, and compare the folder that this names; \
         to probe the place where it lies, write `{label}/.`"
    )))
}

/// The first file right in a folder that is a tool's output, with the tool. Only the beginnings of files are looked at.
pub(super) fn first(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.take(MOST_ENTRIES).flatten();
    let mut paths: Vec<PathBuf> = entries.filter(is_visible_file).map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().take(MOST_FILES).find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let reading = import::read(&name, &mut File::open(path).ok()?.take(MOST_BYTES)).ok()?;
        Some(format!("{name} of {}", reading.outputs.first()?.tool))
    })
}

/// As `pgstrata import` walks a folder: nothing that is hidden, no link, nothing but regular files.
fn is_visible_file(entry: &DirEntry) -> bool {
    !entry.file_name().to_string_lossy().starts_with('.') && entry.file_type().is_ok_and(|kind| kind.is_file())
}
