//! Cleans up after killed runs: everything in ledgers that no live pgstrata holds, and nothing else.

use super::session::ledgers;
use super::undo;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::provision::knobs;
use crate::provision::ledger::{self, Ledger, Thing};
use crate::provision::recorded;
use std::path::Path;

/// Content of a ledger.
#[derive(Debug)]
pub struct Leftover {
    pub run: String,
    /// True if a live pgstrata holds it: then nothing is touched.
    pub live: bool,
    /// Things that still exist according to the ledger, in order of creation.
    pub things: Vec<Thing>,
    /// Knobs that somebody else has changed since, which are left alone.
    pub left: Vec<String>,
    /// Why undoing failed.
    pub failure: Option<Error>,
}

/// Visits every ledger below `state` and, unless `dry`, undoes its open entries. Continues after a failure.
///
/// # Errors
/// When the ledgers cannot be read.
pub fn clean(host: &Host, state: &Path, dry: bool) -> Result<Vec<Leftover>> {
    let folder = ledgers(state);
    if !dry {
        ledger::sweep(host, &folder)?;
    }
    let mut leftovers = Vec::new();
    for listed in ledger::list(&folder)? {
        let (run, live) = (listed.run_id, listed.held);
        let mut leftover = Leftover { run, live, things: Vec::new(), left: Vec::new(), failure: None };
        match (!live).then(|| Ledger::take(&folder, &leftover.run)) {
            None => {}
            // A damaged ledger, or one that another `clean` has just taken, must not block the others.
            Some(Err(e)) => leftover.failure = Some(e),
            Some(Ok(ledger)) => {
                leftover.left = knobs::strayed(host, &ledger, 0);
                leftover.things = ledger.open_things().into_iter().map(|(_, thing)| thing).collect();
                if !dry {
                    let failed = recorded::fail_requests(host, &leftover.things);
                    leftover.failure = undo::undo(&ledger, 0, host).and_then(|()| ledger.close()).and(failed).err();
                }
            }
        }
        leftovers.push(leftover);
    }
    Ok(leftovers)
}
