//! The only access to the machine: commands, kernel files, clock, signals, users.
//!
//! No other room spawns a process, asks the time or touches files, except `store` in its run folders, `cli` in paths
//! the user named, and `probe` where it measures. Each command is logged with its arguments, exit code and duration. A
//! [`Host`] can be rooted in a folder, so that tests write small fake trees.
//!
//! Modules with Linux system calls have a counterpart in `elsewhere`, with the same names, which fails on other
//! systems; add a new call to both (`docs/adr/0033-linux-behind-a-wall-in-host.md`). It names `record::facts` because
//! facts of the machine are stored as it reads them.

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "stand-ins never answer what Linux answers"))]
mod answers;
pub(crate) mod appended;
pub mod command;
pub(crate) mod connections;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
pub(crate) mod extents;
pub mod files;
pub(crate) mod folders;
pub(crate) mod followed;
#[cfg(target_os = "linux")]
pub(crate) mod handles;
pub(crate) mod lines;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "linux")]
pub(crate) mod loops;
pub mod machine;
pub(crate) mod mapped;
#[cfg(target_os = "linux")]
pub(crate) mod mount_options;
#[cfg(target_os = "linux")]
pub(crate) mod mounts;
#[cfg(target_os = "linux")]
pub(crate) mod nbd;
pub(crate) mod noise;
pub(crate) mod paths;
pub(crate) mod processes;
pub(crate) mod reflinks;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
pub mod signals;
pub(crate) mod syncs;
pub mod terminal;
pub(crate) mod threads;
pub mod ticks;
pub mod time;
pub mod users;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{extents, handles, linux, loops, mount_options, mounts, nbd, ring};

use crate::error::Result;
use command::CommandLog;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The machine, or a fake one below a folder. Cheap to clone; clones share the command log.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    log: Arc<Mutex<Vec<CommandLog>>>,
    run: Option<Arc<str>>,
    group: Option<processes::cgroup::Cgroup>,
    interrupt: Option<signals::Interrupt>,
    most_memory: Option<u64>,
}

impl Host {
    pub fn this() -> Host {
        Host::rooted("/")
    }

    /// A machine whose `/proc`, `/sys`, `/etc` lie below `root`. Commands still run on the real one.
    pub(crate) fn rooted(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into(), log: Arc::default(), run: None, group: None, interrupt: None, most_memory: None }
    }

    /// The same machine; every command started through it carries the run's id in the variable
    /// [`command::RUN_VARIABLE`], so that [`processes::of_run`] finds it whatever happens to pgstrata.
    pub(crate) fn for_run(&self, run_id: &str) -> Host {
        Host { run: Some(run_id.into()), ..self.clone() }
    }

    /// The same machine; every command is started in the control group at `group`, which is created. Without a group,
    /// this process adopts whatever the commands leave behind.
    pub(crate) fn keeping_together(&self, group: Option<&Path>) -> Host {
        let group = group.and_then(processes::cgroup::make);
        if group.is_none() {
            // If the kernel refuses that as well, processes are found by their environment alone.
            processes::orphans::adopt();
        }
        Host { group, ..self.clone() }
    }

    /// The same machine; an interrupt ends a command that is run to completion, and no other is started after it.
    pub(crate) fn heeding(&self, interrupt: &signals::Interrupt) -> Host {
        Host { interrupt: Some(interrupt.clone()), ..self.clone() }
    }

    /// The same machine for work that must be done even after an interrupt: tear-down.
    pub(crate) fn heeding_none(&self) -> Host {
        Host { interrupt: None, ..self.clone() }
    }

    /// The same machine; every process of a command is limited to this much private memory.
    pub(crate) fn limiting_memory(&self, bytes: u64) -> Host {
        Host { most_memory: Some(bytes), ..self.clone() }
    }

    /// Real path of the machine's absolute `path`.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Text of a file of the machine (`/proc/mounts`).
    ///
    /// # Errors
    /// An error that names the path, if it cannot be read or is not UTF-8.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        files::read_text(&self.path(path))
    }

    /// Reads a file of the machine into `buffer`, replacing its content: for files that are read often, like
    /// `/proc/PID/stat`, or may hold any bytes, like `/proc/PID/environ`.
    ///
    /// # Errors
    /// The kernel's error, unwrapped: processes end at any moment, and the caller must distinguish `ENOENT` and
    /// `ESRCH`.
    pub(crate) fn read_into(&self, path: impl AsRef<Path>, buffer: &mut Vec<u8>) -> std::io::Result<()> {
        use std::io::Read;
        buffer.clear();
        std::fs::File::open(self.path(path))?.read_to_end(buffer).map(drop)
    }

    /// Trimmed text of a file that may be absent, like many in sysfs.
    pub(crate) fn read_optional(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    /// Writes a value to a kernel file in one call; the file must exist.
    ///
    /// # Errors
    /// An error that names the path, if it does not exist or the kernel refuses the value.
    pub(crate) fn write(&self, path: impl AsRef<Path>, value: &str) -> Result<()> {
        use crate::error::{Context, Error};
        use std::io::Write;
        let path = self.path(path);
        let mut file = files::open_to_overwrite(&path)?
            .ok_or_else(|| Error::host(format!("{} does not exist", path.display())))?;
        file.write_all(value.as_bytes()).or_host(|| format!("write `{value}` to {}", path.display()))
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Target of a symbolic link of the machine (`/proc/PID/exe`).
    pub(crate) fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        std::fs::read_link(self.path(path)).ok()
    }

    /// Sorted names in a folder of the machine; none if it cannot be read.
    pub(crate) fn names_in(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Commands run since the log was taken, oldest first.
    pub(crate) fn command_log(&self) -> Vec<CommandLog> {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    /// Takes the log of commands run since the last call, oldest first.
    pub(crate) fn take_command_log(&self) -> Vec<CommandLog> {
        self.log.lock().map(|mut log| std::mem::take(&mut *log)).unwrap_or_default()
    }
}
