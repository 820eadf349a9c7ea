//! The folder of an import: what was read, and the files as they were given.
//!
//! ```text
//! results/<date>-import-<name>/
//!   import.json     format version, tool version, origin, cases, each number with its text and line
//!   raw/NAME        every file as it was given, still packed; `raw/stdin` for standard input
//! ```
//!
//! Made beside its place, synced, and renamed into it, whole or not at all.

use super::folder::{folder_name, json, read_versioned};
use super::staging::sync_tree;
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::imported::{self, ImportRecord};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

const IMPORT: &str = "import.json";
const RAW: &str = "raw";

/// The folder of an import, open for reading.
#[derive(Debug, Clone)]
pub struct ImportFolder {
    path: PathBuf,
    record: ImportRecord,
}

impl ImportFolder {
    /// Whether a folder is one of an import.
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        path.join(IMPORT).is_file()
    }

    /// Opens one.
    ///
    /// # Errors
    /// When it is none, is damaged, or was written by a newer pgstrata.
    pub fn open(path: &Path) -> Result<ImportFolder> {
        if !ImportFolder::is_one(path) {
            return Err(Error::user(format!("{} is not the folder of an import: it has no {IMPORT}", path.display()))
                .hint("make one with `pgstrata import FILE...`"));
        }
        let record: ImportRecord = read_versioned(&path.join(IMPORT), imported::FORMAT)?;
        let bad = record
            .cases
            .iter()
            .flat_map(|case| &case.trials)
            .find(|trial| trial.outputs.iter().any(|output| output.file >= trial.files.len()));
        match bad {
            Some(_) => Err(Error::store(format!(
                "{} is damaged: an output is of a file that is not there",
                path.join(IMPORT).display()
            ))),
            None => Ok(ImportFolder { path: path.to_path_buf(), record }),
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `import.json`.
    #[must_use]
    pub fn record(&self) -> &ImportRecord {
        &self.record
    }

    /// The copy of the file that was given under this name.
    #[must_use]
    pub fn raw(&self, given: &str) -> PathBuf {
        self.path.join(RAW).join(raw_name(given))
    }
}

/// Where the copy of a file lies in `raw/`: its path without what leads out of there.
fn raw_name(given: &str) -> PathBuf {
    if given == "-" {
        return PathBuf::from("stdin");
    }
    let plain = |part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    };
    Path::new(given).components().filter_map(plain).collect()
}

/// An import on its way into its folder. Dropped without [`ImportStaging::commit`], it vanishes.
#[derive(Debug)]
pub struct ImportStaging {
    place: PathBuf,
    beside: PathBuf,
}

impl ImportStaging {
    /// Begins the folder `<date>-import-<name>` below `results`; `started` is RFC 3339. Where two begin in one minute, the
    /// second gets a number.
    ///
    /// # Errors
    /// When `results` cannot be written, with what would make it go.
    pub fn begin(results: &Path, started: &str, name: &str) -> Result<ImportStaging> {
        let writable = |e: Error| e.hint("choose another place with -o DIR");
        fs::create_dir_all(results).or_store(|| format!("make the folder {}", results.display())).map_err(writable)?;
        let name = folder_name(started, &format!("import-{name}"));
        for n in 1u32.. {
            let place = if n == 1 { results.join(&name) } else { results.join(format!("{name}-{n}")) };
            let beside = files::beside(&place);
            if place.exists() {
                continue;
            }
            // Another import may be on its way to the same place.
            match fs::create_dir(&beside) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.or_store(|| format!("make the folder {}", beside.display())).map_err(writable)?,
            }
            let staging = ImportStaging { place, beside };
            let raw = staging.beside.join(RAW);
            fs::create_dir(&raw).or_store(|| format!("make the folder {}", raw.display()))?;
            return Ok(staging);
        }
        Err(Error::store(format!("no name is free for {name} in {}", results.display())))
    }

    /// A file to copy what is given under this name into.
    ///
    /// # Errors
    /// When one was given under this name already, or it cannot be made.
    pub fn raw(&self, given: &str) -> Result<File> {
        let path = self.beside.join(RAW).join(raw_name(given));
        let folder = path.parent().unwrap_or(&self.beside);
        fs::create_dir_all(folder).or_store(|| format!("make the folder {}", folder.display()))?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(Error::user(format!("{given} is given twice")).hint("name each file once"))
            }
            opened => opened.or_store(|| format!("make {}", path.display())),
        }
    }

    /// Takes the copy of a file that turned out to be none of the import's away again.
    ///
    /// # Errors
    /// With the path.
    pub fn discard(&self, given: &str) -> Result<()> {
        let path = self.beside.join(RAW).join(raw_name(given));
        fs::remove_file(&path).or_store(|| format!("remove {}", path.display()))
    }

    /// Writes `import.json`, makes all of it durable and renames it into its place, which it returns.
    ///
    /// # Errors
    /// With the path; there is nothing in the place then.
    pub fn commit(self, record: &ImportRecord) -> Result<PathBuf> {
        files::write_whole(&self.beside.join(IMPORT), &json(record)?)?;
        sync_tree(&self.beside)?;
        fs::rename(&self.beside, &self.place).or_store(|| format!("rename into {}", self.place.display()))?;
        files::sync_folder(self.place.parent().unwrap_or(Path::new("/")))?;
        Ok(self.place.clone())
    }
}

