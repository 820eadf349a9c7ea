//! What stands in a `publication.toml`.

use crate::record::imported::Origin;
use crate::record::publication::Conclusion;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// What varied between the cases.
    pub(super) varied: String,
    /// How it was measured.
    pub(super) procedure: String,
    /// What a reader should know of all of it.
    pub(super) caveats: Vec<String>,
    /// What would be needed to judge it and is not told.
    pub(super) unknown: Vec<String>,
    /// A file of typical devices, each of which becomes a case.
    pub(super) devices: Option<String>,
    /// Author, date, machine.
    pub(super) origin: Origin,
    /// Facts of every case, by dotted key.
    #[serde(default)]
    pub(super) facts: BTreeMap<String, String>,
    /// The cases in the order of the publication.
    #[serde(default)]
    pub(super) case: Vec<Case>,
    /// What was concluded.
    #[serde(default)]
    pub(super) conclusion: Vec<Conclusion>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// Its name, unique within the publication.
    pub(super) name: String,
    /// Facts of it alone.
    #[serde(default)]
    pub(super) facts: BTreeMap<String, String>,
    /// Its trials, each the files of one moment; none where only the design was published.
    #[serde(default)]
    pub(super) trials: Vec<Vec<String>>,
    /// What a reader should know of it.
    #[serde(default)]
    pub(super) caveats: Vec<String>,
}
