//! io_uring: a write and the sync of its file as two linked requests, submitted and awaited with one system call.

pub use super::answers::WriteThenSync;
use io_uring::{IoUring, opcode, squeue, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// User data that identifies the two requests.
const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A private ring; not shared between threads.
pub struct Ring {
    ring: IoUring,
    /// True if it holds requests that were never submitted: no more may be added.
    is_broken: bool,
}

impl Ring {
    /// Sets up a ring.
    ///
    /// # Errors
    /// The kernel's error: ENOSYS before Linux 5.1, EPERM if it is switched off (`kernel.io_uring_disabled`, seccomp).
    pub fn new() -> io::Result<Ring> {
        IoUring::new(4).map(|ring| Ring { ring, is_broken: false })
    }

    /// Writes `bytes` at `offset` and then syncs the file's data (like fdatasync). Returns the results of both when
    /// both are done; if the write fails or is short, the kernel cancels the sync.
    ///
    /// # Errors
    /// If the requests cannot be submitted or awaited.
    #[expect(unsafe_code, reason = "the kernel reads the buffer until both requests have completed")]
    pub fn write_then_sync(&mut self, file: &File, bytes: &[u8], offset: u64) -> io::Result<WriteThenSync> {
        if self.is_broken {
            return Err(io::Error::other("an earlier request could not be submitted"));
        }
        let fd = types::Fd(file.as_raw_fd());
        let length = u32::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let write = opcode::Write::new(fd, bytes.as_ptr(), length).offset(offset).build();
        let write = write.flags(squeue::Flags::IO_LINK).user_data(WRITE);
        let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build().user_data(SYNC);
        // SAFETY: `bytes` and `file` outlive both requests, because this function does not return before both have
        // completed: an interrupted wait is repeated, and any other error of the wait aborts the process.
        unsafe { self.ring.submission().push_multiple(&[write, sync]) }
            .map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        let mut outcome = WriteThenSync::default();
        let mut completed = 0;
        while completed < 2 {
            match self.ring.submit_and_wait(2 - completed) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Nothing was submitted yet: the requests are still in our own memory.
                Err(e) if completed == 0 && self.ring.submission().len() == 2 => {
                    self.is_broken = true;
                    return Err(e);
                }
                Err(_) => std::process::abort(),
            }
            for entry in self.ring.completion() {
                completed += 1;
                match entry.user_data() {
                    WRITE => outcome.written = entry.result(),
                    _ => outcome.synced = entry.result(),
                }
            }
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_reaches_the_file_and_failure_cancels_its_sync() {
        let Ok(mut ring) = Ring::new() else {
            println!("skipped: this kernel has no io_uring for us");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        for _ in 0..3 {
            assert_eq!(ring.write_then_sync(&file, b"abc", 2).unwrap(), WriteThenSync { written: 3, synced: 0 });
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"\0\0abc");
        let readable = File::open(&path).unwrap();
        let refused = ring.write_then_sync(&readable, b"abc", 0).unwrap();
        assert_eq!(refused.written, -rustix::io::Errno::BADF.raw_os_error());
        assert!(refused.synced < 0);
    }
}
