//! Verdicts as stored in a run folder.

use super::case::cut_case;
use super::cutting::Cutting;
use super::judged::verdict_on;
use super::session::CutSession;
use crate::error::{Kind, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::record::case::CaseSpec;
use crate::record::verdict::{Verdict, VerdictRecord};
use crate::run::session::RunPlaces;

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
