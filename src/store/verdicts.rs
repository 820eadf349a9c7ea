//! Verdicts on power cuts: `verdicts/<case>.json`, one file for each combination of stack and server.

use super::folder::RunFolder;
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::record::verdict::{self, VerdictRecord};
use crate::store::checked::{json, read_versioned};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const VERDICTS: &str = "verdicts";

impl RunFolder {
    /// All stored verdicts, in the order of the cases.
    ///
    /// # Errors
    /// When one is damaged, or newer than this program.
    pub fn verdicts(&self) -> Result<Vec<VerdictRecord>> {
        let mut found = Vec::new();
        for case in &self.record().cases {
            let read = read_versioned(self.path(), name_of(&case.id), verdict::FORMAT);
            let hint = "remove the file; `pgstrata cut RUN_FOLDER` makes the verdicts again";
            found.extend(read.map_err(|e| e.or_hint(hint))?);
        }
        Ok(found)
    }

    /// Writes a verdict, whole or not at all; replaces an earlier one for the same cases.
    ///
    /// # Errors
    /// When it belongs to no case of the run, or cannot be written.
    pub fn keep_verdict(&self, record: &VerdictRecord) -> Result<()> {
        let first = record.cases.first().filter(|id| self.record().cases.iter().any(|case| case.id == **id));
        let id = first.ok_or_else(|| Error::bug("a verdict of no case of the run"))?;
        self.must_be_there()?;
        let folder = self.path().join(VERDICTS);
        fs::create_dir_all(&folder).or_store(|| format!("create the folder {}", folder.display()))?;
        files::write_within(self.path(), &name_of(id), &json(record)?)
    }
}

fn name_of(case: &str) -> PathBuf {
    Path::new(VERDICTS).join(format!("{case}.json"))
}
