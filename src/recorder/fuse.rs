//! Disks as files: a FUSE filesystem with one file per disk, for use by loop devices.
//!
//! A write to a file is a write to its disk, fsync is a flush, a punched hole a discard, a zeroed range a write of
//! zeros: the operations that the loop driver issues for the block layer's requests (drivers/block/loop.c). One thread
//! serves all requests in the kernel's order. The kernel caches nothing (FOPEN_DIRECT_IO).
//!
//! The connection to the kernel is open in a table of descriptors of its own: of threads that never wait for these disks. So a
//! kill closes it at once, and the kernel fails what still waits. In the table of all threads it would stay open as long as one
//! of them waits, unkillable, in mount(2) or fsync(2) for an answer that nobody gives any more.

use super::disk::Recorder;
use super::entry::Op;
use crate::error::{Context, Result};
use crate::host::linux::{as_io_flusher, own_descriptors};
use crate::host::mounts;
use crate::host::threads::{begin_apart, locked};
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, MountOption,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, Session,
    WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
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
}

impl Drop for Exports {
    fn drop(&mut self) {
        // The thread that serves ends with the last mount: nobody waits for it, since a copy of this one may be in another
        // mount namespace. Where it is in use, it stays for the ledger. The files are closed here, where they are open.
        mounts::unmount(&self.folder).ok();
        locked(&self.files).clear();
    }
}

/// By inode number, minus 2; numbers are not reused. `None` if a file was removed.
type Files = Vec<Option<ExportedFile>>;

#[derive(Clone)]
struct ExportedFile {
    name: String,
    recorder: Arc<Recorder>,
    disk: u16,
}

type Work = Box<dyn FnOnce() + Send>;

struct DiskFiles {
    files: Arc<Mutex<Files>>,
    /// A thread that has the descriptors of the recorder.
    worker: Sender<Work>,
}

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
        let (worker, work) = channel::<Work>();
        as_io_flusher(|| begin_apart("disks", move || work.into_iter().for_each(|work| work())))?;
        let disks = DiskFiles { files: Arc::clone(&files), worker };
        let (tell, told) = channel();
        let to = folder.to_owned();
        let serve = move || match own_descriptors().and_then(|()| Session::new(disks, &to, &config)) {
            Ok(session) => drop(tell.send(Ok(())).map(|()| session.run())),
            Err(e) => drop(tell.send(Err(e))),
        };
        as_io_flusher(|| begin_apart("fuse", serve))?;
        let mounted = told.recv().unwrap_or_else(|_| Err(gone()));
        mounted.or_host(|| format!("mount the recorded disks on {}", folder.display()))?;
        Ok(Exports { folder: folder.to_owned(), files })
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
        place.and_then(|place| locked(&self.files).get(place)?.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Works on a file's disk in the thread where the recorder's files are open, and would be closed.
    fn on_disk<T: Send + 'static>(
        &self,
        inode: INodeNo,
        work: impl FnOnce(&Recorder, u16) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let file = self.file(inode)?;
        let (answer, answered) = channel();
        let sent = self.worker.send(Box::new(move || {
            answer.send(work(&file.recorder, file.disk)).ok();
        }));
        sent.map_err(|_| gone()).and_then(|()| answered.recv().unwrap_or_else(|_| Err(gone())))
    }

    fn attributes(&self, inode: INodeNo) -> io::Result<FileAttr> {
        if inode == INodeNo::ROOT {
            return Ok(attributes_of(inode, FileType::Directory, 0o700, 0));
        }
        let size = self.on_disk(inode, |recorder, disk| Ok(recorder.size(disk).unwrap_or(0)))?;
        Ok(attributes_of(inode, FileType::RegularFile, 0o600, size))
    }

    fn read_file(&self, inode: INodeNo, offset: u64, size: u32) -> io::Result<Vec<u8>> {
        self.on_disk(inode, move |recorder, disk| {
            let end = recorder.size(disk).unwrap_or(0);
            let mut bytes = vec![0; u64::from(size).min(end.saturating_sub(offset)) as usize];
            recorder.read(disk, offset, &mut bytes)?;
            Ok(bytes)
        })
    }

    fn allocate(&self, inode: INodeNo, offset: u64, length: u64, mode: i32) -> io::Result<()> {
        let op = match mode {
            _ if mode & PUNCH_HOLE != 0 => Op::Discard,
            _ if mode & ZERO_RANGE != 0 => Op::WriteZeroes,
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        self.on_disk(inode, move |recorder, disk| recorder.clear(disk, op, offset, length))
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the thread that serves the disks has ended")
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
        let found = locked(&self.files)
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
        match self.on_disk(inode, |_, _| Ok(())) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
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
        let data = data.to_vec();
        let written = self.on_disk(inode, move |recorder, disk| {
            recorder.write(disk, offset, &data, false)?;
            Ok(u32::try_from(data.len()).unwrap_or(u32::MAX))
        });
        match written {
            Ok(bytes) => reply.written(bytes),
            Err(e) => reply.error(e.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing a file promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(reply, self.on_disk(inode, Recorder::flush));
    }

    fn fallocate(&self, _: &Request, inode: INodeNo, _: FileHandle, at: u64, bytes: u64, mode: i32, reply: ReplyEmpty) {
        answer(reply, self.allocate(inode, at, bytes, mode));
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let files = locked(&self.files);
        for (place, file) in files.iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX)) {
            let Some(file) = file else { continue };
            if reply.add(INodeNo(place as u64 + 2), place as u64 + 1, FileType::RegularFile, &file.name) {
                break;
            }
        }
        drop(files);
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestDisks;
    use super::*;
    use crate::host::{time, users};
    use rustix::mount::{UnmountFlags, unmount};
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::process::{Command, Stdio};

    const FOLDER: &str = "PGSTRATA_TEST_FOLDER";

    /// Serves disks that four threads of this process read without pause.
    fn wait_for_our_own_disks(folder: &Path) {
        let disks = TestDisks::recording(1);
        let exports = Exports::mount(folder, "pgstrata-test").unwrap();
        let path = exports.add("data", &Arc::new(disks.recorder), 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| while fs::File::open(&path).unwrap().read_at(&mut [0; 4096], 0).unwrap() > 0 {});
            }
        });
    }

    #[test]
    fn a_kill_ends_a_program_that_waits_for_its_own_disks() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            return wait_for_our_own_disks(Path::new(&folder));
        }
        if !users::is_root() || !Path::new("/dev/fuse").exists() {
            println!("skipped: recorded disks as files need root and /dev/fuse");
            return;
        }
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let this = "recorder::fuse::tests::a_kill_ends_a_program_that_waits_for_its_own_disks";
            let mut serving = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", this])
                .env(FOLDER, folder.path())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            while !folder.path().join("data").exists() {
                assert_eq!(serving.try_wait().unwrap(), None);
                time::sleep(Duration::from_millis(10));
            }
            time::sleep(Duration::from_millis(50));
            serving.kill().unwrap();
            let ended = (0..1000).any(|_| {
                time::sleep(Duration::from_millis(10));
                serving.try_wait().unwrap().is_some()
            });
            // What is forced fails the requests, so that nothing waits for ever after this test.
            unmount(folder.path(), UnmountFlags::FORCE | UnmountFlags::DETACH).unwrap();
            assert!(ended, "it still waits 10 s after the kill");
        }
    }
}
