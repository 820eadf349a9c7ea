//! Undoes what the ledger lists, last made first: the teardown of a trial, and `pgstrata clean` after a crash.
//!
//! Owns the walk and the dispatch. The owner of a thing knows how to undo it and when to refuse. The walk may itself be
//! killed and run again: owners do nothing if their thing is gone.

use super::ledger::{Ledger, Thing};
use super::{ALL, folder, knobs, recorded};
use crate::error::{Error, Result};
use crate::host::Host;
use std::collections::BTreeMap;

/// Undoes the things of one owner.
pub type Undoer = Box<dyn Fn(&Host, &Thing) -> Result<()> + Send + Sync>;

/// Undoers by the owner of the things.
pub struct Undoers(BTreeMap<&'static str, Undoer>);

impl Default for Undoers {
    /// All layers, the folders that this room makes, the knobs that it sets, and the mounts of recorded disks.
    fn default() -> Undoers {
        let layers = ALL.iter().map(|layer| {
            let undo: Undoer = Box::new(|host, thing| layer.undo(host, thing));
            (layer.name(), undo)
        });
        let mut undoers = Undoers(layers.collect());
        undoers.0.insert(folder::OWNER, Box::new(folder::undo));
        undoers.0.insert(knobs::OWNER, Box::new(knobs::undo));
        undoers.0.insert(recorded::OWNER, Box::new(recorded::undo));
        undoers
    }
}

impl Undoers {
    /// Adds an owner of another room (`server`, `processes`).
    pub fn with(
        mut self,
        owner: &'static str,
        undo: impl Fn(&Host, &Thing) -> Result<()> + Send + Sync + 'static,
    ) -> Undoers {
        self.0.insert(owner, Box::new(undo));
        self
    }

    fn undo(&self, host: &Host, thing: &Thing) -> Result<()> {
        let undo = self.0.get(thing.owner.as_str()).ok_or_else(|| {
            Error::host(format!("this version of pgstrata does not know the layer `{}`", thing.owner))
                .hint("clean up with the version that created it")
        })?;
        undo(host, thing)
    }
}

/// Undoes every open thing whose number is at least `mark` (see [`Ledger::mark`]), last made first, and marks it
/// undone. Continues after a failure and returns all failures, in the order of the walk; failed things stay in the
/// ledger.
pub fn undo_from(ledger: &Ledger, mark: u64, undoers: &Undoers, host: &Host) -> Vec<Error> {
    let mut failures = Vec::new();
    for (number, thing) in ledger.open_things().into_iter().rev().take_while(|(number, _)| *number >= mark) {
        let undone = undoers.undo(host, &thing).and_then(|()| ledger.undone(number));
        failures.extend(undone.err().map(|e| e.while_doing(format!("undo {thing}"))));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn undoers(order: &Arc<Mutex<Vec<String>>>) -> Undoers {
        let order = Arc::clone(order);
        Undoers::default().with("server", move |_, thing| {
            order.lock().unwrap().push(thing.kind.clone());
            if thing.kind == "stuck" { Err(Error::host("busy")) } else { Ok(()) }
        })
    }

    #[test]
    fn undo_walks_backwards_to_the_mark_and_continues_after_failures() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path(), "r1").unwrap();
        let order = Arc::default();
        ledger.enter(Thing::new("server", "below")).unwrap();
        let mark = ledger.mark();
        for kind in ["first", "stuck", "last"] {
            ledger.enter(Thing::new("server", kind).with("path", "/x")).unwrap();
        }
        let failures = undo_from(&ledger, mark, &undoers(&order), &Host::this());
        assert_eq!(*order.lock().unwrap(), ["last", "stuck", "first"]);
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].to_string(), "failed to undo the stuck /x of server: busy");
        let left: Vec<String> = ledger.open_things().into_iter().map(|(_, thing)| thing.kind).collect();
        assert_eq!(left, ["below", "stuck"]);
    }

    #[test]
    fn things_of_an_unknown_owner_stay_and_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path(), "r1").unwrap();
        ledger.enter(Thing::new("stratis", "pool").with("path", "tank")).unwrap();
        let failures = undo_from(&ledger, 0, &Undoers::default(), &Host::this());
        assert!(failures[0].to_string().contains("does not know the layer `stratis`"), "{}", failures[0]);
        assert_eq!(ledger.open_things().len(), 1);
    }
}