impl Drop for ImportStaging {
    fn drop(&mut self) {
        // After a commit there is nothing here any more.
        drop(fs::remove_dir_all(&self.beside));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::imported::{ImportedCase, ImportedFile, ImportedOutput, ImportedTrial};
    use std::io::Write;

    const STARTED: &str = "2026-11-21T02:41:47Z";

    fn record() -> ImportRecord {
        let files = vec![ImportedFile { name: "a/x.txt".into(), ..ImportedFile::default() }];
        let trial = ImportedTrial { files, outputs: vec![ImportedOutput::default()], ..ImportedTrial::default() };
        let case = ImportedCase { name: "x".into(), trials: vec![trial], ..ImportedCase::default() };
        ImportRecord { format: imported::FORMAT, cases: vec![case], ..ImportRecord::default() }
    }

    #[test]
    fn an_import_comes_back_with_its_files_as_given() {
        let results = tempfile::tempdir().unwrap();
        let staging = ImportStaging::begin(results.path(), STARTED, "x").unwrap();
        staging.raw("a/x.txt").unwrap().write_all(b"5 ops/sec").unwrap();
        let path = staging.commit(&record()).unwrap();
        assert_eq!(path, results.path().join("2026-11-21-0241-import-x"));
        let folder = ImportFolder::open(&path).unwrap();
        assert_eq!((folder.path(), folder.record()), (path.as_path(), &record()));
        assert_eq!(fs::read(folder.raw("a/x.txt")).unwrap(), b"5 ops/sec");
    }

    #[test]
    fn one_that_is_given_up_leaves_nothing_and_two_of_a_minute_do_not_clash() {
        let results = tempfile::tempdir().unwrap();
        let one = ImportStaging::begin(results.path(), STARTED, "x").unwrap();
        let two = ImportStaging::begin(results.path(), STARTED, "x").unwrap();
        drop(two.raw("y").unwrap());
        drop(one);
        let path = two.commit(&record()).unwrap();
        assert_eq!(path, results.path().join("2026-11-21-0241-import-x-2"));
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_kept_below_raw_whatever_its_name_and_once_only() {
        let results = tempfile::tempdir().unwrap();
        let staging = ImportStaging::begin(results.path(), STARTED, "x").unwrap();
        drop(staging.raw("../../etc/x").unwrap());
        assert!(staging.beside.join("raw/etc/x").exists());
        assert!(staging.raw("/etc/x").unwrap_err().to_string().contains("given twice"));
        staging.discard("/etc/x").unwrap();
        drop(staging.raw("/etc/x").unwrap());
        assert_eq!(raw_name("-"), Path::new("stdin"));
    }

    #[test]
    fn a_newer_format_is_refused_and_so_is_a_damaged_record() {
        let results = tempfile::tempdir().unwrap();
        let store = |record: &ImportRecord| {
            let path = ImportStaging::begin(results.path(), STARTED, "x").unwrap().commit(record).unwrap();
            ImportFolder::open(&path).unwrap_err().to_string()
        };
        let newer = ImportRecord { format: imported::FORMAT + 1, ..record() };
        assert!(store(&newer).contains("has format version 2"));
        let mut damaged = record();
        damaged.cases[0].trials[0].files.clear();
        assert!(store(&damaged).contains("is damaged"));
        assert!(ImportFolder::open(results.path()).unwrap_err().to_string().contains("no import.json"));
    }
}
