//! What a plan's scripts and its archive_command start does not outlive the run, however it hides: in a session of its
//! own, without its parent, with an empty environment.

use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, run_id, said};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const PLAN: &str = r#"
name = "strays"
blocks = 1

[stack.ext4]
device = { loop = "320MiB" }
filesystem = "ext4"

[postgres]
settings = { shared_buffers = "16MB", archive_mode = "on", archive_timeout = "1s", archive_command = "ARCHIVE" }

[workload.shell]
pgbench = { scale = 1, script = "shell.sql", rate = 20, duration = "SPANs", warmup = "1s" }
"#;

/// A workshop with the plan; the seconds that everything it starts would sleep are of this test alone.
fn shop(span: u32, seconds: u32) -> Workshop {
    let shop = Workshop::new();
    let script = format!("\\setshell x sh -c \"setsid env -i sleep {seconds} >/dev/null 2>&1 & echo 1\"\nSELECT :x;\n");
    shop.file("shell.sql", &script);
    let archive = format!("setsid env -i sleep {seconds} & true");
    shop.file("plan.toml", &PLAN.replace("ARCHIVE", &archive).replace("SPAN", &span.to_string()));
    shop
}

/// Processes that sleep so long, those not counted that have ended and wait to be collected.
fn sleepers(seconds: u32) -> usize {
    let wanted = format!("sleep\0{seconds}\0");
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    all.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())).count()
}

fn control_groups() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let of_version_2 = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields.get(2) == Some(&"cgroup2")).then(|| fields[1].to_owned())
    };
    mounts.lines().filter_map(of_version_2).collect()
}

fn runs_and_leaves_nothing(shop: &Workshop, seconds: u32, mut command: Command) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let (mut most, mut events) = (0, Vec::new());
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("\"second\"") {
            most = most.max(sleepers(seconds));
        } else {
            events.push(line);
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {events:#?}");
    assert!(most > 10, "the plan started {most} sleepers: the test tests nothing");
    assert_eq!(sleepers(seconds), 0, "of {most}");
    let folder = shop.run_folder();
    let trial: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("trials/ext4.shell/1/trial.json")).unwrap()).unwrap();
    assert_eq!(trial["outcome"]["outcome"], "measured", "{}", trial["outcome"]);
    assert!(traces(&run_id(&folder)).is_empty());
}

#[test]
fn stray_processes_end_with_the_run_by_its_control_group() {
    if !can_build_stacks("processes that hide, with control groups") {
        return;
    }
    if control_groups().is_empty() {
        return crate::program::workshop::skipped("processes that hide, with control groups", "no cgroup2 is mounted");
    }
    let seconds = 7_000_000 + std::process::id();
    let shop = shop(3, seconds);
    runs_and_leaves_nothing(&shop, seconds, shop.pgstrata(&["run", "plan.toml", "--json"]));
    let id = run_id(&shop.run_folder());
    let left = |mount: &String| Path::new(mount).join(format!("pgstrata-{id}")).exists();
    assert!(!control_groups().iter().any(left), "the control group stayed");
}

#[test]
fn stray_processes_end_with_the_run_without_control_groups() {
    if !can_build_stacks("processes that hide, without control groups") {
        return;
    }
    let seconds = 8_000_000 + std::process::id();
    let shop = shop(8, seconds);
    let program = shop.pgstrata(&[]).get_program().to_owned();
    let mut command = Command::new("unshare");
    // A copy of the mount table keeps filesystems alive that other runs unmount meanwhile: theirs go as well.
    let script =
        "awk '$3 == \"cgroup2\" || $2 ~ /pgstrata/ { print $2 }' /proc/self/mounts | xargs -r umount -l; exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(program).args(["run", "plan.toml", "--json"]);
    command.env("PGSTRATA_STATE", shop.state()).current_dir(shop.path());
    runs_and_leaves_nothing(&shop, seconds, command);
}

#[test]
fn clean_ends_processes_in_the_cgroup_of_a_killed_run() {
    if !can_build_stacks("processes of a killed run") {
        return;
    }
    if control_groups().is_empty() {
        return crate::program::workshop::skipped("processes of a killed run", "no cgroup2 is mounted");
    }
    let seconds = 9_000_000 + std::process::id();
    let shop = shop(30, seconds);
    let mut child = shop.pgstrata(&["run", "plan.toml", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap());
    assert!(events.lines().map_while(Result::ok).filter(|line| line.contains("\"second\"")).nth(1).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(sleepers(seconds) > 10);
    let cleaned = shop.pgstrata(&["clean"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", said(&cleaned));
    assert_eq!(sleepers(seconds), 0);
    assert!(traces(&run_id(&shop.run_folder())).is_empty());
}
