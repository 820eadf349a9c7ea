//! The folder of an import: the parsed record, and the original files.
//!
//! ```text
//! results/<date>-import-<name>/
//!   import.json     format version, tool version, origin, cases, each number with its text and line
//!   raw/NAME        every file as it was given, still packed; `raw/stdin` for standard input, `raw/2/NAME` where another
//!                   file has the name (`x.txt` and `../x.txt`)
//! ```
//!
//! Created beside its final place, synced, and renamed into it, whole or not at all. The creator holds a lock on it; a
//! folder without a lock was left by a killed import, and the next import removes it. Creating with the lock, and
//! removing, happen under a lock on the folder of results, so that no folder is visible before it is locked.

use super::folder::folder_name;
use super::staging::{listed, sync_tree};
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::imported::{self, ImportRecord};
use crate::store::checked::{is_there, json, read_versioned};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

const IMPORT: &str = "import.json";
const RAW: &str = "raw";
/// Between the date and the name in an import folder's name.
const PREFIX: &str = "import-";

#[derive(Debug, Clone)]
pub struct ImportFolder {
    record: ImportRecord,
}

impl ImportFolder {
    /// True if a folder is an import's.
    pub fn is_one(path: &Path) -> bool {
        is_there(&path.join(IMPORT))
    }

    /// Opens an import folder.
    ///
    /// # Errors
    /// When it is not an import folder, is damaged, or was written by a newer pgstrata.
    pub fn open(path: &Path) -> Result<ImportFolder> {
        let record: Option<ImportRecord> = read_versioned(path, IMPORT, imported::FORMAT)?;
        let record = record.ok_or_else(|| {
            Error::user(format!("{} is not an import folder: it has no {IMPORT}", path.display()))
                .hint("create one with `pgstrata import FILE...`")
        })?;
        let mut trials = record.cases.iter().flat_map(|case| case.trials.iter());
        let bad = trials.find(|trial| trial.outputs.iter().any(|output| output.file >= trial.files.len()));
        if bad.is_some() {
            let place = path.join(IMPORT);
            return Err(Error::store(format!("{} is damaged: an output refers to a missing file", place.display())));
        }
        Ok(ImportFolder { record })
    }

    /// `import.json`.
    pub fn record(&self) -> &ImportRecord {
        &self.record
    }
}

/// Location of a file's copy in `raw/`: its path without components that lead out of there.
fn raw_name(given: &str) -> PathBuf {
    if given == "-" {
        return PathBuf::from("stdin");
    }
    let names = Path::new(given).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    names.collect()
}

/// An import in progress. Removed when dropped without [`ImportStaging::commit`].
#[derive(Debug)]
pub struct ImportStaging {
    place: PathBuf,
    beside: PathBuf,
    /// Kept open: its lock shows others that the import is in progress.
    _held: File,
}

impl ImportStaging {
    /// Begins the folder `<date>-import-<name>` below `results`; `started` is RFC 3339. A second one in the same minute
    /// gets a number.
    ///
    /// # Errors
    /// When `results` cannot be written, with the remedy.
    pub fn begin(results: &Path, started: &str, name: &str) -> Result<ImportStaging> {
        let made = fs::create_dir_all(results).or_store(|| format!("create the folder {}", results.display()));
        made.map_err(elsewhere)?;
        let _alone = wait_for(results);
        let name = folder_name(started, &format!("{PREFIX}{name}"));
        let numbered = (2u32..).map(|n| results.join(format!("{name}-{n}")));
        // The other one may be complete or still in progress.
        let mut places = std::iter::once(results.join(&name)).chain(numbered);
        let place = places.find(|place| !place.exists() && !files::beside(place).exists()).unwrap_or_default();
        let beside = files::beside(&place);
        let made = fs::create_dir_all(beside.join(RAW)).or_store(|| format!("create the folder {}", beside.display()));
        made.map_err(elsewhere)?;
        let held = File::open(&beside).or_store(|| format!("open {}", beside.display()))?;
        // On a filesystem without locks, leftovers are not removed.
        files::lock(&held).ok();
        Ok(ImportStaging { place, beside, _held: held })
    }

