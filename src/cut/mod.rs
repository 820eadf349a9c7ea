//! What a power cut would cost a stack: commits on recorded disks, and the verdict.
//!
//! A case's stack stands on loop devices over recorded disks. Clients commit and note, after each acknowledgement, how far
//! the recording had come. First the arithmetic: is each acknowledgement covered by a flush or FUA write that completed
//! before it? Then states: disks as a power cut could have left them, on which PostgreSQL recovers and every acknowledged
//! commit is looked for. Absent on purpose: speed, and how a log is kept (`recorder`).
//!
//! Builds, fills and undoes stacks as a trial does, by `run`'s session, undo and check of cases; no step of a trial. It
//! uses `workload` to run a case's own pgbench beside its clients, since a second way to start pgbench would load and
//! drive it otherwise than a trial does.
//!
//! A checker of another filesystem is a line in `PROGRAMS` of `filesystem_check`, with the arguments that change
//! nothing and the bit of the exit code that means damage.

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
mod stored;
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
pub(crate) use cutting::Attachment;
pub(crate) use cutting::{CaseResult, Cutting, Told};
pub(crate) use evidence::{FILE as EVIDENCE_FILE, replay};
pub(crate) use stored::quick;
