//! The mount table of this process, and how long what is busy is waited for.

use crate::error::{Error, Result};
use crate::host::Host;
use crate::parse::mountinfo::{self, Mount};
use std::path::Path;
use std::time::Duration;

/// The mounts that this process sees, proc(5).
pub(crate) const TABLE: &str = "/proc/self/mountinfo";

/// How long a mount or a device may stay busy after the last process that used it has ended.
pub(crate) const BUSY_TRIES: u32 = 50;

/// Pause between two tries.
pub(crate) const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// The kernel's mount table.
///
/// # Errors
/// When it cannot be read.
pub fn table(host: &Host) -> Result<Vec<Mount>> {
    mountinfo::parse(&host.read(TABLE)?)
}

/// The mount with the longest target above `path` (which has no symlinks); of several on one target, the last.
pub(crate) fn holding<'a>(table: &'a [Mount], path: &Path) -> Result<&'a Mount> {
    let above = table.iter().filter(|mount| path.starts_with(&mount.target));
    above
        .max_by_key(|mount| Path::new(&mount.target).components().count())
        .ok_or_else(|| Error::host(format!("no mount in the mount table contains {}", path.display())))
}
