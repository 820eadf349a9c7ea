//! Reads files of a run folder, treating them as untrusted.

use crate::error::{Context, Error, Result};
use crate::host::files;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// True if something has this name, even a dangling link.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// True for a folder, but not for a symlink to one.
pub(crate) fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// A document as bytes.
///
/// # Errors
/// When a value cannot be represented in JSON: a bug.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(document).map_err(|e| Error::bug(format!("cannot be written: {e}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Largest document of a run folder that is read whole: a record of 100 000 trials has some 50 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a file of bounded size; `None` if it does not exist.
pub(crate) fn read_text(folder: &Path, name: impl AsRef<Path>) -> Result<Option<String>> {
    let reading = || format!("read {}", folder.join(&name).display());
    let Some(mut file) = files::open_within(folder, &name)? else { return Ok(None) };
    if file.metadata().or_store(reading)?.len() > MOST_BYTES {
        return Err(Error::store("it is larger than any run writes").while_doing(reading()));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).or_store(reading)?;
    Ok(Some(text))
}

/// For files that a run always writes: fails if it is gone.
pub(crate) fn must_have<T>(found: Option<T>, path: &Path) -> Result<T> {
    found.ok_or_else(|| Error::store(format!("{} is missing", path.display())))
}

/// Reads a document whose `format` must not be newer than `known`; `None` if it does not exist.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    folder: &Path,
    name: impl AsRef<Path>,
    known: u32,
) -> Result<Option<T>> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: u32,
    }
    let path = folder.join(&name);
    let Some(text) = read_text(folder, name)? else { return Ok(None) };
    let version: Version = serde_json::from_str(&text).or_store(|| format!("read {}", path.display()))?;
    if version.format > known {
        let (place, found, own) = (path.display(), version.format, env!("CARGO_PKG_VERSION"));
        let what = format!("{place} has format version {found}; this pgstrata ({own}) reads up to {known}");
        return Err(Error::store(what).hint("use the pgstrata that wrote it, or a newer one"));
    }
    serde_json::from_str(&text).map(Some).or_store(|| format!("read {}", path.display()))
}
