//! `cut --guest`: power cuts in a guest, whose recorded disks have FUA.

use super::ground::{SUITE, guest_in_full, pgstrata, qemu_of, said, set_mode, stderr};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// WAL that bypasses the page cache and is synced as it is written: each commit is a write with FUA, and no flush. With
/// fdatasync on a filesystem that suppresses flushes nothing is durable.
const PLAN: &str = r#"
name = "fua"

[stack.honest]
device = { loop = "512MiB" }
filesystem = "ext4"

[stack.lying]
device = { loop = "512MiB" }
filesystem = { ext4 = { mount = ["nobarrier"] } }

[postgres]
settings = { wal_sync_method = ["open_datasync", "fdatasync"], debug_io_direct = "wal", shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 1, duration = "1s" }

[[exclude]]
stack = "honest"
wal_sync_method = "fdatasync"

[[exclude]]
stack = "lying"
wal_sync_method = "open_datasync"
"#;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new(plan: &str) -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        set_mode(desk.0.path(), 0o755);
        std::fs::write(desk.plan(), plan).unwrap();
        desk
    }

    fn plan(&self) -> PathBuf {
        self.0.path().join("plan.toml")
    }

    fn results(&self) -> PathBuf {
        self.0.path().join("results")
    }

    fn cut(&self, args: &[&str]) -> Command {
        let suite = format!("--guest={SUITE}");
        let mut command = pgstrata(&["cut", &suite, "--json", "--seconds", "2", "--results"]);
        command.arg(self.results()).arg(self.plan()).args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The results of all cases, by case.
fn results(output: &Output) -> serde_json::Map<String, serde_json::Value> {
    let found: Vec<serde_json::Value> =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(output)));
    found.into_iter().map(|case| (case["cases"][0].as_str().unwrap().to_owned(), case)).collect()
}

/// The verdict for a model of the device.
fn on<'r>(result: &'r serde_json::Value, device: &str) -> &'r str {
    let devices = result["devices"].as_array().unwrap();
    let found = devices.iter().find(|on| on["device"] == device).unwrap_or_else(|| panic!("{result}"));
    found["verdict"]["verdict"].as_str().unwrap()
}

/// The only case of a stack.
fn of_stack<'r>(results: &'r serde_json::Map<String, serde_json::Value>, stack: &str) -> &'r serde_json::Value {
    let mut found = results.iter().filter(|(case, _)| case.starts_with(stack));
    found.next().unwrap_or_else(|| panic!("no case of {stack}: {results:?}")).1
}

