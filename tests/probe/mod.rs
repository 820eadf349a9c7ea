//! `pgstrata probe` on real filesystems, honest and lying, failing and vanishing.

mod credibility;
mod failures;
mod faults;
pub mod fuse;
mod ground;
mod kinds;
mod midway;
mod output;
mod program;
mod refusals;
mod signals;
