//! Verdicts as stored in a run folder.

use super::case::cut_case;
use super::cutting::{CaseResult, Cutting};
use super::session::CutSession;
use crate::error::{Kind, Result};
use crate::host::signals::Interrupt;
use crate::host::{Host, time};
use crate::record::case::CaseSpec;
use crate::record::verdict::{self, Verdict, VerdictRecord};
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
    let result = match result {
        Err(e) if e.kind() == Kind::Interrupted => return Err(e),
        Err(e) => CaseResult::of(case, Verdict::NotMeasured { why: e.chain() }),
        Ok(result) => result,
    };
    Ok(result.record(vec![case.id.clone()], cutting.clients))
}

impl CaseResult {
    /// The stored form: the verdict on these cases, the first of which was cut.
    pub fn record(&self, cases: Vec<String>, clients: u16) -> VerdictRecord {
        VerdictRecord {
            format: verdict::FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            made: time::rfc3339(time::wall_us()),
            cases,
            verdict: self.verdict.clone(),
            clients,
            commits: self.commits as u64,
            writes: self.writes as u64,
            flushes: self.flushes as u64,
            bytes: self.bytes,
            states: self.classes.clone(),
            wal_ends_read: self.tails.states as u64,
            recovered: self.wholes.states as u64,
            torn_pages: self.torn_pages as u64,
            torn_sectors: self.torn_sectors as u64,
            left_out: self.left_out.clone(),
            devices: self.devices.clone(),
            evidence: self.evidence.as_ref().map(|folder| folder.display().to_string()),
        }
    }
}
