//! The run folder: creating and opening it, its events, and which trials are complete.

use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::case::TrialKey;
use crate::record::event::{Event, Stamped};
use crate::record::run::{self, RunRecord};
use crate::record::trial::{self, Outcome, TrialRecord};
use crate::store::checked::{is_real_folder, is_there, json, must_have, read_lines, read_text, read_versioned};
use crate::store::staging::{Staging, check_files, listed};
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

const PLAN: &str = "plan.toml";
pub(super) const RUN: &str = "run.json";
pub(super) const EVENTS: &str = "events.jsonl";
const TRIALS: &str = "trials";
const TRIAL: &str = "trial.json";
const SET_ASIDE: &str = "set-aside";

/// A run folder, open for reading.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    record: RunRecord,
}

/// The only writer of a run folder: holds its lock.
#[derive(Debug)]
pub struct Writer {
    folder: RunFolder,
    events: File,
}

/// A folder name for a run: `2026-11-21-0241-which-filesystem`.
pub(crate) fn folder_name(started: &str, plan_name: &str) -> String {
    let minute: String = started.chars().take(16).filter(|c| *c != ':').collect();
    format!("{}-{plan_name}", minute.replace('T', "-"))
}

impl RunFolder {
    /// True if a folder looks like a run's. Opening it reports anything else that is wrong.
    pub fn is_one(path: &Path) -> bool {
        is_there(&path.join(RUN))
    }

