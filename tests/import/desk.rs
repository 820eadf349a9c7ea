//! What these tests share: a folder with files in it, and the program in that folder.

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder for one test, removed at the end.
pub struct Desk(tempfile::TempDir);

impl Desk {
    pub fn new() -> Desk {
        Desk(tempfile::Builder::new().prefix("pgstrata-test-").tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// `pgstrata import` with these arguments.
    pub fn import(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The same with something on standard input.
    pub fn import_piped(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let written = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        // The program may refuse its input before it has read all of it.
        assert!(written.is_ok() || !output.status.success());
        output
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
        command.arg("import").args(args).current_dir(self.path());
        command
    }

    /// The record of an import that stores nothing.
    pub fn record(&self, args: &[&str]) -> Value {
        let output = self.import(&[args, &["--dry-run", "--json"]].concat());
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["record"].take()
    }

    /// Folders of results, hidden ones too.
    pub fn results(&self) -> Vec<PathBuf> {
        let list = fs::read_dir(self.path().join("results"));
        list.map(|list| list.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
    }
}

/// A fixture's bytes.
pub fn fixture(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // What was published lies on the shelf.
    let path = name
        .strip_prefix("published/")
        .map_or_else(|| root.join("tests/fixtures").join(name), |name| root.join("shelf").join(name));
    fs::read(path).unwrap()
}

/// Its text.
pub fn fixture_text(name: &str) -> String {
    String::from_utf8(fixture(name)).unwrap()
}

/// Both outputs, for an assertion's message.
pub fn said(output: &Output) -> String {
    format!("exit code {:?}\n--- stdout\n{}\n--- stderr\n{}", output.status.code(), stdout(output), stderr(output))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The outputs of the first trial of the first case.
pub fn outputs(record: &Value) -> &Vec<Value> {
    record["cases"][0]["trials"][0]["outputs"].as_array().unwrap()
}

/// Every number as its text, in order.
pub fn numbers(record: &Value) -> Vec<String> {
    let rows = outputs(record).iter().flat_map(|output| output["rows"].as_array().unwrap());
    let figures = rows.flat_map(|row| row["figures"].as_array().unwrap());
    figures.map(|figure| figure["text"].as_str().unwrap().to_owned()).collect()
}
