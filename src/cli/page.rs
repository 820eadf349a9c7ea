//! HTML pages for `--html`.

use crate::cli::out;
use crate::error::{Context, Error, Result};
use crate::host::files;
use std::fs::File;
use std::path::Path;

/// Writes the page of `--html`, and prints its path unless JSON is printed.
pub(crate) fn page(path: &Path, page: &str, json: bool) -> Result<()> {
    to_file(path, page)?;
    if json { Ok(()) } else { out::line(&format!("\nreport      {}", out::harmless(&path.display().to_string()))) }
}

/// Writes a file that the user names, atomically.
pub(crate) fn to_file(path: &Path, text: &str) -> Result<()> {
    let whole = std::path::absolute(path).or_user(|| format!("find {}", path.display()))?;
    files::write_output(&whole, text.as_bytes())
}

/// Refuses to overwrite anything but an earlier page: a measurement may be the only copy.
pub(crate) fn refuse_to_overwrite(path: &Path) -> Result<()> {
    use std::io::Read;
    const BEGINNING_BYTES: u64 = 4096;
    let Ok(facts) = std::fs::metadata(path) else {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if folder.is_dir() {
            return Ok(());
        }
        let what = format!("the folder {} for --html {} does not exist", folder.display(), path.display());
        return Err(Error::user(what).hint("create it, or choose another file"));
    };
    let mut beginning = Vec::new();
    if facts.is_file() {
        let opened = File::open(path).and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut beginning));
        opened.or_user(|| format!("stat {}", path.display()))?;
    }
    match String::from_utf8_lossy(&beginning).contains("name=\"generator\" content=\"pgstrata") {
        true => Ok(()),
        false => Err(Error::user(format!("{} exists and is not a pgstrata page", path.display()))
            .hint("choose another file for --html, or remove this one")),
    }
}
