//! Undoes an orphaned server after a crash of pgstrata, from the ledger alone.
//!
//! A server is identified by the working folder of its processes, its data folder: PostgreSQL changes there before
//! anything else. Shared memory left by a killed postmaster is removed too, but only what is known to be its own. Not
//! here: the data folder and the socket's folder, which their creators remove.

use crate::error::{Context, Error, Result};
use crate::host::command::Command;
use crate::host::processes::{self, Process};
use crate::host::time::{now, sleep};
use crate::host::users::User;
use crate::host::{Host, files, folders, paths};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An immediate shutdown writes nothing and takes milliseconds; the postmaster kills its own laggards after 5 s.
const QUIT_LIMIT: Duration = Duration::from_secs(8);

/// A process that survives SIGKILL this long hangs in the kernel, in I/O on a dead device.
const KILL_LIMIT: Duration = Duration::from_secs(30);

/// File in the socket's folder that lists the server's shared memory.
const NOTE: &str = "shared-memory.json";

/// Location of POSIX shared memory on Linux (shm_overview(7)).
const SHM_FOLDER: &str = "/dev/shm";

/// Shared memory of a running server, which survives if the server is killed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SharedMemory {
    /// Process id of the postmaster, which created the System V segment.
    postmaster: u32,
    /// Key of the System V segment that guards the data folder.
    sysv_key: Option<i64>,
    /// POSIX segment that lists all others (`dsm_control` in PostgreSQL): `/dev/shm/PostgreSQL.613940324`.
    control: Option<PathBuf>,
}

/// Records the shared memory of a server, for [`undo_server`] after a crash.
pub(super) fn note(host: &Host, postmaster: u32, socket_folder: &Path, user: &User) -> Result<()> {
    let text = serde_json::to_vec(&held_by(host, postmaster)).or_host(|| "write a note".to_owned())?;
    files::write_for(&socket_folder.join(NOTE), &text, 0o600, user)
}

/// Ends every `postgres` whose working folder is `data`, first by immediate shutdown, then by force, and removes the
/// shared memory they leave. Does nothing if there is none.
///
/// # Errors
/// When processes remain.
pub fn undo_server(host: &Host, data: &Path, socket_folder: &Path) -> Result<()> {
    let data = paths::resolved(data);
    let memory = memory_of(host, &data, socket_folder);
    let mut left = processes_in(host, &data);
    for (signal, limit) in [(Signal::QUIT, QUIT_LIMIT), (Signal::KILL, KILL_LIMIT)] {
        let begun = now();
        while !left.is_empty() && begun.elapsed() <= limit {
            for process in &left {
                // It may have ended since it was listed; its folder was checked a moment ago.
                processes::signal(host, process, signal).ok();
            }
            sleep(Duration::from_millis(50));
            left = processes_in(host, &data);
        }
    }
    if left.is_empty() {
        return memory.iter().try_for_each(|memory| remove(host, memory, socket_folder));
    }
    let left: Vec<u32> = left.iter().map(|process| process.pid).collect();
    Err(Error::host(format!("the processes {left:?} of the server in {} cannot be killed", data.display()))
        .hint("they hang in the kernel; check dmesg for device errors"))
}

/// Kills every `postgres` whose working folder is `data`, including those started meanwhile, and waits until they are
/// gone.
pub(super) fn kill_all(host: &Host, data: &Path) -> Result<()> {
    let data = paths::resolved(data);
    let begun = now();
    while begun.elapsed() < KILL_LIMIT {
        let left = processes_in(host, &data);
        if left.is_empty() {
            return Ok(());
        }
        processes::kill(host, &left, KILL_LIMIT)?;
    }
    Err(Error::host(format!("new processes of the server in {} keep coming", data.display())))
}

