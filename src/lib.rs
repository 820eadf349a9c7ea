//! pgstrata: which storage stack should PostgreSQL stand on, how fast is that, how steady, and what does it cost?
//!
//! The modules in the order of the data; `ARCHITECTURE.md` says what each may know and `tests/house.rs` checks it:
//!
//! plan -> provision -> cluster -> workload + telemetry -> record -> store -> analyse -> report
//!
//! Only what `main.rs`, `tests/` and `benches/` use is public, so that the compiler sees dead code.

mod ageing;
pub mod analyse;
mod builds;
pub mod cli;
pub mod cluster;
mod cut;
mod error;
pub mod foreign;
pub mod guest;
pub mod host;

pub mod parse;
mod plan;
pub mod probe;
mod profile;
mod provision;
pub mod record;
mod recorder;
pub mod report;
pub mod run;
mod serve;
pub mod store;
mod submit;
pub mod telemetry;
pub mod units;
pub mod workload;

#[doc(inline)]
pub use pgstrata_stats as stats;
