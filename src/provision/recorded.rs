//! The mount point at which recorded disks are shown as files, and its undoing.
//!
//! Whoever shows them enters it here first. After a kill the kernel answers every request below it with an error, so that
//! what stands on it can still be unmounted and detached.

use super::ledger::{Ledger, Thing};
use super::{folder, mount};
use crate::error::Result;
use crate::host::{Host, paths};
use std::path::{Path, PathBuf};

/// Its owner in the ledger.
pub(super) const OWNER: &str = "recorded disks";

/// The source that the mount table shows.
pub(crate) const SOURCE: &str = "pgstrata-disks";

/// The type that it shows.
const TYPE: &str = "fuse";

/// Makes the mount point below `parent` and enters it and the mount that is to come.
///
/// # Errors
/// When it is there already, or cannot be entered or made.
pub fn prepare(ledger: &Ledger, parent: &Path) -> Result<PathBuf> {
    // The mount table shows paths without symlinks.
    let target = paths::resolve(parent)?.join(format!("{}disks", folder::PREFIX));
    folder::make(ledger, folder::OWNER, &target)?;
    let thing = Thing::new(OWNER, "mount").with_path("target", &target)?.with("source", SOURCE).with("fstype", TYPE);
    ledger.enter(thing)?;
    Ok(target)
}

/// Unmounts it.
pub(super) fn undo(host: &Host, thing: &Thing) -> Result<()> {
    mount::undo(host, thing)
}
