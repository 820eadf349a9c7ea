//! Verdicts as stored in a run folder.

use super::case::cut_case;
use super::cutting::{CaseResult, Cutting, Tried};
use super::session::Session;
use crate::error::{Kind, Result};
use crate::host::signals::Interrupt;
use crate::host::{Host, time};
use crate::record::case::CaseSpec;
use crate::record::verdict::{self, StatesTried, Verdict, VerdictRecord};
use crate::run::session::Places;

/// Loss of a case at a power cut, by arithmetic alone. Nothing is left on the machine. If a recording is impossible,
/// the case is *not measured* and the run continues without it.
///
/// # Errors
/// If something built cannot be undone; interrupted.
pub fn quick(host: &Host, case: &CaseSpec, places: &Places, interrupt: &Interrupt) -> Result<VerdictRecord> {
    let cutting = Cutting { states: 0, keeps_evidence: false, ..Cutting::default() };
    let session = Session::open(host, places, cutting, interrupt)?;
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
        let count = |n: usize| n as u64;
        let states = |Tried { class, tried, of, may_fail }: &Tried| StatesTried {
            class: class.clone(),
            tried: count(*tried),
            of: count(*of),
            may_fail: *may_fail,
        };
        VerdictRecord {
            format: verdict::FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            made: time::rfc3339(time::wall_us()),
            cases,
            verdict: self.verdict.clone(),
            clients,
            commits: count(self.commits),
            writes: count(self.writes),
            flushes: count(self.flushes),
            bytes: self.bytes,
            states: self.classes.iter().map(states).collect(),
            wal_ends_read: count(self.tails.states),
            recovered: count(self.wholes.states),
            torn_pages: count(self.torn_pages),
            torn_sectors: count(self.torn_sectors),
            left_out: self.left_out.clone(),
            devices: self.devices.clone(),
            evidence: self.evidence.as_ref().map(|folder| folder.display().to_string()),
        }
    }
}
