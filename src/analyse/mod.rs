//! Records to findings: figures with their intervals, comparisons, refusals to compare, a headline.
//!
//! Needs neither root nor PostgreSQL nor the machine. Trials come in one at a time ([`analysis::Analysis::add_trial`]), so
//! memory holds the rows of one. A figure stands where the thing is that it is *of*: [`trial`], [`case`], [`run`]. How intervals
//! come about: `docs/adr/0003-intervals.md`. Absent on purpose: HTML, files.
//!
//! What a ranking ranks by is chosen in [`run::ranked`] alone; ranks inside a class come from `stats::decisions`
//! (`docs/adr/0017-ranks-are-decided-together.md`), where a run may stop early or was extended from `stats::sequence`
//! (`docs/adr/0022-blocks-may-be-adaptive.md`). Threads that read trials are started by `host::threads`.

pub mod analysis;
pub(crate) mod case;
pub mod compare;
pub mod findings;
pub mod fleet;
pub mod imported;
pub(crate) mod limits;
pub mod load;
pub mod look;
pub mod merge;
pub(crate) mod probe;
pub(crate) mod run;
pub mod shelf;
pub mod trial;
pub mod trial_table;
mod turn_table;
pub(crate) mod words;

#[cfg(test)]
mod stories;
