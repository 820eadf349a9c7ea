//! A run from its first trial to its last, in one session or several.

use super::died::{Crashed, Died};
use super::events::{Events, Watcher};
use super::{case, undo};
use crate::cluster::server::Server;
use crate::error::{Error, Kind, Result};
use crate::host::processes::cgroup;
use crate::host::signals::Interrupt;
use crate::host::users::{self, User};
use crate::host::{Host, files, time};
use crate::provision::folder;
use crate::provision::images::Images;
use crate::provision::ledger::Ledger;
use crate::provision::stack::BuiltStack;
use crate::record::case::{CaseSpec, TrialKey};
use crate::record::drive::DriveRecord;
use crate::record::facts::HostFacts;
use crate::record::run::RunRecord;
use crate::record::stack::StackSpec;
use crate::record::verdict::VerdictRecord;
use crate::store::folder::{RunFolder, Writer};
use crate::units::Bytes;
use crate::workload::{MemorySizes, Place};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct RunPlaces {
    /// Parent of the run folders.
    pub results: PathBuf,
    /// Holds ledgers and templates.
    pub state: PathBuf,
    /// Suite of the guest that this program runs in, if any.
    pub guest: Option<String>,
}

impl RunPlaces {
    pub fn ledgers(&self) -> PathBuf {
        ledgers(&self.state)
    }
}

/// Determines what a power cut costs a case; the result does not name other cases that share it.
pub type Judge<'a> = &'a dyn Fn(&CaseSpec) -> Result<VerdictRecord>;

/// What every session of a run is given.
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    pub host: &'a Host,
    pub places: &'a RunPlaces,
    pub interrupt: &'a Interrupt,
    pub watcher: Watcher<'a>,
    pub judge: Judge<'a>,
}

/// Folder of the ledgers within a state folder.
pub fn ledgers(state: &Path) -> PathBuf {
    state.join("ledger")
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    pub folder: PathBuf,
    /// Trials measured, including earlier sessions.
    pub done: u32,
    /// Trials without figures.
    pub not_run: u32,
    /// True if an interrupt aborted one of these.
    pub cut_short: bool,
    /// True if all trials had figures when the session began.
    pub nothing_left: bool,
    /// Wall time of this session, microseconds.
    pub wall_us: u64,
    /// Time spent measuring workloads, microseconds; part of `wall_us`.
    pub measured_us: u64,
    /// True if somebody asked to stop before the end.
    pub interrupted: bool,
    /// Why it stopped early: the exit code's kind, and the reason.
    pub stopped: Option<(Kind, String)>,
    /// Suite of the guest in which the next due trials run; this program runs elsewhere.
    pub handed_over: Option<String>,
}

/// Number of trials of a run with and without a result; those without one are retried on resume.
///
/// # Errors
/// If the folder cannot be read.
pub fn count_trials(folder: &RunFolder) -> Result<(u32, u32)> {
    let due = folder.record().due(folder.events()?.iter().map(|event| &event.what));
    let mut done = 0;
    for key in &due {
        done += u32::from(folder.stored(key)?.is_result());
    }
    Ok((done, u32::try_from(due.len()).unwrap_or(u32::MAX) - done))
}

/// State shared by the trials of a session.
pub struct Session<'a> {
    /// The machine; commands run through it carry the run's id.
    pub host: Host,
    pub record: RunRecord,
    pub ledger: Ledger,
    pub events: Events<'a>,
    /// User that servers and clients run as.
    pub user: User,
    /// Facts about the machine at the start of the session.
    pub machine: HostFacts,
    pub interrupt: Interrupt,
    /// Private folder of this session for mount points and sockets, with a short path.
    pub folder: PathBuf,
    /// Folder for ledgers and templates.
    pub(super) state: PathBuf,
    /// Data sets made so far.
    pub templates: Templates,
    /// Images written so far.
    pub images: Images,
    /// Drives in their steady state, and those that earlier sessions brought there.
    pub drives: Vec<DriveRecord>,
    pub earlier_drives: Vec<DriveRecord>,
    /// Stacks kept for all trials (`reuse = true`), each with its specification.
    pub kept: Vec<(StackSpec, KeptStack)>,
    /// Why undoing failed: nothing more is built after that.
    pub undo_failure: Option<Error>,
    /// Suite of the guest that this program runs in.
    pub(super) guest: Option<String>,
    /// Trials during which a guest died: not run.
    pub(super) died: Vec<Died>,
    /// Trials that failed in this or another guest, and are not retried.
    pub(super) tried: BTreeSet<TrialKey>,
    /// The trial that continues after the crash of its guest.
    pub(super) crashed: Option<Crashed>,
    /// Trials of a share whose block another machine has begun: measured again here.
    pub(super) again: BTreeSet<TrialKey>,
}

