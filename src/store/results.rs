//! A folder of run folders, for readers only: access to its runs and other results by name, and to nothing outside.

use super::checked::{is_real_folder, read_text};
use super::folder::{EVENTS, RUN, RunFolder};
use super::presence::is_live;
use super::verdicts::VERDICTS;
use crate::error::{Context, Error, Result};
use crate::record::run::RunRecord;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Depth of the deepest file in a run folder: `trials/CASE/N/raw/...`, with room for future layouts.
const DEEPEST: u32 = 12;

/// Largest text that is looked at: documents of ours have some hundred kilobytes.
const MOST_BYTES: u64 = 16 << 20;

/// Detects changes of a run, for lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    changed: SystemTime,
    events: u64,
    /// Time of the last verdict on a power cut.
    verdicts: Option<SystemTime>,
    pub live: bool,
}

#[derive(Debug, Clone)]
pub struct Results {
    root: PathBuf,
}

impl Results {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not a folder, or is itself a run folder.
    pub fn open(path: &Path) -> Result<Results> {
        let root = fs::canonicalize(path).map_err(|e| {
            Error::user(format!("{}: {e}", path.display())).hint("name the folder in which the runs are: results")
        })?;
        if !root.is_dir() {
            return Err(Error::user(format!("{} is not a folder", path.display()))
                .hint("name the folder in which the runs are: results"));
        }
        if RunFolder::is_one(&root) {
            return Err(Error::user(format!("{} is a run folder", path.display()))
                .hint("name the folder in which the runs are, usually the one above"));
        }
        Ok(Results { root })
    }

    /// Names of the runs, latest first: names begin with the date.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>> {
        self.entries(|name| self.path(name).is_some())
    }

    /// Names of entries, the last first.
    fn entries(&self, is_one: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.root).or_store(|| format!("read {}", self.root.display()))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_one(name)).collect();
        names.sort_by(|a, b| b.cmp(a));
        Ok(names)
    }

    /// Names of other entries that are no links.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn others(&self) -> Result<Vec<String>> {
        self.entries(|name| self.other(name).is_some())
    }

    /// Path of a file or folder that is not a run; `None` if there is none, the name is invalid, or it is a link.
    pub fn other(&self, name: &str) -> Option<PathBuf> {
        let path = self.entry(name).filter(|_| self.path(name).is_none())?;
        fs::symlink_metadata(&path).is_ok_and(|of| of.is_dir() || of.is_file()).then_some(path)
    }

    /// Text of such a file, and when it was written; `None` if it is no text, or larger than any document of ours.
    pub fn text(&self, name: &str) -> Option<(String, SystemTime)> {
        let facts = fs::symlink_metadata(self.other(name)?).ok().filter(|of| of.len() <= MOST_BYTES)?;
        Some((read_text(&self.root, name).ok()??, facts.modified().ok()?))
    }

    /// Path of an entry; `None` if its name leads elsewhere.
    fn entry(&self, name: &str) -> Option<PathBuf> {
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        is_name.then(|| self.root.join(name))
    }

    /// Path of the run with this name; `None` if there is none, the name is invalid, or it is a link.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.entry(name)?;
        let is_run = fs::symlink_metadata(path.join(RUN)).is_ok_and(|of| of.is_file());
        (is_real_folder(&path) && is_run).then_some(path)
    }

    /// Changes whenever the run does: each stored trial appends an event. `None` if there is no such run.
    pub fn stamp(&self, name: &str) -> Option<Stamp> {
        let path = self.path(name)?;
        let [run, events] = [RUN, EVENTS].map(|file| fs::symlink_metadata(path.join(file)));
        let changed = run.ok()?.modified().ok()?;
        let verdicts = fs::symlink_metadata(path.join(VERDICTS)).and_then(|of| of.modified()).ok();
        Some(Stamp { changed, events: events.map_or(0, |of| of.len()), verdicts, live: is_live(&path) })
    }

    /// `run.json` of a run that is not a link; reads nothing else of the run. `None` if there is no such run.
    ///
    /// # Errors
    /// When it is damaged or newer than this program.
    pub fn record(&self, name: &str) -> Result<Option<RunRecord>> {
        self.path(name).map(|path| Ok(RunFolder::open(&path)?.record().clone())).transpose()
    }

    /// Opens a run; `None` if there is no such run.
    ///
    /// # Errors
    /// When it is damaged or newer than this program, or contains a link, which could lead anywhere.
    pub fn run(&self, name: &str) -> Result<Option<RunFolder>> {
        let Some(path) = self.path(name) else { return Ok(None) };
        if let Some(link) = link_in(&path, DEEPEST) {
            return Err(Error::store(format!("{} is a symbolic link, and links are not followed", link.display()))
                .hint("replace it by what it leads to, if that belongs to the run"));
        }
        RunFolder::open(&path).map(Some)
    }
}

/// Finds a symbolic link below a folder. Skips unreadable folders, which cannot be shown either.
fn link_in(folder: &Path, depth: u32) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let found = match () {
            () if kind.is_symlink() => Some(entry.path()),
            () if kind.is_dir() && depth > 0 => link_in(&entry.path(), depth - 1),
            () => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_that_lead_elsewhere_name_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let (results, outside) = (folder.path().join("results"), folder.path().join("outside"));
        for run in [results.join("2026-a"), results.join("2026-b"), outside.clone(), results.join("linked")] {
            fs::create_dir_all(&run).unwrap();
        }
        for run in [results.join("2026-a"), results.join("2026-b"), outside.clone()] {
            fs::write(run.join(RUN), "{}").unwrap();
        }
        symlink(&outside, results.join("link")).unwrap();
        symlink(outside.join(RUN), results.join("linked").join(RUN)).unwrap();
        let results = Results::open(&results).unwrap();
        assert_eq!(results.names().unwrap(), ["2026-b", "2026-a"]);
        for name in ["link", "linked", "..", ".", "", "../outside", "2026-a/../2026-b", "/etc", "2026-a\0", "none"] {
            assert_eq!(results.path(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_run_with_a_link_inside_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let raw = folder.path().join("run/trials/case/1/raw");
        fs::create_dir_all(&raw).unwrap();
        fs::write(folder.path().join("run").join(RUN), "{}").unwrap();
        symlink("/etc/passwd", raw.join("log")).unwrap();
        let error = Results::open(folder.path()).unwrap().run("run").unwrap_err();
        assert!(error.to_string().contains("raw/log is a symbolic link"), "{error}");
    }

    #[test]
    fn a_run_folder_is_no_folder_of_runs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RUN), "{}").unwrap();
        assert!(Results::open(folder.path()).is_err());
        assert!(Results::open(&folder.path().join(RUN)).is_err());
    }
}
