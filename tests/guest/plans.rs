//! `run --guest`: the same plan, in a guest.

use super::ground::{SUITE, guest, pgstrata, qemu_of, said, set_mode, stderr};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PLAN: &str = r#"
name = "inside"
blocks = 2

[stack.ext4]
device = { loop = "256MiB" }
filesystem = "ext4"

[stack.xfs]
device = { loop = "320MiB" }
filesystem = "xfs"

[workload.sync]
sync = { duration = "2s" }
"#;

/// A folder with the plan, and results in it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        set_mode(desk.0.path(), 0o755);
        std::fs::write(desk.plan(), PLAN).unwrap();
        desk
    }

    fn plan(&self) -> PathBuf {
        self.0.path().join("plan.toml")
    }

    fn results(&self) -> PathBuf {
        self.0.path().join("results")
    }

    fn run(&self) -> Command {
        let suite = format!("--guest={SUITE}");
        let mut command = pgstrata(&["run", &suite, "--json", "--results"]);
        command.arg(self.results()).arg(self.plan()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The only thing in the results: the run folder, a folder of our own.
    fn run_folder(&self) -> PathBuf {
        let found: Vec<PathBuf> = std::fs::read_dir(self.results()).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].is_symlink(), "{found:?}");
        found[0].clone()
    }
}

fn trial(folder: &Path, case: &str, number: u32) -> serde_json::Value {
    let path = folder.join(format!("trials/{case}/{number}/trial.json"));
    serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).unwrap()
}

fn findings(folder: &Path) -> serde_json::Value {
    let output = pgstrata(&["report", "--format", "json"]).arg(folder).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)))
}

fn ended(child: std::process::Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn a_plan_runs_in_the_guest_and_its_run_folder_comes_out_whole() {
    let Some(_turn) = guest("a_plan_runs_in_the_guest_and_its_run_folder_comes_out_whole", SUITE) else { return };
    let desk = Desk::new();
    let output = ended(desk.run().spawn().unwrap());
    assert!(output.status.success(), "{}", said(&output));
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(events.contains("\"run_started\"") && events.contains("\"run_done\""), "{events}");
    let folder = desk.run_folder();
    assert!(folder.join("report.html").is_file());
    for case in ["ext4.sync", "xfs.sync"] {
        for number in [1, 2] {
            let record = trial(&folder, case, number);
            assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
            assert_eq!(record["host"]["hostname"], "pgstrata-guest", "{record}");
        }
    }
    let emulated = trial(&folder, "ext4.sync", 1)["host"]["cpu_model"].as_str().unwrap().starts_with("QEMU TCG");
    let found = findings(&folder);
    let findings = found.get("findings").unwrap_or(&found);
    assert_eq!(findings["rankings"].as_array().unwrap().is_empty(), emulated, "{findings}");
    assert_eq!(findings["headline"].as_str().unwrap().contains("Emulated CPU"), emulated, "{findings}");
}

#[test]
fn a_guest_that_dies_costs_one_trial() {
    let Some(_turn) = guest("a_guest_that_dies_costs_one_trial", SUITE) else { return };
    let desk = Desk::new();
    let mut child = desk.run().spawn().unwrap();
    let pid = child.id();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut case = None;
    for line in lines.map(Result::unwrap) {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        let what = &event["what"];
        if case.is_none() && what["event"] == "step_started" && what["step"] == "measure" {
            case = Some(what["trial"].clone());
            let qemu = qemu_of(pid).unwrap().to_string();
            assert!(Command::new("kill").args(["-KILL", &qemu]).status().unwrap().success());
        }
    }
    let output = ended(child);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(stderr(&output).contains("QEMU was killed by signal 9"), "{}", said(&output));
    let (folder, case) = (desk.run_folder(), case.unwrap());
    for name in ["ext4.sync", "xfs.sync"] {
        for number in [1, 2] {
            let died = case["case"] == name && case["trial"] == number;
            let outcome = trial(&folder, name, number)["outcome"].clone();
            assert_eq!(outcome["outcome"], if died { "not_run" } else { "measured" }, "{outcome}");
            let reason = outcome["reason"].as_str().unwrap_or_default();
            assert!(!died || reason.contains("QEMU was killed"), "{outcome}");
        }
    }
}

#[test]
fn an_interrupt_keeps_complete_trials_and_leaves_no_guest() {
    let Some(_turn) = guest("an_interrupt_keeps_complete_trials_and_leaves_no_guest", SUITE) else { return };
    let desk = Desk::new();
    let mut child = desk.run().spawn().unwrap();
    let pid = child.id();
    let mut qemu = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        if line.contains("\"trial_done\"") && qemu.is_none() {
            qemu = qemu_of(pid);
            assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
        }
    }
    let output = ended(child);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(!Path::new(&format!("/proc/{}", qemu.unwrap())).exists());
    let status = pgstrata(&["status", "--json"]).arg(desk.run_folder()).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["state"], "interrupted", "{status}");
    assert!(status["measured"].as_u64().unwrap() >= 1, "{status}");
}

#[test]
fn a_plan_that_is_wrong_is_refused_as_on_the_host() {
    let Some(_turn) = guest("a_plan_that_is_wrong_is_refused_as_on_the_host", SUITE) else { return };
    let desk = Desk::new();
    std::fs::write(desk.plan(), PLAN.replace("filesystem = \"xfs\"", "filesystem = \"xsf\"")).unwrap();
    let output = ended(desk.run().spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("plan.toml") && stderr(&output).contains("xfs"), "{}", said(&output));
    assert_eq!(std::fs::read_dir(desk.results()).unwrap().count(), 0);
}
