//! `cut.json` in a folder `cut-ID`: results of `pgstrata cut`, beside the evidence of convictions.

use super::checked::{json, read_versioned};
use crate::error::Result;
use crate::host::files;
use crate::record::cut::{self, CutRecord};
use std::path::Path;

const CUT: &str = "cut.json";

/// Reads the results; `None` if the folder has none.
///
/// # Errors
/// When they are damaged or newer than this program.
pub fn read(folder: &Path) -> Result<Option<CutRecord>> {
    read_versioned(folder, CUT, cut::FORMAT)
}

/// Writes the results, whole or not at all.
///
/// # Errors
/// With the path.
pub fn keep(folder: &Path, record: &CutRecord) -> Result<()> {
    files::write_within(folder, Path::new(CUT), &json(record)?)
}
