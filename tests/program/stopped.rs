//! Ctrl-C while the run waits for another program or for the server: it ends, exit code 130, nothing left. And threads, processes and
//! stacks that the system does not grant: an error, nothing left.

use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, json, run_id, said, set_mode, skipped};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PLAN: &str = r#"
name = "stopped"
blocks = 1

[stack.ext4]
device = { loop = "512MiB", sparse = true }
filesystem = "ext4"
age = { pgbench = 1 }

[postgres]
bin = "BIN"
settings = { shared_buffers = "16MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.care]
maintenance = { scale = 1 }
"#;

/// Programs that never end where their arguments have this word; one that ignores SIGTERM among them.
const SLOW: [(&str, &str); 6] = [
    ("mkfs.ext4", " -L "),
    ("mount", "ext4"),
    ("initdb", "--locale=C"),
    ("pgbench", " -i"),
    ("pgbench", " -t "),
    ("pg_basebackup", "-D"),
];

/// The folder of an installation whose programs are links, so that one of them can be another.
fn installation(shop: &Workshop) -> Option<(PathBuf, PathBuf)> {
    let doctor = shop.pgstrata(&["doctor", "--json"]).output().unwrap();
    let found = json(&doctor.stdout);
    let real = PathBuf::from(found["postgres"].as_array()?.first()?["bin"].as_str()?);
    let bin = shop.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in fs::read_dir(&real).unwrap().map(|entry| entry.unwrap()) {
        symlink(program.path(), bin.join(program.file_name())).unwrap();
    }
    Some((bin, real))
}

/// Makes a program of this name one that says so and never ends where its arguments have the word, and is the real one elsewhere.
fn slow(shop: &Workshop, bin: &Path, real: &Path, name: &str, word: &str) {
    let real = [real, Path::new("/usr/sbin"), Path::new("/sbin"), Path::new("/usr/bin"), Path::new("/bin")];
    let real = real.iter().map(|folder| folder.join(name)).find(|path| path.exists()).unwrap();
    let (path, here) = (bin.join(name), shop.path().join("here"));
    drop(fs::remove_file(&path));
    let (here, real) = (here.display(), real.display());
    let text = format!(
        "#!/bin/sh\ncase \" $*\" in *'{word}'*) trap '' TERM; : > '{here}'; sleep 600; sleep 600;; esac\nexec '{real}' \"$@\"\n"
    );
    fs::write(&path, text).unwrap();
    set_mode(&path, 0o755);
}

fn nothing_is_left(shop: &Workshop) {
    let id = run_id(&shop.run_folder());
    assert!(traces(&id).is_empty(), "{:?}", traces(&id));
    assert_eq!(fs::read_dir(shop.state().join("ledger")).map_or(0, Iterator::count), 0);
}

#[test]
fn an_interrupt_ends_the_wait_for_every_program() {
    if !can_build_stacks("Ctrl-C while another program runs") {
        return;
    }
    for (name, word) in SLOW {
        let shop = Workshop::new();
        let Some((bin, real)) = installation(&shop) else {
            return skipped("Ctrl-C while another program runs", "needs PostgreSQL");
        };
        set_mode(shop.path(), 0o777);
        slow(&shop, &bin, &real, name, word);
        let plan = shop.file("plan.toml", &PLAN.replace("BIN", bin.to_str().unwrap()));
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = shop.pgstrata(&["run", plan.to_str().unwrap()]);
        let mut run = command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while !shop.path().join("here").exists() {
            if run.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(300) {
                run.kill().unwrap();
                panic!("{name}{word} was not started: {}", said(&run.wait_with_output().unwrap()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        let asked = Instant::now();
        let output = run.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{name} {word}: {}", said(&output));
        assert!(asked.elapsed() < Duration::from_secs(60), "{name} {word}: {:?}", asked.elapsed());
        nothing_is_left(&shop);
    }
}

const TWICE: &str = r#"
name = "asked"
blocks = 2

[stack.tmp]
filesystem = { tmpfs = "256MiB" }

[postgres]
bin = "BIN"
settings = { shared_buffers = "16MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 1, duration = "1s", warmup = "0s" }
"#;

#[test]
fn an_interrupt_among_requirements_is_no_missing_requirement() {
    const NAME: &str = "Ctrl-C while a trial checks its requirements";
    if !can_build_stacks(NAME) {
        return;
    }
    let shop = Workshop::new();
    let Some((bin, real)) = installation(&shop) else { return skipped(NAME, "needs PostgreSQL") };
    set_mode(shop.path(), 0o777);
    let plan = shop.file("plan.toml", &TWICE.replace("BIN", bin.to_str().unwrap()));
    let mut command = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(run.stdout.take().unwrap()).lines().map_while(Result::ok);
    let begun = events.find(|line| line.contains("\"step_started\"") && line.contains("\"measure\""));
    // Each trial asks the server for its version. The first one has done so.
    slow(&shop, &bin, &real, "postgres", "--version");
    assert!(begun.is_some(), "no trial was measured");
    let mut steps = events.filter(|line| line.contains("\"step_started\""));
    let asks = steps.find(|line| line.contains("\"check\""));
    assert!(asks.is_some(), "no second trial");
    while !shop.path().join("here").exists() {
        assert!(run.try_wait().unwrap().is_none(), "{}", said(&run.wait_with_output().unwrap()));
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let later: Vec<String> = steps.collect();
    assert!(later.iter().all(|line| line.contains("\"tear_down\"")), "{later:?}");
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    nothing_is_left(&shop);
    let events = fs::read_to_string(shop.run_folder().join("events.jsonl")).unwrap();
    assert!(events.lines().last().unwrap().contains("\"interrupted\""), "{events}");
    assert!(!events.contains("a requirement is not met") && !said(&output).contains("not met"), "{}", said(&output));
}

#[test]
fn an_exceeded_system_limit_is_an_error_and_leaves_nothing() {
    const NAME: &str = "limits of the system";
    if !can_build_stacks(NAME) {
        return;
    }
    let plan = "name = \"s\"\nblocks = 1\n[stack.s]\nfilesystem = { tmpfs = \"300MiB\" }\n[postgres]\n\
                settings = { shared_buffers = \"16MB\" }\n[workload.w]\n\
                pgbench = { scale = 1, clients = 16, jobs = 16, duration = \"1s\", warmup = \"0s\" }\n";
    // Stacks so large that a limited address space has room for none, and for those of the first places alone.
    for megabytes in [1500, 400, 250, 100] {
        let shop = Workshop::new();
        let plan = shop.file("plan.toml", plan);
        let program = shop.pgstrata(&["run", plan.to_str().unwrap()]);
        let mut command = Command::new("timeout");
        command.args(["120", "sh", "-c", "ulimit -v 1500000 && exec \"$@\"", "sh"]).arg(program.get_program());
        command.args(program.get_args()).env("PGSTRATA_STATE", shop.state()).current_dir(shop.path());
        let output = command.env("RUST_MIN_STACK", (megabytes * 1_000_000).to_string()).output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 3)), "{megabytes} MB: {}", said(&output));
        assert!(said(&output).contains("cannot start a thread"), "{megabytes} MB: {}", said(&output));
        if shop.results().exists() {
            nothing_is_left(&shop);
        }
    }
}

#[test]
fn a_small_stack_of_the_caller_is_no_limit() {
    let program = env!("CARGO_BIN_EXE_pgstrata");
    let run = |args: &str| Command::new("sh").args(["-c", &format!("ulimit -s 64 && exec {program} {args}")]).output();
    for args in ["--version", "doctor", "run --help"] {
        let output = run(args).unwrap();
        assert!(output.status.code().is_some_and(|code| code < 128), "{args}: {}", said(&output));
    }
}
