//! File handles, which find a file or folder again whatever its name has become (name_to_handle_at(2)).

use super::files::File;
use std::ffi::{CStr, c_char, c_int};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::path::Path;

/// `MAX_HANDLE_SZ`.
const LONGEST: usize = 128;
/// `AT_EMPTY_PATH`: the open file itself.
const ITSELF: c_int = 0x1000;
/// Opened without read or write access, so that opening a device has no effect on it.
const PLACE: rustix::fs::OFlags = rustix::fs::OFlags::PATH.union(rustix::fs::OFlags::CLOEXEC);

/// `struct file_handle`.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: c_int,
    content: [u8; LONGEST],
}

#[expect(unsafe_code, reason = "no safe binding of these calls")]
unsafe extern "C" {
    fn name_to_handle_at(at: c_int, path: *const c_char, handle: *mut Handle, mount: *mut c_int, flags: c_int)
    -> c_int;
    fn open_by_handle_at(mount: c_int, handle: *mut Handle, flags: c_int) -> c_int;
}

/// The handle of an open file, as text; fails if its filesystem has none.
pub(crate) fn of(open: impl AsFd) -> io::Result<String> {
    let mut handle = Handle { bytes: LONGEST as u32, kind: 0, content: [0; LONGEST] };
    let (mut mount, path): (c_int, &CStr) = (0, c"");
    // SAFETY: the path ends with a zero, and `handle` has room for as many bytes as it says.
    #[expect(unsafe_code, reason = "no safe binding of this call")]
    let done =
        unsafe { name_to_handle_at(open.as_fd().as_raw_fd(), path.as_ptr(), &raw mut handle, &raw mut mount, ITSELF) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let content = &handle.content[..handle.bytes as usize];
    Ok(content.iter().fold(format!("{}:", handle.kind), |text, byte| format!("{text}{byte:02x}")))
}

/// Opens the file with this handle on the filesystem of `mount`; fails with ESTALE if it is gone.
pub(crate) fn open(mount: &Path, handle: &str) -> io::Result<File> {
    let mut read = parsed(handle).ok_or(ErrorKind::InvalidInput)?;
    let mount = rustix::fs::open(mount, rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC, 0.into())?;
    let flags = PLACE.bits().cast_signed();
    // SAFETY: `read` has as many bytes as it says.
    #[expect(unsafe_code, reason = "no safe binding of this call")]
    let opened = unsafe { open_by_handle_at(mount.as_raw_fd(), &raw mut read, flags) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nobody else has it.
    #[expect(unsafe_code, reason = "the descriptor is fresh")]
    Ok(unsafe { File::from_raw_fd(opened) })
}

fn parsed(text: &str) -> Option<Handle> {
    let (kind, digits) = text.split_once(':')?;
    let mut handle = Handle { bytes: (digits.len() / 2) as u32, kind: kind.parse().ok()?, content: [0; LONGEST] };
    for (at, byte) in handle.content.iter_mut().enumerate().take(digits.len() / 2) {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    (digits.len() <= 2 * LONGEST).then_some(handle)
}
