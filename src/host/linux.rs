//! System calls that only Linux has, for rooms that need just one.
//!
//! Together with the modules of the same kind (`extents`, `loops`, `mount_options`, `mounts`, `nbd`, `ring`)
//! this is everything that `elsewhere` replaces on another system.

use rustix::fs::{Advice as FileAdvice, AtFlags, CWD, FallocateFlags, Mode, OFlags, StatxFlags, statx};
use rustix::io::{Errno, IoSlice, ReadWriteFlags};
use rustix::ioctl::{Opcode, Setter, ioctl};
use rustix::mm::{Advice, madvise};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, pidfd_open, pidfd_send_signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Opens a folder only as a location, which needs no permission to read it.
pub(crate) const PLACE: OFlags = OFlags::PATH;

/// A pidfd: no other process gets this pid while it is open (Linux 5.3).
pub(super) struct Pinned(OwnedFd);

impl Pinned {
    pub(super) fn process(pid: Pid) -> Result<Pinned, Errno> {
        pidfd_open(pid, PidfdFlags::empty()).map(Pinned)
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(&self.0, signal)
    }
}

/// Has the kernel kill this process when the thread that started it ends: one prctl(2), nothing allocated.
pub(super) fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Makes this process the parent of its orphaned descendants.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Total memory from sysinfo(2), for a machine without `/proc/meminfo`.
pub(super) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// Number of CPUs in the affinity of this process.
pub(super) fn allowed_cpus() -> Option<usize> {
    Some(rustix::thread::sched_getaffinity(None).ok()?.count() as usize)
}

/// CPU time used by the calling thread, microseconds (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_cpu_us() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000
}

/// Enlarges a pipe, if that is allowed.
pub(super) fn enlarge_pipe(pipe: &File, bytes: usize) {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).ok();
}

/// Syncs the filesystem that holds an open file or folder.
pub(super) fn sync_filesystem(of: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(of)?)
}

/// Makes an empty file share the blocks of another (FICLONE).
pub(super) fn share_blocks(target: &File, source: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(target, source)?)
}

/// See [`super::paths::atomic_write_units`].
pub(super) fn atomic_write_units(path: &Path) -> io::Result<Option<(u32, u32)>> {
    const STATX_WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);
    let found = statx(CWD, path, AtFlags::empty(), STATX_WRITE_ATOMIC)?;
    let is_reported = found.stx_mask & STATX_WRITE_ATOMIC.bits() != 0;
    Ok(is_reported.then_some((found.stx_atomic_write_unit_min, found.stx_atomic_write_unit_max)))
}

/// Creates an unnamed file in a folder, written past the page cache and gone when closed.
pub(crate) fn open_nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Creates a file of this size in memory, with nothing in it; it is gone when closed.
pub(crate) fn in_memory(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("pgstrata", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(bytes).map(|()| file)
}

/// Makes a range of a file read as zeros and frees its blocks; the file keeps its size.
pub(crate) fn punch_hole(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes)?)
}

/// Discards whole logical blocks of a device (BLKDISCARD, BLKSECDISCARD; include/uapi/linux/fs.h). Fails with EOPNOTSUPP
/// if it does not support this kind of discard.
#[expect(unsafe_code, reason = "no safe binding of these requests")]
pub(crate) fn discard(device: &File, offset: u64, bytes: u64, securely: bool) -> io::Result<()> {
    const DISCARD: Opcode = 0x1277;
    const SECURELY: Opcode = 0x127D;
    let range = [offset, bytes];
    // SAFETY: both requests read two 64-bit numbers, which live as long as the call.
    let discarded = unsafe {
        if securely {
            ioctl(device, Setter::<SECURELY, [u64; 2]>::new(range))
        } else {
            ioctl(device, Setter::<DISCARD, [u64; 2]>::new(range))
        }
    };
    Ok(discarded?)
}

/// Stops a mounted filesystem at once (`FS_IOC_SHUTDOWN` of ext4, xfs, f2fs and, in newer kernels, btrfs): everything that
/// uses it fails with EIO from here on. Fails with ENOTTY if it has no such call.
#[expect(unsafe_code, reason = "no safe binding of this request")]
pub(crate) fn stop_filesystem(mount_point: &Path) -> io::Result<()> {
    // `_IOR('X', 125, __u32)`: EXT4_IOC_SHUTDOWN, XFS_IOC_GOINGDOWN, F2FS_IOC_SHUTDOWN, BTRFS_IOC_SHUTDOWN.
    const SHUTDOWN: Opcode = 0x8004_587D;
    // Writes nothing more, not even the journal; the same number in all of them (`..._NOLOGFLUSH`,
    // `F2FS_GOING_DOWN_NOSYNC`).
    const NO_LOG_FLUSH: u32 = 2;
    let folder = File::open(mount_point)?;
    // SAFETY: the request reads one u32 at the address passed, which lives as long as the call.
    Ok(unsafe { ioctl(&folder, Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH)) }?)
}

