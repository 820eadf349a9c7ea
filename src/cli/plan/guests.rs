//! The guests that a plan's cases run in.

use crate::error::{Error, Result};
use crate::guest::build;
use crate::guest::cache::Cache;
use crate::guest::suite::Suite;
use crate::plan::forecast::CaseUnmet;
use crate::record::case::CaseSpec;

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

/// Refuses builds in guests, which have neither compiler nor mirror, and files, which they do not get.
///
/// # Errors
/// If one of the cases has its server built, or its load made of a profile or a file.
pub fn refuse_what_guests_lack(cases: &[CaseSpec]) -> Result<()> {
    if cases.iter().any(|case| case.workload.options.get("profile").is_some()) {
        return Err(Error::user("a plan with `profile` cannot run in a guest, which does not get the file")
            .hint("run it on this machine"));
    }
    let texts = cases.iter().flat_map(|case| ["script", "setup"].map(|key| case.workload.options.texts(key)).concat());
    if let Some(file) = texts.into_iter().find(|text| text.starts_with('/') && !text.starts_with("/*")) {
        return Err(Error::user(format!("a plan in a guest cannot use the file {file}, which the guest does not get"))
            .hint("write its SQL into the plan, as a text that ends with `;`"));
    }
    if cases.iter().filter_map(|case| case.postgres.as_ref()).any(|postgres| postgres.build.is_some()) {
        return Err(Error::user("a plan with `build` cannot run in a guest, which has neither compiler nor mirror")
            .hint("run it on this machine, or write bin = \"auto\" for the PostgreSQL of the guest's suite"));
    }
    Ok(())
}