#[test]
fn a_guest_disk_that_ignores_fua_is_convicted() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new(PLAN);
    let output = desk.cut(&["--states", "0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let results = results(&output);
    let honest = of_stack(&results, "honest");
    assert_eq!(honest["verdict"]["verdict"], "holds", "{honest}");
    assert!(honest["commits"].as_u64().unwrap() > 0, "{honest}");
    assert_eq!((on(honest, "honest"), on(honest, "power-protected")), ("holds", "holds"), "{honest}");
    assert_eq!((on(honest, "FUA ignored"), on(honest, "flush ignored")), ("loses", "holds"), "{honest}");
    let lying = of_stack(&results, "lying");
    assert_eq!(lying["verdict"]["verdict"], "loses", "{lying}");
    let evidence = Path::new(lying["evidence"].as_str().unwrap());
    assert!(evidence.starts_with(desk.results()), "{lying}");
    for file in ["evidence.json", "log", "server.log"] {
        assert!(evidence.join(file).is_file(), "{file}");
    }
    // The arithmetic keeps no state; replay reads the whole log with its hashes, and the base.
    let replayed = pgstrata(&["cut", "replay"]).arg(evidence).output().unwrap();
    assert!(replayed.status.success(), "{}", said(&replayed));
    let left: Vec<PathBuf> = std::fs::read_dir(desk.results()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [evidence.parent().unwrap()], "nothing else is left");
}

#[test]
fn zfs_loses_commits_with_sync_disabled() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new(
        r#"
name = "zfs"

[stack.pool]
device = { loop = "1GiB" }
volume = "zpool"
filesystem = { zfs = { properties = { recordsize = "8k", sync = ["standard", "disabled"] } } }

[postgres]
settings = { shared_buffers = "32MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "2s" }
"#,
    );
    let output = desk.cut(&["--states", "0", "--workload"]).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let results = results(&output);
    let of = |sync: &str| results.iter().find(|(case, _)| case.contains(sync)).unwrap().1;
    // Records of the intent log have no header of WAL: no write may be left out for that.
    assert_eq!(of("standard")["verdict"]["verdict"], "holds", "{}", of("standard"));
    assert_eq!(on(of("standard"), "flush ignored"), "loses", "{}", of("standard"));
    assert_eq!(of("disabled")["verdict"]["verdict"], "loses", "{}", of("disabled"));
}

#[test]
fn a_journal_commit_with_ignored_fua_loses_acknowledged_commits() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    // WAL in new files, and a page of it or more in each flush: so it allocates, and is durable with the commit block of
    // the journal.
    let desk = Desk::new(
        r#"
name = "journal"

[stack.honest]
device = { loop = "512MiB" }
filesystem = "ext4"

[postgres]
settings = { wal_init_zero = "off", wal_recycle = "off", shared_buffers = "16MB" }

[workload.pages]
pgbench = { scale = 1, clients = 1, duration = "1s", script = "SELECT pg_logical_emit_message(true, '', repeat('x', 8000));" }
"#,
    );
    let output = desk.cut(&["--states", "12", "--clients", "1", "--workload"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let results = results(&output);
    let honest = of_stack(&results, "honest");
    assert_eq!(on(honest, "honest"), "holds", "{honest}");
    assert!(["loses", "torn", "unmountable"].contains(&on(honest, "FUA ignored")), "{honest}");
}

#[test]
fn a_dying_guest_is_an_error_with_its_last_output() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new(PLAN);
    let mut child = desk.cut(&[]).spawn().unwrap();
    let pid = child.id();
    let outlet = || std::fs::read_dir(desk.results()).is_ok_and(|mut entries| entries.next().is_some());
    let qemu = loop {
        if let Some(qemu) = qemu_of(pid).filter(|_| outlet()) {
            break qemu;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before its guest was there");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert!(Command::new("kill").args(["-KILL", &qemu.to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(stderr(&output).contains("QEMU was killed by signal 9"), "{}", said(&output));
    assert!(!desk.results().exists(), "an empty folder of results is left");
}

#[test]
fn mistakes_in_a_plan_come_out_with_their_exit_code() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let desk = Desk::new(&PLAN.replace("shared_buffers", "shared_bufers"));
    let output = desk.cut(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(stderr(&output).contains("shared_bufers"), "{}", said(&output));
}

/// Kills a recording whose server runs on an NBD device, and cleans up. Prints what is left.
const KILLED: &str = r#"
cd /root
cat > plan.toml
pgstrata cut plan.toml --disks nbd --seconds 600 --states 0 > cut.out 2>&1 &
pid=$!
until grep -q '^/dev/nbd' /proc/mounts && pgrep -f '[p]ostgres:' > /dev/null; do
    kill -0 $pid || { cat cut.out; exit 9; }
    sleep 0.2
done
kill -9 $pid
wait $pid
pgstrata clean
echo "clean $?"
grep '^/dev/nbd' /proc/mounts
cat /sys/block/nbd*/backend 2> /dev/null
pgrep -f '[p]ostgres:'
echo end
"#;

#[test]
fn nbd_leftovers_of_a_killed_recording_are_cleaned_up() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let mut command = pgstrata(&["guest", "run", "--suite", SUITE, "--limit", "20min", "--", "sh", "-c", KILLED]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(PLAN.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.split_once("clean 0\n").map(|(_, left)| left), Some("end\n"), "{}", said(&output));
}