    /// A file to copy the input of this name into, with its path below `raw/`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn raw(&self, given: &str) -> Result<(File, String)> {
        const MOST_OF_ONE_NAME: u32 = 10_000;
        let plain = raw_name(given);
        for number in 1..=MOST_OF_ONE_NAME {
            let name = if number == 1 { plain.clone() } else { Path::new(&number.to_string()).join(&plain) };
            let path = self.beside.join(RAW).join(&name);
            let folder = path.parent().unwrap_or(&self.beside);
            let made =
                fs::create_dir_all(folder).and_then(|()| OpenOptions::new().write(true).create_new(true).open(&path));
            match made {
                // A file or a folder of this name exists, or a file where its folder should be.
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {}
                Err(error) => return Err(error).or_store(|| format!("create {}", path.display())).map_err(elsewhere),
                Ok(file) => return Ok((file, name.to_string_lossy().into_owned())),
            }
        }
        Err(Error::store(format!("no name is free in raw/ for {given}")))
    }

    /// Removes the copy of a file that turned out not to belong to the import; `raw` is its path below `raw/`.
    ///
    /// # Errors
    /// With the path.
    pub fn discard(&self, raw: &str) -> Result<()> {
        let path = self.beside.join(RAW).join(raw);
        fs::remove_file(&path).or_store(|| format!("remove {}", path.display()))
    }

    /// Writes `import.json`, makes everything durable and renames it to its final place, which it returns.
    ///
    /// # Errors
    /// With the path; the place is then empty.
    pub fn commit(self, record: &ImportRecord) -> Result<PathBuf> {
        let rename = || fs::rename(&self.beside, &self.place);
        files::write_whole(&self.beside.join(IMPORT), &json(record)?)
            .and_then(|()| sync_tree(&self.beside))
            .and_then(|()| rename().or_store(|| format!("rename into {}", self.place.display())))
            .map_err(elsewhere)?;
        files::sync_folder(self.place.parent().unwrap_or(Path::new("/")))?;
        Ok(self.place.clone())
    }
}

/// Adds the remedy for a folder of results that cannot be written.
pub fn elsewhere(error: Error) -> Error {
    error.hint("nothing was stored; free some space there or make it writable, or choose another folder with -o DIR")
}

/// Removes what killed imports have left in `results`; returns each with the error if removal failed. Skips
/// folders that are locked, belong to another user, or contain anything that an import does not create.
pub fn clear_dead(results: &Path) -> Vec<(PathBuf, io::Result<()>)> {
    let (Some(_alone), Ok(entries)) = (wait_for(results), fs::read_dir(results)) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| is_beside(&entry.file_name().to_string_lossy()));
    let ours = named.map(|entry| entry.path()).filter(|path| is_ours(path));
    let is_free = |path: &PathBuf| File::open(path).is_ok_and(|folder| files::lock(&folder).is_ok());
    let mut dead: Vec<PathBuf> = ours.filter(is_free).collect();
    dead.sort();
    dead.into_iter().map(|path| (path.clone(), fs::remove_dir_all(&path))).collect()
}

/// Locks the folder of results, for the lifetime of the returned file.
fn wait_for(results: &Path) -> Option<File> {
    let folder = File::open(results).ok()?;
    flock(&folder, FlockOperation::LockExclusive).ok()?;
    Some(folder)
}

/// `.2026-11-21-0241-import-x.part`.
fn is_beside(name: &str) -> bool {
    const DATE: &str = "dddd-dd-dd-dddd-";
    let inner = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".part"));
    let Some((date, rest)) = inner.and_then(|inner| inner.split_at_checked(DATE.len())) else { return false };
    let mut pairs = date.chars().zip(DATE.chars());
    pairs.all(|(c, form)| if form == 'd' { c.is_ascii_digit() } else { c == form }) && rest.starts_with(PREFIX)
}

