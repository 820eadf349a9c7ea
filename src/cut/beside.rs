//! Runs the case's own pgbench beside the clients. Its writes are in the states; its commits are not in the history.
//!
//! Its tables are filled before the recording begins and belong to the origin: the log has room for the writes of the
//! load, and no acknowledgement rests on the fill.

use super::session::CutSession;
use crate::cluster::server::Server;
use crate::error::{Error, Kind, Result};
use crate::host::{files, machine};
use crate::record::case::CaseSpec;
use crate::run::case::memory_of;
use crate::units::Bytes;
use crate::workload::pgbench::{self, Pgbench};
use crate::workload::{MemorySizes, Place, Workload};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const KIND: &str = "pgbench";

/// Why a case was not recorded.
#[derive(Debug)]
pub enum Unrecorded {
    /// Its workload failed, which says nothing about the stack: the plan must be changed.
    Workload(Error),
    Other(Error),
}

impl From<Error> for Unrecorded {
    fn from(e: Error) -> Unrecorded {
        Unrecorded::Other(e)
    }
}

pub struct Beside<'a> {
    session: &'a CutSession<'a>,
    case: &'a CaseSpec,
    memory: MemorySizes,
    /// Folder for its output and scripts.
    raw: PathBuf,
}

impl<'a> Beside<'a> {
    /// The case's own workload, if it is to run. Creates its folder in `work`.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn of(session: &'a CutSession<'a>, case: &'a CaseSpec, work: &Path) -> Result<Option<Beside<'a>>> {
        if !session.cutting.workload {
            return Ok(None);
        }
        let raw = work.join("workload");
        files::make_folder(&raw, 0o755)?;
        let memory = memory_of(case, Bytes(machine::facts(&session.host).memory_bytes));
        Ok(Some(Beside { session, case, memory, raw }))
    }

    /// Server settings that it needs.
    pub fn server_settings(&self) -> BTreeMap<String, String> {
        Pgbench.server_settings(&self.case.workload.options)
    }

    /// Fills the database.
    ///
    /// # Errors
    /// With the tool's own message; interrupted.
    pub fn prepare(&self, server: &Server) -> Result<(), Unrecorded> {
        let prepared = pgbench::beside::prepare(&self.place(server), &self.case.workload.options, self.memory);
        self.judged(prepared)
    }

    /// Runs until `is_over`.
    ///
    /// # Errors
    /// With the tool's own message; interrupted.
    pub fn run(&self, server: &Server, is_over: &dyn Fn() -> bool) -> Result<(), Unrecorded> {
        let options = &self.case.workload.options;
        self.judged(pgbench::beside::run(&self.place(server), options, self.memory, is_over))
    }

    fn place<'p>(&'p self, server: &'p Server) -> Place<'p> {
        let CutSession { host, user, interrupt, folder, .. } = self.session;
        let (crash, snapshots) = (None, None);
        Place { host, folder, server: Some(server), crash, snapshots, user, interrupt, raw: &self.raw }
    }

    /// A stack without space is one of several in a plan; any other failure is the plan's.
    fn judged(&self, done: Result<Option<String>>) -> Result<(), Unrecorded> {
        match done {
            Ok(None) => Ok(()),
            Ok(Some(why)) => {
                Err(Unrecorded::Other(Error::host(format!("the stack is too small for the workload: {why}"))))
            }
            Err(e) if e.kind() == Kind::Interrupted => Err(Unrecorded::Other(e)),
            Err(e) => {
                let CaseSpec { id, workload, .. } = self.case;
                Err(Unrecorded::Workload(
                    e.while_doing(format!("run the workload `{}` of the case {id}", workload.name)),
                ))
            }
        }
    }
}
