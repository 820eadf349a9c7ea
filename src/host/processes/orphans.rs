//! Orphaned processes, where there is no control group: this process becomes the parent of all its descendants
//! (PR_SET_CHILD_SUBREAPER), so it can find and end them.

use super::{Process, pids, read, stat_of};
use crate::error::Result;
use crate::host::time::sleep;
use crate::host::{Host, linux, threads};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// How often orphans that have ended are reaped: a script may leave a thousand a second.
const COLLECT_EVERY: Duration = Duration::from_secs(5);

/// Processes that this one started itself: their exit codes belong to the caller that started them.
static STARTED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Pids and starts of the descendants that it had before: of the shell that became this program.
static BEFORE: OnceLock<Vec<(u32, u64)>> = OnceLock::new();

/// Becomes the parent of orphans for the lifetime of this process. False if the kernel refuses.
pub(in crate::host) fn adopt() -> bool {
    if linux::adopt_orphans().is_err() {
        return false;
    }
    let host = &Host::this();
    let there = below(host).unwrap_or_default().into_iter().filter_map(|pid| read(host, pid));
    BEFORE.get_or_init(|| there.map(|process| (process.pid, process.started_ticks)).collect());
    if !ADOPTS.swap(true, Ordering::SeqCst) {
        // Without the thread, they are reaped at the end of each trial.
        drop(threads::begin_apart("orphans", || {
            loop {
                sleep(COLLECT_EVERY);
                collect(&Host::this());
            }
        }));
    }
    true
}

/// Locked while a process is being started: until it is recorded, it must not be taken for an orphan.
pub(in crate::host) fn starting() -> MutexGuard<'static, BTreeSet<u32>> {
    threads::locked(&STARTED)
}

fn was_before(host: &Host, pid: u32) -> bool {
    let known = BEFORE.get().into_iter().flatten().find(|(known, _)| *known == pid);
    known.is_some_and(|(_, ticks)| read(host, pid).is_some_and(|found| found.started_ticks == *ticks))
}

/// Descendants that this process did not start itself, nor had before; none unless it adopts.
///
/// # Errors
/// If `/proc` cannot be listed.
pub fn adopted(host: &Host) -> Result<Vec<Process>> {
    if !ADOPTS.load(Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    let started = starting();
    let orphans = below(host)?.into_iter().filter(|pid| !started.contains(pid));
    Ok(orphans.filter_map(|pid| read(host, pid)).filter(|process| !process.ended).collect())
}

/// Pids of all descendants but those that it had before.
fn below(host: &Host) -> Result<BTreeSet<u32>> {
    let parents: Vec<(u32, u32)> =
        pids(host)?.into_iter().filter_map(|pid| Some((pid, stat_of(host, pid)?.0))).collect();
    let mut below = BTreeSet::from([std::process::id()]);
    loop {
        let children = parents.iter().filter(|(pid, parent)| below.contains(parent) && !below.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).filter(|pid| !was_before(host, *pid)).collect();
        if children.is_empty() {
            break;
        }
        below.extend(children);
    }
    below.remove(&std::process::id());
    Ok(below)
}

/// Reaps the orphans that have ended, so that their pids can be reused.
pub fn collect(host: &Host) {
    if !ADOPTS.load(Ordering::SeqCst) {
        return;
    }
    let started = starting();
    for pid in pids(host).unwrap_or_default() {
        let ended = stat_of(host, pid) == Some((std::process::id(), true));
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| ended && !started.contains(&pid))
        {
            // Nobody else waits for it; if this fails, it stays until we exit.
            waitpid(Some(pid), WaitOptions::NOHANG).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn a_child_from_before_is_no_orphan_and_a_later_one_is() {
        let mut before = sleeper();
        let adopts = adopt();
        let mut later = sleeper();
        let found: Vec<u32> = adopted(&Host::this()).unwrap().iter().map(|process| process.pid).collect();
        for child in [&mut before, &mut later] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found, if adopts { vec![later.id()] } else { vec![] });
    }
}