/// A stack that serves several trials.
pub struct KeptStack {
    pub built: BuiltStack,
    pub made: time::Instant,
    /// Trials that it has served.
    pub trials: u32,
}

impl<'a> Session<'a> {
    pub fn open(given: &RunContext<'a>, machine: HostFacts, ledger: Ledger, writer: Writer) -> Result<Session<'a>> {
        let RunContext { host, places, interrupt, watcher, .. } = *given;
        let record = writer.folder().record().clone();
        let group = cgroup::place(host, &record.id);
        let prepared = users::server_user(host).and_then(|user| {
            ledger.enter(undo::processes_thing(&record.id, group.as_deref())?)?;
            Ok((user, folder::make_for_run(&ledger, &record.id)?))
        });
        let (user, folder) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => return undo::undo(&ledger, 0, host).and_then(|()| ledger.close()).and(Err(e)),
        };
        Ok(Session {
            host: host.for_run(&record.id).keeping_together(group.as_deref()).heeding(interrupt),
            user,
            machine,
            state: places.state.clone(),
            templates: Templates::default(),
            images: Images::default(),
            drives: Vec::new(),
            earlier_drives: Vec::new(),
            kept: Vec::new(),
            undo_failure: None,
            guest: places.guest.clone(),
            died: Vec::new(),
            tried: BTreeSet::new(),
            crashed: None,
            again: BTreeSet::new(),
            events: Events::new(writer, watcher),
            interrupt: interrupt.clone(),
            record,
            ledger,
            folder,
        })
    }

    pub fn memory(&self) -> Bytes {
        Bytes(self.machine.memory_bytes)
    }

    /// Memory sizes that a case's data sizes refer to.
    pub(crate) fn memory_of(&self, case: &CaseSpec) -> MemorySizes {
        case::memory_of(case, self.memory())
    }

    /// A place for a workload that neither crashes the machine nor makes snapshots.
    pub(crate) fn place<'p>(&'p self, folder: &'p Path, server: Option<&'p Server>, raw: &'p Path) -> Place<'p> {
        let (host, user, interrupt) = (&self.host, &self.user, &self.interrupt);
        Place { host, folder, server, crash: None, snapshots: None, user, interrupt, raw }
    }

    /// True if a stack is kept for all its trials and exists already.
    pub fn stands(&self, stack: &StackSpec) -> bool {
        stack.reuse && self.kept.iter().any(|(kept, _)| kept == stack)
    }

    /// Undoes everything after a mark of the ledger. Keeps a failure in `undo_failure`.
    pub fn undo_from(&mut self, mark: u64) {
        if let Err(e) = undo::undo(&self.ledger, mark, &self.host) {
            self.undo_failure.get_or_insert(e);
        }
    }
}

/// A cleanly stopped cluster with its data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Template {
    pub data: PathBuf,
    /// Time to make it, seconds.
    pub seconds: f64,
    pub database_bytes: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Templates {
    /// Of the run, below the session's `state`; made with the first of them.
    pub(super) folder: Option<PathBuf>,
    pub(super) made: BTreeMap<String, Template>,
}

/// Gives a run folder to the user behind sudo: results in a user's own folder should not belong to root. Does nothing
/// without sudo.
///
/// # Errors
/// When the filesystem refuses.
pub fn give_to_person(folder: &Path) -> Result<()> {
    users::behind_sudo().map_or(Ok(()), |person| files::give_tree_to(folder, &person))
}
