//! Image of a guest: the files that it boots from.

use super::suite::Suite;
use std::path::PathBuf;

/// Remedy for missing programs.
pub(crate) const INSTALL: &str = "apt-get install --no-install-recommends mmdebstrap qemu-system-x86 e2fsprogs \
                                  (without root also uidmap); or scripts/setup guest";

/// A guest that has been built.
#[derive(Debug, Clone)]
pub struct GuestImage {
    pub suite: Suite,
    pub(super) vmlinux: PathBuf,
    pub(super) initramfs: PathBuf,
    pub(super) probe: PathBuf,
    pub(super) root: PathBuf,
    /// Kernel release, and ZFS version.
    pub kernel: String,
    pub zfs: String,
    pub postgresql: String,
    /// Space taken by the root image.
    pub root_bytes: u64,
}
