//! What a power cut would cost a stack: commits on recorded disks, and the verdict.
//!
//! A case's stack stands on loop devices over recorded disks. After each acknowledgement, clients note the position of
//! the recording. First the arithmetic: is each acknowledgement covered by a flush or FUA write that completed before
//! it? Then states: disks as a power cut could have left them, on which PostgreSQL recovers and every acknowledged
//! commit is looked for. Absent on purpose: speed, and how a log is kept (`recorder`).
//!
//! Builds, fills and undoes stacks as a trial does, with `run`'s session, undo and check of cases, but uses no step of
//! a trial. It uses `workload` to run a case's own pgbench beside its clients, so that pgbench is loaded and driven
//! exactly as in a trial.
//!
//! A *mark* is a place in the recording that a client notes, before its COMMIT and after the acknowledgement; the
//! *history* is what clients were acknowledged, with their marks. At a moment and under a model of the device, the
//! *durable set* holds the requests that no power cut undoes, and what is *in play* was submitted and is not durable. A
//! *state* is the origin, the durable set, and some of what was in play: nothing of it at the *floor*, all at the
//! *ceiling*. A *second cut* comes while a state is mounted and PostgreSQL recovers on it. *Evidence* is what a convicted
//! case leaves: recording, failing state, history, server log.
//!
//! To add the checker of another filesystem, add a line to `PROGRAMS` in `filesystem_check`, with its read-only
//! arguments and the bit of the exit code that means damage.

mod arithmetic;
mod beside;
pub mod case;
mod commits;
pub mod cutting;
mod disks;
mod evidence;
mod filesystem_check;
mod history;
mod invariants;
mod judge;
mod judged;
mod ladder;
mod links;
mod opening;
mod pages;
pub(crate) mod pull;
mod record;
mod seams;
mod second;
mod server_check;
pub(crate) mod session;
mod tried;
mod trying;
mod wal;

#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod tester_tests;
#[cfg(test)]
mod tests;

pub(crate) use crate::record::verdict::Verdict;
pub(crate) use case::quick;
pub(crate) use cutting::{Attachment, CutEvent, Cutting};
pub(crate) use evidence::{FILE as EVIDENCE_FILE, replay};
