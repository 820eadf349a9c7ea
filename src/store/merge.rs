//! Writes a merged run folder: trials of several runs, byte for byte as they were stored.

use super::folder::{self, RunFolder};
use super::staging::{listed, sync_tree};
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::case::TrialKey;
use crate::record::event::Stamped;
use crate::record::merged::{self, MergeRecord};
use crate::record::run::RunRecord;
use crate::record::verdict::VerdictRecord;
use crate::store::checked::{is_real_folder, json, must_have, read_versioned};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Lists what was merged and what was left out.
pub const MERGED: &str = "merged.json";

/// Content of a merged folder.
pub struct Merge<'a> {
    pub record: &'a RunRecord,
    pub merged: &'a MergeRecord,
    pub plan_text: &'a str,
    pub events: &'a [Stamped],
    pub verdicts: &'a [VerdictRecord],
    /// Each trial with its source folder.
    pub trials: &'a [(&'a RunFolder, TrialKey)],
}

/// Writes a merged run to `place`, whole or not at all.
///
/// # Errors
/// When something exists there already, or it cannot be written.
pub fn write(place: &Path, merge: &Merge<'_>) -> Result<RunFolder> {
    if place.exists() {
        return Err(Error::user(format!("{} exists", place.display()))
            .hint("a merge makes a new folder: choose another one with --into DIR, or remove this one"));
    }
    let parent = place.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).or_store(|| format!("create the folder {}", parent.display()))?;
    let beside = parent.join(format!(".{}.part", merge.record.id));
    let made = fill(&beside, merge).and_then(|()| {
        fs::rename(&beside, place).or_store(|| format!("rename into {}", place.display()))?;
        files::sync_folder(parent)
    });
    made.inspect_err(|_| drop(fs::remove_dir_all(&beside)))?;
    RunFolder::open(place)
}

impl RunFolder {
    /// The record of the merge; `None` for a run that was not merged.
    ///
    /// # Errors
    /// When it is damaged or newer than this program.
    pub fn merged(&self) -> Result<Option<MergeRecord>> {
        if self.record().merged.is_empty() {
            return Ok(None);
        }
        let read = read_versioned(self.path(), MERGED, merged::FORMAT);
        read.map_err(|e| e.or_hint("remove the file: only what was left out of the merge is lost with it"))
    }
}

fn fill(beside: &Path, merge: &Merge<'_>) -> Result<()> {
    let mut lines = Vec::new();
    for event in merge.events {
        serde_json::to_writer(&mut lines, event).or_store(|| "write an event".to_owned())?;
        lines.push(b'\n');
    }
    folder::fill(beside, merge.record, merge.plan_text, &lines)?;
    files::write_whole(&beside.join(MERGED), &json(merge.merged)?)?;
    let new = RunFolder::open(beside)?;
    for verdict in merge.verdicts {
        new.keep_verdict(verdict)?;
    }
    for (from, key) in merge.trials {
        copy_tree(&from.trial_path(key), &new.trial_path(key))?;
        let aside = from.aside_path(key);
        if is_real_folder(&aside) {
            copy_tree(&aside, &new.aside_path(key))?;
        }
    }
    sync_tree(beside)
}

/// Copies regular files and folders; a run writes nothing else.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).or_store(|| format!("create the folder {}", to.display()))?;
    for entry in listed(from)? {
        let (kind, path) = (entry.file_type().or_store(|| format!("list {}", from.display()))?, entry.path());
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_tree(&path, &target)?;
        } else if kind.is_file() {
            let mut file = must_have(files::open_within(from, entry.file_name())?, &path)?;
            let copied = File::create_new(&target).and_then(|mut target| io::copy(&mut file, &mut target));
            copied.or_store(|| format!("copy {} to {}", path.display(), target.display()))?;
        }
    }
    Ok(())
}
