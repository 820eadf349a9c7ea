//! The guests that a plan's cases run in.

use crate::error::{Context, Error, Result};
use crate::guest::build;
use crate::guest::cache::Cache;
use crate::guest::share::GivenFile;
use crate::guest::suite::Suite;
use crate::host::{files, paths};
use crate::plan::forecast::CaseUnmet;
use crate::record::case::CaseSpec;
use crate::units::Bytes;
use crate::workload::pgbench;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Suites of the guests, in the order of the cases.
///
/// # Errors
/// If one is not a suite.
pub fn suites(cases: &[CaseSpec]) -> Result<Vec<Suite>> {
    let mut suites: Vec<Suite> = Vec::new();
    for name in cases.iter().filter_map(|case| case.guest.as_deref()) {
        if !suites.iter().any(|suite| suite.name() == name) {
            suites.push(name.parse()?);
        }
    }
    Ok(suites)
}

/// Guests that are not built, for each of their cases.
///
/// # Errors
/// If an existing guest cannot be read.
pub fn unmet(cases: &[CaseSpec]) -> Result<Vec<CaseUnmet>> {
    let mut unmet = Vec::new();
    for suite in suites(cases)? {
        if build::find(&Cache::of_user()?, &suite)?.is_some() {
            continue;
        }
        let (what, hint) = (format!("the guest {suite}"), format!("pgstrata guest build --suite {suite}"));
        let own = cases.iter().filter(|case| case.guest.as_deref() == Some(suite.name()));
        unmet.extend(own.map(|case| CaseUnmet { case: case.id.clone(), what: what.clone(), hint: hint.clone() }));
    }
    Ok(unmet)
}

/// Largest file of a plan that a guest gets, bytes.
const MAX_FILE: u64 = 64 << 20;

/// The files that these cases name: scripts, setup, profiles. One that is gone is for the guest to miss.
///
/// # Errors
/// If one cannot be read, or is too large.
pub fn files(cases: &[CaseSpec]) -> Result<Vec<GivenFile>> {
    let named: BTreeSet<PathBuf> =
        cases.iter().flat_map(|case| pgbench::script_files(&case.workload.options)).collect();
    let read = named.into_iter().filter(|path| paths::is_file(path)).map(|path| {
        let content = files::read_given(&path, MAX_FILE + 1, || format!("read {}", path.display()))?;
        match content.len() as u64 > MAX_FILE {
            true => Err(Error::user(format!("{} is larger than {}", path.display(), Bytes(MAX_FILE)))
                .hint("a guest gets no larger files: make the data by SQL (generate_series)")),
            false => Ok((path, content)),
        }
    });
    read.collect()
}

/// The plan as a guest gets it: its text at the same path, so that what it names relative to itself is found. A shipped
/// plan, or one that was read from a pipe, lies in root's home there.
///
/// # Errors
/// Mistakes in the plan file.
pub fn plan(path: &Path) -> Result<GivenFile> {
    let found = super::parsed(path)?;
    let place = match path.is_file() {
        true => std::path::absolute(path).or_user(|| format!("find {}", path.display()))?,
        false => Path::new("/root").join(format!("{}.toml", found.name)),
    };
    Ok((place, found.text.into_bytes()))
}
