//! What a server is made of.

use super::install::Installation;
use crate::host::users::User;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is needed to make and run a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub install: Installation,
    /// As whom it runs.
    pub user: User,
    /// Data folder; its parent belongs to `user`.
    pub data: PathBuf,
    /// Folder for pg_wal on another stack, where there is one; not there yet, or empty.
    pub wal: Option<PathBuf>,
    /// Private folder for the socket; its path is short (a socket's path has at most 107 bytes). Made when not there.
    pub socket_folder: PathBuf,
    /// File that the server logs to; outside the stack.
    pub log: PathBuf,
    /// Settings of the plan, on top of what pgstrata needs.
    pub settings: BTreeMap<String, String>,
    /// Further arguments of initdb.
    pub initdb: Vec<String>,
}
