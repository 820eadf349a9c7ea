//! Evidence of a conviction: the recording, the state that failed, and everything needed to see it fail again.

use super::cutting::{Cutting, Finding};
use super::disks;
use super::history::History;
use super::ladder::{CheckContext, Checker, EndedBy};
use super::record::{RECORDED_LOG, Recorded};
use super::session::CutSession;
use super::trying::{SecondCut, SecondFailure, Suspect};
use crate::error::{Context, Error, Result};
use crate::host::signals::Interrupt;
use crate::host::{Host, files, folders, paths};
use crate::record::case::CaseSpec;
use crate::record::verdict::Verdict;
use crate::recorder::{DeviceModel, Durable, Recording, State};
use crate::run::session::RunPlaces;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Format version of the file.
const FORMAT: u32 = 5;
/// File name in the folder of the evidence.
pub const FILE: &str = "evidence.json";
/// Log beside it.
const LOG: &str = "log";
/// Log of the server of the last check.
pub const SERVER_LOG: &str = "server.log";
/// Log of the server on the state that the conviction rests on.
pub const CONVICTED_LOG: &str = "convicted.log";
/// Log of the recovery that was cut a second time.
const SECOND_LOG: &str = "second.log";

/// Content of [`FILE`].
#[derive(Debug, Serialize, Deserialize)]
struct StoredEvidence {
    format: u32,
    case: CaseSpec,
    verdict: Verdict,
    /// The state that failed; `None` if arithmetic alone convicted.
    state: Option<State>,
    /// The state of its recovery that failed, if that was cut a second time; the log lies beside this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    second: Option<State>,
    /// True if its recovery failed, with the settings of the case, before any second cut.
    recovery_failed: bool,
    /// Node of each disk and the file name of its origin.
    disks: Vec<(String, String)>,
    history: History,
}

/// Moves a recording into a new folder for evidence.
///
/// # Errors
/// If it cannot be written.
pub fn keep(to: &Path, case: &CaseSpec, verdict: &Verdict, kept: Option<Suspect>, recorded: &Recorded) -> Result<()> {
    folders::make_all(to, 0o755)?;
    let mut disks = Vec::new();
    for (node, origin) in recorded.nodes.iter().zip(&recorded.origins) {
        let name = origin.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files::move_to(origin, &to.join(&name))?;
        disks.push((node.clone(), name));
    }
    files::move_to(&recorded.log, &to.join(LOG))?;
    let server_logs = [CONVICTED_LOG, RECORDED_LOG].map(|name| recorded.log.with_file_name(name));
    if let Some(log) = server_logs.iter().find(|log| paths::exists(log)) {
        files::move_to(log, &to.join(SERVER_LOG))?;
    }
    let (state, second) = kept.map_or((None, None), |kept| (Some(kept.state), kept.second));
    let (second, recovery_failed) = match second {
        Some(SecondFailure::Cut(SecondCut { log, state })) => {
            files::move_to(&log, &to.join(SECOND_LOG))?;
            (Some(state), false)
        }
        Some(SecondFailure::Recovery) => (None, true),
        None => (None, false),
    };
    let (case, verdict, history) = (case.clone(), verdict.clone(), recorded.clients.history.clone());
    let evidence = StoredEvidence { format: FORMAT, case, verdict, state, second, recovery_failed, disks, history };
    let text = serde_json::to_vec_pretty(&evidence).or_store(|| "write the evidence".to_owned())?;
    files::write_whole(&to.join(FILE), &text)
}

/// Result of rebuilding and rechecking a saved state.
#[derive(Debug, Clone)]
pub struct Replayed {
    pub case: String,
    /// Verdict at the time.
    pub verdict: Verdict,
    /// Verdict now; `None` if no state was kept.
    pub finding: Option<Verdict>,
}

/// Rebuilds the state of an evidence and checks it again.
///
/// # Errors
/// If the folder holds no evidence, or the check does not finish.
pub fn replay(host: &Host, folder: &Path, places: &RunPlaces, interrupt: &Interrupt) -> Result<Replayed> {
    let text = files::read(&folder.join(FILE))?;
    let evidence: StoredEvidence =
        serde_json::from_slice(&text).or_store(|| format!("read {}", folder.join(FILE).display()))?;
    if evidence.format != FORMAT {
        return Err(Error::store(format!("evidence of format {} is not supported", evidence.format)));
    }
    crate::run::forecast::recheck(std::slice::from_ref(&evidence.case))?;
    let origins: Vec<PathBuf> = evidence.disks.iter().map(|(_, origin)| folder.join(origin)).collect();
    let recording = Recording::open(&folder.join(LOG), &origins)?;
    let (case, verdict) = (evidence.case.id.clone(), evidence.verdict.clone());
    let Some(state) = &evidence.state else { return Ok(Replayed { case, verdict, finding: None }) };
    let session = CutSession::open(host, places, Cutting::default(), interrupt)?;
    let finding = check(&session, &evidence, &recording, (state, &folder.join(SECOND_LOG)));
    session.close()?;
    Ok(Replayed { case, verdict, finding: Some(finding?) })
}

fn check(
    session: &CutSession<'_>,
    evidence: &StoredEvidence,
    recording: &Recording,
    (state, second_log): (&State, &Path),
) -> Result<Verdict> {
    let exports = disks::serve(session)?;
    let nodes: Vec<String> = evidence.disks.iter().map(|(node, _)| node.clone()).collect();
    let (case, history) = (&evidence.case, &evidence.history);
    let of = CheckContext { session, case, exports: exports.as_ref(), nodes: &nodes, history, work: &session.work };
    let durable = Durable::of(recording.log().entries(), DeviceModel::Honest);
    let images = match &evidence.second {
        None => recording.images(&durable, state),
        Some(second) => {
            let recovery = Recording::open_over(second_log, recording.images(&durable, state))?;
            recovery.images(&SecondCut::durable(&recovery), second)
        }
    };
    let checker = Checker::attach(of, images.clone())?;
    let finding = match evidence.recovery_failed {
        false => {
            checker.whole(&images, state.at, evidence.second.as_ref().map_or(EndedBy::Cut, |_| EndedBy::SecondCut))
        }
        true => {
            checker.recover(&images, &session.work.join(SECOND_LOG)).map(|done| done.err().unwrap_or(Finding::Whole))
        }
    };
    checker.detach()?;
    Ok(verdict_of(&finding?))
}

/// The verdict that follows from one finding.
pub fn verdict_of(finding: &Finding) -> Verdict {
    match finding {
        Finding::Whole => Verdict::Holds { states: 1 },
        Finding::Lost(loss) if loss.is_expected => Verdict::ExpectedLoss { commits: loss.commits, us: loss.us },
        Finding::Lost(loss) => Verdict::Loses { commits: loss.commits, us: loss.us },
        Finding::Torn(what) => Verdict::Torn { what: what.clone(), unit: None },
        Finding::Unmountable(what) => Verdict::Unmountable { what: what.clone() },
    }
}
