//! A trial on its way into the run folder: written beside its place, synced, renamed into it.

use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::trial::{FileMark, TrialRecord};
use crate::store::checked::{is_real_folder, is_there, json, must_have};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One row per second.
pub(super) const SECONDS: &str = "seconds.parquet";
/// Latencies of all operations.
pub(super) const LATENCIES: &str = "latency.hist";
/// Waits of the backends, one row per second and wait.
pub(super) const WAITS: &str = "waits.parquet";

/// State passed from one program to the next in the middle of a trial.
const HANDOVER: &str = "handover.json";

/// An incomplete trial. Dropped without [`Staging::commit`], it is removed.
#[derive(Debug)]
pub struct Staging {
    place: PathBuf,
    beside: PathBuf,
    /// Destination of a trial that does not count because it was disturbed and repeated.
    aside: PathBuf,
}

impl Staging {
    /// Creates the folder beside the trial's place, with `raw/` in it.
    pub(super) fn begin(place: &Path, aside: PathBuf) -> Result<Staging> {
        let case = place.parent().unwrap_or(Path::new("/"));
        through_no_link(case)?;
        let beside = files::beside(place);
        if beside.exists() {
            fs::remove_dir_all(&beside).or_store(|| format!("remove the leftover {}", beside.display()))?;
        }
        fs::create_dir_all(beside.join("raw")).or_store(|| format!("create the folder {}", beside.display()))?;
        Ok(Staging { place: place.to_path_buf(), beside, aside })
    }

    /// The folder of a trial that its program left unfinished.
    pub(super) fn left(place: &Path, aside: PathBuf) -> Result<Staging> {
        let beside = files::beside(place);
        if !is_real_folder(&beside) {
            return Err(Error::store(format!("{} is not there: the trial cannot go on", beside.display())));
        }
        Ok(Staging { place: place.to_path_buf(), beside, aside })
    }

    /// Writes the state for the program that continues the trial after this one was killed, and makes the trial so far
    /// durable.
    ///
    /// # Errors
    /// With the path.
    pub fn hand_over(&self, content: &[u8]) -> Result<()> {
        files::write_whole(&self.beside.join(HANDOVER), content)?;
        sync_tree(&self.beside)
    }

    /// Takes the content written by [`Staging::hand_over`]: it is read once.
    ///
    /// # Errors
    /// When it cannot be read or removed.
    pub fn take_over(&self) -> Result<Vec<u8>> {
        let path = self.beside.join(HANDOVER);
        let mut content = Vec::new();
        let mut file = must_have(files::open_within(&self.beside, HANDOVER)?, &path)?;
        file.read_to_end(&mut content).or_store(|| format!("read {}", path.display()))?;
        fs::remove_file(&path).or_store(|| format!("remove {}", path.display()))?;
        Ok(content)
    }

    pub fn raw(&self) -> PathBuf {
        self.beside.join("raw")
    }

    /// Path for `seconds.parquet`.
    pub fn seconds(&self) -> PathBuf {
        self.beside.join(SECONDS)
    }

    /// Path for `latency.hist`.
    pub fn latencies(&self) -> PathBuf {
        self.beside.join(LATENCIES)
    }

    /// Path for `waits.parquet`.
    pub fn waits(&self) -> PathBuf {
        self.beside.join(WAITS)
    }

    /// Writes `trial.json`, makes everything durable and renames it into its place. Replaces an earlier trial there
    /// that had not been run.
    ///
    /// # Errors
    /// With the path; the place is then unchanged.
    pub fn commit(self, record: &TrialRecord) -> Result<()> {
        self.write(record)?;
        let old =
            self.place.with_file_name(format!(".{}.old", self.place.file_name().unwrap_or_default().to_string_lossy()));
        if self.place.exists() {
            fs::rename(&self.place, &old).or_store(|| format!("set {} aside", self.place.display()))?;
        }
        self.take_place()?;
        if old.exists() {
            fs::remove_dir_all(&old).or_store(|| format!("remove {}", old.display()))?;
        }
        Ok(())
    }

