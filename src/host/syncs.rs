//! Ways to write files durably, under the names of the calls and flags, some of which a system may lack.

use rustix::fs::OFlags;
use std::fs::File;
use std::io;

/// True if there is a sync that also flushes the drive's cache (macOS, where fsync does not).
pub(crate) const HAS_WRITETHROUGH: bool = cfg!(target_vendor = "apple");

/// Flag that opens a file past the page cache.
#[cfg(not(any(target_vendor = "apple", target_os = "illumos")))]
pub(crate) const DIRECT: Option<OFlags> = Some(OFlags::DIRECT);
#[cfg(any(target_vendor = "apple", target_os = "illumos"))]
pub(crate) const DIRECT: Option<OFlags> = None;

/// fdatasync(2); macOS does not declare it.
#[inline]
pub(crate) fn fdatasync(file: &File) -> io::Result<()> {
    #[cfg(not(target_vendor = "apple"))]
    return Ok(rustix::fs::fdatasync(file)?);
    #[cfg(target_vendor = "apple")]
    return Err(lacking(file));
}

/// fcntl(2), F_FULLFSYNC.
#[inline]
pub(crate) fn fsync_writethrough(file: &File) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    return Ok(rustix::fs::fcntl_fullfsync(file)?);
    #[cfg(not(target_vendor = "apple"))]
    return Err(lacking(file));
}

/// The error for a call that this system lacks.
#[cold]
fn lacking(_file: &File) -> io::Error {
    io::ErrorKind::Unsupported.into()
}