/// True if a folder belongs to this user and contains only what an import creates.
fn is_ours(path: &Path) -> bool {
    let me = rustix::process::geteuid();
    let facts = fs::symlink_metadata(path);
    let of_me = facts.is_ok_and(|facts| facts.is_dir() && (me.is_root() || facts.uid() == me.as_raw()));
    let part = files::beside(Path::new(IMPORT));
    let Ok(entries) = listed(path) else { return false };
    let only_ours = entries.iter().all(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        if is_folder { name == RAW } else { name == IMPORT || name.as_os_str() == part.as_os_str() }
    });
    of_me && only_ours
}

impl Drop for ImportStaging {
    fn drop(&mut self) {
        // Nothing is left here after a commit.
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
        let (mut copy, raw) = staging.raw("a/x.txt").unwrap();
        copy.write_all(b"5 ops/sec").unwrap();
        let path = staging.commit(&record()).unwrap();
        assert_eq!(path, results.path().join("2026-11-21-0241-import-x"));
        let folder = ImportFolder::open(&path).unwrap();
        assert_eq!(folder.record(), &record());
        assert_eq!(raw, "a/x.txt");
        assert_eq!(fs::read(path.join("raw").join(raw)).unwrap(), b"5 ops/sec");
    }

    #[test]
    fn an_abandoned_import_leaves_nothing_behind() {
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
    fn leftovers_of_a_killed_import_are_cleared_and_others_kept() {
        let results = tempfile::tempdir().unwrap();
        let part = |name: &str| results.path().join(format!(".2026-11-21-0241-{name}.part"));
        fs::create_dir_all(part("import-dead").join("raw/a")).unwrap();
        fs::write(part("import-dead").join("raw/a/x.txt"), "half").unwrap();
        fs::write(part("import-dead").join(".import.json.part"), "{").unwrap();
        let live = ImportStaging::begin(results.path(), STARTED, "live").unwrap();
        let stay = [part("import-foreign").join("raw/x"), part("import-foreign").join("y"), part("plan").join("raw/x")];
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(elsewhere.path().join("raw")).unwrap();
        for path in &stay {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(elsewhere.path(), part("import-link")).unwrap();
        let cleared = clear_dead(results.path());
        assert_eq!(cleared.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&part("import-dead")]);
        assert!(cleared[0].1.is_ok() && !part("import-dead").exists());
        assert!(stay.iter().all(|path| path.exists()) && elsewhere.path().join("raw").exists());
        assert!(live.commit(&record()).unwrap().exists());
        assert!(clear_dead(&results.path().join("missing")).is_empty());
    }

    #[test]
    fn only_names_that_an_import_makes_are_its_own() {
        assert!(is_beside(".2026-11-21-0241-import-x.part") && is_beside(".2026-11-21-0241-import-x-2.part"));
        for other in ["2026-11-21-0241-import-x", ".2026-11-21-import-x.part", ".2026-11-21-0241-x.part", ".é.part", ""]
        {
            assert!(!is_beside(other), "{other}");
        }
    }

    #[test]
    fn every_raw_file_is_stored_under_its_own_path() {
        let results = tempfile::tempdir().unwrap();
        let staging = ImportStaging::begin(results.path(), STARTED, "x").unwrap();
        for (given, place) in [
            ("../../etc/x", "etc/x"),
            ("/etc/x", "2/etc/x"),
            ("etc/../etc/x", "etc/etc/x"),
            ("../etc", "3/etc"),
            ("./etc/x/y", "4/etc/x/y"),
            ("-", "stdin"),
            ("stdin", "2/stdin"),
            ("2/stdin", "2/2/stdin"),
        ] {
            let (_, raw) = staging.raw(given).unwrap();
            assert!(staging.beside.join("raw").join(&raw).is_file(), "{given}");
            assert_eq!(raw, place, "{given}");
        }
        staging.discard("2/etc/x").unwrap();
        assert_eq!(staging.raw("/etc/x").unwrap().1, "2/etc/x");
    }

    #[test]
    fn newer_formats_and_damaged_records_are_refused() {
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