/// The server's processes: their program is a `postgres`, and their working folder is `data`, or was before it was
/// deleted. Other processes there (a shell) are left alone, and the unmount reports the folder as busy.
fn processes_in(host: &Host, data: &Path) -> Vec<Process> {
    let mut standing = processes::standing_in(host, data).unwrap_or_default();
    standing.retain(|process| is_postgres(host, process));
    standing
}

/// True if a process runs `postgres`, even if its program was deleted. An exiting process has released its program but
/// not yet its shared memory: then its name decides.
fn is_postgres(host: &Host, process: &Process) -> bool {
    match host.link(format!("/proc/{}/exe", process.pid)) {
        Some(program) => {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            name == "postgres" || name == "postgres (deleted)"
        }
        None => process.comm == "postgres",
    }
}

/// Shared memory from the note and from a postmaster that still runs, or its pid file; either may be missing.
fn memory_of(host: &Host, data: &Path, socket_folder: &Path) -> Vec<SharedMemory> {
    let noted = files::read(&socket_folder.join(NOTE)).ok();
    let noted = noted.and_then(|text| serde_json::from_slice::<SharedMemory>(&text).ok());
    let pid_file = files::read_text(&data.join("postmaster.pid")).ok();
    let shown = pid_file.and_then(|text| {
        let postmaster: u32 = text.lines().next()?.trim().parse().ok()?;
        // Another server may have reused the number since.
        let lives = processes_in(host, data).iter().any(|process| process.pid == postmaster);
        let control = if lives { held_by(host, postmaster).control } else { None };
        Some(SharedMemory { postmaster, sysv_key: key_in_pid_file(&text), control })
    });
    noted.into_iter().chain(shown).collect()
}

/// Line 7 of postmaster.pid: key and id of the System V segment (`miscadmin.h`, LOCK_FILE_LINE_SHMEM_KEY).
fn key_in_pid_file(text: &str) -> Option<i64> {
    text.lines().nth(6)?.split_whitespace().next()?.parse().ok()
}

/// Segments mapped by a running postmaster: `/SYSV009ac126 (deleted)`, `/dev/shm/PostgreSQL.613940324`.
fn held_by(host: &Host, postmaster: u32) -> SharedMemory {
    let maps = host.read(format!("/proc/{postmaster}/maps")).unwrap_or_default();
    let mut memory = SharedMemory { postmaster, ..SharedMemory::default() };
    for path in maps.lines().filter_map(|line| line.split_whitespace().nth(5)) {
        if let Some(key) = path.strip_prefix("/SYSV") {
            memory.sysv_key = i64::from_str_radix(key, 16).ok();
        } else if segment_number(Path::new(path)).is_some() {
            memory.control = Some(PathBuf::from(path));
        }
    }
    memory
}

/// The number in `/dev/shm/PostgreSQL.613940324`; `None` for any other path.
fn segment_number(path: &Path) -> Option<u32> {
    path.strip_prefix(SHM_FOLDER).ok()?.to_str()?.strip_prefix("PostgreSQL.")?.parse().ok()
}

fn remove(host: &Host, memory: &SharedMemory, socket_folder: &Path) -> Result<()> {
    if let Some(id) = memory.sysv_key.and_then(|key| orphaned_sysv(host, key, memory.postmaster)) {
        host.run(&Command::new("ipcrm").args(["-m", &id.to_string()]))?;
    }
    let Some(control) = memory.control.as_deref().filter(|path| segment_number(path).is_some()) else { return Ok(()) };
    let owner = |path: &Path| paths::look_at(path).map(|facts| facts.uid).ok();
    // The note is in a folder of the server's user, who must not be able to make us remove other people's segments.
    let (Some(ours), Ok(listed)) = (owner(socket_folder), files::read(control)) else { return Ok(()) };
    let numbers: BTreeSet<u32> = listed.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    for path in folders::list(Path::new(SHM_FOLDER)).unwrap_or_default() {
        let is_listed = segment_number(&path).is_some_and(|number| numbers.contains(&number));
        if (is_listed || path == control) && owner(&path) == Some(ours) {
            files::remove(&path)?;
        }
    }
    Ok(())
}

