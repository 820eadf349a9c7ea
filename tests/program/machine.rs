//! What a run has on the machine, known by what marks it as that run's: whatever else goes on there does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Loop devices, mounts, folders and processes that bear a mark: a run's id, or the path of the folder it works in.
pub fn traces(mark: &str) -> BTreeSet<String> {
    let loops = lines(&["losetup", "--list", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"]);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap().lines().map(str::to_owned).collect();
    let folders = [Path::new("/run"), &std::env::temp_dir()].map(folders).concat();
    let bear = [loops, mounts, folders].concat().into_iter().filter(|line| line.contains(mark));
    let mut found: BTreeSet<String> = bear.collect();
    found.extend(processes(mark).iter().map(|process| format!("process {}", process.display())));
    found
}

/// The queues of the loop devices that there are, each by the number of its attachment (`diskseq`), and knobs of the machine.
pub fn settings() -> BTreeMap<String, String> {
    let files = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|e| e.path());
    let devices = files(Path::new("/sys/block")).filter(|path| path.to_string_lossy().starts_with("/sys/block/loop"));
    let sequence = |device: &Path| fs::read_to_string(device.join("diskseq")).unwrap_or_default();
    let queues = devices.flat_map(|device| {
        let sequence = sequence(&device);
        files(&device.join("queue"))
            .map(move |file| (format!("{} {sequence}", file.display()), file))
            .collect::<Vec<_>>()
    });
    let knobs = files(Path::new("/proc/sys/vm")).filter(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("dirty_") || name == "swappiness" || name == "vfs_cache_pressure"
    });
    let knobs = knobs.map(|file| (file.display().to_string(), file));
    queues.chain(knobs).filter_map(|(name, file)| Some((name, fs::read_to_string(file).ok()?))).collect()
}

/// Shared memory of the processes that bear a mark. It outlives those that are killed.
pub fn shared_memory(mark: &str) -> BTreeSet<String> {
    let maps = processes(mark).into_iter().filter_map(|process| fs::read_to_string(process.join("maps")).ok());
    let mapped = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // Address, rights, offset, device, inode, path; for System V the inode is the segment's id (ipc/shm.c).
        match *fields.get(5)? {
            path if path.starts_with("/SYSV") => Some(format!("segment {}", fields[4])),
            path if path.starts_with("/dev/shm/PostgreSQL.") => Some(path.to_owned()),
            _ => None,
        }
    };
    maps.flat_map(|maps| maps.lines().filter_map(mapped).collect::<Vec<_>>()).collect()
}

/// What is still there of it.
pub fn still_there(mut memory: BTreeSet<String>) -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let segments: Vec<&str> = table.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    memory.retain(|memory| match memory.strip_prefix("segment ") {
        Some(id) => segments.contains(&id),
        None => Path::new(memory).exists(),
    });
    memory
}

/// Folders in `/proc` of the processes whose environment or working folder bears a mark: a server overwrites the one
/// but works in its data folder. One that has ended has neither.
fn processes(mark: &str) -> Vec<PathBuf> {
    let bears = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let folder = fs::read_link(process.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(mark) || folder.to_string_lossy().contains(mark)
    };
    let number = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    all.filter(number).filter(bears).collect()
}

fn lines(command: &[&str]) -> Vec<String> {
    let output = Command::new(command[0]).args(&command[1..]).env("LC_ALL", "C").output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
}

/// Folders named like a run's; not those of the tests themselves.
fn folders(base: &Path) -> Vec<String> {
    let list = fs::read_dir(base).unwrap().filter_map(Result::ok);
    let named = list.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let ours = named.filter(|(name, _)| name.starts_with("pgstrata-") && !name.starts_with("pgstrata-test-"));
    ours.map(|(_, path)| path.display().to_string()).collect()
}
