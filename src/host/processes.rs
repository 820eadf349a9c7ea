//! Processes of the machine: listing them, recognising ours, and ending exactly those.
//!
//! A process is named by its pid *and* its start time: pids are reused, the pair is not. A run's processes are
//! recognised by [`RUN_VARIABLE`] in their environment; PostgreSQL overwrites that memory with its title, so servers
//! are recognised by their working folder, which is the data folder. Processes started by the plan's scripts may have
//! neither: they are found by the run's control group ([`cgroup`]), or as children of ours ([`orphans`]). Absent on
//! purpose: any search by name. Nothing here ever returns or signals this very process.

pub(crate) mod cgroup;
mod cpu_time;
pub(crate) mod orphans;

pub use cpu_time::{Named, cpu_times, named};

use super::command::RUN_VARIABLE;
use super::time::{now, sleep};
use super::{Host, linux, paths};
use crate::error::{Context, Error, Result};
use crate::parse::proc_pid_stat::{self, ProcessStat};
use crate::parse::proc_pid_status;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// USER_HZ on every architecture but Alpha (include/uapi/asm-generic/param.h).
const TICKS_PER_S: f64 = 100.0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Start time, ticks since boot.
    pub started_ticks: u64,
    /// Name in the kernel.
    pub comm: String,
    /// Effective user; `None` if it could not be read.
    pub uid: Option<u32>,
    pub kernel_thread: bool,
    /// True for a zombie: it has ended, holds no file or folder, and waits for its parent to collect it.
    pub ended: bool,
}

/// All processes, unordered. One that ends meanwhile is left out.
#[cfg(test)]
fn list(host: &Host) -> Result<Vec<Process>> {
    Ok(pids(host)?.into_iter().filter_map(|pid| read(host, pid)).collect())
}

/// Processes that carry this run's id in their environment ([`Host::for_run`]). A process whose environment we cannot
/// read (another user's, if we are not root) does not count as ours.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn of_run(host: &Host, run_id: &str) -> Result<Vec<Process>> {
    let wanted = format!("{RUN_VARIABLE}={run_id}").into_bytes();
    let mut environment = Vec::new();
    let ours = pids(host)?.into_iter().filter(|pid| {
        host.read_into(format!("/proc/{pid}/environ"), &mut environment).is_ok()
            && environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    });
    Ok(ours.filter_map(|pid| read(host, pid)).collect())
}

/// Processes that hold something at or below `folder`: their working or root folder, an open file, their program or a
/// mapped file. Only root sees what other users' processes hold.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn using_folder(host: &Host, folder: &Path) -> Result<Vec<Process>> {
    // The kernel shows resolved paths.
    let resolved = paths::resolved(folder);
    let holding = pids(host)?.into_iter().filter(|pid| {
        held_paths(host, *pid).iter().any(|target| target.starts_with(folder) || target.starts_with(&resolved))
    });
    Ok(holding.filter_map(|pid| read(host, pid)).collect())
}

/// Processes whose working folder is exactly `folder`: recognises the processes of a PostgreSQL by its data folder.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn standing_in(host: &Host, folder: &Path) -> Result<Vec<Process>> {
    let resolved = paths::resolved(folder);
    let pids = pids(host)?.into_iter();
    let there = pids.filter(|pid| link(&host.path(format!("/proc/{pid}/cwd"))).is_some_and(|cwd| cwd == resolved));
    Ok(there.filter_map(|pid| read(host, pid)).collect())
}

/// True if the process is still running: same pid, same start time, not ended.
pub fn is_alive(host: &Host, process: &Process) -> bool {
    read(host, process.pid).is_some_and(|found| found.started_ticks == process.started_ticks && !found.ended)
}