/// Id of the System V segment with this key that this postmaster created and nobody uses (`/proc/sysvipc/shm`: key,
/// shmid, perms, size, cpid, lpid, nattch, ...).
fn orphaned_sysv(host: &Host, key: i64, postmaster: u32) -> Option<i64> {
    let table = host.read("/proc/sysvipc/shm").ok()?;
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<i64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let ours = *fields.first()? == key && *fields.get(4)? == i64::from(postmaster) && *fields.get(6)? == 0;
        ours.then(|| fields.get(1).copied())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::server_in;

    #[test]
    fn undo_after_a_kill_leaves_no_process_or_shared_memory() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = server_in(&host, folder.path()) else { return };
        let spec = server.spec.clone();
        // A backend attached to dynamic segments of its own.
        let mut client = server.connect("postgres").unwrap();
        client.query("set statement_timeout = 0; create table t as select generate_series(1, 1000) as x").unwrap();
        let memory = held_by(&host, server.pid().unwrap());
        assert!(memory.sysv_key.is_some() && memory.control.is_some(), "{memory:?}");
        for process in processes_in(&host, &spec.data) {
            processes::signal(&host, &process, Signal::KILL).unwrap();
        }
        std::mem::forget(server);
        undo_server(&host, &spec.data, &spec.socket_folder).unwrap();
        assert!(processes_in(&host, &spec.data).is_empty());
        assert!(!memory.control.as_ref().unwrap().exists());
        let table = host.read("/proc/sysvipc/shm").unwrap();
        let key = memory.sysv_key.unwrap().to_string();
        assert!(!table.lines().any(|line| line.split_whitespace().next() == Some(&key)), "{table}");
        undo_server(&host, &spec.data, &spec.socket_folder).unwrap();
    }

    #[test]
    fn a_running_server_is_ended_although_its_folder_is_gone() {
        let host = Host::this();
        let folder = tempfile::tempdir().unwrap();
        let Some(server) = server_in(&host, folder.path()) else { return };
        let spec = server.spec.clone();
        std::fs::remove_dir_all(&spec.data).unwrap();
        assert!(!processes_in(&host, &spec.data).is_empty());
        undo_server(&host, &spec.data, &spec.socket_folder).unwrap();
        assert!(processes_in(&host, &spec.data).is_empty());
        drop(server);
    }

    #[test]
    fn only_postgresql_segments_in_dev_shm_are_recognised_as_such() {
        assert_eq!(segment_number(Path::new("/dev/shm/PostgreSQL.613940324")), Some(613_940_324));
        assert_eq!(segment_number(Path::new("/dev/shm/../etc/passwd")), None);
        assert_eq!(segment_number(Path::new("/dev/shm/PostgreSQL.x")), None);
        assert_eq!(segment_number(Path::new("/tmp/PostgreSQL.1")), None);
    }

    #[test]
    fn the_key_stands_on_line_seven_of_the_pid_file() {
        let text = "19451\n/d\n1795229731\n5432\n/s\n\n 10141990         4\nready   \n";
        assert_eq!(key_in_pid_file(text), Some(10_141_990));
        assert_eq!(key_in_pid_file("1\n"), None);
    }

    #[test]
    fn segments_in_use_or_of_another_postmaster_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/sysvipc")).unwrap();
        let row = |nattch: u32| format!("key shmid perms size cpid lpid nattch\n 77 4 600 56 1000 1001 {nattch}\n");
        let host = Host::rooted(folder.path());
        let table = folder.path().join("proc/sysvipc/shm");
        std::fs::write(&table, row(0)).unwrap();
        assert_eq!(orphaned_sysv(&host, 77, 1000), Some(4));
        assert_eq!(orphaned_sysv(&host, 77, 999), None);
        std::fs::write(&table, row(1)).unwrap();
        assert_eq!(orphaned_sysv(&host, 77, 1000), None);
    }
}
