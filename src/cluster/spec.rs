//! The definition of a server.

use super::install::Installation;
use crate::host::users::User;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything needed to create and run a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub install: Installation,
    /// User that it runs as.
    pub user: User,
    /// Data folder; its parent belongs to `user`.
    pub data: PathBuf,
    /// Folder for pg_wal on another stack, if any; missing or empty.
    pub wal: Option<PathBuf>,
    /// Private folder for the socket, with a short path (a socket's path has at most 107 bytes). Created if missing.
    pub socket_folder: PathBuf,
    /// The server's log file; outside the stack.
    pub log: PathBuf,
    /// Settings of the plan, in addition to what pgstrata needs.
    pub settings: BTreeMap<String, String>,
    pub initdb: Vec<String>,
}
