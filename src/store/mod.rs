//! A folder per run: atomic writes, format versions, reading. Does not interpret numbers.
//!
//! ```text
//! results/<date>-<plan name>/
//!   plan.toml       as it was given            run.json      format version, tool version, seed, cases
//!   events.jsonl    append-only: what happened, for resuming and for live views
//!   verdicts/<case>.json  what a power cut would cost it, and the cases that share its stack and server
//!   trials/<case>/<n>/  trial.json   asked, really there, outcome, figures    seconds.parquet  one row a second
//!                       latency.hist  latency distributions (HdrHistogram log)  waits.parquet  one row a second and wait
//!                       raw/  output of every tool, server log
//! ```
//!
//! A trial is written beside its final place, synced, and renamed into it: a trial folder without a leading dot is
//! complete. A run folder is created the same way. A format version newer than this program's is rejected, never
//! guessed.

mod checked;
pub(crate) mod cut;
pub mod folder;
pub(crate) mod import;
pub mod latency;
pub mod merge;
mod presence;
pub(crate) mod results;
pub mod seconds;
pub(crate) mod staging;
pub mod table;
mod verdicts;
pub mod waits;
