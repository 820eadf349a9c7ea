//! pgstrata: which storage stack should PostgreSQL stand on, how fast is that, how steady, and what does it cost?
//!
//! The modules in the order of the data; `ARCHITECTURE.md` says what each may know and `tests/house.rs` checks it:
//!
//! plan -> provision -> cluster -> workload + telemetry -> record -> store -> analyse -> report

pub mod analyse;
pub mod cli;
pub mod cluster;
pub mod error;
pub mod foreign;
pub mod host;

pub mod parse;
pub mod plan;
pub mod probe;
pub mod provision;
pub mod record;
pub mod report;
pub mod run;
pub mod stats;
pub mod store;
pub mod telemetry;
pub mod units;
pub mod workload;
