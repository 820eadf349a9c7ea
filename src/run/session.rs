//! A run from its first trial to its last, in one sitting or several.

use super::crashed::Crashed;
use super::died::Died;
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
use crate::store::folder::Writer;
use crate::units::Bytes;
use crate::workload::{Memory, Place};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where a run goes on.
#[derive(Debug, Clone)]
pub struct Places {
    /// Folder of run folders.
    pub results: PathBuf,
    /// Folder of ledgers and templates.
    pub state: PathBuf,
    /// Suite of the guest that this program runs in, where it does.
    pub guest: Option<String>,
}

impl Places {
    pub fn ledgers(&self) -> PathBuf {
        ledgers(&self.state)
    }
}

/// Folder of ledgers below a folder of state.
pub fn ledgers(state: &Path) -> PathBuf {
    state.join("ledger")
}

/// How a sitting ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub folder: PathBuf,
    /// Trials measured, earlier sittings included.
    pub done: u32,
    /// Trials without figures.
    pub not_run: u32,
    /// Whether an interrupt cut one of these short.
    pub cut_short: bool,
    /// Whether all trials had figures when the sitting began.
    pub nothing_left: bool,
    /// Wall time of this sitting, microseconds.
    pub wall_us: u64,
    /// Of that, time in which a workload was measured.
    pub measured_us: u64,
    /// Whether somebody asked to stop before the end.
    pub interrupted: bool,
    /// Why it was stopped before its end: the exit code's kind, and the reason.
    pub stopped: Option<(Kind, String)>,
    /// Suite of the guest in which the trials that are due next run; this program runs elsewhere.
    pub handed_over: Option<String>,
}

/// What the trials of a sitting share.
pub struct Session<'a> {
    /// The machine; its commands carry the run's id.
    pub host: Host,
    pub record: RunRecord,
    pub ledger: Ledger,
    pub events: Events<'a>,
    /// As whom servers and clients run.
    pub user: User,
    /// The machine, as it was when the sitting began.
    pub machine: HostFacts,
    /// Whether somebody asked to stop.
    pub interrupt: Interrupt,
    /// Private folder of this sitting for mount points and sockets, with a short path.
    pub folder: PathBuf,
    /// Data sets made so far.
    pub templates: Templates,
    /// Images written so far.
    pub images: Images,
    /// Drives that this sitting has in their steady state, and those that earlier ones brought there.
    pub drives: Vec<DriveRecord>,
    pub earlier_drives: Vec<DriveRecord>,
    /// Stacks that are kept for all trials (`reuse = true`), each with what was asked.
    pub kept: Vec<(StackSpec, KeptStack)>,
    /// Why something could not be undone: nothing further is built after that.
    pub stuck: Option<Error>,
    /// Whether an interrupt came while a trial was under way.
    pub cut_short: bool,
    /// Suite of the guest that this program runs in.
    pub(super) guest: Option<String>,
    /// Trials under which a guest died: not run.
    pub(super) died: Vec<Died>,
    /// Trials that failed in this guest or another one, and are not tried again.
    pub(super) tried: BTreeSet<TrialKey>,
    /// The trial that goes on after the crash of its guest.
    pub(super) crashed: Option<Crashed>,
    /// Trials of a share whose block another machine has begun: measured again here.
    pub(super) again: BTreeSet<TrialKey>,
}

/// A stack that serves several trials.
pub struct KeptStack {
    pub built: BuiltStack,
    /// When it was made.
    pub made: time::Instant,
    /// Trials that it has served.
    pub trials: u32,
}

/// What went wrong, and what could not be undone after it.
///
/// # Errors
/// Either, or both in one.
pub fn both(done: Result<()>, undone: Result<()>) -> Result<()> {
    const CLEAN: &str = "`pgstrata clean` tries again; what is left is in the ledger";
    match (done, undone) {
        (done, Ok(())) => done,
        (Ok(()), Err(left)) => Err(left.hint(CLEAN)),
        (Err(why), Err(left)) => {
            Err(Error::new(why.kind(), format!("{why}\nand not all of it could be undone: {left}")).hint(CLEAN))
        }
    }
}

