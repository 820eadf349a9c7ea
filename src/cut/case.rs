//! The cases of a plan, one after another: record, judge, try states.

use super::beside::{self, Unrecorded};
use super::cutting::{Attachment, CutEvent, Cutting};
use super::judged::{Judged, verdict_on};
use super::session::CutSession;
use super::{disks, evidence, record};
use crate::error::{Error, Kind, Result};
use crate::host::signals::Interrupt;
use crate::host::{Host, files, folders};
use crate::provision::layer;
use crate::record::case::{CaseSpec, by_stack_and_server};
use crate::record::durability;
use crate::record::verdict::{Verdict, VerdictRecord};
use crate::run::session::RunPlaces;
use crate::run::undo;
use crate::run::undo::both;

/// Cases that differ in what a power cut affects: guest, stack and server, and the workload if it runs.
fn differing<'c>(cases: &'c [CaseSpec], cutting: &Cutting) -> Vec<&'c CaseSpec> {
    let of_stack = by_stack_and_server(cases).into_iter();
    let cases = of_stack.flat_map(|sharing| {
        let mut found: Vec<&CaseSpec> = Vec::new();
        for case in sharing {
            if found.is_empty() || cutting.workload && found.iter().all(|other| other.workload != case.workload) {
                found.push(case);
            }
        }
        found
    });
    cases.collect()
}

/// Results of the cases, and the reason why the others were not cut.
pub struct Cuts {
    pub results: Vec<VerdictRecord>,
    /// Number of cases without a result.
    pub left: usize,
    /// An interrupt, a workload that fails, something built that cannot be undone. Earlier results stand.
    pub ended_by: Option<Error>,
}

/// Cuts the power of each case that differs from the others in more than its workload, or in the workload if that runs.
///
/// # Errors
/// If nothing can be started.
pub fn cut(
    host: &Host,
    cases: &[CaseSpec],
    places: &RunPlaces,
    cutting: Cutting,
    interrupt: &Interrupt,
    report: &dyn Fn(CutEvent<'_>),
) -> Result<Cuts> {
    let session = CutSession::open(host, places, cutting, interrupt)?;
    let mut results = Vec::new();
    let differing = differing(cases, &cutting);
    let ended = differing.iter().try_for_each(|case| {
        interrupt.check()?;
        let mark = session.ledger.mark();
        let result = cut_case(&session, case, places, report);
        // What cannot be undone now is retried below.
        let undone = undo::undo(&session.ledger, mark, &session.host);
        results.push(result?);
        undone
    });
    let closed = session.close();
    Ok(Cuts { left: differing.len() - results.len(), results, ended_by: both(ended, closed).err() })
}

/// Loss of a case at a power cut, by arithmetic alone. Nothing is left on the machine. If a recording is impossible,
/// the case is *not measured* and the run continues without it.
///
/// # Errors
/// If something built cannot be undone; interrupted.
pub fn quick(host: &Host, case: &CaseSpec, places: &RunPlaces, interrupt: &Interrupt) -> Result<VerdictRecord> {
    let cutting = Cutting { states: 0, keeps_evidence: false, ..Cutting::default() };
    let session = CutSession::open(host, places, cutting, interrupt)?;
    let result = cut_case(&session, case, places, &|_| ());
    session.close()?;
    match result {
        Err(e) if e.kind() != Kind::Interrupted => {
            Ok(verdict_on(case, Verdict::NotMeasured { why: e.chain() }, cutting.clients))
        }
        result => result,
    }
}

pub(super) fn cut_case(
    session: &CutSession<'_>,
    case: &CaseSpec,
    places: &RunPlaces,
    report: &dyn Fn(CutEvent<'_>),
) -> Result<VerdictRecord> {
    let (clients, case) = (session.cutting.clients, &record::on_images(case));
    if let Some(verdict) = without_recording(session, case) {
        return Ok(verdict_on(case, verdict, clients));
    }
    let workload = session.cutting.workload.then_some(case.workload.name.as_str());
    report(CutEvent::Recording { case: &case.id, workload });
    let work = session.work.join(&case.id);
    files::make_folder(&work, 0o711)?;
    let exports = disks::serve(session)?;
    let recorded = match record::record(session, case, exports.as_ref(), &work) {
        Ok(recorded) => recorded,
        Err(Unrecorded::Workload(e)) => return Err(e),
        Err(Unrecorded::Other(e)) if matches!(e.kind(), Kind::Interrupted | Kind::Store) => return Err(e),
        Err(Unrecorded::Other(e)) => {
            let (is_bug, why) = (e.kind() == Kind::Bug, e.chain());
            let verdict = if is_bug { Verdict::HarnessBroken { why } } else { Verdict::NotMeasured { why } };
            return Ok(verdict_on(case, verdict, clients));
        }
    };
    let mut result =
        Judged { session, case, exports: exports.as_ref(), recorded: &recorded, work: &work }.judge(report)?;
    if result.0.verdict.convicts() && session.cutting.keeps_evidence {
        let folder = places.results.join(format!("cut-{}", session.id)).join(&case.id);
        evidence::keep(&folder, case, &result.0.verdict, result.1, &recorded)?;
        result.0.evidence = Some(folder.display().to_string());
    }
    drop(exports);
    folders::remove_all(&work)?;
    Ok(result.0)
}

/// Verdict on a case that cannot be recorded, if there is one.
fn without_recording(session: &CutSession<'_>, case: &CaseSpec) -> Option<Verdict> {
    let others = record::not_recorded(&case.stack);
    if let Some(memory) = others.iter().find(|layer| durability::memory_filesystem(layer).is_some()) {
        return Some(Verdict::LosesAll { why: format!("{memory} is in memory") });
    }
    if !others.is_empty() {
        let why = format!("only loop images and disks of a guest are recorded, not {}", others.join(", "));
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
    // Guests have NBD by default.
    let elsewhere = match session.cutting.attachment {
        Attachment::Loop => "; a guest may have it (--guest)",
        Attachment::Nbd => "",
    };
    Some(Verdict::NotMeasured { why: format!("{} is missing{elsewhere}", missing.what) })
}
