//! A FUSE filesystem with faults: what it is given it keeps in a folder below, and lies or fails as it is told to.
//!
//! One thread serves it, inside the test. When the test ends, also by a panic, the mount and the thread end with it.

mod wire;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Gid, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::{Answer, Request, op};

/// What the filesystem does when a file is to be synced.
#[derive(Debug, Clone, Copy, Default)]
pub enum Syncs {
    /// Syncs the file below.
    #[default]
    Honest,
    /// Nothing, and says that it did.
    Ignored,
    /// From this one on (counted from 1) fails with EIO; syncs the file below until then.
    FailFrom(u64),
}

/// Its faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub syncs: Syncs,
    /// After this many bytes were written, all in all, writes fail with this.
    pub full: Option<(u64, Errno)>,
    /// After this many bytes were written, all in all, of every write only the first half is (one byte at least).
    pub short: Option<u64>,
    /// Of what is written only the sizes of files are kept: as fast as it can be.
    pub forgets: bool,
    /// Every request takes this much longer.
    pub delay: Duration,
    /// Only while this is true; `None`: always.
    pub delayed_while: Option<&'static AtomicBool>,
}

/// The mounted filesystem.
pub struct Fuse {
    /// Where it is mounted.
    pub mount: PathBuf,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
    /// Of what it keeps in it, `None` where that was to be kept elsewhere.
    _folder: tempfile::TempDir,
}

/// What was asked of it.
#[derive(Default)]
struct Counts {
    syncs: AtomicU64,
    written: AtomicU64,
}

impl Fuse {
    /// Whether one can be mounted here; if not, why.
    pub fn can() -> Result<(), String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root to mount a FUSE filesystem".to_owned());
        }
        OpenOptions::new().read(true).write(true).open("/dev/fuse").map(drop).map_err(|e| format!("/dev/fuse: {e}"))
    }

    /// Mounts one that keeps its files in `below`.
    pub fn mount(below: &Path, faults: Faults) -> Fuse {
        let folder = tempfile::Builder::new().prefix("pgstrata-test-fuse-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mount = folder.path().join("mount");
        fs::create_dir(&mount).unwrap();
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let device = OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open("/dev/fuse").unwrap();
        // The kernel takes the number of an open file: mount(8) gets it as its standard input.
        let status = Command::new("mount")
            .args([
                "-i",
                "-t",
                "fuse",
                "-o",
                "fd=0,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
            ])
            .arg("pgstrata-test")
            .arg(&mount)
            .stdin(Stdio::from(device.try_clone().unwrap()))
            .status()
            .unwrap();
        assert!(status.success(), "mount -t fuse: {status}");
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let mut server = Server::new(device, below, faults, Arc::clone(&counts));
        let seen = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.serve(&seen)));
        Fuse { mount, stop, counts, thread, _folder: folder }
    }

    /// How often a file was to be synced.
    pub fn syncs(&self) -> u64 {
        self.counts.syncs.load(Ordering::Relaxed)
    }

    /// The daemon ends, the mount stays: whoever uses it gets ENOTCONN.
    pub fn go_away(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic is not ours: the test fails by what it sees.
            drop(thread.join());
        }
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // The connection first: with it end all requests that somebody waits for.
        self.go_away();
        let status = Command::new("umount").args(["-l", "-i"]).arg(&self.mount).status();
        if !status.is_ok_and(|status| status.success()) {
            println!("{} could not be unmounted", self.mount.display());
        }
    }
}

/// The thread's side.
struct Server {
    device: File,
    faults: Faults,
    counts: Arc<Counts>,
    /// Path below of each node that the kernel knows; never forgotten, the tests are short.
    nodes: HashMap<u64, PathBuf>,
    files: HashMap<u64, (u64, File)>,
    lists: HashMap<u64, Vec<(OsString, u32)>>,
    next: u64,
}

/// The answer to a request, none for those that want none.
type Served = Result<Option<Answer>, Errno>;

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn done() -> Served {
    Ok(Some(Answer::default()))
}

impl Server {
    fn new(device: File, below: &Path, faults: Faults, counts: Arc<Counts>) -> Server {
        let nodes = HashMap::from([(1, below.to_owned())]);
        Server { device, faults, counts, nodes, files: HashMap::new(), lists: HashMap::new(), next: 2 }
    }

    fn serve(&mut self, stop: &AtomicBool) {
        let mut buffer = vec![0; wire::MAX_WRITE as usize + 4096];
        let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        while !stop.load(Ordering::Relaxed) {
            match (&self.device).read(&mut buffer) {
                Ok(len) => self.answer(&buffer[..len]),
                Err(error) if errno(&error) == Errno::AGAIN => {
                    let mut wait = [PollFd::new(&self.device, PollFlags::IN)];
                    // Whatever comes of it shows in the next read.
                    poll(&mut wait, Some(&patience)).ok();
                }
                Err(error) if errno(&error) == Errno::NODEV => return,
                // A request was taken back by the kernel meanwhile.
                Err(_) => {}
            }
        }
    }

