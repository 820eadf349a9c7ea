//! State shared by all cases of a cut: ledger, folders, settings.

use super::cutting::Cutting;
use crate::error::Result;
use crate::host::processes::cgroup;
use crate::host::signals::Interrupt;
use crate::host::users::{self, User};
use crate::host::{Host, files, folders};
use crate::provision::ledger::Ledger;
use crate::provision::{Site, folder};
use crate::run::session::RunPlaces;
use crate::run::undo;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub struct CutSession<'a> {
    pub host: Host,
    pub ledger: Ledger,
    pub id: String,
    pub user: User,
    pub cutting: Cutting,
    pub interrupt: &'a Interrupt,
    /// Private folder for mount points and sockets, with a short path.
    pub folder: PathBuf,
    /// Folder for recordings.
    pub work: PathBuf,
}

impl<'a> CutSession<'a> {
    /// Opens the session: ledger, control group, folders.
    ///
    /// # Errors
    /// If a folder cannot be created, or there is no user for the server.
    pub fn open(host: &Host, places: &RunPlaces, cutting: Cutting, interrupt: &'a Interrupt) -> Result<CutSession<'a>> {
        let id = files::random_id()?;
        let ledger = Ledger::create(&places.ledgers(), &id)?;
        let group = cgroup::place(host, &id);
        let prepared: Result<(User, PathBuf, PathBuf)> = (|| {
            let user = users::server_user(host)?;
            ledger.enter(undo::processes_thing(&id, group.as_deref())?)?;
            let work = places.state.join(format!("{}{id}-recordings", folder::PREFIX));
            folders::make_passable(&places.state)?;
            folder::make(&ledger, folder::OWNER, &work)?;
            Ok((user, folder::make_for_run(&ledger, &id)?, work))
        })();
        match prepared {
            Ok((user, folder, work)) => {
                let host = host.for_run(&id).keeping_together(group.as_deref()).heeding(interrupt);
                Ok(CutSession { host, ledger, id, user, cutting, interrupt, folder, work })
            }
            Err(e) => undo::undo(&ledger, 0, host).and_then(|()| ledger.close()).and(Err(e)),
        }
    }

    /// Undoes everything left.
    ///
    /// # Errors
    /// What could not be undone; it stays in the ledger.
    pub fn close(self) -> Result<()> {
        undo::undo(&self.ledger, 0, &self.host).and_then(|()| self.ledger.close())
    }
}

/// Where a stack is built.
pub fn site<'s>(session: &'s CutSession<'_>, name: String, images: &'s BTreeMap<String, PathBuf>) -> Site<'s> {
    let (host, ledger, folder) = (&session.host, &session.ledger, session.folder.clone());
    Site { host, ledger, name, folder, images, image: None, interrupt: session.interrupt }
}
