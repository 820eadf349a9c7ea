//! A publication of the shelf: what was read of it, and what it concluded, as data that its own figures can answer.

use super::imported::ImportRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One publication.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// Its folder on the shelf.
    pub name: String,
    /// Its cases with their figures.
    pub record: ImportRecord,
    /// What it concluded.
    pub conclusions: Vec<Conclusion>,
}

/// One thing that it concluded. With none of the claims its figures cannot answer it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// It, in our words.
    pub says: String,
    /// Figures that should be higher in one case than in another.
    #[serde(default)]
    pub compare: Vec<Compare>,
    /// What would be needed to answer it and was not published.
    #[serde(default)]
    pub lacks: Option<String>,
}

/// That a figure is higher in one case than in another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Where it should be higher.
    pub case: String,
    /// Where it should be lower.
    pub over: String,
    /// Tool that printed it.
    pub tool: String,
    /// Its name.
    pub figure: String,
    /// Labels of its row; empty for the only row that has it.
    #[serde(default)]
    pub row: BTreeMap<String, String>,
}
