//! Disks that a guest gets for the stacks of a plan: virtio-blk, NVMe and SCSI, each under a PostgreSQL that runs.

use super::ground::{SUITE, cache, guest_in_full, pgstrata, qemu_of, said, set_mode, stderr};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two trials of each stack but one, so that a disk is claimed twice; `nvme` has two disks at once.
const PLAN: &str = r#"
name = "disks"
blocks = 2
baseline = "virtio"

[stack.virtio]
device = { guest_disk = "256MiB" }
filesystem = "ext4"

[stack.nvme]
devices = { data = { guest_disk = "256MiB", bus = "nvme" }, wal = { guest_disk = "256MiB", bus = "nvme" } }
filesystem = { ext4 = { on = "data" } }
wal = { ext4 = { on = "wal" } }

[stack.scsi]
device = { guest_disk = "256MiB", bus = "scsi" }
filesystem = "ext4"

[postgres]
settings = { shared_buffers = "16MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "3s", warmup = "0s" }
"#;

/// After how many trials the program is killed, of six.
const TRIALS: usize = 5;

/// How long the kernel may take to end what a killed program leaves.
const END: Duration = Duration::from_secs(60);

struct Desk(tempfile::TempDir);

impl Desk {
    fn with(plan: &str) -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        set_mode(desk.0.path(), 0o755);
        std::fs::write(desk.0.path().join("plan.toml"), plan).unwrap();
        desk
    }

    fn on_plan(&self, args: &[&str]) -> Command {
        let mut command = pgstrata(args);
        command.arg(self.0.path().join("plan.toml")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The run folder, as it is shown while it grows.
    fn run_folder(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.0.path().join("results")).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.is_symlink()).unwrap()
    }
}

/// Files without a name in the cache of guests that a process has open.
fn nameless_files(process: &str) -> BTreeSet<String> {
    let start = format!("{}/#", cache().join("guest/running").display());
    let fds = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let targets = fds.flat_map(|fd| std::fs::read_link(fd.path())).map(|target| target.display().to_string());
    targets.filter(|target| target.starts_with(&start)).collect()
}

/// Those of all processes: other runs have theirs.
fn all_nameless_files() -> BTreeSet<String> {
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    names.flat_map(|name| nameless_files(&name.to_string_lossy())).collect()
}

/// What was read back of a node of a trial that was measured; `None` where the trial was not run.
fn facts(folder: &Path, (case, number): (&str, u32), node: &str) -> Option<Value> {
    let text = std::fs::read(folder.join(format!("trials/{case}/{number}/trial.json"))).ok()?;
    let record: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(record["outcome"]["outcome"], "measured", "{record}");
    let nodes = record["stack"]["nodes"].as_array().unwrap_or_else(|| panic!("{record}"));
    let found = nodes.iter().find(|found| found["name"] == node).unwrap_or_else(|| panic!("no {node}: {record}"));
    Some(found["details"].clone())
}

#[test]
fn a_killed_run_leaves_no_guest_disks_on_any_bus() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::with(PLAN);
    let mut command = desk.on_plan(&["run", &format!("--guest={SUITE}"), "--json"]);
    let mut child = command.arg("--results").arg(desk.0.path().join("results")).spawn().unwrap();
    let (mut done, mut open) = (0, BTreeSet::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        done += usize::from(line.contains("\"trial_done\""));
        if done == TRIALS && open.is_empty() {
            open = nameless_files(&child.id().to_string());
            assert_eq!(nameless_files(&qemu_of(child.id()).unwrap().to_string()), open);
            child.kill().unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(done, TRIALS, "{}", said(&output));
    assert_eq!(open.len(), 4, "{open:?}");
    let begun = Instant::now();
    while let Some(left) = all_nameless_files().intersection(&open).next() {
        assert!(begun.elapsed() < END, "{left} is left");
        std::thread::sleep(Duration::from_millis(100));
    }
    let (folder, mut seen) = (desk.run_folder(), 0);
    for (case, node, bus, fua, serial) in [
        ("virtio.tpcb", "guest_disk", "virtio", "0", "pgstrata-1"),
        ("nvme.tpcb", "data", "nvme", "1", "pgstrata-2"),
        ("nvme.tpcb", "wal", "nvme", "1", "pgstrata-3"),
        ("scsi.tpcb", "guest_disk", "scsi", "1", "pgstrata-4"),
    ] {
        for facts in [1, 2].into_iter().filter_map(|number| facts(&folder, (case, number), node)) {
            seen += usize::from(node != "wal");
            for (fact, value) in
                [("bus", bus), ("FUA", fua), ("serial", serial), ("write cache", "write back"), ("size", "256 MiB")]
            {
                assert_eq!(facts[fact], value, "{case}: {facts}");
            }
        }
    }
    assert_eq!(seen, TRIALS);
}

#[test]
fn an_unknown_disk_bus_is_refused_with_its_line() {
    let wrong = Desk::with(&PLAN.replace("bus = \"scsi\"", "bus = \"sata\""));
    let output = wrong.on_plan(&["plan"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let line = 1 + PLAN.lines().position(|line| line.contains("\"scsi\"")).unwrap();
    let text = stderr(&output);
    assert!(text.contains(&format!("plan.toml:{line}:")) && text.contains("bus") && text.contains("nvme"), "{text}");
    let output = Desk::with(PLAN).on_plan(&["plan", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let unmet = plan["forecast"]["unmet"].as_array().unwrap();
    let of_guest = |unmet: &&Value| unmet["what"].as_str().unwrap().starts_with("a guest");
    assert_eq!(unmet.iter().filter(of_guest).count(), 3, "{plan}");
    assert!(unmet.iter().filter(of_guest).all(|unmet| unmet["hint"] == "run the plan with --guest"), "{plan}");
}