    /// Opens a run folder.
    ///
    /// # Errors
    /// When it is not a run folder, is damaged, is a link, or was written by a newer pgstrata.
    pub fn open(path: &Path) -> Result<RunFolder> {
        const DAMAGED: &str =
            "the file is truncated or was changed: restore it from a copy; the run cannot be read without it";
        if path.is_file() {
            return Err(Error::user(format!("{} is a file, and no run folder", path.display()))
                .hint("name the folder; one in an archive is unpacked first: tar xzf FILE"));
        }
        let record: Option<RunRecord> = read_versioned(path, RUN, run::FORMAT).map_err(|e| e.or_hint(DAMAGED))?;
        let record = record.ok_or_else(|| {
            let why = if path.exists() { format!("has no {RUN}") } else { "does not exist".to_owned() };
            Error::user(format!("{} is not a run folder: it {why}", path.display()))
                .hint("name a folder in results/, or start a run with `pgstrata run PLAN`")
        })?;
        sound(&record).map_err(|e| Error::store(format!("{} is damaged: {e}", path.join(RUN).display())))?;
        // Otherwise each trial would look damaged, without a reason.
        for folder in [TRIALS, SET_ASIDE] {
            files::open_within(path, Path::new(folder).join(TRIAL))?;
        }
        Ok(RunFolder { path: path.to_path_buf(), record })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `run.json`.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The plan as it was given.
    ///
    /// # Errors
    /// With the path.
    pub fn plan_text(&self) -> Result<String> {
        must_have(read_text(&self.path, PLAN)?, &self.path.join(PLAN))
    }

    /// The folder of one trial, whether or not it exists.
    pub(crate) fn trial_path(&self, key: &TrialKey) -> PathBuf {
        self.path.join(place(TRIALS, key))
    }

    /// The folder of a trial set aside in favor of another one with the same key, whether or not it exists.
    pub(super) fn aside_path(&self, key: &TrialKey) -> PathBuf {
        self.path.join(place(SET_ASIDE, key))
    }

    /// `trial.json` of a complete trial; `None` if the trial is not complete.
    ///
    /// # Errors
    /// When it is damaged or newer than this program.
    pub fn trial(&self, key: &TrialKey) -> Result<Option<TrialRecord>> {
        self.record_at(&place(TRIALS, key), key)
    }

    fn record_at(&self, place: &Path, key: &TrialKey) -> Result<Option<TrialRecord>> {
        let name = place.join(TRIAL);
        let Some(record) = read_versioned::<TrialRecord>(&self.path, &name, trial::FORMAT)? else { return Ok(None) };
        let is_it = (record.case.id.as_str(), record.trial) == (key.case.as_str(), key.trial);
        if !is_it || !self.record.owns(&record.run, key.trial) {
            let of = format!("trial {} of {} in run {}", record.trial, record.case.id, record.run);
            return Err(Error::store(format!("{} is of {of}", self.path.join(name).display())));
        }
        Ok(Some(record))
    }

    /// A trial as stored, with its files checked.
    ///
    /// # Errors
    /// When it was written by a newer pgstrata, or is closed to this user. Damage is not an error: it concerns this trial
    /// alone.
    pub fn stored(&self, key: &TrialKey) -> Result<StoredTrial> {
        self.stored_at(&place(TRIALS, key), key)
    }

    /// The records of the trials that are stored whole, in the order of the run.
    ///
    /// # Errors
    /// As [`RunFolder::stored`].
    pub fn whole_trials(&self) -> Result<Vec<TrialRecord>> {
        let stored = self.record().order.iter().map(|key| self.stored(key));
        let whole = stored.map(|stored| match stored? {
            StoredTrial::Whole(trial) => Ok(Some(*trial)),
            _ => Ok(None),
        });
        whole.filter_map(Result::transpose).collect()
    }

    /// The trial that does not count, of two with the same key: a disturbed trial whose repeat was not disturbed, or a
    /// repeat that was disturbed or failed as well.
    ///
    /// # Errors
    /// As [`RunFolder::stored`].
    pub fn set_aside(&self, key: &TrialKey) -> Result<StoredTrial> {
        self.stored_at(&place(SET_ASIDE, key), key)
    }

    fn stored_at(&self, place: &Path, key: &TrialKey) -> Result<StoredTrial> {
        let checked = self.record_at(place, key).and_then(|record| {
            record.iter().try_for_each(|record| check_files(&self.path.join(place), record)).map(|()| record)
        });
        match checked {
            Ok(None) => Ok(StoredTrial::Missing),
            Ok(Some(record)) => Ok(StoredTrial::Whole(Box::new(record))),
            Err(e) if e.hint_text().is_some() => Err(e),
            Err(e) => Ok(StoredTrial::Damaged(e.to_string())),
        }
    }

    /// The events so far, without a last line that was truncated by a crash.
    ///
    /// # Errors
    /// With file and line, if another line is damaged.
    pub fn events(&self) -> Result<Vec<Stamped>> {
        let path = self.path.join(EVENTS);
        let whole = must_have(read_lines(&self.path, EVENTS)?, &path)?;
        let lines = whole.lines().enumerate();
        lines
            .map(|(i, line)| serde_json::from_str(line).or_store(|| format!("read {} line {}", path.display(), i + 1)))
            .collect()
    }

    /// Reports missing events: the ends of stored trials. Either the file was emptied or cut, or the run was killed
    /// between storing the two.
    pub fn lost_events<'k>(events: &[Stamped], stored: impl Iterator<Item = &'k TrialKey>) -> Option<String> {
        let ended = events.iter().filter_map(|event| match &event.what {
            Event::TrialDone { trial, .. } | Event::TrialNotRun { trial, .. } => Some(trial),
            _ => None,
        });
        let ended: BTreeSet<&TrialKey> = ended.collect();
        let stored: Vec<&TrialKey> = stored.collect();
        let lost = stored.iter().filter(|key| !ended.contains(*key)).count();
        let what = if events.is_empty() { "is empty".to_owned() } else { "is incomplete".to_owned() };
        (lost > 0).then(|| {
            format!(
                "{EVENTS} {what}: it lacks the end of {lost} of {} stored trials, so times, warnings and stops of adaptive \
                 blocks may be missing; figures of trials are not affected",
                stored.len()
            )
        })
    }
}

/// State of one trial in a run folder.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredTrial {
    /// Nothing: not run yet.
    Missing,
    /// Not trustworthy, with the reason.
    Damaged(String),
    /// Its record; the files beside it are unchanged since it was stored.
    Whole(Box<TrialRecord>),
}

