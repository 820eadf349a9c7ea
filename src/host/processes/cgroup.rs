//! A control group (version 2) for the processes of one run: everything a script forks stays in it, whatever its
//! environment, session and working folder.

use super::{Process, command_line, kill, read, wait_until_gone};
use crate::error::{Context, Error, Result};
use crate::host::{Host, paths};
use crate::parse::mountinfo;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The group in which commands are started.
#[derive(Debug, Clone)]
pub(in crate::host) struct Cgroup {
    /// `cgroup.procs`, opened by the user who created the group: the kernel checks that user's rights (Linux 5.16).
    procs: Arc<File>,
    /// Last part of its path.
    name: Arc<str>,
}

impl Cgroup {
    /// Moves the calling process into the group. Only a system call: safe between fork and exec.
    pub(in crate::host) fn join(&self) -> std::io::Result<()> {
        rustix::io::write(&*self.procs, b"0").map(drop).map_err(std::io::Error::from)
    }

    /// Moves a process into the group that could not join by itself: another user's before Linux 5.16. Each move takes
    /// the kernel about 10 ms, so a process that has joined is left alone.
    pub(in crate::host) fn add(&self, pid: u32) {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        if groups.lines().any(|line| line.starts_with("0::") && line.ends_with(&*self.name)) {
            return;
        }
        // It has joined already, or has ended.
        (&*self.procs).write_all(pid.to_string().as_bytes()).unwrap_or_default();
    }
}

/// Path for the group of a run: below our own. `None` without cgroup version 2.
pub fn place(host: &Host, run_id: &str) -> Option<PathBuf> {
    let own = host.read_optional("/proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = mountinfo::parse(&host.read_optional("/proc/self/mountinfo")?).ok()?;
    let outside = Path::new(own).components().any(|part| part.as_os_str() == "..");
    let mount = mounts.iter().rfind(|mount| mount.fstype == "cgroup2" && mount.root == "/").filter(|_| !outside)?;
    Some(Path::new(&mount.target).join(own).join(name(run_id)))
}

/// Creates the group at its [`place`], which must be in the ledger by now. `None` if the kernel does not allow it:
/// commands then start in our own group.
pub(in crate::host) fn make(path: &Path) -> Option<Cgroup> {
    match fs::create_dir(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return None,
        _ => {}
    }
    let procs = File::options().write(true).open(path.join("cgroup.procs"));
    // A group below a threaded one takes no processes.
    let takes = fs::read_to_string(path.join("cgroup.type")).is_ok_and(|kind| kind.trim() == "domain");
    match procs {
        Ok(procs) if takes => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Some(Cgroup { procs: Arc::new(procs), name: name.as_ref().into() })
        }
        _ => {
            fs::remove_dir(path).unwrap_or_default();
            None
        }
    }
}

/// Ends every process in the group of a run.
///
/// # Errors
/// If `path` is no such group, or with the processes that do not end.
pub fn end(host: &Host, run_id: &str, path: &Path, limit: Duration) -> Result<()> {
    if !is_group(run_id, path)? {
        return Ok(());
    }
    let begun = crate::host::time::now();
    loop {
        let inside = members(host, path);
        if inside.is_empty() {
            return Ok(());
        }
        // Since Linux 5.14 the kernel kills all of them at once, including those that fork meanwhile.
        if fs::write(path.join("cgroup.kill"), "1").is_err() {
            kill(host, &inside, limit)?;
        }
        let left = wait_until_gone(host, &inside, limit.saturating_sub(begun.elapsed()));
        if begun.elapsed() >= limit {
            let shown: Vec<String> = left.iter().map(|process| command_line(host, process)).collect();
            let (seconds, left) = (limit.as_secs(), shown.join(", "));
            return Err(Error::host(format!("killed but still there after {seconds} s: {left}")));
        }
    }
}

/// Removes the group once nothing runs in it.
///
/// # Errors
/// If it is busy.
pub fn remove(run_id: &str, path: &Path) -> Result<()> {
    if !is_group(run_id, path)? {
        return Ok(());
    }
    for group in tree(path).iter().rev() {
        fs::remove_dir(group).or_host(|| format!("remove the control group {}", group.display()))?;
    }
    Ok(())
}

fn name(run_id: &str) -> String {
    format!("pgstrata-{run_id}")
}

/// True if the group exists. A folder with another name, or that is not a group, is not touched.
fn is_group(run_id: &str, path: &Path) -> Result<bool> {
    if !paths::exists(path) {
        return Ok(false);
    }
    if path.file_name().is_some_and(|found| *found == *name(run_id)) && paths::is_file(&path.join("cgroup.procs")) {
        return Ok(true);
    }
    Err(Error::host(format!("{} is not the control group of run {run_id}", path.display())))
}

/// The group and its subgroups, which a script may have created; parents first.
fn tree(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_path_buf()];
    let mut next = 0;
    while let Some(group) = found.get(next).cloned() {
        let entries = fs::read_dir(&group).into_iter().flatten().flatten();
        found.extend(entries.map(|entry| entry.path()).filter(|entry| paths::is_folder(entry)));
        next += 1;
    }
    found
}

fn members(host: &Host, path: &Path) -> Vec<Process> {
    let listed = tree(path).into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
    let pids: Vec<u32> =
        listed.flat_map(|text| text.lines().filter_map(|n| n.parse().ok()).collect::<Vec<_>>()).collect();
    let others = pids.into_iter().filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| read(host, pid)).filter(|process| !process.ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_with(cgroup: &str, mountinfo: &str) -> Option<PathBuf> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/self/cgroup"), cgroup).unwrap();
        fs::write(root.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        place(&Host::rooted(root.path()), "0badcafe")
    }

    const HYBRID: &str = "20 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_cgroup_of_a_run_lies_below_ours_under_v2() {
        let own = "4:memory:/elsewhere\n0::/user.slice/session-3.scope\n";
        let expected = "/sys/fs/cgroup/unified/user.slice/session-3.scope/pgstrata-0badcafe";
        assert_eq!(place_with(own, HYBRID), Some(expected.into()));
        assert_eq!(place_with("0::/\n", HYBRID), Some("/sys/fs/cgroup/unified/pgstrata-0badcafe".into()));
    }

    #[test]
    fn without_a_visible_cgroup_v2_there_is_no_group() {
        assert_eq!(place_with("4:memory:/x\n", HYBRID), None);
        assert_eq!(place_with("0::/x\n", "20 31 0:38 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
        assert_eq!(place_with("0::/../x\n", HYBRID), None);
        assert_eq!(place_with("0::/x\n", &HYBRID.replace(" / ", " /x ")), None);
    }

    #[test]
    fn a_folder_that_is_not_the_run_cgroup_is_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let end = |path: &Path| end(&Host::this(), "0badcafe", path, Duration::ZERO);
        assert!(end(&folder.path().join("pgstrata-0badcafe")).is_ok(), "gone already");
        assert!(end(folder.path()).is_err());
        let named = folder.path().join("pgstrata-0badcafe");
        fs::create_dir(&named).unwrap();
        assert!(end(&named).is_err() && remove("0badcafe", &named).is_err());
        assert!(named.exists());
    }
}
