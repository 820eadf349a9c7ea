//! Messages between the kernel and a FUSE filesystem, as bytes (include/uapi/linux/fuse.h, protocol 7.31).
//!
//! By hand, because the tests need a dozen of its operations and faults that libraries hide: a short write, a daemon
//! that goes away and leaves its mount behind.

use rustix::fs::StatVfs;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// The longest write that is asked for, bytes.
pub const MAX_WRITE: u32 = PAGES as u32 * 4096;

/// The same in pages.
const PAGES: u16 = 32;

/// Requests that are answered or known to need no answer; all others get ENOSYS.
pub mod op {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const CREATE: u32 = 35;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
}

/// Flags of INIT that are spoken: writes longer than a page, and more pages in one request than 32.
const BIG_WRITES: u32 = 1 << 5;
const MAX_PAGES: u32 = 1 << 22;

/// One message of the kernel.
pub struct Request<'a> {
    pub op: u32,
    pub unique: u64,
    pub node: u64,
    pub uid: u32,
    pub gid: u32,
    pub body: Body<'a>,
}

impl<'a> Request<'a> {
    pub fn read(bytes: &'a [u8]) -> Request<'a> {
        let mut head = Body(bytes);
        let (_len, op) = (head.u32(), head.u32());
        let (unique, node) = (head.u64(), head.u64());
        let (uid, gid) = (head.u32(), head.u32());
        let _pid_and_extensions = head.u64();
        Request { op, unique, node, uid, gid, body: head }
    }
}

/// What follows the head of a request, read from its front.
pub struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len);
        self.0 = rest;
        front
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take(4).try_into().unwrap())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take(8).try_into().unwrap())
    }

    /// A name, which ends with a zero.
    pub fn name(&mut self) -> &'a OsStr {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap();
        let name = self.take(len);
        self.take(1);
        OsStr::from_bytes(name)
    }
}

/// The body of an answer.
#[derive(Default)]
pub struct Answer(Vec<u8>);

impl Answer {
    pub fn u32(mut self, value: u32) -> Answer {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn u64(mut self, value: u64) -> Answer {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Answer {
        self.0.extend(bytes);
        self
    }

    /// With its head: length, error, request.
    pub fn message(&self, unique: u64) -> Vec<u8> {
        message(unique, 0, &self.0)
    }

    /// Answer to INIT.
    pub fn hello() -> Answer {
        let version = Answer::default().u32(7).u32(31);
        let flags = version.u32(0).u32(BIG_WRITES | MAX_PAGES);
        // No limit of our own on background requests; times to the nanosecond; the pages of the longest write.
        let sizes = flags.u32(0).u32(MAX_WRITE).u32(1).bytes(&PAGES.to_ne_bytes());
        sizes.bytes(&[0; 34])
    }

    fn attributes(self, node: u64, meta: &Metadata) -> Answer {
        let sizes = self.u64(node).u64(meta.size()).u64(meta.blocks());
        let times = [meta.atime(), meta.mtime(), meta.ctime()];
        let nanos = [meta.atime_nsec(), meta.mtime_nsec(), meta.ctime_nsec()];
        let timed = times.iter().fold(sizes, |answer, time| answer.u64(time.cast_unsigned()));
        let timed = nanos.iter().fold(timed, |answer, nano| answer.u32(u32::try_from(*nano).unwrap()));
        let owned = timed.u32(meta.mode()).u32(u32::try_from(meta.nlink()).unwrap()).u32(meta.uid()).u32(meta.gid());
        owned.u32(0).u32(4096).u32(0)
    }

    /// Answer to GETATTR and SETATTR; valid for no time, so that the kernel asks again.
    pub fn attr(node: u64, meta: &Metadata) -> Answer {
        Answer::default().u64(0).u64(0).attributes(node, meta)
    }

    /// Answer to LOOKUP and MKDIR, and first half of that to CREATE.
    pub fn entry(node: u64, meta: &Metadata) -> Answer {
        Answer::default().u64(node).u64(0).u64(0).u64(0).u64(0).attributes(node, meta)
    }

    /// Answer to OPEN and OPENDIR, second half of that to CREATE.
    pub fn opened(self, handle: u64) -> Answer {
        self.u64(handle).u64(0)
    }

    /// Answer to WRITE.
    pub fn written(bytes: usize) -> Answer {
        Answer::default().u32(u32::try_from(bytes).unwrap()).u32(0)
    }

    /// Answer to STATFS.
    pub fn space(space: &StatVfs) -> Answer {
        let blocks = Answer::default().u64(space.f_blocks).u64(space.f_bfree).u64(space.f_bavail);
        let sizes = blocks.u64(space.f_files).u64(space.f_ffree).u32(u32::try_from(space.f_bsize).unwrap()).u32(255);
        sizes.u32(u32::try_from(space.f_frsize).unwrap()).bytes(&[0; 28])
    }

    /// Adds a name to the answer to READDIR; what follows it is asked for with `next`. `None` when there is no room.
    pub fn name(self, next: u64, kind: u32, name: &OsStr, room: usize) -> Result<Answer, Answer> {
        let len = name.len();
        let padding = len.next_multiple_of(8) - len;
        if self.0.len() + 24 + len + padding > room {
            return Err(self);
        }
        // The number of the file is not known here, and asked for by nobody.
        let head = self.u64(u64::MAX).u64(next).u32(u32::try_from(len).unwrap()).u32(kind);
        Ok(head.bytes(name.as_bytes()).bytes(&[0; 8][..padding]))
    }
}

/// A message that says that a request failed.
pub fn refusal(unique: u64, errno: i32) -> Vec<u8> {
    message(unique, -errno, &[])
}

fn message(unique: u64, error: i32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(16 + body.len()).unwrap();
    [&len.to_ne_bytes()[..], &error.to_ne_bytes(), &unique.to_ne_bytes(), body].concat()
}