/// Sends SIGQUIT or SIGKILL to exactly this process, never to another that got its pid later: a pidfd (Linux 5.3) pins
/// the process before its start time is compared. Before Linux 5.3 the signal follows the comparison at once, which
/// leaves a gap of microseconds. `false` if the process is already gone.
///
/// # Errors
/// If we may not signal it, or for pid 1, pgstrata itself and kernel threads.
pub fn signal(host: &Host, process: &Process, signal: Signal) -> Result<bool> {
    let name = if signal == Signal::KILL { "Kill" } else { "Quit" };
    let shown = || format!("send {name} to process {} ({})", process.pid, process.comm);
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|pid| !pid.is_init() && process.pid != std::process::id() && !process.kernel_thread)
    else {
        return Err(Error::bug("it is init, pgstrata itself or a kernel thread").while_doing(shown()));
    };
    let sent = match linux::Pinned::process(pid) {
        Ok(pinned) => {
            if !is_alive(host, process) {
                return Ok(false);
            }
            pinned.signal(signal)
        }
        Err(Errno::NOSYS) if is_alive(host, process) => kill_process(pid, signal),
        Err(Errno::NOSYS) => return Ok(false),
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error).or_host(shown),
    }
}

/// Sends a signal, by number, to the process group led by a child; every child is started as a group leader. `false` if
/// all of them are gone.
///
/// # Errors
/// If there is no such signal, or we may not signal them.
pub(crate) fn signal_group(leader: u32, number: i32) -> Result<bool> {
    let signal = Signal::from_named_raw(number);
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw).filter(|pid| !pid.is_init());
    let (Some(signal), Some(group)) = (signal, group) else {
        return Err(Error::bug(format!("signal {number} to the group of process {leader}")));
    };
    match rustix::process::kill_process_group(group, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error).or_host(|| format!("send signal {number} to the group of process {leader}")),
    }
}

/// Waits at most `limit` until all have ended; returns those still running.
pub fn wait_until_gone(host: &Host, processes: &[Process], limit: Duration) -> Vec<Process> {
    let begun = now();
    let mut left = processes.to_vec();
    loop {
        left.retain(|process| is_alive(host, process));
        if left.is_empty() || begun.elapsed() >= limit {
            return left;
        }
        sleep(Duration::from_millis(5));
    }
}

/// Kills exactly these processes and waits at most `limit` until they are gone.
///
/// # Errors
/// If one may not be signalled, or does not end (it hangs in the kernel, on a device that does not answer).
pub fn kill(host: &Host, processes: &[Process], limit: Duration) -> Result<()> {
    for process in processes {
        signal(host, process, Signal::KILL)?;
    }
    let left = wait_until_gone(host, processes, limit);
    if left.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = left.iter().map(|process| command_line(host, process)).collect();
    let message = format!("killed but still running after {} s: {}", limit.as_secs_f64(), names.join(", "));
    Err(Error::host(message).hint("they hang in the kernel, usually on an unresponsive device; see dmesg"))
}

/// True if a process has a handler for a signal; unreliable while it execs another program.
pub(crate) fn catches(host: &Host, pid: u32, signal: Signal) -> bool {
    let number = u32::try_from(signal.as_raw()).unwrap_or(0);
    shown_in(host, pid, "status").is_some_and(|status| proc_pid_status::catches(&status, number))
}

