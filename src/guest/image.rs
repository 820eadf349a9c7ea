//! The image of a guest: the files that it boots from.

use super::suite::Suite;
use std::path::PathBuf;

/// What to do where programs are missing.
pub(crate) const INSTALL: &str = "apt-get install --no-install-recommends mmdebstrap qemu-system-x86 e2fsprogs \
                                  (without root also uidmap); or scripts/setup guest";

/// A guest that is built.
#[derive(Debug, Clone)]
pub struct Image {
    pub suite: Suite,
    pub(super) vmlinux: PathBuf,
    pub(super) initramfs: PathBuf,
    pub(super) probe: PathBuf,
    pub(super) root: PathBuf,
    /// Release of its kernel, and version of its ZFS.
    pub kernel: String,
    pub zfs: String,
    /// Version of its PostgreSQL.
    pub postgresql: String,
    /// What the root image takes.
    pub root_bytes: u64,
}
