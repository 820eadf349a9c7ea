//! PostgreSQL installations of this machine.

use crate::error::Result;
use crate::host::Host;
use std::path::PathBuf;

/// One installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Folder of `postgres`, `initdb`, `pgbench`.
    pub bin: PathBuf,
    /// Major version: 15.
    pub major: u32,
    /// As `postgres --version` prints it.
    pub version: String,
}

/// Every installation found, the newest first: Debian's folders, PATH, pgstrata's own cache.
#[must_use]
pub fn find_all(_host: &Host) -> Vec<Installation> {
    Vec::new()
}

/// The installation that a plan names: `auto` (the newest) or a folder.
///
/// # Errors
/// When there is none, with what would bring one.
pub fn find(_host: &Host, bin: &str) -> Result<Installation> {
    Err(crate::error::Error::host(format!("no PostgreSQL in {bin}")))
}
