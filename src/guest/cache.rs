//! Cache folders of guests: `guest/SUITE/STEP-KEY`, and `guest/running/ID` for each running guest.

use super::suite::Suite;
use crate::error::{Error, Result};
use crate::host::files::{self, File};
use crate::host::{folders, paths, users};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// In `$PGSTRATA_CACHE`; else in `/var/cache/pgstrata` for root, in `$XDG_CACHE_HOME/pgstrata` or
    /// `~/.cache/pgstrata` for other users.
    ///
    /// # Errors
    /// If none of these is known.
    pub fn of_user() -> Result<Cache> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = match variable("PGSTRATA_CACHE") {
            Some(folder) => Some(folder),
            None if users::is_root() => Some(PathBuf::from("/var/cache/pgstrata")),
            None => variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".cache")))
                .map(|cache| cache.join("pgstrata")),
        };
        let cache = folder.map(|folder| Cache(folder.join("guest")));
        cache.ok_or_else(|| Error::host("no folder for guests: HOME is not set").hint("set PGSTRATA_CACHE to a folder"))
    }

    /// In another folder.
    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Cache {
        Cache(folder.join("guest"))
    }

    /// Folder of one suite.
    pub fn suite(&self, suite: &Suite) -> PathBuf {
        self.0.join(suite.name())
    }

    /// The cache itself, which also holds the downloads of `scripts/setup`.
    pub fn parent(&self) -> &Path {
        self.0.parent().unwrap_or(&self.0)
    }

    /// File that records the working accelerator.
    pub(super) fn accelerator(&self) -> PathBuf {
        self.0.join("accelerator.json")
    }

    /// Suites with a folder in the cache.
    pub fn suites(&self) -> Vec<Suite> {
        let names = folders::list(&self.0).unwrap_or_default();
        let names = names.iter().filter(|path| paths::is_folder(path)).filter_map(|path| path.file_name()?.to_str());
        names.filter(|name| *name != RUNNING).filter_map(|name| name.parse().ok()).collect()
    }

    /// Makes a folder that the user that QEMU runs as can pass through.
    pub(super) fn make(&self, folder: &Path) -> Result<()> {
        folders::make_all(folder, 0o755)?;
        // A umask of 077 would hide the folders from that user.
        for folder in folder.ancestors().take_while(|folder| folder.starts_with(&self.0)) {
            files::set_mode(folder, 0o755)?;
        }
        Ok(())
    }

    /// Makes the parent of the folders of running guests.
    pub(super) fn running_folder(&self) -> Result<PathBuf> {
        let all = self.0.join(RUNNING);
        self.make(&all)?;
        Ok(all)
    }

    /// Makes the folder of a guest about to run, and removes those of dead guests. Its lock keeps it.
    pub(super) fn running(&self) -> Result<GuestFolder> {
        let all = self.running_folder()?;
        for folder in folders::list(&all)? {
            let Ok(lock) = files::open(&folder.join(LOCK)) else { continue };
            // Held until the folder is gone, so that no other program removes it too or takes it over.
            if files::lock(&lock).is_ok() {
                folders::remove_all(&folder)?;
            }
        }
        loop {
            let folder = all.join(files::random_id()?);
            self.make(&folder)?;
            let lock = files::create(&folder.join(LOCK))?;
            // Between folder and lock, another program that starts a guest may have taken this one for abandoned.
            if files::lock(&lock).is_ok() && paths::exists(&folder.join(LOCK)) {
                return Ok(GuestFolder { folder, _lock: lock });
            }
        }
    }

    /// Removes everything of a suite; returns the number of bytes freed.
    ///
    /// # Errors
    /// If a build of it is running, or a file cannot be removed.
    pub fn remove(&self, suite: &Suite) -> Result<u64> {
        let folder = self.suite(suite);
        if !paths::exists(&folder) {
            return Ok(0);
        }
        let _lock = self.lock(suite)?;
        remove_all(&folder)
    }

    /// Locks the suite against other builds.
    pub(super) fn lock(&self, suite: &Suite) -> Result<File> {
        self.make(&self.suite(suite))?;
        let lock = files::append_to(&self.suite(suite).join(LOCK))?;
        files::lock(&lock)
            .map_err(|_| Error::host(format!("another pgstrata is building the guest {suite}")).hint("wait for it"))?;
        Ok(lock)
    }
}

const RUNNING: &str = "running";
const LOCK: &str = "lock";

/// The folder of a running guest; removed at its end.
#[derive(Debug)]
pub(super) struct GuestFolder {
    pub(super) folder: PathBuf,
    _lock: File,
}

impl Drop for GuestFolder {
    fn drop(&mut self) {
        // The next guest removes what is left.
        drop(folders::remove_all(&self.folder));
    }
}

/// Removes a folder; returns the number of bytes freed.
///
/// # Errors
/// If something cannot be removed.
pub fn remove_all(folder: &Path) -> Result<u64> {
    let bytes = bytes_below(folder);
    folders::remove_all(folder).map(|()| bytes)
}

/// Size of the files in a folder, bytes.
pub fn bytes_below(folder: &Path) -> u64 {
    let entries = folders::list(folder).unwrap_or_default();
    let sizes = entries.iter().map(|path| match paths::look_for(path) {
        Ok(Some(facts)) if facts.kind == paths::Kind::Directory => bytes_below(path),
        Ok(Some(facts)) => facts.allocated_bytes,
        _ => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_started_concurrently_get_separate_folders() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..40 {
                        let running = cache.running().unwrap();
                        std::fs::write(running.folder.join("console.log"), "up").unwrap();
                        std::thread::yield_now();
                        assert!(running.folder.join(LOCK).exists() && running.folder.join("console.log").exists());
                    }
                });
            }
        });
        assert_eq!(folders::list(&cache.running_folder().unwrap()).unwrap(), Vec::<PathBuf>::new());
    }
}
