//! `pgstrata compare --group-by`: compares machines, with hosts as the units.

use super::out;
use crate::analyse::fleet::{self, GroupBy};
use crate::cli::page::page;
use crate::error::{EXIT_INCOMPLETE, Error, Result};
use crate::report;
use std::path::Path;

/// A fact that hosts are grouped by, as a value of a flag.
pub fn group(word: &str) -> Result<GroupBy, String> {
    GroupBy::of(word).ok_or_else(|| format!("hosts are grouped by {}", GroupBy::ALL.map(GroupBy::word).join(", ")))
}

/// Compares the hosts of run folders, and prints.
///
/// # Errors
/// If a folder is not one, or the page cannot be written.
pub fn compare(by: &[GroupBy], folders: &[String], json: bool, html: Option<&Path>) -> Result<u8> {
    if let Some(folder) = folders.iter().find(|folder| !Path::new(folder).is_dir()) {
        return Err(Error::user(format!("{folder} is not a folder")).hint("name run folders of one plan"));
    }
    let runs: Vec<(String, &Path)> = folders.iter().map(|folder| (folder.clone(), Path::new(folder))).collect();
    let findings = fleet::compare(&runs, by)?;
    out::json_or(json, &findings, || report::fleet::terminal(&findings))?;
    if let Some(path) = html {
        page(path, &report::fleet::page(&findings, None, &[])?, json)?;
    }
    let compared = findings.groups.iter().any(|group| group.limit.is_some()) || !findings.comparisons.is_empty();
    Ok(if compared { 0 } else { EXIT_INCOMPLETE })
}
