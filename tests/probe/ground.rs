//! Ground to probe: filesystems on loop images and in memory, gone when the test ends, also by a panic.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the machine's disk is: cargo's folder for files of tests. Images there have a device below them.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

/// Numbers of filesystems that live in memory (linux/magic.h): tmpfs, ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6_u32 as i64];

/// Says by name what was skipped and why; `make test` repeats it at its end.
pub fn skipped(test: &str, why: &str) {
    println!("skipped: {test}: {why}");
}

/// Whether the test may mount filesystems; prints why not.
pub fn can_mount(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped(test, "needs root to mount filesystems");
    }
    root
}

/// Whether the test may make images of these filesystems on the machine's disk; prints why not.
pub fn can_make(test: &str, kinds: &[&str]) -> bool {
    if !can_mount(test) || !on_disk(test) {
        return false;
    }
    for kind in kinds {
        if !has_program(&format!("mkfs.{kind}")) {
            skipped(test, &format!("needs the program mkfs.{kind}"));
            return false;
        }
    }
    true
}

fn on_disk(test: &str) -> bool {
    let memory = IN_MEMORY.contains(&rustix::fs::statfs(DISK).unwrap().f_type);
    if memory {
        skipped(test, &format!("needs a disk below {DISK}, which is in memory"));
    }
    !memory
}

pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).any(|folder| folder.join(name).exists())
}

/// Runs a command that must succeed.
pub fn call(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Arguments of a command, as text.
pub fn words(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("LC_ALL", "C");
    command
}

/// A folder on the machine's disk.
pub fn disk_folder() -> TempDir {
    open_to_all(tempfile::Builder::new().prefix("pgstrata-test-").tempdir_in(DISK).unwrap())
}

/// A folder that every user can walk through.
pub fn folder() -> TempDir {
    open_to_all(tempfile::Builder::new().prefix("pgstrata-test-").tempdir().unwrap())
}

fn open_to_all(folder: TempDir) -> TempDir {
    set_mode(folder.path(), 0o755);
    folder
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// An image with a filesystem in it.
pub struct Image {
    pub path: PathBuf,
    _folder: Option<TempDir>,
}

impl Image {
    /// On the machine's disk.
    pub fn on_disk(kind: &str) -> Image {
        let folder = disk_folder();
        let path = folder.path().join("image");
        Image { _folder: Some(folder), ..Image::at(path, kind) }
    }

    /// A sparse one at a path of the caller's.
    pub fn at(path: PathBuf, kind: &str) -> Image {
        // xfs wants 300 MB.
        File::create_new(&path).unwrap().set_len(512 << 20).unwrap();
        let quiet: &[&str] = match kind {
            // The inode tables at once: the kernel would write them while it is measured.
            "ext4" => &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            _ => &["-q"],
        };
        call(words(&format!("mkfs.{kind}"), quiet).arg(&path));
        Image { path, _folder: None }
    }

    /// Mounts it; the loop device goes with the mount.
    pub fn mount(&self, options: &str) -> Mount {
        let options = if options.is_empty() { "loop".to_owned() } else { format!("loop,{options}") };
        Mount::new(words("mount", &["-o", &options]).arg(&self.path))
    }
}

/// Something that is mounted.
pub struct Mount {
    path: PathBuf,
    _folder: TempDir,
}

impl Mount {
    /// By a command that lacks nothing but the place.
    pub fn new(command: &mut Command) -> Mount {
        let folder = folder();
        let path = folder.path().join("mount");
        fs::create_dir(&path).unwrap();
        call(command.arg(&path));
        Mount { path, _folder: folder }
    }

    pub fn tmpfs(size: &str) -> Mount {
        Mount::new(&mut words("mount", &["-t", "tmpfs", "-o", &format!("size={size},mode=755"), "pgstrata-test"]))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Away from the tree of names now, whoever uses it.
    pub fn detach(&self) {
        call(words("umount", &["-l"]).arg(&self.path));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // At once where nothing uses it, else when the last user is gone; fails where the test had it detached.
        let gone = |args: &[&str]| words("umount", args).arg(&self.path).output().is_ok_and(|o| o.status.success());
        if !gone(&[]) {
            gone(&["-l"]);
        }
    }
}