    /// Writes the repeat of a trial, makes it durable, and sets one of the two aside: the original if the repeat
    /// `counts`, else the repeat. After a crash in between, the place is empty, so that `--resume` measures it again.
    ///
    /// # Errors
    /// With the path.
    pub fn commit_repeat(self, record: &TrialRecord, counts: bool) -> Result<()> {
        self.write(record)?;
        let case = self.aside.parent().unwrap_or(Path::new("/"));
        through_no_link(case)?;
        fs::create_dir_all(case).or_store(|| format!("create the folder {}", case.display()))?;
        let set_aside = if counts { &self.place } else { &self.beside };
        fs::rename(set_aside, &self.aside).or_store(|| format!("set {} aside", set_aside.display()))?;
        for folder in case.ancestors().take(3) {
            files::sync_folder(folder)?;
        }
        if counts { self.take_place() } else { Ok(()) }
    }

    /// Writes `trial.json` and makes the whole trial durable.
    fn write(&self, record: &TrialRecord) -> Result<()> {
        let mut record = record.clone();
        for name in [SECONDS, LATENCIES, WAITS] {
            record.files.extend(mark(&self.beside, name)?.map(|mark| (name.to_owned(), mark)));
        }
        files::write_whole(&self.beside.join("trial.json"), &json(&record)?)?;
        sync_tree(&self.beside)
    }

    fn take_place(&self) -> Result<()> {
        fs::rename(&self.beside, &self.place).or_store(|| format!("rename into {}", self.place.display()))?;
        let case = self.place.parent().unwrap_or(Path::new("/"));
        files::sync_folder(case)?;
        files::sync_folder(case.parent().unwrap_or(Path::new("/")))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing is left here after a commit; what cannot be removed is removed by the next resume.
        drop(fs::remove_dir_all(&self.beside));
    }
}

/// Checks that a case's folder and its parent, if they exist, are real folders of the run.
fn through_no_link(case: &Path) -> Result<()> {
    match case.ancestors().take(2).find(|folder| is_there(folder) && !is_real_folder(folder)) {
        Some(link) => {
            let what = "is a symlink or no folder, and pgstrata does not write through symlinks";
            Err(Error::store(format!("{} {what}", link.display())))
        }
        None => Ok(()),
    }
}

/// Size and checksum of a file; `None` if it does not exist.
fn mark(folder: &Path, name: &str) -> Result<Option<FileMark>> {
    let Some(mut file) = files::open_within(folder, name)? else { return Ok(None) };
    let mut sum = Sha256::new();
    let bytes = io::copy(&mut file, &mut sum).or_store(|| format!("read {}", folder.join(name).display()))?;
    let sha256 = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(FileMark { bytes, sha256 }))
}

/// Checks that the files of a stored trial are unchanged.
///
/// # Errors
/// With the first file that is gone, differs in size or content, or is not a regular file.
pub(super) fn check_files(trial: &Path, record: &TrialRecord) -> Result<()> {
    for (name, stored) in &record.files {
        let path = trial.join(name);
        let damaged = |what: &str| Error::store(format!("{} {what}", path.display()));
        // Before reading: a huge file would take hours.
        let found = fs::symlink_metadata(&path).map_err(|e| damaged(&format!("cannot be read: {e}")))?;
        if found.is_file() && found.len() != stored.bytes {
            return Err(damaged(&format!("has {} bytes, but had {} when it was stored", found.len(), stored.bytes)));
        }
        if mark(trial, name)?.as_ref() != Some(stored) {
            return Err(damaged("does not match its checksum: it is damaged or belongs to another trial"));
        }
    }
    Ok(())
}

/// What a folder holds.
pub(super) fn listed(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    fs::read_dir(folder).and_then(Iterator::collect).or_store(|| format!("list {}", folder.display()))
}

