//! The cases of a plan, one after another: record, judge, try states.

use super::beside::{self, Failed};
use super::disks::{self, Attachment};
use super::evidence;
use super::judge::Judged;
use super::pages::PageWrites;
use super::record;
use crate::error::{Error, Kind, Result};
use crate::host::processes::cgroup;
use crate::host::signals::Interrupt;
use crate::host::users::{self, User};
use crate::host::{Host, files, folders};
use crate::provision::ledger::Ledger;
use crate::provision::{folder, layer};
use crate::record::case::{CaseSpec, by_stack_and_server};
use crate::record::durability;
use crate::record::verdict::Verdict;
use crate::run::session::{Places, both};
use crate::run::undo;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How thoroughly cases are cut.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    pub clients: u16,
    /// How long they commit.
    pub time: Duration,
    /// Whether a share of their transactions commits asynchronously.
    pub asynchronous_share: bool,
    /// Whether the case's own workload runs beside them.
    pub workload: bool,
    /// States of each case whose WAL is read to its end; 0 for the arithmetic alone.
    pub states: usize,
    pub seed: u64,
    /// How the recorded disks are attached.
    pub attachment: Attachment,
    /// Whether the recording of a convicted case is kept.
    pub keeps_evidence: bool,
}

impl Cutting {
    /// How many of the states go through all steps: one of twenty, but no fewer than [`LEAST_WHOLE`].
    #[must_use]
    pub fn wholes(&self) -> usize {
        (self.states / 20).clamp(LEAST_WHOLE, MOST_WHOLE).min(self.states)
    }
}

/// So that each class of states has one or two.
const LEAST_WHOLE: usize = 12;
/// Beyond it, time is better spent on reading WAL.
const MOST_WHOLE: usize = 100;

impl Default for Cutting {
    fn default() -> Cutting {
        Cutting {
            clients: 4,
            time: Duration::from_secs(3),
            asynchronous_share: true,
            workload: false,
            states: 0,
            seed: 1,
            attachment: Attachment::default(),
            keeps_evidence: true,
        }
    }
}

/// What is told while it goes on.
pub enum Told<'a> {
    Recording {
        case: &'a str,
        /// What runs beside the clients, by its name in the plan.
        workload: Option<&'a str>,
    },
    Checking {
        case: &'a str,
        states: usize,
    },
    /// A state of the step is checked.
    State {
        case: &'a str,
        step: &'a str,
        done: usize,
        of: usize,
    },
}

/// What is known of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseResult {
    pub case: String,
    pub verdict: Verdict,
    /// Acknowledged commits.
    pub commits: usize,
    /// Of these, how many were asynchronous.
    #[serde(default)]
    pub asynchronous: usize,
    /// What ran beside the clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<beside::Ran>,
    /// Requests while they were made.
    pub writes: usize,
    pub flushes: usize,
    pub bytes: u64,
    /// How pages of data reached the disks, the stop of the server included.
    pub page_writes: PageWrites,
    pub classes: Vec<Tried>,
    /// States whose WAL was read to its end.
    pub tails: Pass,
    /// States that went through all steps.
    pub wholes: Pass,
    /// States with a write torn at 4 KiB that failed.
    pub torn_pages: usize,
    /// States with a write torn at 512 bytes that failed: outside what filesystems promise.
    pub torn_sectors: usize,
    /// Steps that nothing could be said of, with the reason.
    pub left_out: Vec<String>,
    /// What each model of the device would make of it, the honest one first: by states where they were tried, else by
    /// arithmetic.
    pub devices: Vec<OnDevice>,
    /// Folder of the evidence, of a conviction.
    pub evidence: Option<PathBuf>,
}

impl CaseResult {
    /// A verdict that rests on no recording.
    pub fn of(case: &CaseSpec, verdict: Verdict) -> CaseResult {
        CaseResult {
            case: case.id.clone(),
            verdict,
            commits: 0,
            asynchronous: 0,
            beside: None,
            writes: 0,
            flushes: 0,
            bytes: 0,
            page_writes: PageWrites::default(),
            classes: Vec::new(),
            tails: Pass::default(),
            wholes: Pass::default(),
            torn_pages: 0,
            torn_sectors: 0,
            left_out: Vec::new(),
            devices: Vec::new(),
            evidence: None,
        }
    }
}

/// States that went through a check, and what it took.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Pass {
    pub states: usize,
    /// Microseconds for all of them.
    pub us: u64,
}

/// States of one class.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tried {
    pub class: String,
    pub tried: usize,
    /// How many there are; of samples and torn writes, how many were drawn.
    pub of: usize,
    /// Whether one that fails convicts nothing.
    pub may_fail: bool,
}

/// A verdict for another device than the recorded one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OnDevice {
    pub device: String,
    pub verdict: Verdict,
}

/// What all cases share.
pub struct Session<'a> {
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

impl<'a> Session<'a> {
    /// Begins: ledger, control group, folders.
    ///
    /// # Errors
    /// When a folder cannot be made, or there is no user for the server.
    pub fn open(host: &Host, places: &Places, cutting: Cutting, interrupt: &'a Interrupt) -> Result<Session<'a>> {
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
                Ok(Session { host, ledger, id, user, cutting, interrupt, folder, work })
            }
            Err(e) => {
                undo::undo(&ledger, 0, host).and_then(|()| ledger.close())?;
                Err(e)
            }
        }
    }

    /// Undoes all that is left.
    ///
    /// # Errors
    /// What could not be undone; it stays in the ledger.
    pub fn close(self) -> Result<()> {
        undo::undo(&self.ledger, 0, &self.host).and_then(|()| self.ledger.close())
    }
}

