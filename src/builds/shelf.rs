//! Cache layout: `builds/KEY` for builds, `builds/source-KEY` for fetched packages.

use super::BuiltPostgres;
use crate::error::{Error, Result};
use crate::guest::cache::{self, Cache, bytes_below};
use crate::guest::steps::key;
use crate::host::files::{self, File};
use crate::host::signals::Interrupt;
use crate::host::{Host, folders, paths, users};
use crate::record::build::BuildSpec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Metadata file in each folder; it is written last, so a folder with it is complete.
pub(super) const NOTE: &str = "pgstrata.json";
const SOURCE: &str = "source-";
const WORK: &str = ".part";
const LOCK: &str = ".lock";
const LOG: &str = "build.log";

/// Metadata kept with a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildNote {
    pub spec: BuildSpec,
    /// Output of `postgres --version`.
    pub version: String,
    /// Source: file or commit, with its checksum.
    pub made_from: String,
    /// First line of `cc --version`.
    pub compiler: String,
    /// Arguments of `configure`, without the prefix.
    pub configure: Vec<String>,
}

/// Builds on this machine.
#[derive(Debug, Clone)]
pub struct Shelf(PathBuf);

/// A running build.
pub(super) struct BuildTask<'a> {
    pub host: &'a Host,
    pub shelf: &'a Shelf,
    pub spec: &'a BuildSpec,
    pub interrupt: &'a Interrupt,
    /// Folder used by this build only.
    pub work: &'a Path,
}

impl Shelf {
    /// Uses `$PGSTRATA_CACHE`; else `/var/cache/pgstrata` for root, `~/.cache/pgstrata` for others.
    ///
    /// # Errors
    /// If none of these is known.
    pub fn of_user() -> Result<Shelf> {
        let cache = Cache::of_user()?;
        // Programs contain the path of their libraries.
        Ok(Shelf(paths::settled(cache.parent())?.join("builds")))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    #[cfg(test)]
    pub(super) fn at(folder: &Path) -> Shelf {
        Shelf(folder.to_path_buf())
    }

    /// All builds, by key, with their sizes in bytes.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> Result<Vec<(String, BuildNote, u64)>> {
        let folders = self.folders(|name| !name.starts_with('.') && !name.starts_with(SOURCE))?.into_iter();
        Ok(folders.filter_map(|(folder, key)| Some((key, read(&folder)?, bytes_below(&folder)))).collect())
    }

    /// Removes a build; returns the bytes freed.
    ///
    /// # Errors
    /// If no build has that key, or a build is running.
    pub fn remove(&self, key: &str) -> Result<u64> {
        let _lock = self.lock()?;
        let found = self.folders(|name| name == key && !name.starts_with('.'))?.pop();
        let (folder, _) =
            found.ok_or_else(|| Error::user(format!("there is no build {key}")).hint("pgstrata postgres list"))?;
        cache::remove_all(&folder)
    }

    /// Removes all builds and fetched packages; returns the bytes freed.
    ///
    /// # Errors
    /// If a build is running, or a file cannot be removed.
    pub fn remove_all(&self) -> Result<u64> {
        let _lock = self.lock()?;
        self.folders(|name| name != LOCK)?.into_iter().map(|(folder, _)| cache::remove_all(&folder)).sum()
    }

    fn folders(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(PathBuf, String)>> {
        if !paths::is_folder(&self.0) {
            return Ok(Vec::new());
        }
        let named = folders::list(&self.0)?.into_iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            (paths::is_folder(&path) && wanted(&name)).then_some((path, name))
        });
        Ok(named.collect())
    }

    /// The build at a path, if it is complete.
    pub(super) fn find(&self, place: &Path) -> Option<BuiltPostgres> {
        let kept = read(place)?;
        Some(BuiltPostgres { bin: place.join("bin"), made_from: kept.made_from })
    }

    /// Moves a finished build into its place.
    pub(super) fn take(&self, installed: &Path, place: &Path) -> Result<BuiltPostgres> {
        // A build without its metadata file is incomplete.
        folders::remove_all(place)?;
        folders::rename(installed, place)?;
        self.find(place).ok_or_else(|| Error::bug("a finished build is not found"))
    }

    /// Folder of a version's package once it is fetched.
    pub(super) fn package_folder(&self, spec: &BuildSpec) -> PathBuf {
        let asked = [spec.version.as_deref().unwrap_or_default(), spec.suite.as_deref().unwrap_or_default()];
        self.0.join(format!("{SOURCE}{}", key(&asked)))
    }

    /// Takes the lock that prevents other builds.
    pub(super) fn lock(&self) -> Result<File> {
        folders::make_all(&self.0, 0o755)?;
        if users::is_root() {
            // A umask of 077 would hide them from the user that servers run as.
            for folder in [self.0.as_path(), self.0.parent().unwrap_or(&self.0)] {
                files::set_mode(folder, 0o755)?;
            }
        }
        let lock = files::append_to(&self.0.join(LOCK))?;
        // A child that is being started holds our lock until it executes its program.
        files::soon(|| files::lock(&lock))
            .map_err(|_| Error::host("another pgstrata is building a PostgreSQL").hint("wait for it"))?;
        Ok(lock)
    }

    /// Creates an empty folder owned by the user who builds. Needs the lock.
    pub(super) fn work(&self) -> Result<PathBuf> {
        let work = self.0.join(WORK);
        folders::remove_all(&work)?;
        files::make_folder(&work, 0o755)?;
        files::give_to(&work, &users::server_user(&Host::this())?)?;
        Ok(work)
    }

    /// Output of the programs of the last build.
    pub(super) fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }
}

fn read(folder: &Path) -> Option<BuildNote> {
    serde_json::from_str(&files::read_text(&folder.join(NOTE)).ok()?).ok()
}

pub(super) fn to_json(note: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(note).map_err(|e| Error::bug(e.to_string()))
}
