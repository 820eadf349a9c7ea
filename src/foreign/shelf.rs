//! The shelf: published measurements that the program carries in itself, a folder each under `shelf/`. Their raw output
//! is read by the same code as a user's files, anew each time.
//!
//! Adding a publication is adding a folder: the raw files, and a `publication.toml` as [`schema`] has it. `build.rs`
//! makes the index.

mod devices;
mod schema;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::record::imported::{FORMAT, ImportRecord, ImportedCase, ImportedTrial};
use crate::record::publication::Publication;
use schema::{Case, Description};

/// Every file of the shelf: folder, name, bytes; sorted.
const FILES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shelf.rs"));
/// The file that describes a publication.
const DESCRIPTION: &str = "publication.toml";

/// The names of the publications, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FILES.iter().filter(|(_, file, _)| *file == DESCRIPTION).map(|(folder, ..)| *folder).collect()
}

/// A publication with all its figures.
///
/// # Errors
/// [`crate::error::Kind::User`] when there is none of that name, with the nearest one.
pub fn open(name: &str) -> Result<Publication> {
    let Some(folder) = names().into_iter().find(|known| *known == name) else { return Err(unknown(name)) };
    publication(folder).map_err(|error| error.while_doing(format!("read {folder} of the shelf")))
}

/// Every publication, in the order of [`names`].
///
/// # Errors
/// None that a user could cause: the tests read all.
pub fn all() -> Result<Vec<Publication>> {
    names().into_iter().map(open).collect()
}

fn unknown(name: &str) -> Error {
    const NEAR: f64 = 0.6;
    // Shorter parts are in too many names.
    const SHORTEST_PART: usize = 3;
    let names = names();
    let likeness = |known: &str| {
        let part = if known.contains(name) && name.len() >= SHORTEST_PART { NEAR } else { 0.0 };
        strsim::normalized_damerau_levenshtein(known, name).max(part)
    };
    let nearest = names.iter().copied().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let error = Error::user(format!("there is no publication `{name}` on the shelf"));
    match nearest.filter(|nearest| likeness(nearest) >= NEAR) {
        Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
        None => error.hint(format!("there are {}", names.join(", "))),
    }
}

fn publication(folder: &str) -> Result<Publication> {
    let text = text(folder, DESCRIPTION)?;
    let description: Description = toml::from_str(text).map_err(|e| Error::bug(format!("{DESCRIPTION}: {e}")))?;
    let mut cases: Vec<ImportedCase> =
        description.case.iter().map(|it| case(folder, &description, it)).collect::<Result<_>>()?;
    if let Some(file) = &description.devices {
        cases.extend(devices::cases(file, self::text(folder, file)?)?);
    }
    let record = ImportRecord {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        imported: String::new(),
        origin: description.origin,
        cases,
        caveats: description.caveats,
        unknown: description.unknown,
    };
    Ok(Publication {
        name: folder.to_owned(),
        varied: description.varied,
        procedure: description.procedure.trim().to_owned(),
        record,
        conclusions: description.conclusion,
    })
}

/// A case with its trials, read from their files.
fn case(folder: &str, description: &Description, case: &Case) -> Result<ImportedCase> {
    let mut facts = description.facts.clone();
    facts.extend(case.facts.clone());
    let trials: Result<Vec<ImportedTrial>> = case.trials.iter().map(|files| trial(folder, files)).collect();
    let (name, caveats) = (case.name.clone(), case.caveats.clone());
    Ok(ImportedCase { name, facts, trials: trials?, context: None, caveats })
}

fn trial(folder: &str, files: &[String]) -> Result<ImportedTrial> {
    let read = |file: &String| super::read(file, &mut bytes(folder, file)?);
    Ok(super::trial(files.iter().map(read).collect::<Result<_>>()?))
}

fn bytes(folder: &str, name: &str) -> Result<&'static [u8]> {
    let found = FILES.iter().find(|(of, file, _)| *of == folder && *file == name);
    found.map(|(_, _, bytes)| *bytes).ok_or_else(|| Error::bug(format!("there is no {name} in it")))
}

fn text(folder: &str, name: &str) -> Result<&'static str> {
    std::str::from_utf8(bytes(folder, name)?).map_err(|e| Error::bug(format!("{name}: {e}")))
}
