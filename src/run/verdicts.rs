//! Determines what a power cut would cost, for each stack before the first trial, if the plan asks for it.
//!
//! Before the trials, because looks rank by it and nothing may disturb a trial. This room cannot cut: the caller passes
//! in the function that does.

use super::session::{Judge, Session};
use crate::error::Result;
use crate::record::case::{CaseSpec, by_stack_and_server};
use crate::record::event::Event;
use crate::record::verdict::{DurabilityCheck, VerdictRecord};

/// Duration of one verdict, microseconds. Only for the estimate.
const VERDICT_US: u64 = 8_000_000;

/// Duration of all verdicts, microseconds.
pub fn expected_us(check: Option<DurabilityCheck>, cases: &[CaseSpec]) -> u64 {
    check.map_or(0, |DurabilityCheck::Quick| by_stack_and_server(cases).len() as u64).saturating_mul(VERDICT_US)
}

impl Session<'_> {
    /// Determines and stores every verdict that the run asks for and lacks, for stacks of this machine or guest.
    ///
    /// # Errors
    /// When one cannot be stored, or what was built for it cannot be undone; interrupted.
    pub(super) fn find_verdicts(&self, judge: Judge<'_>) -> Result<()> {
        if self.record.durability.is_none() {
            return Ok(());
        }
        let known = self.events.writer().folder().verdicts()?;
        for sharing in by_stack_and_server(&self.record.cases) {
            let case = sharing[0];
            if case.guest != self.guest || known.iter().any(|record| record.cases.contains(&case.id)) {
                continue;
            }
            self.interrupt.check()?;
            self.events.emit(Event::VerdictStarted { case: case.id.clone() })?;
            let cases = sharing.iter().map(|case| case.id.clone()).collect();
            let record = VerdictRecord { cases, ..judge(case)? };
            self.events.writer().folder().keep_verdict(&record)?;
            self.events.emit(Event::VerdictReached { case: case.id.clone(), verdict: record.verdict })?;
        }
        Ok(())
    }
}