/// Cases that differ in what a power cut meets: guest, stack and server, and the workload where that runs.
fn differing<'c>(cases: &'c [CaseSpec], cutting: &Cutting) -> Vec<&'c CaseSpec> {
    let of_stack = by_stack_and_server(cases).into_iter();
    of_stack
        .flat_map(|sharing| {
            let mut found: Vec<&CaseSpec> = Vec::new();
            for case in sharing {
                if found.is_empty() || cutting.workload && found.iter().all(|other| other.workload != case.workload) {
                    found.push(case);
                }
            }
            found
        })
        .collect()
}

/// What was found of the cases, and what kept the others from being cut.
pub struct Cuts {
    pub results: Vec<CaseResult>,
    /// How many cases have no result.
    pub left: usize,
    /// An interrupt, a workload that fails, something built that cannot be undone. What was found before it stands.
    pub ended_by: Option<Error>,
}

/// Cuts the power of each case that differs from the others in more than its workload, or in that where it runs.
///
/// # Errors
/// When nothing can be begun.
pub fn cut(
    host: &Host,
    cases: &[CaseSpec],
    places: &Places,
    cutting: Cutting,
    interrupt: &Interrupt,
    tell: &dyn Fn(Told<'_>),
) -> Result<Cuts> {
    let session = Session::open(host, places, cutting, interrupt)?;
    let mut results = Vec::new();
    let differing = differing(cases, &cutting);
    let ended = differing.iter().try_for_each(|case| {
        interrupt.check()?;
        let mark = session.ledger.mark();
        let result = cut_case(&session, case, places, tell);
        // What cannot be undone now is tried once more below.
        let undone = undo::undo(&session.ledger, mark, &session.host);
        results.push(result?);
        undone
    });
    let closed = session.close();
    Ok(Cuts { left: differing.len() - results.len(), results, ended_by: both(ended, closed).err() })
}

pub(super) fn cut_case(
    session: &Session<'_>,
    case: &CaseSpec,
    places: &Places,
    tell: &dyn Fn(Told<'_>),
) -> Result<CaseResult> {
    if let Some(verdict) = without_recording(session, case) {
        return Ok(CaseResult::of(case, verdict));
    }
    let workload = session.cutting.workload.then_some(case.workload.name.as_str());
    tell(Told::Recording { case: &case.id, workload });
    let work = session.work.join(&case.id);
    files::make_folder(&work, 0o711)?;
    let exports = disks::serve(session)?;
    let recorded = match record::record(session, case, exports.as_ref(), &work) {
        Ok(recorded) => recorded,
        Err(Failed::Workload(e)) => return Err(e),
        Err(Failed::Other(e)) if matches!(e.kind(), Kind::Interrupted | Kind::Store) => return Err(e),
        Err(Failed::Other(e)) if e.kind() == Kind::Bug => {
            return Ok(CaseResult::of(case, Verdict::HarnessBroken { why: e.chain() }));
        }
        Err(Failed::Other(e)) => return Ok(CaseResult::of(case, Verdict::NotMeasured { why: e.chain() })),
    };
    let mut result =
        Judged { session, case, exports: exports.as_ref(), recorded: &recorded, work: &work }.judge(tell)?;
    if result.0.verdict.convicts() && session.cutting.keeps_evidence {
        let folder = places.results.join(format!("cut-{}", session.id)).join(&case.id);
        evidence::keep(&folder, case, &result.0.verdict, result.1, &recorded)?;
        result.0.evidence = Some(folder);
    }
    drop(exports);
    folders::remove_all(&work)?;
    Ok(result.0)
}

/// What can be said of a case that cannot be recorded.
fn without_recording(session: &Session<'_>, case: &CaseSpec) -> Option<Verdict> {
    let others = record::not_recorded(&case.stack);
    if let Some(memory) = others.iter().find(|layer| durability::memory_filesystem(layer).is_some()) {
        return Some(Verdict::LosesAll { why: format!("{memory} is in memory") });
    }
    if !others.is_empty() {
        let why = format!("only loop images are recorded, not {}", others.join(", "));
        return Some(Verdict::NotMeasured { why });
    }
    if session.cutting.workload && case.workload.kind != beside::KIND {
        let why = format!("only the workload {} runs beside the clients, not {}", beside::KIND, case.workload.kind);
        return Some(Verdict::NotMeasured { why });
    }
    if let Some(why) = session.cutting.attachment.lacking(session) {
        return Some(Verdict::NotMeasured { why });
    }
    let nodes = case.stack.nodes.iter();
    let missing =
        nodes.filter_map(|node| Some(layer(&node.layer)?.unmet(&session.host, &node.options))).flatten().next()?;
    // NBD is what guests have by default.
    let elsewhere = match session.cutting.attachment {
        Attachment::Loop => "; a guest may have it (--guest)",
        Attachment::Nbd => "",
    };
    Some(Verdict::NotMeasured { why: format!("{} is missing{elsewhere}", missing.what) })
}