impl<'a> Session<'a> {
    pub(super) fn open(
        host: &Host,
        machine: HostFacts,
        ledger: Ledger,
        writer: Writer,
        places: &Places,
        interrupt: &Interrupt,
        watcher: Watcher<'a>,
    ) -> Result<Session<'a>> {
        let record = writer.folder().record().clone();
        let group = cgroup::place(host, &record.id);
        let prepared = users::server_user(host).and_then(|user| {
            ledger.enter(undo::processes_thing(&record.id, group.as_deref())?)?;
            Ok((user, folder::make_for_run(&ledger, &record.id)?))
        });
        let (user, folder) = match prepared {
            Ok(prepared) => prepared,
            Err(e) => {
                undo::undo(&ledger, 0, host).and_then(|()| ledger.close())?;
                return Err(e);
            }
        };
        Ok(Session {
            host: host.for_run(&record.id).keeping_together(group.as_deref()).heeding(interrupt),
            user,
            machine,
            templates: Templates::new(&places.state, &record.id),
            images: Images::default(),
            drives: Vec::new(),
            earlier_drives: Vec::new(),
            kept: Vec::new(),
            stuck: None,
            cut_short: false,
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

    /// Memory of the machine.
    pub fn memory(&self) -> Bytes {
        Bytes(self.machine.memory_bytes)
    }

    /// What the sizes of a case's data refer to.
    pub(crate) fn memory_of(&self, case: &CaseSpec) -> Memory {
        case::memory_of(case, self.memory())
    }

    /// Where a workload runs that neither crashes the machine nor makes snapshots.
    pub(crate) fn place<'p>(&'p self, folder: &'p Path, server: Option<&'p Server>, raw: &'p Path) -> Place<'p> {
        let (host, user, interrupt) = (&self.host, &self.user, &self.interrupt);
        Place { host, folder, server, crash: None, snapshots: None, user, interrupt, raw }
    }

    /// Whether a stack is kept for all its trials and stands already.
    pub fn stands(&self, stack: &StackSpec) -> bool {
        stack.reuse && self.kept.iter().any(|(kept, _)| kept == stack)
    }

    /// The stack that is kept for these nodes and options.
    pub fn kept_mut(&mut self, stack: &StackSpec) -> Option<&mut KeptStack> {
        self.kept.iter_mut().find(|(kept, _)| kept == stack).map(|(_, kept)| kept)
    }

    /// Undoes everything from a mark of the ledger on. A failure is kept in `stuck`.
    pub fn undo_from(&mut self, mark: u64) {
        if let Err(e) = undo::undo(&self.ledger, mark, &self.host) {
            self.stuck.get_or_insert(e);
        }
    }
}

/// A cleanly stopped cluster with its data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Template {
    pub data: PathBuf,
    /// Seconds that making it took.
    pub seconds: f64,
    /// Size of its database.
    pub database_bytes: u64,
}

/// The templates of a sitting.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Templates {
    pub(super) state: PathBuf,
    pub(super) run: String,
    pub(super) folder: Option<PathBuf>,
    pub(super) made: BTreeMap<String, Template>,
}

impl Templates {
    /// None made yet; they will lie in a folder of the run below `state`.
    pub fn new(state: &Path, run: &str) -> Templates {
        Templates { state: state.to_path_buf(), run: run.to_owned(), folder: None, made: BTreeMap::new() }
    }
}

/// Gives a run folder to the person behind sudo: results in somebody's own folder should not be root's. Does nothing
/// where nobody stands behind sudo.
///
/// # Errors
/// When the filesystem does not take it.
pub fn give_to_person(folder: &Path) -> Result<()> {
    users::behind_sudo().map_or(Ok(()), |person| files::give_tree_to(folder, &person))
}
