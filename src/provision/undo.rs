//! Undoes what the ledger lists, last made first: the teardown of a trial, and `pgstrata clean` after a crash.
//!
//! Owns the walk and the dispatch. The owner of a thing knows how to undo it and when to refuse. The walk may itself be
//! killed and run again: owners do nothing if their thing is gone.

use super::ledger::{Ledger, Thing};
use super::{folder, knobs, layer, recorded};
use crate::error::{Error, Result};
use crate::host::Host;

/// Undoes a thing of this room: of a layer, a folder, a knob, or the mount of a recorded disk.
///
/// # Errors
/// When the owner is unknown, refuses, or fails.
pub fn undo_own(host: &Host, thing: &Thing) -> Result<()> {
    match thing.owner.as_str() {
        folder::OWNER => folder::undo(host, thing),
        knobs::OWNER => knobs::undo(host, thing),
        recorded::OWNER => recorded::undo(host, thing),
        owner => match layer(owner) {
            Some(layer) => layer.undo(host, thing),
            None => Err(Error::host(format!("this version of pgstrata does not know the layer `{owner}`"))
                .hint("clean up with the version that created it")),
        },
    }
}

/// Undoes every open thing whose number is at least `mark` (see [`Ledger::mark`]), last made first, and marks it
/// undone; `undo` knows the owners, those of other rooms and [`undo_own`]. Continues after a failure and returns all
/// failures, in the order of the walk; failed things stay in the ledger.
pub fn undo_from(ledger: &Ledger, mark: u64, undo: impl Fn(&Host, &Thing) -> Result<()>, host: &Host) -> Vec<Error> {
    let mut failures = Vec::new();
    for (number, thing) in ledger.open_things().into_iter().rev().take_while(|(number, _)| *number >= mark) {
        let undone = undo(host, &thing).and_then(|()| ledger.undone(number));
        failures.extend(undone.err().map(|e| e.while_doing(format!("undo {thing}"))));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn undo_walks_backwards_to_the_mark_and_continues_after_failures() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(folder.path(), "r1").unwrap();
        let order = RefCell::new(Vec::new());
        let undo = |_: &Host, thing: &Thing| {
            order.borrow_mut().push(thing.kind.clone());
            if thing.kind == "stuck" { Err(Error::host("busy")) } else { Ok(()) }
        };
        ledger.enter(Thing::new("server", "below")).unwrap();
        let mark = ledger.mark();
        for kind in ["first", "stuck", "last"] {
            ledger.enter(Thing::new("server", kind).with("path", "/x")).unwrap();
        }
        let failures = undo_from(&ledger, mark, undo, &Host::this());
        assert_eq!(*order.borrow(), ["last", "stuck", "first"]);
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
        let failures = undo_from(&ledger, 0, undo_own, &Host::this());
        assert!(failures[0].to_string().contains("does not know the layer `stratis`"), "{}", failures[0]);
        assert_eq!(ledger.open_things().len(), 1);
    }
}
