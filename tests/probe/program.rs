//! `pgstrata probe` as a child: started, waited for, its result read.

use pgstrata::record::probe::{ProbeRecord, RowRecord};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// Whoever has not ended after this hangs; every probe here asks for a few seconds.
const HANGS: Duration = Duration::from_secs(90);

/// How a probe ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Ended {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Everything, for an assertion's message.
    pub fn said(&self) -> String {
        let stdout = self.stdout();
        // A record is long, what is wrong stands elsewhere.
        let cut: String = stdout.chars().take(3000).collect();
        format!("exit code {:?}\n--- stdout\n{cut}\n--- stderr\n{}", self.code, self.stderr())
    }

    /// Ended with this code, in order.
    pub fn with_code(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "{}", self.said());
        assert!(!self.stderr().contains("panicked"), "{}", self.said());
        self
    }

    /// Says all of these on standard error, and nothing on standard output.
    pub fn complains(self, words: &[&str]) -> Ended {
        let says = self.stderr();
        assert!(words.iter().all(|word| says.contains(word)), "{words:?} is not said: {}", self.said());
        assert!(self.stdout.is_empty(), "{}", self.said());
        self
    }

    /// What `--json` printed.
    pub fn result(&self) -> Measured {
        let result: Value = serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.said()));
        let record = serde_json::from_value(result["record"].clone()).unwrap();
        Measured { record, findings: result["findings"].clone() }
    }
}

/// The result of a probe.
pub struct Measured {
    pub record: ProbeRecord,
    pub findings: Value,
}

impl Measured {
    pub fn credibility(&self) -> &str {
        let credibility = &self.findings["credibility"];
        assert!(credibility["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{credibility}");
        credibility["kind"].as_str().unwrap()
    }

    pub fn row(&self, id: &str) -> &RowRecord {
        self.record.rows.iter().find(|row| row.spec.id == id).unwrap_or_else(|| panic!("no row {id}"))
    }

    /// Neither memory nor flushes missing.
    pub fn is_not_convicted(&self) {
        let innocent = ["flushed", "declared_stable", "implausible", "unexplained", "unknown"];
        assert!(innocent.contains(&self.credibility()), "{}", self.findings["credibility"]);
    }
}

pub fn operations(row: &RowRecord) -> u64 {
    row.slices.iter().map(|slice| slice.operations).sum()
}

/// `pgstrata probe FOLDER ARGS`, not started.
pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("probe").arg(folder).args(args).stdin(Stdio::null());
    // Most tests are about a row or the other.
    if !args.contains(&"--rows") && !args.contains(&"pg_test_fsync") {
        command.args(["--rows", "all"]);
    }
    command
}

/// Runs a probe of about `seconds` to its end; nothing may be left behind.
pub fn probe(folder: &Path, args: &[&str]) -> Ended {
    let ended = Running::start(&mut command(folder, args)).end();
    nothing_is_left(folder);
    ended
}

/// Measures with `--json`; every row must have been measured or have a reason.
pub fn measured(folder: &Path, seconds: &str) -> Measured {
    probe(folder, &["--json", "--seconds", seconds]).with_code(0).result()
}

/// The folders of probes in a folder.
pub fn left(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).map(|list| list.filter_map(Result::ok).map(|entry| entry.path()).collect());
    let names: Vec<PathBuf> = names.unwrap_or_default();
    let ours = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pgstrata-"));
    names.into_iter().filter(ours).collect()
}

pub fn nothing_is_left(folder: &Path) {
    assert!(left(folder).is_empty(), "left behind: {:?}", left(folder));
}

/// A probe that runs. When the test ends before it, it is killed.
pub struct Running {
    pub child: Child,
    stdout: File,
    stderr: File,
    began: Instant,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        // Files, not pipes: nobody has to read while it runs.
        let (stdout, stderr) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let child = command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap()).spawn().unwrap();
        Running { child, stdout, stderr, began: Instant::now() }
    }

    /// A long one with `--json`, in the midst of its measurement.
    pub fn midway(folder: &Path, seconds: &str) -> Running {
        let mut running = Running::start(&mut command(folder, &["--json", "--seconds", seconds]));
        running.wait_for_files(folder);
        running
    }

    /// Until its folder and files are there, and a little longer.
    pub fn wait_for_files(&mut self, folder: &Path) {
        let there = || left(folder).iter().any(|own| fs::read_dir(own).is_ok_and(|mut files| files.next().is_some()));
        while !there() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && self.began.elapsed() < HANGS, "no files: {ended:?}, {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(500));
        assert!(self.child.try_wait().unwrap().is_none(), "it ended too soon: {}", self.errors());
    }

    pub fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn errors(&mut self) -> String {
        String::from_utf8_lossy(&read(&mut self.stderr)).into_owned()
    }

    pub fn end(mut self) -> Ended {
        while self.child.try_wait().unwrap().is_none() {
            assert!(self.began.elapsed() < HANGS, "it hangs: {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
        let code = self.child.wait().unwrap().code();
        Ended { code, stdout: read(&mut self.stdout), stderr: read(&mut self.stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails where it has ended, as it should have.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}
