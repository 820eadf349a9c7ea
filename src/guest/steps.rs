//! A step of a build: a folder named after the hash of its inputs. It appears whole or not at all, so that a stopped
//! build continues where it was, and one with unchanged inputs does nothing.

use crate::error::{Context, Result};
use crate::host::{files, folders, mounts, paths};
use crate::parse::mountinfo;
use std::path::{Path, PathBuf};

/// One step of a suite.
#[derive(Debug, Clone)]
pub(super) struct BuildStep {
    /// Folder of the suite.
    pub(super) folder: PathBuf,
    pub(super) name: &'static str,
    pub(super) key: String,
}

/// Hash of inputs, including their boundaries.
pub(crate) fn key(inputs: &[&str]) -> String {
    let all: Vec<u8> = inputs.iter().flat_map(|one| [&one.len().to_le_bytes()[..], one.as_bytes()].concat()).collect();
    files::sha256(&all).chars().take(16).collect()
}

impl BuildStep {
    /// Path of its result, whether or not it exists.
    pub(super) fn place(&self) -> PathBuf {
        self.folder.join(format!("{}-{}", self.name, self.key))
    }

    pub(super) fn is_done(&self) -> bool {
        paths::is_folder(&self.place())
    }

    /// Lets `make` fill a folder beside the place, and renames it. Removes results of other inputs.
    ///
    /// # Errors
    /// Those of `make`; its unfinished result stays until the next attempt.
    pub(super) fn make(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let work = self.folder.join(format!(".{}.part", self.name));
        if paths::exists(&work) {
            unmount_below(&work)?;
            folders::remove_all(&work)?;
        }
        files::make_folder(&work, 0o755)?;
        make(&work)?;
        for old in self.others() {
            folders::remove_all(&old)?;
        }
        folders::rename(&work, &self.place())?;
        Ok(self.place())
    }

    /// Results of the same step with other inputs.
    pub(super) fn others(&self) -> Vec<PathBuf> {
        let prefix = format!("{}-", self.name);
        let mut others = folders::list(&self.folder).unwrap_or_default();
        others.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix) && *path != self.place()
        });
        others
    }
}

/// Unmounts what a killed build left mounted below its folder.
fn unmount_below(folder: &Path) -> Result<()> {
    let folder = paths::resolve(folder)?;
    let table = mountinfo::parse(&files::read_text(Path::new("/proc/self/mountinfo"))?)?;
    for target in table.iter().rev().map(|mount| Path::new(&mount.target)).filter(|target| target.starts_with(&folder))
    {
        mounts::unmount(target).or_host(|| format!("unmount {}", target.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn mounts_left_by_a_killed_build_are_unmounted_before_removal() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        if !crate::host::users::is_root() {
            println!("skipped: mounts below an unfinished step: needs root");
            return;
        }
        let step = BuildStep { folder: folder.path().to_path_buf(), name: "root", key: key(&["a"]) };
        let left = folder.path().join(".root.part/chroot/proc");
        std::fs::create_dir_all(&left).unwrap();
        std::fs::write(elsewhere.path().join("mine"), "").unwrap();
        let bound = std::process::Command::new("mount").arg("--bind").args([elsewhere.path(), &left]).status().unwrap();
        assert!(bound.success());
        step.make(|_| Ok(())).unwrap();
        assert!(step.is_done() && elsewhere.path().join("mine").exists());
    }

    #[test]
    fn a_step_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let step = |inputs: &[&str]| BuildStep { folder: folder.path().to_path_buf(), name: "root", key: key(inputs) };
        let first = step(&["a"]);
        let failed = first.make(|work| {
            files::write_whole(&work.join("half"), b"")?;
            Err(Error::host("no space"))
        });
        assert!(failed.is_err() && !first.is_done());
        let place = first.make(|work| files::write_whole(&work.join("whole"), b"")).unwrap();
        assert!(first.is_done() && !place.join("half").exists() && place.join("whole").exists());
        let second = step(&["b"]);
        assert_eq!(second.others(), [place]);
        second.make(|_| Ok(())).unwrap();
        assert!(!first.is_done() && second.is_done() && second.others().is_empty());
    }

    #[test]
    fn inputs_count_with_their_bounds() {
        assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
        assert_ne!(key(&["a", "b"]), key(&["ab"]));
        assert_ne!(key(&["a", "b"]), key(&["ab", ""]));
    }
}