/// Preallocates the first `bytes` of a file (fallocate(2)).
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes)?)
}

/// Drops a file's pages from the page cache, as far as its filesystem allows.
pub(crate) fn drop_cache(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, FileAdvice::DontNeed)?)
}

/// Makes pages of a shared mapping writable, or fails where touching them would kill the process (MADV_POPULATE_WRITE,
/// Linux 5.14).
#[expect(unsafe_code, reason = "madvise")]
pub(super) fn make_writable(start: *mut c_void, length: usize) -> io::Result<()> {
    // SAFETY: this advice does not change the content of the pages; an unmapped range is refused with ENOMEM.
    Ok(unsafe { madvise(start, length, Advice::LinuxPopulateWrite) }?)
}

/// Writes to the beginning of a file and syncs only that write (RWF_DSYNC, Linux 4.7). Returns the bytes written.
#[inline]
pub(crate) fn write_synced(file: &File, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::pwritev2(file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::DSYNC)?)
}

/// Pid of the process that listens on the other side of a connection (`SO_PEERCRED`); `None` if it is in another pid
/// namespace: the kernel reports 0 then, which a `Pid` of rustix cannot hold.
#[expect(unsafe_code, reason = "rustix' call makes a NonZero of what may be 0")]
pub(crate) fn peer(stream: &UnixStream) -> Option<u32> {
    const SOL_SOCKET: c_int = 1;
    const SO_PEERCRED: c_int = 17;
    unsafe extern "C" {
        fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
    }
    // `struct ucred`: process, user, group.
    let mut of = [0u32; 3];
    let mut length = size_of_val(&of) as u32;
    // SAFETY: `of` has `length` bytes, and both live as long as the call.
    let failed = unsafe {
        getsockopt(stream.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, of.as_mut_ptr().cast(), &raw mut length) != 0
    };
    (!failed && of[0] != 0).then_some(of[0])
}

/// Limits private memory of this process and all its descendants for good (RLIMIT_DATA): one setrlimit(2), nothing
/// allocated.
pub(super) fn limit_memory(bytes: u64) -> io::Result<()> {
    Ok(rustix::process::setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum: Some(bytes) })?)
}

/// Gives the calling thread, and those that it will start, a table of descriptors of its own, a copy of what is open
/// (unshare(2), `CLONE_FILES`).
#[expect(unsafe_code, reason = "from here on a descriptor is not the same file in all threads")]
pub(crate) fn own_descriptors() -> io::Result<()> {
    // SAFETY: the callers' threads use only what they open afterwards; the copies close when they end.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FILES) }?)
}

/// Runs `start`, which serves disks, in a thread that does not wait for write-back when it needs memory, because the
/// write-back may be to these very disks (prctl(2), `PR_SET_IO_FLUSHER`). Threads inherit the flag from their creator.
pub(crate) fn as_io_flusher<T>(start: impl FnOnce() -> T) -> T {
    // Without the permission (CAP_SYS_RESOURCE) it still works as long as memory is not scarce.
    let was = rustix::process::is_io_flusher().unwrap_or(false);
    let set = rustix::process::configure_io_flusher_behavior(true).is_ok();
    let started = start();
    if set && !was {
        rustix::process::configure_io_flusher_behavior(false).ok();
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::host::command::Command;
    use crate::host::users;
    use std::os::unix::net::UnixListener;

    const SOCKET: &str = "PGSTRATA_TEST_SOCKET";

    #[test]
    fn a_listener_is_identified_within_its_pid_namespace_only() {
        if let Some(socket) = std::env::var_os(SOCKET) {
            // In the namespace created by the other half of this test.
            assert_eq!(peer(&UnixStream::connect(socket).unwrap()), None);
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(peer(&UnixStream::connect(&socket).unwrap()), Some(std::process::id()));
        if !users::is_root() {
            println!("skipped: a PID namespace needs root");
            return;
        }
        let inside = Command::new("unshare").args(["--pid", "--fork"]).arg(std::env::current_exe().unwrap());
        let this = "host::linux::tests::a_listener_is_identified_within_its_pid_namespace_only";
        Host::this().run(&inside.args(["--exact", this]).env(SOCKET, &socket)).unwrap();
    }
}
