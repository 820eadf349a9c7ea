//! Stand-ins, on systems other than Linux, for the modules of this room that consist of Linux system calls.
//!
//! Each has the names of the module it replaces and fails with [`only_linux`]. Nothing here tries to do the same in
//! another way: a subcommand that needs it says so before it starts (`cli::NEED_LINUX`).

use std::io;

/// The error for a call that only Linux has. Allocates nothing: it may be created between fork and exec.
fn only_linux() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

macro_rules! fails {
    ($($visibility:vis fn $name:ident($($argument:ident: $type:ty),*) -> $value:ty;)*) => {
        $($visibility fn $name($($argument: $type),*) -> std::io::Result<$value> {
            Err(super::only_linux())
        })*
    };
}

pub(crate) mod linux {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    use rustix::process::{Pid, Signal};
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    /// Requires permission to read the folder.
    pub(crate) const PLACE: OFlags = OFlags::RDONLY;

    /// Never exists.
    pub(in crate::host) enum Pinned {}

    impl Pinned {
        pub(in crate::host) fn process(_pid: Pid) -> Result<Pinned, Errno> {
            Err(Errno::NOSYS)
        }

        pub(in crate::host) fn signal(&self, _signal: Signal) -> Result<(), Errno> {
            match *self {}
        }
    }

    /// Unknown: only Linux stores it.
    pub(in crate::host) fn memory_bytes() -> u64 {
        0
    }

    pub(in crate::host) fn allowed_cpus() -> Option<usize> {
        None
    }

    /// Unknown: only Linux stores it.
    pub fn thread_cpu_us() -> u64 {
        0
    }

    pub(in crate::host) fn enlarge_pipe(_pipe: &File, _bytes: usize) {}

    pub(in crate::host) fn atomic_write_units(_path: &Path) -> io::Result<Option<(u32, u32)>> {
        Ok(None)
    }

    pub(crate) fn peer(_stream: &UnixStream) -> Option<u32> {
        None
    }

    pub(crate) fn as_io_flusher<T>(start: impl FnOnce() -> T) -> T {
        start()
    }

    fails! {
        pub(in crate::host) fn die_with_parent() -> ();
        pub(in crate::host) fn adopt_orphans() -> ();
        pub(in crate::host) fn sync_filesystem(_of: &File) -> ();
        pub(in crate::host) fn share_blocks(_target: &File, _source: &File) -> ();
        pub(crate) fn open_nameless(_folder: &Path) -> File;
        pub(crate) fn in_memory(_bytes: u64) -> File;
        pub(crate) fn punch_hole(_file: &File, _offset: u64, _bytes: u64) -> ();
        pub(crate) fn discard(_device: &File, _offset: u64, _bytes: u64, _securely: bool) -> ();
        pub(crate) fn stop_filesystem(_mount_point: &Path) -> ();
        pub(crate) fn reserve(_file: &File, _bytes: u64) -> ();
        pub(crate) fn drop_cache(_file: &File) -> ();
        pub(in crate::host) fn make_writable(_start: *mut c_void, _length: usize) -> ();
        pub(crate) fn write_synced(_file: &File, _bytes: &[u8]) -> usize;
        pub(in crate::host) fn limit_memory(_bytes: u64) -> ();
    }
}

pub(crate) mod extents {
    pub(crate) use crate::host::answers::{FileRange, Pieces};
    use std::fs::File;
    use std::io;

    /// `None`, as for a filesystem that does not report extents.
    pub(crate) fn pieces(_file: &File) -> io::Result<Option<Pieces>> {
        Ok(None)
    }

    pub(crate) fn unwritten(_file: &File, _bytes: u64) -> io::Result<Option<Vec<FileRange>>> {
        Ok(None)
    }
}

pub(crate) mod handles {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::path::Path;

    fails! {
        pub(crate) fn of(_open: impl AsFd) -> String;
        pub(crate) fn open(_mount: &Path, _handle: &str) -> File;
    }
}

pub(crate) mod loops {
    use std::fs::File;
    use std::path::Path;

    fails! {
        pub(crate) fn configure(_device: &Path, _file: &File, _direct_io: bool, _sector: Option<u32>) -> ();
        pub(crate) fn clear(_device: &Path) -> ();
        pub(crate) fn file_of(_device: &Path) -> (u64, u64);
        pub(crate) fn add(_number: u32) -> ();
        pub(crate) fn remove(_number: u32) -> ();
        pub(crate) fn forget_buffers(_device: &Path) -> ();
        pub(crate) fn end_after(_device: &Path, _bytes: u64) -> u64;
    }
}

pub(crate) mod mount_options {
    pub use crate::host::answers::MountFinding;

    pub(crate) fn ask(_filesystem: &str, _option: &str) -> MountFinding {
        MountFinding::Unchecked("only Linux answers before anything is mounted".to_owned())
    }
}

pub(crate) mod mounts {
    use std::io;
    use std::path::Path;

    /// Never exists.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) enum MountOptions {}

    impl MountOptions {
        pub(crate) fn of(_options: &[String]) -> Option<MountOptions> {
            None
        }
    }

    pub(crate) fn mount(_source: &str, _target: &Path, _fstype: &str, options: &MountOptions) -> io::Result<()> {
        match *options {}
    }

    fails! {
        pub(crate) fn unmount(_target: &Path) -> ();
    }
}

pub(crate) mod nbd {
    pub(crate) use crate::host::answers::Wish;
    use std::os::fd::BorrowedFd;

    fails! {
        pub(crate) fn connect(_connection: BorrowedFd<'_>, _wish: &Wish<'_>) -> u32;
        pub(crate) fn disconnect(_number: u32) -> ();
    }
}

pub(crate) mod ring {
    use super::only_linux;
    pub use crate::host::answers::WriteThenSync;
    use std::fs::File;
    use std::io;

    /// Never exists.
    pub enum Ring {}

    impl Ring {
        pub fn new() -> io::Result<Ring> {
            Err(only_linux())
        }

        pub fn write_then_sync(&mut self, _file: &File, _bytes: &[u8], _offset: u64) -> io::Result<WriteThenSync> {
            match *self {}
        }
    }
}
