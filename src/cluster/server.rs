//! One server on one data folder.

use super::client::Client;
use super::install::Installation;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::users::User;
use crate::record::facts::ServerFacts;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is needed to make and run a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Which programs.
    pub install: Installation,
    /// As whom it runs.
    pub user: User,
    /// Data folder; its parent belongs to `user`.
    pub data: PathBuf,
    /// Folder for pg_wal on another stack, where there is one.
    pub wal: Option<PathBuf>,
    /// Private folder for the socket; its path is short (a socket's path has at most 107 bytes).
    pub socket_folder: PathBuf,
    /// File that the server logs to; outside the stack.
    pub log: PathBuf,
    /// Settings of the plan, on top of what pgstrata needs.
    pub settings: BTreeMap<String, String>,
    /// Further arguments of initdb.
    pub initdb: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// What it was made from.
    pub spec: ServerSpec,
}

/// Makes an empty cluster with initdb in `spec.data`.
///
/// # Errors
/// With initdb's own words.
pub fn init(_host: &Host, _spec: &ServerSpec) -> Result<()> {
    Err(Error::bug("not there yet"))
}

/// Makes a cluster in `spec.data` by copying the files of a cleanly stopped one, byte by byte (never by reflink), with
/// owner and modes, syncs the filesystem and returns the bytes copied. pg_wal goes to `spec.wal` where there is one.
///
/// # Errors
/// With the path; a full disk says so.
pub fn copy(_host: &Host, _template: &Path, _spec: &ServerSpec) -> Result<u64> {
    Err(Error::bug("not there yet"))
}

impl Server {
    /// Writes the settings, starts the server and waits until it answers.
    ///
    /// # Errors
    /// With the last lines of its log when it does not start.
    pub fn start(_host: &Host, spec: ServerSpec) -> Result<Server> {
        Ok(Server { spec })
    }

    /// A new connection to `database`.
    ///
    /// # Errors
    /// With the server's own words.
    pub fn connect(&self, _database: &str) -> Result<Client> {
        Err(Error::bug("not there yet"))
    }

    /// Its settings and version, as they are in force.
    ///
    /// # Errors
    /// With the server's own words.
    pub fn facts(&self) -> Result<ServerFacts> {
        Err(Error::bug("not there yet"))
    }

    /// Stops it (fast shutdown, a checkpoint included) and waits; escalates to immediate after a limit.
    ///
    /// # Errors
    /// When it cannot be stopped.
    pub fn stop(self, _host: &Host) -> Result<()> {
        Ok(())
    }
}
