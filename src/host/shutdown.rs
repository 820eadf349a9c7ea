//! Stops a mounted filesystem at once (`FS_IOC_SHUTDOWN` of ext4, xfs, f2fs and, in newer kernels, btrfs).

use super::files::File;
use rustix::ioctl::{Opcode, Setter, ioctl};
use std::io;
use std::path::Path;

/// `_IOR('X', 125, __u32)`: EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN, F2FS_IOC_SHUTDOWN, BTRFS_IOC_SHUTDOWN.
const SHUTDOWN: Opcode = 0x8004_587D;
/// Writes nothing more, not even the journal; the same number in all of them (`..._NOLOGFLUSH`,
/// `F2FS_GOING_DOWN_NOSYNC`).
const NO_LOG_FLUSH: u32 = 2;

/// Makes everything that uses the filesystem mounted there fail with EIO from here on.
///
/// # Errors
/// The kernel's error: ENOTTY if the filesystem has no such call.
#[expect(unsafe_code, reason = "no safe binding of this request")]
pub(crate) fn stop_filesystem(mount_point: &Path) -> io::Result<()> {
    let folder = File::open(mount_point)?;
    // SAFETY: the request reads one u32 at the address passed, which lives as long as the call.
    Ok(unsafe { ioctl(&folder, Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH)) }?)
}
