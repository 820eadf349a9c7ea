//! A file mapped into memory, shared, and synced with msync.

use super::linux;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;

/// A shared, writable mapping of the beginning of a file that nobody cuts while it is mapped.
pub struct Mapped {
    start: *mut c_void,
    length: usize,
}

impl Mapped {
    /// Maps the first `length` bytes of a file of at least that length, which is open for reading and writing.
    ///
    /// # Errors
    /// The kernel's.
    #[expect(unsafe_code, reason = "mmap")]
    pub fn file(file: &File, length: usize) -> io::Result<Mapped> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is shorter than its mapping"));
        }
        // SAFETY: no address is asked for, so that nothing else is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
        }?;
        Ok(Mapped { start, length })
    }

    /// Copies `bytes` to the beginning of the mapping. The pages are made writable first, by a call that fails with an
    /// error number where the kernel could only end the process by SIGBUS (a full or broken filesystem).
    ///
    /// # Errors
    /// The kernel's: EINVAL before Linux 5.14, EFAULT where no page is available.
    #[expect(unsafe_code, reason = "copies into the mapping")]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.length {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: the range lies in the mapping, and `&mut self` is the only way to it in this process.
        unsafe {
            linux::make_writable(self.start, bytes.len().next_multiple_of(4096).min(self.length))?;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.cast::<u8>(), bytes.len());
        }
        Ok(())
    }

    /// Makes the first `length` bytes durable (MS_SYNC).
    ///
    /// # Errors
    /// The kernel's: what a write-back failed with.
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
