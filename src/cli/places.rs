//! Flags for the locations of a run's files, and names of a run and its case.

use crate::error::{Context, Result};
use crate::host::paths::settled;
use crate::provision::ledger::default_state;
use crate::run::session::RunPlaces;
use std::path::{Path, PathBuf};

/// Flags that say where things go.
#[derive(Debug, clap::Args)]
pub struct PlaceArgs {
    /// Folder for results
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    #[command(flatten)]
    state: StateArgs,
}

/// The folder for ledgers and templates, as a flag.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// Folder for ledgers and templates [default: $PGSTRATA_STATE, else /var/lib/pgstrata for root or ~/.local/state/pgstrata]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl PlaceArgs {
    /// The places, absolute.
    ///
    /// # Errors
    /// If the working directory is gone, or the state folder's path cannot be resolved.
    pub fn places(&self) -> Result<RunPlaces> {
        let results = std::path::absolute(&self.results).or_user(|| "find the folder for results".to_owned())?;
        Ok(RunPlaces { results, state: self.state.state()?, guest: None })
    }
}

impl StateArgs {
    /// The folder, absolute.
    ///
    /// # Errors
    /// If its path cannot be resolved.
    pub fn state(&self) -> Result<PathBuf> {
        settled(&self.state.clone().map_or_else(default_state, Ok)?)
    }
}

/// Splits `FOLDER` or `FOLDER:CASE`; `None` if there is no such path. Names of cases and folders may contain colons:
/// the longest existing folder wins.
pub(super) fn folder_and_case(text: &str) -> Option<(&str, Option<&str>)> {
    if Path::new(text).exists() {
        return Some((text, None));
    }
    let colons = text.rmatch_indices(':').map(|(at, _)| (&text[..at], Some(&text[at + 1..])));
    colons.filter(|(folder, _)| !folder.is_empty()).find(|(folder, _)| Path::new(folder).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Component;

    #[test]
    fn a_state_folder_above_the_working_folder_is_resolved() {
        let state = StateArgs { state: Some("../pgstrata-state".into()) }.state().unwrap();
        assert!(state.is_absolute() && state.ends_with("pgstrata-state"), "{}", state.display());
        assert!(!state.components().any(|part| part == Component::ParentDir), "{}", state.display());
    }
}
