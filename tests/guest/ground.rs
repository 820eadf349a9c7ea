//! What the tests share: the guests that are built, and the program.

use crate::depth::waits_for_full;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The suite of most tests.
pub const SUITE: &str = "trixie";

pub fn pgstrata(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    command.args(args);
    command
}

pub fn cache() -> PathBuf {
    match std::env::var_os("PGSTRATA_CACHE") {
        Some(folder) => PathBuf::from(folder),
        None if rustix::process::geteuid().is_root() => PathBuf::from("/var/cache/pgstrata"),
        None => PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/pgstrata"),
    }
}

/// Whether PGSTRATA_TEST_GUEST names this suite: its guest is then built where it is not.
fn is_wanted(suite: &str) -> bool {
    std::env::var("PGSTRATA_TEST_GUEST").is_ok_and(|suites| suites.split_whitespace().any(|name| name == suite))
}

/// A guest that is built. The tests of this group run one after another: two guests would take each other's processors, and
/// run into their limits.
pub struct Guest;

/// The guest of a suite, built where that is asked for. Says what was skipped and why.
pub fn guest(suite: &str) -> Option<Guest> {
    if is_wanted(suite) {
        let output = pgstrata(&["guest", "build", "--suite", suite]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let status = pgstrata(&["guest", "status", "--json"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let guests = status["guests"].as_array().unwrap();
    if guests.iter().any(|guest| guest["suite"] == suite && guest["built"] == true) {
        return Some(Guest);
    }
    println!("skipped: the guest {suite} is not built (pgstrata guest build --suite {suite})");
    None
}

/// The same for what the full suite alone runs: every run of the tests boots as few guests as will do.
pub fn guest_in_full(suite: &str) -> Option<Guest> {
    if waits_for_full() { None } else { guest(suite) }
}

/// Runs a command in a fresh guest.
pub fn in_guest(suite: &str, command: &[&str]) -> Output {
    pgstrata(&["guest", "run", "--suite", suite, "--"]).args(command).output().unwrap()
}

pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "exit code {:?}\n--- stdout\n{}\n--- stderr\n{}",
        output.status.code(),
        text(&output.stdout),
        stderr(output)
    )
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The QEMU in which a program has started a guest; one that is asked for its version, or tries an accelerator, is none.
pub fn qemu_of(parent: u32) -> Option<u32> {
    // Children are listed by the thread that started them.
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.filter_map(Result::ok);
    let children: String =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok()).collect();
    let is_guest = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next().is_some_and(|name| name.starts_with(b"qemu-system")) && words.any(|word| word == b"-smp")
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_guest)
}

/// A cache in which the guest of a suite is the built one, but for files that a test changes. Its files are further names
/// of the built ones.
pub struct Twin(tempfile::TempDir);

impl Twin {
    pub fn of(suite: &str) -> Twin {
        let place = tempfile::Builder::new().prefix("test-").tempdir_in(cache()).unwrap();
        set_mode(place.path(), 0o755);
        link_tree(&cache().join("guest").join(suite), &place.path().join("guest").join(suite));
        Twin(place)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The file of the guest with this name.
    pub fn file(&self, suite: &str, name: &str) -> PathBuf {
        let steps = std::fs::read_dir(self.path().join("guest").join(suite)).unwrap();
        steps.map(|step| step.unwrap().path().join(name)).find(|path| path.exists()).unwrap()
    }
}

fn link_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && entry.file_name() == "modules" => {}
            kind if kind.is_dir() => link_tree(&from, &to),
            _ => std::fs::hard_link(from, to).unwrap(),
        }
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
