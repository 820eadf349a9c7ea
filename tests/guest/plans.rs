//! `run --guest`: the same plan, in a guest.

use super::ground::{SUITE, guest, guest_in_full, pgstrata, qemu_of, said, set_mode, stderr};
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

/// What `make test` builds in a guest: no host's kernel has ZFS.
const POOL: &str = r#"volume = "zpool"
filesystem = { zfs = { properties = { recordsize = "8k" } } }"#;

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
        self.running(&[self.plan().to_str().unwrap()])
    }

    /// `run` with its arguments, in a guest.
    fn running(&self, args: &[&str]) -> Command {
        let suite = format!("--guest={SUITE}");
        let mut command = pgstrata(&["run", &suite, "--json", "--results"]);
        command.arg(self.results()).args(args).stdin(Stdio::null());
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
fn a_plan_with_a_pool_runs_completely_in_the_guest() {
    let Some(_guest) = guest(SUITE) else { return };
    let desk = Desk::new();
    // One block: an emulated CPU takes half a minute for a trial.
    let plan = PLAN.replace("blocks = 2", "blocks = 1").replace("stack.xfs", "stack.pool");
    std::fs::write(desk.plan(), plan.replace("filesystem = \"xfs\"", POOL)).unwrap();
    let output = ended(desk.run().spawn().unwrap());
    assert!(output.status.success(), "{}", said(&output));
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(events.contains("\"run_started\"") && events.contains("\"run_done\""), "{events}");
    let folder = desk.run_folder();
    assert!(folder.join("report.html").is_file());
    for case in ["ext4.sync", "pool.sync"] {
        let record = trial(&folder, case, 1);
        assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
        assert_eq!(record["host"]["hostname"], "pgstrata-guest", "{record}");
    }
    let emulated = trial(&folder, "ext4.sync", 1)["host"]["cpu_model"].as_str().unwrap().starts_with("QEMU TCG");
    let found = findings(&folder);
    let findings = found.get("findings").unwrap_or(&found);
    assert_eq!(findings["rankings"].as_array().unwrap().is_empty(), emulated, "{findings}");
    assert_eq!(findings["headline"].as_str().unwrap().contains("Emulated CPU"), emulated, "{findings}");
}

#[test]
fn a_guest_gets_the_plans_script_and_the_server_built_for_it() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new();
    let server = "[postgres]\nbuild = { version = \"15\", wal_blocksize = 16 }\n\n[workload.own]\n\
                  pgbench = { script = \"sql/own.sql@3\", setup = [\"CREATE TABLE t (n int);\"], clients = 1, duration = \"2s\" }\n";
    let stacks = PLAN.split("[workload").next().unwrap().replace("blocks = 2", "blocks = 1");
    std::fs::write(desk.plan(), format!("{stacks}{server}")).unwrap();
    std::fs::create_dir(desk.0.path().join("sql")).unwrap();
    std::fs::write(desk.0.path().join("sql/own.sql"), "INSERT INTO t VALUES (1);\n").unwrap();
    let output = ended(desk.run().spawn().unwrap());
    assert!(output.status.success(), "{}", said(&output));
    let record = trial(&desk.run_folder(), "ext4.own", 1);
    assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
    assert_eq!(record["server"]["key_settings"]["wal_block_size"], "16384", "{record}");
    assert_eq!(record["host"]["hostname"], "pgstrata-guest", "{record}");
}

#[test]
fn a_guest_that_dies_costs_one_trial() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
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
    let Some(_guest) = guest_in_full(SUITE) else { return };
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
    // It goes on in the guest that it was begun in, in the same folder.
    let folder = desk.run_folder();
    let output = pgstrata(&["run", "--guest", "--json", "--resume"]).arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(desk.run_folder(), folder);
    for name in ["ext4.sync", "xfs.sync"] {
        for number in [1, 2] {
            let record = trial(&folder, name, number);
            assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
            assert_eq!(record["case"]["guest"], SUITE, "{record}");
        }
    }
    let output = pgstrata(&["run", "--json", "--resume"]).arg(&folder).args(["--blocks", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("has 2 blocks already"), "{}", said(&output));
}

