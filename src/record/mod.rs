//! Stored form of a run: the types in `run.json`, `trial.json` and `events.jsonl`, and their format versions.
//!
//! Owns the meaning, unit and optionality of every stored field. Absent on purpose: writing, reading files, formulas.
//! A reading that was not available is `None`, never zero. Fields are only ever added as `Option` within a format
//! version; any other change raises [`run::FORMAT`] or [`trial::FORMAT`].

#![warn(missing_docs)]

pub mod age;
pub mod build;
pub mod built;
pub mod case;
pub mod claim;
pub mod column;
pub mod columns;
pub mod counts;
pub mod cut;
pub mod disk_probe;
pub mod drive;
pub mod durability;
pub mod event;
pub mod facts;
pub mod full;
pub mod guest_disk;
pub mod imported;
pub mod latency;
pub mod merged;
pub mod operation;
pub mod options;
pub mod probe;
pub mod profile;
pub mod promise;
pub mod publication;
pub mod pull;
pub mod recovery;
pub mod run;
pub mod search;
pub mod seconds;
pub mod snapshots;
pub mod stack;
pub mod stage;
pub mod submitted;
pub mod trial;
pub mod turns;
pub mod verdict;
pub mod window;