impl StoredTrial {
    /// Its record, if it is whole and was measured.
    pub fn measured(self) -> Option<TrialRecord> {
        match self {
            StoredTrial::Whole(record) if record.outcome == Outcome::Measured => Some(*record),
            _ => None,
        }
    }

    /// True if the trial is whole and needs no retry.
    pub fn is_result(&self) -> bool {
        matches!(self, StoredTrial::Whole(record) if record.is_result())
    }
}

impl Writer {
    /// Creates the folder of a new run below `results`, whole or not at all, and locks it.
    ///
    /// # Errors
    /// When `results` cannot be written (read-only, full), with the remedy.
    pub fn create(results: &Path, record: RunRecord, plan_text: &str) -> Result<Writer> {
        let writable = |e: Error| e.hint("choose another place with --results DIR");
        let made = fs::create_dir_all(results).or_store(|| format!("create the folder {}", results.display()));
        made.map_err(writable)?;
        // Named by run id, not by folder: another run in the same minute may be preparing a folder of the same name.
        let beside = results.join(format!(".{}.part", record.id));
        let share = record.share.map_or_else(String::new, |share| format!("-{}of{}", share.part, share.of));
        let name = format!("{}{share}", folder_name(&record.started, &record.name));
        let made = (|| {
            fill(&beside, &record, plan_text, b"")?;
            let path = rename_to_free_name(&beside, results, &name)?;
            files::sync_folder(results)?;
            Ok(path)
        })();
        let path = made.inspect_err(|_| drop(fs::remove_dir_all(&beside))).map_err(writable)?;
        Writer::lock(RunFolder { path, record })
    }

    /// Opens the folder of a stopped run to continue it: removes unfinished trials, but not the files of the one within
    /// which the run stopped if that one continues.
    ///
    /// # Errors
    /// When it is not a run folder, another process writes to it, or it cannot be written.
    pub fn resume(path: &Path, within: Option<&TrialKey>) -> Result<Writer> {
        let writer = Writer::lock(RunFolder::open(path)?)?;
        let kept = within.map(|trial| files::beside(&writer.folder.trial_path(trial)));
        writer.folder.remove_unfinished(kept.as_deref())?;
        Ok(writer)
    }

    fn lock(folder: RunFolder) -> Result<Writer> {
        let path = folder.path.join(EVENTS);
        let mut events = must_have(files::open_to_append_within(&folder.path, EVENTS)?, &path)?;
        files::soon(|| files::lock(&events)).map_err(|_| {
            Error::host(format!("another pgstrata is writing to {}", folder.path.display()))
                .hint("wait for it, or stop it first")
        })?;
        cut_partial_line(&mut events).or_store(|| format!("repair {}", path.display()))?;
        Ok(Writer { folder, events })
    }

    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Rewrites `run.json`, whole or not at all, after the run was given more blocks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_record(&mut self, record: RunRecord) -> Result<()> {
        sound(&record).map_err(Error::user)?;
        files::write_whole(&self.folder.path.join(RUN), &json(&record)?)?;
        self.folder.record = record;
        Ok(())
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, event: &Stamped) -> Result<()> {
        let mut line = serde_json::to_vec(event).or_store(|| "write an event".to_owned())?;
        line.push(b'\n');
        let path = self.folder.path.join(EVENTS);
        let appending = || format!("append to {}", path.display());
        let whole = self.events.metadata().or_store(appending)?.len();
        self.events.write_all(&line).or_store(appending).inspect_err(|_| {
            // A full disk may have taken half a line, and a later line must not follow that. The error that counts is
            // the one above.
            drop(self.events.set_len(whole));
        })
    }

    /// A staging area for a trial about to be run.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn stage(&self, key: &TrialKey) -> Result<Staging> {
        self.folder.must_be_there()?;
        Staging::begin(&self.folder.trial_path(key), self.folder.aside_path(key))
    }

    /// The staging area of a trial that continues, as it was left.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn staged(&self, key: &TrialKey) -> Result<Staging> {
        Staging::left(&self.folder.trial_path(key), self.folder.aside_path(key))
    }
}