    fn answer(&mut self, bytes: &[u8]) {
        let mut request = Request::read(bytes);
        if self.faults.delayed_while.is_none_or(|delayed| delayed.load(Ordering::Relaxed)) {
            std::thread::sleep(self.faults.delay);
        }
        let message = match self.request(&mut request) {
            Ok(None) => return,
            Ok(Some(answer)) => answer.message(request.unique),
            Err(error) => wire::refusal(request.unique, error.raw_os_error()),
        };
        // ENOENT: nobody waits for it any more.
        drop((&self.device).write(&message));
    }

    fn request(&mut self, request: &mut Request) -> Served {
        match request.op {
            op::FORGET | op::BATCH_FORGET | op::INTERRUPT => Ok(None),
            op::INIT => Ok(Some(Answer::hello())),
            op::LOOKUP => {
                let path = self.path(request.node)?.join(request.body.name());
                self.entry(path)
            }
            op::GETATTR => self.attributes(request.node),
            op::SETATTR => self.set_attributes(request),
            op::MKDIR => self.make_folder(request),
            op::CREATE => self.create(request),
            op::UNLINK => {
                let path = self.path(request.node)?.join(request.body.name());
                fs::remove_file(path).map_err(|e| errno(&e)).and(done())
            }
            op::RMDIR => {
                let path = self.path(request.node)?.join(request.body.name());
                fs::remove_dir(path).map_err(|e| errno(&e)).and(done())
            }
            op::RENAME => self.rename(request),
            op::OPEN => self.open(request.node),
            op::READ => self.read(request),
            op::WRITE => self.write(request),
            op::FSYNC => self.sync(request),
            op::FLUSH | op::FSYNCDIR => done(),
            op::FALLOCATE => self.allocate(request),
            op::RELEASE => {
                self.files.remove(&request.body.u64());
                done()
            }
            op::STATFS => Ok(Some(Answer::space(&rustix::fs::statvfs(&self.path(1)?)?))),
            op::OPENDIR => self.open_folder(request.node),
            op::READDIR => self.list(request),
            op::RELEASEDIR => {
                self.lists.remove(&request.body.u64());
                done()
            }
            _ => Err(Errno::NOSYS),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn path(&self, node: u64) -> Result<PathBuf, Errno> {
        self.nodes.get(&node).cloned().ok_or(Errno::STALE)
    }

    fn node(&mut self, path: PathBuf) -> u64 {
        if let Some((node, _)) = self.nodes.iter().find(|(_, known)| **known == path) {
            return *node;
        }
        let node = self.number();
        self.nodes.insert(node, path);
        node
    }

    fn entry(&mut self, path: PathBuf) -> Served {
        let meta = fs::symlink_metadata(&path).map_err(|e| errno(&e))?;
        Ok(Some(Answer::entry(self.node(path), &meta)))
    }

    /// Of the file, or of one that was unlinked and is still open.
    fn metadata(&self, node: u64) -> Result<Metadata, Errno> {
        let open = self.files.values().find(|(of, _)| *of == node);
        match open {
            Some((_, file)) => file.metadata(),
            None => fs::symlink_metadata(self.path(node)?),
        }
        .map_err(|e| errno(&e))
    }

    fn attributes(&self, node: u64) -> Served {
        Ok(Some(Answer::attr(node, &self.metadata(node)?)))
    }

    fn set_attributes(&mut self, request: &mut Request) -> Served {
        let (valid, _) = (request.body.u32(), request.body.u32());
        let (_handle, size) = (request.body.u64(), request.body.u64());
        let _owner_times = request.body.take(44);
        let (mode, _) = (request.body.u32(), request.body.u32());
        let (uid, gid) = (request.body.u32(), request.body.u32());
        let path = self.path(request.node)?;
        if valid & 1 != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o7777)).map_err(|e| errno(&e))?;
        }
        if valid & 6 != 0 {
            let uid = (valid & 2 != 0).then(|| Uid::from_raw(uid));
            let gid = (valid & 4 != 0).then(|| Gid::from_raw(gid));
            rustix::fs::chownat(CWD, &path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if valid & 8 != 0 {
            OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(size)).map_err(|e| errno(&e))?;
        }
        if valid & 0x30 != 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            let now = Timestamps { last_access: now, last_modification: now };
            rustix::fs::utimensat(CWD, &path, &now, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        self.attributes(request.node)
    }

    fn give_to(&self, path: &Path, request: &Request) -> Result<(), Errno> {
        let (uid, gid) = (Uid::from_raw(request.uid), Gid::from_raw(request.gid));
        rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn make_folder(&mut self, request: &mut Request) -> Served {
        let (mode, umask) = (request.body.u32(), request.body.u32());
        let path = self.path(request.node)?.join(request.body.name());
        fs::create_dir(&path).map_err(|e| errno(&e))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode & !umask & 0o7777)).map_err(|e| errno(&e))?;
        self.give_to(&path, request)?;
        self.entry(path)
    }

