//! What the tests that drive the whole program share: the program, a plan, the state of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

    /// The only run folder.
    pub fn run_folder(&self) -> PathBuf {
        let folders: Vec<PathBuf> = fs::read_dir(self.results()).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }
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
