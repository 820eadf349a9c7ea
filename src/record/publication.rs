//! A publication of the shelf: its figures, and its conclusions in a form that those figures can be checked against.

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
    /// Its conclusions.
    pub conclusions: Vec<Conclusion>,
}

/// One conclusion. Without any claim, its figures cannot answer it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conclusion {
    /// The conclusion, paraphrased.
    pub says: String,
    /// Figures that it claims to be higher in one case than in another.
    #[serde(default)]
    pub compare: Vec<Compare>,
    /// Unpublished information that would be needed to answer it.
    pub lacks: Option<String>,
}

/// A claim that a figure is higher in one case than in another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Case with the higher figure.
    pub case: String,
    /// Case with the lower figure.
    pub over: String,
    /// Tool that printed it.
    pub tool: String,
    /// Name of the figure.
    pub figure: String,
    /// Labels of its row; empty for the only row that has it.
    #[serde(default)]
    pub row: BTreeMap<String, String>,
}
