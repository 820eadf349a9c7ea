//! The state of the machine, to be compared before and after.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Everything on the machine that a run could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    pub loops: BTreeSet<String>,
    pub mounts: BTreeSet<String>,
    pub processes: BTreeSet<String>,
    pub folders: BTreeSet<String>,
    pub shared_memory: BTreeSet<String>,
}

impl Machine {
    pub fn look() -> Machine {
        Machine {
            loops: lines(&["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"]),
            mounts: fs::read_to_string("/proc/self/mounts").unwrap().lines().map(str::to_owned).collect(),
            processes: processes(),
            folders: folders("/run").chain(folders(&std::env::temp_dir().to_string_lossy())).collect(),
            shared_memory: lines(&["ipcs", "-m"])
                .into_iter()
                .filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned))
                .chain(folders_like("/dev/shm", "PostgreSQL"))
                .collect(),
        }
    }
}

/// What is left of one run: loop devices, mounts, processes and folders that bear its id.
pub fn traces(run: &str) -> BTreeSet<String> {
    let machine = Machine::look();
    let all = machine.loops.into_iter().chain(machine.mounts).chain(machine.folders);
    let mut found: BTreeSet<String> = all.filter(|line| line.contains(run)).collect();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        // Gone by now, or not a process. A server has lost its environment, but works in its data folder.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(run) || folder.to_string_lossy().contains(run) {
            found.insert(format!("process {}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

fn lines(command: &[&str]) -> BTreeSet<String> {
    let output = Command::new(command[0]).args(&command[1..]).env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

fn folders(base: &str) -> impl Iterator<Item = String> {
    folders_like(base, "pgstrata-").into_iter().filter(|name| !name.contains("pgstrata-test-"))
}

fn folders_like(base: &str, prefix: &str) -> Vec<String> {
    let Ok(list) = fs::read_dir(base) else { return Vec::new() };
    list.filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Servers, clients and pgstratas that are running.
fn processes() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let Ok(comm) = fs::read_to_string(entry.path().join("comm")) else { continue };
        let comm = comm.trim();
        // A zombie has ended; whoever inherited it has not looked yet.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with('Z') || rest.is_empty()) {
            continue;
        }
        if pid.bytes().all(|b| b.is_ascii_digit()) && ["postgres", "pgbench", "pgstrata", "initdb"].contains(&comm) {
            found.insert(format!("{pid} {comm}"));
        }
    }
    found
}
