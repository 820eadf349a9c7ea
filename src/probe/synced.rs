//! One synced write: open flags, write, sync.

use crate::host::syncs;
use crate::probe::tape::FailedCall;
use crate::record::probe::{RowSpec, Way};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;

/// Flags for opening a row's file.
pub(crate) fn flags(spec: &RowSpec) -> OFlags {
    let by_way = match spec.way {
        Way::OpenDatasync => OFlags::DSYNC,
        Way::OpenSync => OFlags::SYNC,
        _ => OFlags::empty(),
    };
    if spec.direct { by_way | syncs::DIRECT.unwrap_or(OFlags::empty()) } else { by_way }
}

#[inline]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> Result<(), FailedCall> {
    let written = rustix::io::pwrite(file, bytes, offset).map_err(FailedCall::of("write"))?;
    whole("write", written, bytes.len())
}

/// The sync call that follows the write; none if the open flags already sync.
#[inline]
pub(crate) fn sync(file: &File, way: Way) -> Result<(), FailedCall> {
    match way {
        Way::Fdatasync => syncs::fdatasync(file).map_err(FailedCall::of("fdatasync")),
        Way::Fsync => rustix::fs::fsync(file).map_err(FailedCall::of("fsync")),
        Way::FsyncWritethrough => syncs::fsync_writethrough(file).map_err(FailedCall::of("fcntl(F_FULLFSYNC)")),
        _ => Ok(()),
    }
}

#[inline]
pub(crate) fn whole(call: &'static str, written: usize, wanted: usize) -> Result<(), FailedCall> {
    if written == wanted { Ok(()) } else { Err(short(call, written, wanted)) }
}

#[cold]
fn short(call: &'static str, written: usize, wanted: usize) -> FailedCall {
    let words = format!("short write: {written} of {wanted} bytes");
    FailedCall { call, error: io::Error::new(io::ErrorKind::WriteZero, words) }
}
