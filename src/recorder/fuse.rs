//! Disks as files: a FUSE filesystem with one file per disk, for use by loop devices.
//!
//! A write to a file is a write to its disk, fsync is a flush, a punched hole a discard, a zeroed range a write of
//! zeros: the operations that the loop driver issues for the block layer's requests (drivers/block/loop.c). One thread
//! serves all requests in the kernel's order. The kernel caches nothing (FOPEN_DIRECT_IO).

use super::disk::Recorder;
use super::entry::Op;
use crate::error::{Context, Result};
use crate::host::linux::as_io_flusher;
use crate::host::threads::locked;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, Session, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

/// The kernel asks every time.
const TTL: Duration = Duration::ZERO;

/// fallocate(2), include/uapi/linux/falloc.h.
const PUNCH_HOLE: i32 = 0x02;
const ZERO_RANGE: i32 = 0x10;

/// Disks exported as files in a folder, until dropped.
pub struct Exports {
    folder: PathBuf,
    files: Arc<Mutex<Files>>,
    /// Unmounts on drop.
    _session: BackgroundSession,
}

/// By inode number, minus 2; numbers are not reused. `None` if a file was removed.
type Files = Vec<Option<ExportedFile>>;

#[derive(Clone)]
struct ExportedFile {
    name: String,
    recorder: Arc<Recorder>,
    disk: u16,
}

struct DiskFiles(Arc<Mutex<Files>>);

impl Exports {
    /// Mounts on an existing folder; the mount table shows `source`.
    ///
    /// # Errors
    /// When the kernel has no FUSE, or denies the mount.
    pub fn mount(folder: &Path, source: &str) -> Result<Exports> {
        let files = Arc::new(Mutex::new(Files::new()));
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(source.to_owned()), MountOption::NoSuid, MountOption::NoDev, MountOption::NoExec];
        let session = Session::new(DiskFiles(Arc::clone(&files)), folder, &config)
            .and_then(|session| as_io_flusher(|| session.spawn()))
            .or_host(|| format!("mount the recorded disks on {}", folder.display()))?;
        Ok(Exports { folder: folder.to_owned(), files, _session: session })
    }

    /// Exports a disk as a file, and returns its path.
    pub fn add(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) -> PathBuf {
        let file = ExportedFile { name: name.to_owned(), recorder: Arc::clone(recorder), disk };
        locked(&self.files).push(Some(file));
        self.folder.join(name)
    }

    /// Replaces the disk behind an existing file by another of the same size: open handles use the new disk from now
    /// on. Nothing of the old one may be cached.
    pub fn swap(&self, name: &str, recorder: &Arc<Recorder>, disk: u16) {
        for file in locked(&self.files).iter_mut().flatten().filter(|file| file.name == name) {
            (file.recorder, file.disk) = (Arc::clone(recorder), disk);
        }
    }

    pub fn remove(&self, name: &str) {
        for file in locked(&self.files).iter_mut().filter(|file| file.as_ref().is_some_and(|file| file.name == name)) {
            *file = None;
        }
    }
}

impl DiskFiles {
    fn file(&self, inode: INodeNo) -> io::Result<ExportedFile> {
        let place = u64::from(inode).checked_sub(2).and_then(|place| usize::try_from(place).ok());
        let file = place.and_then(|place| locked(&self.0).get(place)?.clone());
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn attributes(&self, inode: INodeNo) -> io::Result<FileAttr> {
        if inode == INodeNo::ROOT {
            return Ok(attributes_of(inode, FileType::Directory, 0o700, 0));
        }
        let file = self.file(inode)?;
        Ok(attributes_of(inode, FileType::RegularFile, 0o600, file.recorder.size(file.disk).unwrap_or(0)))
    }

    fn read_file(&self, inode: INodeNo, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        let file = self.file(inode)?;
        let end = file.recorder.size(file.disk).unwrap_or(0);
        let length = u64::from(size).min(end.saturating_sub(offset));
        let mut bytes = vec![0; length as usize];
        file.recorder.read(file.disk, offset, &mut bytes)?;
        Ok(bytes)
    }

    fn allocate(&self, inode: INodeNo, offset: u64, length: u64, mode: i32) -> io::Result<()> {
        let file = self.file(inode)?;
        let op = match mode {
            _ if mode & PUNCH_HOLE != 0 => Op::Discard,
            _ if mode & ZERO_RANGE != 0 => Op::WriteZeroes,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        file.recorder.clear(file.disk, op, offset, length)
    }
}

fn attributes_of(ino: INodeNo, kind: FileType, perm: u16, size: u64) -> FileAttr {
    FileAttr {
        ino,
        size,
        blocks: size / 512,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Replies with success or failure only.
fn answer(reply: ReplyEmpty, done: io::Result<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(e.into()),
    }
}

impl Filesystem for DiskFiles {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = locked(&self.0)
            .iter()
            .position(|file| file.as_ref().is_some_and(|file| OsStr::new(&file.name) == name))
            .filter(|_| parent == INodeNo::ROOT);
        let found = found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
        match found.and_then(|place| self.attributes(INodeNo(place as u64 + 2))) {
            Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(e) => reply.error(e.into()),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.file(inode) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(e) => reply.error(e.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_file(inode, offset, size) {
            Ok(bytes) => reply.data(&bytes),
            Err(e) => reply.error(e.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // A loop device has no FUA: the block layer turns it into a write and a flush.
        let written = self.file(inode).and_then(|file| file.recorder.write(file.disk, offset, data, false));
        match written {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(e) => reply.error(e.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.file(inode).and_then(|file| file.recorder.flush(file.disk)));
    }

    fn fallocate(&self, _: &Request, inode: INodeNo, _: FileHandle, at: u64, bytes: u64, mode: i32, reply: ReplyEmpty) {
        answer(reply, self.allocate(inode, at, bytes, mode));
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let files = locked(&self.0).clone();
        for (place, file) in files.iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let Some(file) = file else { continue };
            if reply.add(INodeNo(place as u64 + 2), place as u64 + 1, FileType::RegularFile, &file.name) {
                break;
            }
        }
        reply.ok();
    }
}