/// Text of a file below `/proc/PID`; `None` if there is no process with this pid.
fn shown_in(host: &Host, pid: u32, file: &str) -> Option<String> {
    let mut text = Vec::new();
    host.read_into(format!("/proc/{pid}/{file}"), &mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn pids(host: &Host) -> Result<Vec<u32>> {
    let mut pids = pids_with_ours(host)?;
    pids.retain(|pid| *pid != std::process::id());
    Ok(pids)
}

fn pids_with_ours(host: &Host) -> Result<Vec<u32>> {
    let folder = host.path("/proc");
    let entries = std::fs::read_dir(&folder).or_host(|| format!("list {}", folder.display()))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Reads one process; `None` if there is none with this pid.
pub(crate) fn read(host: &Host, pid: u32) -> Option<Process> {
    let mut found = with_stat(host, pid, |stat| Process {
        pid,
        started_ticks: stat.started_ticks,
        comm: stat.comm.to_owned(),
        uid: None,
        kernel_thread: stat.kernel_thread,
        ended: matches!(stat.state, 'Z' | 'X'),
    })?;
    found.uid = proc_pid_status::effective_uid("status", &shown_in(host, pid, "status").unwrap_or_default()).ok();
    Some(found)
}

/// What `of` takes from `/proc/PID/stat`; `None` if there is no process with this pid.
fn with_stat<T>(host: &Host, pid: u32, of: impl FnOnce(&ProcessStat<'_>) -> T) -> Option<T> {
    proc_pid_stat::parse("/proc/PID/stat", &shown_in(host, pid, "stat")?).ok().map(|stat| of(&stat))
}

/// How long this process has been running, microseconds, to a hundredth of a second.
pub fn own_age_us(host: &Host) -> Option<u64> {
    let uptime: f64 = host.read_optional("/proc/uptime")?.split(' ').next()?.parse().ok()?;
    let began = read(host, std::process::id())?.started_ticks as f64 / TICKS_PER_S;
    Some(((uptime - began).max(0.0) * 1e6) as u64)
}

/// Parent of a process, and true if it has ended.
fn stat_of(host: &Host, pid: u32) -> Option<(u32, bool)> {
    with_stat(host, pid, |stat| (stat.parent, matches!(stat.state, 'Z' | 'X')))
}

/// Describes a process: `process 4711 (sleep 60)`, with the kernel's name if it has no command line.
fn command_line(host: &Host, process: &Process) -> String {
    let line = shown_in(host, process.pid, "cmdline").unwrap_or_default();
    let words = line.trim_end_matches('\0').replace('\0', " ");
    let shown = if words.is_empty() { &process.comm } else { &words };
    format!("process {} ({shown})", process.pid)
}

/// Targets of the links of a process: working folder, root, program, open and mapped files.
fn held_paths(host: &Host, pid: u32) -> Vec<PathBuf> {
    let process = host.path(format!("/proc/{pid}"));
    // Every process has a root; only one other than the machine's holds a folder.
    let root = link(&process.join("root")).filter(|root| root != Path::new("/"));
    let mut paths: Vec<PathBuf> = ["cwd", "exe"].iter().filter_map(|name| link(&process.join(name))).collect();
    paths.extend(root);
    for folder in ["fd", "map_files"] {
        let Ok(entries) = std::fs::read_dir(process.join(folder)) else { continue };
        paths.extend(entries.filter_map(|entry| link(&entry.ok()?.path())));
    }
    paths
}

/// Target of a link in `/proc`, without the kernel's mark for a deleted file.
fn link(path: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(path).ok()?;
    let plain = target.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Some(plain.unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::command::Command;
    use std::os::unix::fs::symlink;
    use std::process::{Child, Stdio};

    /// A fake machine: `(pid, comm, cwd, environ, open file)`.
    fn machine(processes: &[(u32, &str, &str, &str, &str)]) -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        for (pid, comm, cwd, environ, open) in processes {
            let folder = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(folder.join("fd")).unwrap();
            let stat = format!("{pid} ({comm}) S 1 1 1 0 -1 64 0 0 0 0 5 6 0 0 20 0 1 0 77{pid} 0 0\n");
            std::fs::write(folder.join("stat"), stat).unwrap();
            std::fs::write(folder.join("status"), "Name:\tx\nUid:\t5\t101\t5\t5\n").unwrap();
            std::fs::write(folder.join("environ"), environ).unwrap();
            symlink(cwd, folder.join("cwd")).unwrap();
            symlink(open, folder.join("fd/3")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("proc/sys")).unwrap();
        let host = Host::rooted(root.path());
        (root, host)
    }

    fn pids_of(processes: &[Process]) -> Vec<u32> {
        let mut pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    /// Kills a process started by a test, whatever happens to the test.
    struct Started(Child);
    impl Drop for Started {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    fn sleeper(host: &Host, folder: &Path) -> (Started, Process) {
        let command = Command::new("sleep").arg("600").cwd(folder);
        let child = Started(host.spawn(&command, Stdio::null(), Stdio::null()).unwrap());
        let process = read(host, child.0.id()).unwrap();
        (child, process)
    }

    #[test]
    fn every_process_is_listed_with_name_start_and_user() {
        let (_root, host) = machine(&[(10, "postgres", "/d", "", "/x"), (11, "a b) c", "/", "", "/x")]);
        let mut found = list(&host).unwrap();
        found.sort_by_key(|process| process.pid);
        assert_eq!(pids_of(&found), [10, 11]);
        assert_eq!((found[0].comm.as_str(), found[0].started_ticks, found[0].uid), ("postgres", 7710, Some(101)));
        assert_eq!(found[1].comm, "a b) c");
        assert!(!found[0].kernel_thread && !found[0].ended);
    }

    #[test]
    fn a_run_is_identified_by_its_exact_environment_variable() {
        let (_root, host) = machine(&[
            (10, "pgbench", "/", "HOME=/\0PGSTRATA_RUN=0badcafe\0", "/x"),
            (11, "pgbench", "/", "PGSTRATA_RUN=0badcafe1\0", "/x"),
            (12, "pgbench", "/", "X=PGSTRATA_RUN=0badcafe\0", "/x"),
        ]);
        assert_eq!(pids_of(&of_run(&host, "0badcafe").unwrap()), [10]);
        assert!(of_run(&host, "").unwrap().is_empty());
    }

    #[test]
    fn users_of_a_folder_are_told_by_path_components() {
        let (_root, host) = machine(&[
            (10, "postgres", "/mnt/pgstrata-a/data", "", "/x"),
            (11, "tail", "/", "", "/mnt/pgstrata-a/log"),
            (12, "tail", "/mnt/pgstrata-ab", "", "/x"),
            (13, "sh", "/mnt/pgstrata-a (deleted)", "", "/x"),
        ]);
        assert_eq!(pids_of(&using_folder(&host, Path::new("/mnt/pgstrata-a")).unwrap()), [10, 11, 13]);
        assert_eq!(pids_of(&standing_in(&host, Path::new("/mnt/pgstrata-a/data")).unwrap()), [10]);
    }

    #[test]
    fn a_machine_without_proc_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let text = list(&Host::rooted(root.path())).unwrap_err().to_string();
        assert!(text.contains("list") && text.contains("proc"), "{text}");
    }

    #[test]
    fn only_the_children_of_a_run_are_found_and_killed() {
        let folder = tempfile::tempdir().unwrap();
        let id = crate::host::files::random_id().unwrap();
        let (_ours, ours) = sleeper(&Host::this().for_run(&id), folder.path());
        let (_other, other) = sleeper(&Host::this().for_run("another"), Path::new("/"));
        let host = Host::this();
        let found = of_run(&host, &id).unwrap();
        assert_eq!(pids_of(&found), [ours.pid]);
        assert_eq!(pids_of(&using_folder(&host, folder.path()).unwrap()), [ours.pid]);
        assert_eq!(pids_of(&standing_in(&host, folder.path()).unwrap()), [ours.pid]);
        kill(&host, &found, Duration::from_secs(10)).unwrap();
        assert!(!is_alive(&host, &ours), "an ended child counts as gone before its parent collects it");
        assert!(is_alive(&host, &other));
    }

    #[test]
    fn a_process_that_got_the_pid_later_is_not_touched() {
        let host = Host::this();
        let (_child, real) = sleeper(&host, Path::new("/"));
        let former = Process { started_ticks: real.started_ticks - 1, ..real.clone() };
        assert!(!signal(&host, &former, Signal::KILL).unwrap());
        assert!(wait_until_gone(&host, std::slice::from_ref(&former), Duration::ZERO).is_empty());
        let left = wait_until_gone(&host, std::slice::from_ref(&real), Duration::ZERO);
        assert_eq!(left, std::slice::from_ref(&real));
        assert!(signal(&host, &real, Signal::KILL).unwrap());
        assert!(wait_until_gone(&host, std::slice::from_ref(&real), Duration::from_secs(10)).is_empty());
        assert!(!signal(&host, &real, Signal::KILL).unwrap(), "it is gone");
    }

    #[test]
    fn init_and_pgstrata_itself_are_never_signalled() {
        let host = Host::this();
        let init = read(&host, 1).unwrap();
        assert!(signal(&host, &init, Signal::QUIT).is_err());
        let ourselves = read(&host, std::process::id()).unwrap();
        assert!(signal(&host, &ourselves, Signal::QUIT).is_err());
        assert!(!list(&host).unwrap().contains(&ourselves));
    }
}
