//! What the tests that drive the whole program share: the program, a plan, the state of the machine.

use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The plan of [`Workshop::finished`]: two stacks, two blocks.
pub const FINISHED: &str = r#"
name = "finished"
seed = 7
blocks = 2

[stack.one]
filesystem = { tmpfs = "256MiB" }

[stack.another-with-a-long-name]
filesystem = { tmpfs = "256MiB", mount = ["noatime"] }

[postgres]
settings = { shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "2s", warmup = "0s" }
"#;

/// A folder for one test: results and state in it, removed at the end.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Workshop {
        let folder = tempfile::Builder::new().prefix("pgstrata-test-").tempdir().unwrap();
        // The server's user must be able to walk through.
        set_mode(folder.path(), 0o755);
        Workshop { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub fn results(&self) -> PathBuf {
        self.path().join("results")
    }

    /// Writes a file into the workshop.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The program, with state and results in the workshop.
    pub fn pgstrata(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
        command.args(args).env("PGSTRATA_STATE", self.state()).current_dir(self.path());
        command
    }

    /// Runs a plan to its end.
    pub fn run(&self, plan: &Path) -> Output {
        self.pgstrata(&["run", plan.to_str().unwrap()]).output().unwrap()
    }

    /// Runs a plan that must go to its end: what was said, and what came of it.
    pub fn ran(&self, plan: &str) -> Ran {
        let output = self.run(&self.file("plan.toml", plan));
        assert!(output.status.success(), "{}", said(&output));
        let folder = self.run_folder();
        let report = |args: &[&str]| {
            let output = self.pgstrata(&[&["report", folder.to_str().unwrap()], args].concat()).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            output.stdout
        };
        let (findings, text) = (json(&report(&["--json"])), String::from_utf8(report(&[])).unwrap());
        Ran { said: said(&output), findings, text, folder }
    }

    /// The folder of a complete run of [`FINISHED`]. It is made once for all tests of one build of the program in one boot of the
    /// machine, and copied.
    pub fn finished(&self) -> PathBuf {
        let program = fs::metadata(env!("CARGO_BIN_EXE_pgstrata")).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finished");
        let made = all.join(format!("{}-{}-{}-{}", program.size(), program.mtime(), program.mtime_nsec(), boot.trim()));
        fs::create_dir_all(&all).unwrap();
        let lock = fs::File::open(&all).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        if !made.exists() {
            fs::read_dir(&all).unwrap().for_each(|old| fs::remove_dir_all(old.unwrap().path()).unwrap());
            let shop = Workshop::new();
            let output = shop.run(&shop.file("plan.toml", FINISHED));
            assert!(output.status.success(), "{}", said(&output));
            let part = all.join("part");
            copy(&shop.results(), &part);
            fs::rename(part, &made).unwrap();
        }
        copy(&made, &self.results());
        // An id of its own: what two runs with one id build has the same names.
        let folder = self.run_folder();
        let own = format!("s/{}/{:08x}/", run_id(&folder), std::process::id());
        let every = ["-name", "*.json", "-exec", "sed", "-i", &own, "{}", "+"];
        assert!(Command::new("find").arg(&folder).args(every).status().unwrap().success());
        folder
    }

    /// The only run folder.
    pub fn run_folder(&self) -> PathBuf {
        let folders: Vec<PathBuf> = fs::read_dir(self.results()).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// A run that went to its end.
pub struct Ran {
    /// Both outputs.
    pub said: String,
    pub findings: serde_json::Value,
    /// The report for the terminal.
    pub text: String,
    pub folder: PathBuf,
}

pub fn json(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap()
}

/// Id of the run whose folder it is.
pub fn run_id(folder: &Path) -> String {
    let record: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    record["id"].as_str().unwrap().to_owned()
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Both outputs, for an assertion's message.
pub fn said(output: &Output) -> String {
    format!(
        "exit code {:?}\n--- stdout\n{}\n--- stderr\n{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether the test may build stacks; prints why not.
pub fn can_build_stacks(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        skipped(test, "needs root to make loop devices and mount filesystems");
        return false;
    }
    for program in ["losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"] {
        let there = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|d| Path::new(d).join(program).exists());
        if !there {
            skipped(test, &format!("needs the program {program}"));
            return false;
        }
    }
    true
}

/// Says by name what was skipped and why; `make test` repeats it at its end.
pub fn skipped(test: &str, why: &str) {
    println!("skipped: {test}: {why}");
}
