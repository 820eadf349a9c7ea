//! A recorded case to be judged.

use super::disks::Disks;
use super::pages::Content;
use super::record::Recorded;
use super::session::CutSession;
use crate::host::time;
use crate::record::case::CaseSpec;
use crate::record::verdict::{self, PageWrites, Verdict, VerdictRecord};
use crate::recorder::{Durable, Written};
use std::path::Path;

#[derive(Clone, Copy)]
pub(crate) struct Judged<'a> {
    pub session: &'a CutSession<'a>,
    pub case: &'a CaseSpec,
    pub exports: &'a dyn Disks,
    pub recorded: &'a Recorded,
    pub work: &'a Path,
}

/// The record of a verdict on a case, so far without figures.
pub fn verdict_on(case: &CaseSpec, verdict: Verdict, clients: u16) -> VerdictRecord {
    VerdictRecord {
        format: verdict::FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        made: time::rfc3339(time::wall_us()),
        cases: vec![case.id.clone()],
        verdict,
        clients,
        ..VerdictRecord::default()
    }
}

/// Content of the requests of a recording.
#[derive(Default)]
pub(crate) struct Contents {
    pub kinds: Vec<Content>,
    pub written: Vec<Written>,
    /// How pages of data were written.
    pub page_writes: PageWrites,
}

/// A model of the device below each disk.
pub(crate) struct ModelledDevice {
    pub name: String,
    pub durable: Durable,
}
