//! One synced write: open flags, write, sync.

use crate::host::syncs;
use crate::probe::tape::Failed;
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
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> Result<(), Failed> {
    let written = rustix::io::pwrite(file, bytes, offset).map_err(Failed::of("write"))?;
    whole("write", written, bytes.len())
}

/// The sync call that follows the write; none if the open flags already sync.
#[inline]
pub(crate) fn sync(file: &File, way: Way) -> Result<(), Failed> {
    match way {
        Way::Fdatasync => syncs::fdatasync(file).map_err(Failed::of("fdatasync")),
        Way::Fsync => rustix::fs::fsync(file).map_err(Failed::of("fsync")),
        Way::FsyncWritethrough => syncs::fsync_writethrough(file).map_err(Failed::of("fcntl(F_FULLFSYNC)")),
        _ => Ok(()),
    }
}

#[inline]
pub(crate) fn whole(call: &'static str, written: usize, wanted: usize) -> Result<(), Failed> {
    if written == wanted { Ok(()) } else { Err(short(call, written, wanted)) }
}

#[cold]
fn short(call: &'static str, written: usize, wanted: usize) -> Failed {
    let words = format!("short write: {written} of {wanted} bytes");
    Failed { call, error: io::Error::new(io::ErrorKind::WriteZero, words) }
}
