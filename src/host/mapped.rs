//! A shared memory mapping of a file, synced with msync.

use super::linux;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;

/// A shared, writable mapping of the beginning of a file; the file must not be truncated while mapped.
pub struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    /// Maps the first `length` bytes of a file, which must be at least that long and open for reading and writing.
    ///
    /// # Errors
    /// The kernel's error.
    #[expect(unsafe_code, reason = "mmap")]
    pub fn file(file: &File, length: usize) -> io::Result<Mapped> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter than its mapping"));
        }
        // SAFETY: no address is requested, so no other mapping is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
        }?;
        Ok(Mapped { start, length })
    }

    /// Copies `bytes` to the beginning of the mapping. Makes the pages writable first, with a call that returns an
    /// error where a plain store would raise SIGBUS (a full or broken filesystem).
    ///
    /// # Errors
    /// The kernel's error: EINVAL before Linux 5.14, EFAULT if no page is available.
    #[expect(unsafe_code, reason = "copies into the mapping")]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.length {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: the range lies in the mapping, and `&mut self` is this process's only access to it.
        unsafe {
            linux::make_writable(self.start, bytes.len().next_multiple_of(4096).min(self.length))?;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.cast::<u8>(), bytes.len());
        }
        Ok(())
    }

    /// Makes the first `length` bytes durable (MS_SYNC).
    ///
    /// # Errors
    /// The kernel's error from the write-back.
    #[expect(unsafe_code, reason = "msync")]
    pub fn sync(&mut self, length: usize) -> io::Result<()> {
        // SAFETY: the range lies in the mapping.
        unsafe { msync(self.start, length.min(self.length), MsyncFlags::SYNC) }.map_err(Into::into)
    }
}

impl Drop for Mapped {
    #[expect(unsafe_code, reason = "munmap")]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing points into it any more.
        unsafe { munmap(self.start, self.length) }.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_into_the_mapping_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 8192]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        assert!(Mapped::file(&file, 8193).is_err());
        let mut mapped = Mapped::file(&file, 8192).unwrap();
        if mapped.write(b"abc").is_err() {
            println!("skipped: before Linux 5.14 there is no MADV_POPULATE_WRITE");
            return;
        }
        mapped.sync(8192).unwrap();
        assert!(mapped.write(&[0; 8193]).is_err());
        let read = std::fs::read(&path).unwrap();
        assert_eq!((&read[..4], read.len()), (&b"abc\x07"[..], 8192));
    }
}
