//! The shelf: published measurements embedded in the program, one folder each under `shelf/`. Their raw output is read
//! by the same code as a user's files, each time anew.
//!
//! To add a publication, add a folder: the raw files, and a `publication.toml` as described in [`super::manifest`].
//! `build.rs` creates the index.

mod devices;
#[cfg(test)]
mod tests;

use super::FileReading;
use super::manifest::{self, Manifest};
use crate::error::{Error, Result};
use crate::record::publication::Publication;
use std::collections::BTreeMap;

/// Every file of the shelf: folder, name, bytes; sorted.
const FILES: &[(&str, &str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/shelf.rs"));

/// Names of the publications, sorted.
pub fn names() -> Vec<&'static str> {
    FILES.iter().filter(|(_, file, _)| *file == manifest::NAME).map(|(folder, ..)| *folder).collect()
}

/// A publication with all its figures.
///
/// # Errors
/// [`crate::error::Kind::User`] if there is none with this name, suggesting the most similar one.
pub fn open(name: &str) -> Result<Publication> {
    let Some(folder) = names().into_iter().find(|known| *known == name) else { return Err(unknown(name)) };
    publication(folder).map_err(|error| error.while_doing(format!("read {folder} of the shelf")))
}

/// Every publication, in the order of [`names`].
///
/// # Errors
/// None that a user could cause: the tests read all of them.
pub fn all() -> Result<Vec<Publication>> {
    names().into_iter().map(open).collect()
}

fn unknown(name: &str) -> Error {
    let error = Error::user(format!("there is no publication `{name}` on the shelf"));
    match super::nearest(name, names()) {
        Some(nearest) => error.hint(format!("did you mean `{nearest}`?")),
        None => error.hint(format!("there are {}", names().join(", "))),
    }
}

fn publication(folder: &str) -> Result<Publication> {
    let there: Vec<String> =
        FILES.iter().filter(|(of, ..)| *of == folder).map(|(_, file, _)| (*file).to_owned()).collect();
    let manifest = Manifest::parse(manifest::NAME, text(folder, manifest::NAME)?, &there)?;
    let read =
        manifest.files().into_iter().map(|file| Ok((file.to_owned(), super::read(file, &mut bytes(folder, file)?)?)));
    let readings: BTreeMap<String, FileReading> = read.collect::<Result<_>>()?;
    let mut record = manifest.record(&readings);
    env!("CARGO_PKG_VERSION").clone_into(&mut record.tool_version);
    if let Some(file) = &manifest.keys.devices {
        record.cases.extend(devices::cases(file, text(folder, file)?)?);
    }
    Ok(Publication { name: folder.to_owned(), record, conclusions: manifest.keys.conclusion })
}

fn bytes(folder: &str, name: &str) -> Result<&'static [u8]> {
    let found = FILES.iter().find(|(of, file, _)| *of == folder && *file == name);
    found.map(|(_, _, bytes)| *bytes).ok_or_else(|| Error::bug(format!("there is no {name} in it")))
}

fn text(folder: &str, name: &str) -> Result<&'static str> {
    std::str::from_utf8(bytes(folder, name)?).map_err(|e| Error::bug(format!("{name}: {e}")))
}
