//! Opens and closes the stack of a state, on loop devices that stay attached.
//!
//! The first state is opened as in a run: by mount(8), with everything read back. Stacks that consist only of
//! filesystems on these devices are mounted by mount(2) from then on. A state that the kernel then refuses, or mounts
//! with other options, is opened again by mount(8), on disks that nobody has written to; that result counts.

use super::session::{CutSession, site};
use crate::error::{Error, Kind, Result};
use crate::provision::Site;
use crate::provision::facts::Bases;
use crate::provision::remount::Remounts;
use crate::provision::stack::reopen_stack;
use crate::provision::undo::{undo_from, undo_own};
use crate::record::case::CaseSpec;
use crate::record::stack::End;
use crate::run::undo;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Folder of each part of the database.
pub type Folders = BTreeMap<End, PathBuf>;

/// What was found on an opened stack, or why it cannot be opened as it is. `None` if not by mount(2): restore the disks,
/// and open the stack by mount(8).
pub type OpenedStack<T> = Option<Result<T, String>>;

/// Opens the stack of one case repeatedly.
pub struct Opener<'a> {
    session: &'a CutSession<'a>,
    case: &'a CaseSpec,
    /// Name of the stack in the recording: links to pg_wal and tablespaces contain its paths.
    name: String,
    /// File of each disk, by node.
    files: BTreeMap<String, PathBuf>,
    /// Loop device of each disk.
    pub loops: Bases,
    /// Learned from the first state.
    remounts: RefCell<Option<Remounts>>,
    /// Ledger position of its entries, while it is ready: they lie at or above it.
    ready: Cell<Option<u64>>,
    /// True if the next state is opened by mount(8) in any case.
    by_tools: Cell<bool>,
}

impl<'a> Opener<'a> {
    pub fn new(
        session: &'a CutSession<'a>,
        case: &'a CaseSpec,
        name: String,
        (files, loops): (BTreeMap<String, PathBuf>, Bases),
    ) -> Opener<'a> {
        let (ready, by_tools) = (Cell::new(None), Cell::new(false));
        Opener { session, case, name, files, loops, remounts: RefCell::default(), ready, by_tools }
    }

    /// Acts on fresh disks, and once more with the stack opened by mount(8) if mount(2) was not enough.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn until_opened<T>(&self, act: impl Fn() -> Result<Option<T>>) -> Result<T> {
        if let Some(done) = act()? {
            return Ok(done);
        }
        self.by_tools.set(true);
        let done = act();
        self.by_tools.set(false);
        done?.ok_or_else(|| Error::bug("a state that mount(8) was to open was not opened"))
    }

    /// Opens the stack as it is, acts, and takes it down to the loop devices.
    ///
    /// # Errors
    /// Those of `act`; or if opening says nothing about the state, or something cannot be undone.
    pub fn open<T>(&self, act: impl FnOnce(&Folders) -> Result<T>) -> Result<OpenedStack<T>> {
        let learned = self.remounts.borrow();
        match learned.as_ref().filter(|_| !self.by_tools.get()) {
            Some(remounts) => self.again(remounts, act),
            None => {
                drop(learned);
                self.anew(act)
            }
        }
    }

    fn again<T>(&self, remounts: &Remounts, act: impl FnOnce(&Folders) -> Result<T>) -> Result<OpenedStack<T>> {
        let site = self.site();
        if self.ready.get().is_none() {
            self.ready.set(Some(self.session.ledger.mark()));
            remounts.prepare(&site)?;
        }
        let mark = self.session.ledger.mark();
        if !remounts.mount(&site)? {
            return Ok(None);
        }
        let found = act(&remounts.folders);
        let ended = self.end_servers(mark);
        remounts.unmount()?;
        ended?;
        found.map(|found| Some(Ok(found)))
    }

    fn anew<T>(&self, act: impl FnOnce(&Folders) -> Result<T>) -> Result<OpenedStack<T>> {
        let CutSession { ledger, host, .. } = self.session;
        self.release()?;
        let mark = ledger.mark();
        drop(host.take_command_log());
        let opened = match reopen_stack(&self.site(), &self.case.stack, self.loops.clone()) {
            Ok(stack) => {
                let mut remounts = self.remounts.borrow_mut();
                *remounts = remounts.take().or_else(|| Remounts::of(&self.case.stack, &stack, &self.loops));
                drop(remounts);
                act(&stack.folders).map(|found| Some(Ok(found)))
            }
            Err(e) => {
                // A program that was killed, or never ran, says nothing about the state.
                let ended = host.take_command_log().iter().all(|ran| ran.exit_code.is_some());
                let refused = e.kind() == Kind::Tool && ended;
                if refused { Ok(Some(Err(e.to_string()))) } else { Err(Error::host(e.chain())) }
            }
        };
        self.end_servers(mark)?;
        undo_from(ledger, mark, undo_own, host).into_iter().next().map_or(opened, Err)
    }

    /// Ends servers and their processes, if one was started.
    fn end_servers(&self, mark: u64) -> Result<()> {
        let CutSession { ledger, host, .. } = self.session;
        let started = ledger.open_things().iter().any(|(number, thing)| *number >= mark && undo::is_server(thing));
        if started { undo::undo(ledger, mark, host) } else { Ok(()) }
    }

    /// Undoes what was set up for mount(2).
    ///
    /// # Errors
    /// What could not be undone.
    pub fn release(&self) -> Result<()> {
        match (self.ready.take(), self.remounts.borrow().as_ref()) {
            (Some(mark), Some(remounts)) => remounts.release(&self.site(), mark),
            _ => Ok(()),
        }
    }

    fn site(&self) -> Site<'_> {
        site(self.session, self.name.clone(), &self.files)
    }
}
