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

/// A document of a run folder; `None` if it does not exist.
pub(crate) fn read_text(folder: &Path, name: impl AsRef<Path>) -> Result<Option<String>> {
    read_up_to(folder, name.as_ref(), <[u8]>::len)
}

/// The whole lines of a file that was written line by line: the last one may be cut off, even inside of a character.
pub(crate) fn read_lines(folder: &Path, name: impl AsRef<Path>) -> Result<Option<String>> {
    let ended = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    read_up_to(folder, name.as_ref(), ended)
}

/// The text up to where `ends` says.
fn read_up_to(folder: &Path, name: &Path, ends: impl Fn(&[u8]) -> usize) -> Result<Option<String>> {
    let reading = || format!("read {}", folder.join(name).display());
    let Some(mut file) = files::open_within(folder, name)? else { return Ok(None) };
    if file.metadata().or_store(reading)?.len() > MOST_BYTES {
        return Err(Error::store("it is larger than any run writes").while_doing(reading()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).or_store(reading)?;
    bytes.truncate(ends(&bytes));
    String::from_utf8(bytes).map(Some).or_store(reading)
}

/// For files that a run always writes: fails if it is gone.
pub(crate) fn must_have<T>(found: Option<T>, path: &Path) -> Result<T> {
    found.ok_or_else(|| Error::store(format!("{} is missing", path.display())))
}

/// Reads a document whose `format` must not be newer than `known`; `None` if it does not exist.
pub fn read_versioned<T: DeserializeOwned>(folder: &Path, name: impl AsRef<Path>, known: u32) -> Result<Option<T>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_line_may_be_cut_off_inside_of_a_character() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lines"), b"one\ntwo\n\"5 \xc2").unwrap();
        assert_eq!(read_lines(folder.path(), "lines").unwrap().unwrap(), "one\ntwo\n");
        assert!(read_text(folder.path(), "lines").is_err());
        assert_eq!(read_lines(folder.path(), "missing").unwrap(), None);
    }
}
