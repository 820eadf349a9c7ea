//! Conclusions of a publication and their support by its own figures, and remarks on imported figures.
//!
//! A pure function from the imported data to its findings. The rules ([`rules::remarks`]) do not depend on the shelf:
//! they also serve imports by users.

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

/// All findings about a publication.
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