/// Syncs every file and folder at and below `path`.
pub(super) fn sync_tree(path: &Path) -> Result<()> {
    for entry in listed(path)? {
        let kind = entry.file_type().or_store(|| format!("list {}", path.display()))?;
        if kind.is_dir() {
            sync_tree(&entry.path())?;
        } else if kind.is_file() {
            let file = must_have(files::open_within(path, entry.file_name())?, &entry.path())?;
            file.sync_all().or_store(|| format!("sync {}", entry.path().display()))?;
        }
    }
    files::sync_folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::facts::HostFacts;
    use crate::record::stack::StackSpec;

    /// A staged trial of the case `c` in a run folder, with `word` in its raw output.
    fn staged(run: &Path, word: &str) -> Staging {
        let staging = Staging::begin(&run.join("trials/c/1"), run.join("set-aside/c/1")).unwrap();
        fs::write(staging.raw().join("word"), word).unwrap();
        staging
    }

    fn record() -> TrialRecord {
        let spec = StackSpec::linear("s", Vec::new());
        serde_json::from_value(serde_json::json!({
            "format": 1, "run": "0badcafe", "trial": 1, "started": "", "steps": [], "knobs": {}, "columns": [], "gaps": [],
            "case": { "id": "c", "stack": spec, "machine": {}, "axes": {},
                      "workload": { "name": "w", "kind": "sync", "options": {} } },
            "operation": { "noun": "x", "unit": "x", "writes": "always", "clients": 1, "scripts": [], "script_settings": [],
                           "settings": {} },
            "outcome": { "outcome": "measured" }, "host": HostFacts::default(), "decided": {}, "notes": [], "files": {},
        }))
        .unwrap()
    }

    fn words(run: &Path) -> [Option<String>; 2] {
        ["trials", "set-aside"].map(|folder| fs::read_to_string(run.join(folder).join("c/1/raw/word")).ok())
    }

    fn two(words: [Option<&str>; 2]) -> [Option<String>; 2] {
        words.map(|word| word.map(str::to_owned))
    }

    #[test]
    fn the_trial_that_does_not_count_is_set_aside() {
        for (counts, wanted) in
            [(true, [Some("repeat"), Some("disturbed")]), (false, [Some("disturbed"), Some("repeat")])]
        {
            let run = tempfile::tempdir().unwrap();
            staged(run.path(), "disturbed").commit(&record()).unwrap();
            assert_eq!(words(run.path()), two([Some("disturbed"), None]));
            staged(run.path(), "repeat").commit_repeat(&record(), counts).unwrap();
            assert_eq!(words(run.path()), two(wanted));
        }
    }

    #[test]
    fn a_dropped_repeat_leaves_the_first_trial_unchanged() {
        let run = tempfile::tempdir().unwrap();
        staged(run.path(), "disturbed").commit(&record()).unwrap();
        drop(staged(run.path(), "repeat"));
        assert_eq!(words(run.path()), two([Some("disturbed"), None]));
        assert!(!files::beside(&run.path().join("trials/c/1")).exists());
    }

    #[test]
    fn a_stored_file_with_changed_content_damages_its_trial() {
        let run = tempfile::tempdir().unwrap();
        let staging = staged(run.path(), "whole");
        fs::write(staging.seconds(), "rows").unwrap();
        staging.commit(&record()).unwrap();
        let trial = run.path().join("trials/c/1");
        let stored: TrialRecord = serde_json::from_slice(&fs::read(trial.join("trial.json")).unwrap()).unwrap();
        assert!(check_files(&trial, &stored).is_ok());
        for (content, why) in [("more rows", "has 9 bytes, but had 4"), ("sown", "does not match its checksum")] {
            fs::write(trial.join(SECONDS), content).unwrap();
            let error = check_files(&trial, &stored).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_trial_abandoned_midway_is_continued_only_once() {
        let run = tempfile::tempdir().unwrap();
        let staging = staged(run.path(), "before");
        staging.hand_over(b"half").unwrap();
        // A killed program runs no destructors.
        std::mem::forget(staging);
        let (place, aside) = (run.path().join("trials/c/1"), run.path().join("set-aside/c/1"));
        let again = Staging::left(&place, aside.clone()).unwrap();
        assert_eq!(again.take_over().unwrap(), b"half");
        assert!(again.take_over().is_err(), "it is read once");
        again.commit(&record()).unwrap();
        assert_eq!(words(run.path()), two([Some("before"), None]));
        assert!(!place.join(HANDOVER).exists());
        assert!(Staging::left(&place, aside).unwrap_err().to_string().contains("cannot go on"));
    }
}