    fn create(&mut self, request: &mut Request) -> Served {
        let (_flags, mode) = (request.body.u32(), request.body.u32());
        let (umask, _) = (request.body.u32(), request.body.u32());
        let path = self.path(request.node)?.join(request.body.name());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(mode & !umask & 0o7777);
        let file = options.open(&path).map_err(|e| errno(&e))?;
        self.give_to(&path, request)?;
        let meta = file.metadata().map_err(|e| errno(&e))?;
        let (node, handle) = (self.node(path), self.number());
        self.files.insert(handle, (node, file));
        Ok(Some(Answer::entry(node, &meta).opened(handle)))
    }

    fn open(&mut self, node: u64) -> Served {
        let file = OpenOptions::new().read(true).write(true).open(self.path(node)?).map_err(|e| errno(&e))?;
        let handle = self.number();
        self.files.insert(handle, (node, file));
        Ok(Some(Answer::default().opened(handle)))
    }

    fn rename(&mut self, request: &mut Request) -> Served {
        let folder = self.path(request.body.u64())?;
        let from = self.path(request.node)?.join(request.body.name());
        let to = folder.join(request.body.name());
        fs::rename(&from, &to).map_err(|e| errno(&e))?;
        self.nodes.retain(|_, path| *path != to);
        for path in self.nodes.values_mut().filter(|path| path.starts_with(&from)) {
            let rest = path.strip_prefix(&from).unwrap().to_owned();
            *path = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
        }
        done()
    }

    fn file(&self, handle: u64) -> Result<&File, Errno> {
        self.files.get(&handle).map(|(_, file)| file).ok_or(Errno::BADF)
    }

    fn read(&self, request: &mut Request) -> Served {
        let (handle, offset, size) = (request.body.u64(), request.body.u64(), request.body.u32());
        let mut bytes = vec![0; size as usize];
        let len = self.file(handle)?.read_at(&mut bytes, offset).map_err(|e| errno(&e))?;
        Ok(Some(Answer::default().bytes(&bytes[..len])))
    }

    fn write(&self, request: &mut Request) -> Served {
        let (handle, offset, size) = (request.body.u64(), request.body.u64(), request.body.u32());
        let _flags_and_owner = request.body.take(20);
        let mut bytes = request.body.take(size as usize);
        let written = self.counts.written.fetch_add(u64::from(size), Ordering::Relaxed);
        if let Some((_, error)) = self.faults.full.filter(|(limit, _)| written + u64::from(size) > *limit) {
            return Err(error);
        }
        if self.faults.short.is_some_and(|limit| written >= limit) {
            bytes = &bytes[..bytes.len().div_ceil(2)];
        }
        let last = bytes.len().saturating_sub(1);
        let kept = if self.faults.forgets { (last, offset + last as u64) } else { (0, offset) };
        self.file(handle)?.write_all_at(&bytes[kept.0..], kept.1).map_err(|e| errno(&e))?;
        Ok(Some(Answer::written(bytes.len())))
    }

    fn sync(&self, request: &mut Request) -> Served {
        let (handle, flags) = (request.body.u64(), request.body.u32());
        let count = self.counts.syncs.fetch_add(1, Ordering::Relaxed) + 1;
        match self.faults.syncs {
            Syncs::Ignored => return done(),
            Syncs::FailFrom(first) if count >= first => return Err(Errno::IO),
            Syncs::FailFrom(_) | Syncs::Honest => {}
        }
        let file = self.file(handle)?;
        let result = if flags & 1 != 0 { file.sync_data() } else { file.sync_all() };
        result.map_err(|e| errno(&e)).and(done())
    }

    fn allocate(&self, request: &mut Request) -> Served {
        let (handle, offset) = (request.body.u64(), request.body.u64());
        let (length, mode) = (request.body.u64(), request.body.u32());
        let flags = FallocateFlags::from_bits_retain(mode);
        rustix::fs::fallocate(self.file(handle)?, flags, offset, length)?;
        done()
    }

    fn open_folder(&mut self, node: u64) -> Served {
        let list = fs::read_dir(self.path(node)?).map_err(|e| errno(&e))?;
        // DT_DIR and DT_REG.
        let kind = |entry: &fs::DirEntry| if entry.file_type().is_ok_and(|kind| kind.is_dir()) { 4 } else { 8 };
        let names = list.filter_map(Result::ok).map(|entry| (entry.file_name(), kind(&entry)));
        let mut all = vec![(OsString::from("."), 4), (OsString::from(".."), 4)];
        all.extend(names);
        let handle = self.number();
        self.lists.insert(handle, all);
        Ok(Some(Answer::default().opened(handle)))
    }

    fn list(&self, request: &mut Request) -> Served {
        let (handle, offset, size) = (request.body.u64(), request.body.u64(), request.body.u32());
        let names = self.lists.get(&handle).ok_or(Errno::BADF)?;
        let mut answer = Answer::default();
        for (number, (name, kind)) in (1..).zip(names).skip(usize::try_from(offset).unwrap()) {
            match answer.name(number, *kind, name, size as usize) {
                Ok(longer) => answer = longer,
                Err(full) => return Ok(Some(full)),
            }
        }
        Ok(Some(answer))
    }
}