#[test]
fn all_guests_of_a_plan_fill_one_run_folder() {
    let (Some(_old), Some(_new)) = (guest_in_full("bookworm"), guest_in_full(SUITE)) else { return };
    let desk = Desk::new();
    let head = "name = \"inside\"\nguest = [\"bookworm\", \"trixie\"]\nbaseline = { guest = \"bookworm\" }\n";
    std::fs::write(desk.plan(), PLAN.replace("name = \"inside\"\n", head)).unwrap();
    let mut command = pgstrata(&["run", "--json", "--results"]);
    let output = command.arg(desk.results()).arg(desk.plan()).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let events = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(events.contains("\"handed_over\"") && events.contains("\"run_done\""), "{events}");
    let folder = desk.run_folder();
    for stack in ["ext4", "xfs"] {
        for number in [1, 2] {
            let [old, new] = ["bookworm", "trixie"].map(|suite| {
                let record = trial(&folder, &format!("{stack}.sync.guest-{suite}"), number);
                assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
                record["host"]["kernel"].as_str().unwrap().to_owned()
            });
            assert!(old.starts_with("6.1.") && new.starts_with("6.12."), "{old} {new}");
        }
    }
    let found = findings(&folder);
    assert_eq!(found["machines"].as_array().unwrap().len(), 2, "{}", found["machines"]);
    assert!(!found.to_string().contains("another machine"));
}

#[test]
fn a_wrong_plan_is_refused_as_on_the_host() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new();
    std::fs::write(desk.plan(), PLAN.replace("filesystem = \"xfs\"", "filesystem = \"xsf\"")).unwrap();
    let output = ended(desk.run().spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("plan.toml") && stderr(&output).contains("xfs"), "{}", said(&output));
    assert_eq!(std::fs::read_dir(desk.results()).map_or(0, Iterator::count), 0);
}

/// Runs a plan; its run folder and findings, when each of its trials was measured.
fn quick(desk: Desk, plan: &str) -> (Desk, serde_json::Value) {
    let output = ended(desk.running(&[plan, "--quick"]).spawn().unwrap());
    assert!(output.status.success(), "{}", said(&output));
    let found = findings(&desk.run_folder());
    let run = &found["run"];
    assert_eq!(run["trials_measured"], run["trials_planned"], "{run}");
    (desk, found)
}

fn cases(findings: &serde_json::Value) -> &[serde_json::Value] {
    findings["cases"].as_array().unwrap()
}

#[test]
fn zfs_sync_tells_what_sync_disabled_leaves_undone() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (desk, found) = quick(Desk::new(), "zfs-sync");
    assert_eq!(cases(&found).len(), 10);
    for case in cases(&found) {
        let disabled = case["axes"]["zfs.sync"] == "disabled";
        let (class, reason) = (&case["durability"]["class"], case["durability"]["reason"].as_str().unwrap());
        assert_eq!(class, if disabled { "volatile" } else { "flushed" }, "{case}");
        assert_eq!(reason.contains("sync=disabled"), disabled, "{reason}");
        // Cases of synced writes have rows of their own.
        let Some(flushes) = case["strata"]["at_stack_devices"]["flushes"].as_f64() else { continue };
        assert!(if disabled { flushes < 0.1 } else { flushes > 0.2 }, "{case}");
        assert!(case["strata"]["at_stack_devices"]["bytes_per_write"].as_f64().unwrap() > 0.0, "{case}");
    }
    // The published figures stand beside these, whether or not they can be compared with an emulated CPU's.
    let mut compare = pgstrata(&["compare"]);
    let output = compare.arg(desk.run_folder()).arg("shelf:freebsd10-zfs-fsync-2014").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for figure in ["6676", "116 000", "sync=disabled: a sync does nothing"] {
        assert!(text.contains(figure), "{figure}: {}", said(&output));
    }
}

#[test]
fn filesystem_matrix_shows_the_device_work_of_every_filesystem() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (_, found) = quick(Desk::new(), "filesystem-matrix");
    assert_eq!(cases(&found).len(), 38);
    for case in cases(&found) {
        let work = &case["strata"]["at_stack_devices"];
        assert!(work["writes"].as_f64().unwrap() > 0.0 && work["bytes_per_write"].as_f64().unwrap() > 0.0, "{case}");
        assert!(work["flushes"].is_number(), "{case}");
    }
}