impl RunFolder {
    /// Removes the remains of unfinished trials (`.N.part`, `.N.old`). Removes nothing else and follows no symlink,
    /// because a folder may come from somebody else.
    fn remove_unfinished(&self, but: Option<&Path>) -> Result<()> {
        for case in &self.record.cases {
            let folder = self.path.join(TRIALS).join(&case.id);
            if !is_real_folder(&folder) {
                continue;
            }
            let unfinished = listed(&folder)?.into_iter().map(|entry| entry.path());
            let unfinished = unfinished.filter(|entry| is_real_folder(entry) && is_unfinished(entry));
            for entry in unfinished.filter(|entry| but != Some(entry.as_path())) {
                fs::remove_dir_all(&entry).or_store(|| format!("remove the unfinished {}", entry.display()))?;
            }
        }
        Ok(())
    }
}

/// Makes a run folder without trials.
pub(super) fn fill(path: &Path, record: &RunRecord, plan_text: &str, events: &[u8]) -> Result<()> {
    fs::create_dir(path).or_store(|| format!("create the folder {}", path.display()))?;
    fs::create_dir(path.join(TRIALS)).or_store(|| format!("create a folder in {}", path.display()))?;
    files::write_whole(&path.join(PLAN), plan_text.as_bytes())?;
    files::write_whole(&path.join(EVENTS), events)?;
    files::write_whole(&path.join(RUN), &json(record)?)
}

/// Location of a trial within a run folder.
fn place(folder: &str, key: &TrialKey) -> PathBuf {
    Path::new(folder).join(&key.case).join(key.trial.to_string())
}

/// True for the name of an unfinished trial: `.3.part`, `.3.old`.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name.strip_prefix('.').and_then(|n| n.strip_suffix(".part").or_else(|| n.strip_suffix(".old")));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Most blocks, and most trials, of a plan; a record with more was not written by a run.
const MOST_BLOCKS: u32 = 10_000;
const MOST_TRIALS: usize = 100_000;

/// Checks that a record is safe to build paths and loops from.
fn sound(record: &RunRecord) -> Result<(), String> {
    let ids = record.cases.iter().map(|case| &case.id).chain(record.order.iter().map(|key| &key.case));
    // A merged run and a rerun get folders of the plan's name.
    let others = [(&record.id, "a run id"), (&record.name, "a name of a plan")];
    if let Some((id, what)) = ids.map(|id| (id, "a case id")).chain(others).find(|(id, _)| !is_plain(id)) {
        return Err(format!("`{id}` is not {what}"));
    }
    if record.blocks > MOST_BLOCKS || record.order.len() > MOST_TRIALS {
        return Err(format!("{} blocks and {} trials exceed the limits of a plan", record.blocks, record.order.len()));
    }
    Ok(())
}

fn is_plain(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 200
        && !id.starts_with('.')
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._=%+".contains(&byte))
}

/// Renames a folder to the first free name of NAME, NAME-2, NAME-3 ... If another run takes one meanwhile, the rename
/// fails, because a run's folder is never empty (rename(2)).
fn rename_to_free_name(folder: &Path, results: &Path, name: &str) -> Result<PathBuf> {
    use std::io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    for n in 1u32.. {
        let path = if n == 1 { results.join(name) } else { results.join(format!("{name}-{n}")) };
        if path.exists() {
            continue;
        }
        match fs::rename(folder, &path) {
            Err(e) if matches!(e.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory) => {}
            renamed => {
                return renamed.map(|()| path).or_store(|| format!("rename {} into its place", folder.display()));
            }
        }
    }
    Err(Error::store(format!("no free name for a run in {}", results.display())))
}

/// Cuts off a last line without a line end: the program died while writing it.
fn cut_partial_line(file: &mut File) -> std::io::Result<()> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole < text.len() { file.set_len(whole as u64) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
