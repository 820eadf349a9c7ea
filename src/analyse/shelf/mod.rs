//! What a publication concluded, beside what its own figures support; and what imported figures say by themselves.
//!
//! A pure function from what was read to its findings. The rules ([`rules::remarks`]) ask nothing of the shelf: they serve
//! the files of a user as well.

pub(crate) mod cases;
pub(crate) mod claims;
pub mod findings;
pub(crate) mod rule;
pub(crate) mod rules;
mod rules_facts;
mod rules_load;
mod rules_sync;
#[cfg(test)]
mod tests;

use super::compare::single;
use crate::record::publication::Publication;
use findings::{ConclusionFinding, ShelfFindings};

/// Everything that can be said of a publication.
pub fn find(publication: &Publication) -> ShelfFindings {
    let record = &publication.record;
    let conclusions: Vec<ConclusionFinding> =
        publication.conclusions.iter().map(|it| claims::answer(record, it)).collect();
    let is_single = conclusions.iter().flat_map(|it| &it.comparisons).any(|it| it.interval.is_none());
    ShelfFindings {
        format: findings::FORMAT,
        analysed_by: env!("CARGO_PKG_VERSION").to_owned(),
        name: publication.name.clone(),
        varied: record.varied.clone(),
        procedure: record.procedure.clone(),
        origin: record.origin.clone(),
        cases: record.cases.iter().map(cases::case).collect(),
        conclusions,
        remarks: rules::remarks(record),
        caveats: record.caveats.iter().cloned().chain(is_single.then(single::sentence)).collect(),
        unknown: record.unknown.clone(),
    }
}
