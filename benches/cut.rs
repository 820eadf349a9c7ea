//! What `pgstrata cut` costs, and whom it must acquit (root).
//!
//!   cargo bench --bench cut                             seconds, states a second and memory, with their goals: 5 minutes
//!   cargo bench --bench cut -- acquit [--states N]      every case of validate/power-cuts.toml must hold: an hour
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/validate/power-cuts.toml");

/// Goals: seconds of the arithmetic, states a second by the end of WAL and through all steps.
const ARITHMETIC_S: f64 = 15.0;
const TAILS_PER_S: f64 = 15.0;
const WHOLES_PER_S: f64 = 2.0;

/// The stack of `PLAN` whose disk gets no flushes.
const WRITE_THROUGH: &str = "write-through";

/// One filesystem each.
const STACKS: [&str; 3] = ["ext4", "xfs", "btrfs"];

fn main() {
    // cargo's own word aside.
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let held = match words.first().map(String::as_str) {
        None => costs(),
        Some("acquit") => acquit(words.get(2).map_or("2000", String::as_str)),
        Some(other) => panic!("{other} is no part; there is: acquit"),
    };
    exit(i32::from(!held));
}

/// What a cut printed, how long it took, and the most memory that it had.
struct Done {
    cases: Vec<Value>,
    took: Duration,
    most_kib: u64,
}

fn cut(plan: &Path, states: &str, folder: &Path) -> Done {
    let begun = Instant::now();
    let (state, results) = (folder.join("state"), folder.join("results"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pgstrata"))
        .args(["cut", "--json", "--states", states])
        .arg(plan)
        .arg("--state")
        .arg(state)
        .arg("--results")
        .arg(results)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut output = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    let mut most_kib = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        most_kib = most_kib.max(peak_kib(&status));
        thread::sleep(Duration::from_millis(50));
    };
    // Anything else ended it before its last case.
    assert!(matches!(ended.code(), Some(0 | 1 | 6)), "pgstrata cut: {ended}");
    let cases = serde_json::from_str(&reader.join().unwrap()).unwrap();
    Done { cases, took: begun.elapsed(), most_kib }
}

/// The peak of resident memory; 0 once the process is gone.
fn peak_kib(status: &str) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn costs() -> bool {
    let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    println!(
        "{:<8} {:>16} {:>18} {:>16} {:>10} {:>10}",
        "stack", "arithmetic s", "end of WAL /s", "all steps /s", "log MiB", "peak MiB"
    );
    println!("{:<8} {:>16} {:>18} {:>16}", "goal", ARITHMETIC_S, TAILS_PER_S, WHOLES_PER_S);
    let mut met = true;
    for stack in STACKS {
        let text = format!(
            "name = \"bench\"\nseed = 1\nblocks = 1\n[stack.{stack}]\ndevice = {{ loop = \"1GiB\" }}\nfilesystem = \"{stack}\"\n\
             [postgres]\nsettings = {{ shared_buffers = \"32MB\" }}\n[workload.none]\npgbench = {{ scale = 1, clients = 1 }}\n"
        );
        fs::write(&plan, text).unwrap();
        let quick = cut(&plan, "0", folder.path());
        let full = cut(&plan, "300", folder.path());
        let Some(case) = full.cases.first() else { panic!("no case of {stack}") };
        let number = |key: &str| case[key].as_f64().unwrap_or(0.0);
        let rate = |states: &str, us: &str| number(states) / (number(us) / 1e6).max(1e-6);
        let (tails, wholes) = (rate("wal_ends_read", "wal_ends_us"), rate("recovered", "recovered_us"));
        let bytes = case["bytes"].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
        let peak = full.most_kib as f64 / 1024.0;
        let seconds = quick.took.as_secs_f64();
        println!(
            "{stack:<8} {seconds:>16.1} {tails:>18.1} {wholes:>16.1} {bytes:>10.0} {peak:>10.0}   {}",
            case["verdict"]["verdict"]
        );
        met &= seconds <= ARITHMETIC_S && tails >= TAILS_PER_S && wholes >= WHOLES_PER_S;
    }
    println!("{}", if met { "all goals met" } else { "a goal was missed" });
    met
}

/// In how many states a case loses nothing on a device with power-loss protection, or without a volatile cache.
fn protected_holds(case: &Value) -> Option<u64> {
    let devices = case["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
    let on = devices.iter().find(|on| on["device"] == "power-protected" && on["verdict"]["verdict"] == "holds")?;
    on["verdict"]["states"].as_u64()
}

/// Of so many states, how many go through all steps at least.
const ENOUGH: (u64, u64) = (2000, 100);

fn acquit(states: &str) -> bool {
    let asked: u64 = states.parse().unwrap();
    let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir().unwrap();
    let done = cut(Path::new(PLAN), states, folder.path());
    let mut held = !done.cases.is_empty();
    for case in &done.cases {
        // A disk that gets no flushes holds if it needs none.
        let is_write_through = case["cases"][0].as_str().is_some_and(|name| name.contains(WRITE_THROUGH));
        let of = |pass: &str| case[pass].as_u64().unwrap_or(0);
        let protected = protected_holds(case);
        let holds = match is_write_through {
            true => protected >= Some(asked),
            false => protected.is_some() && case["verdict"]["verdict"] == "holds" && of("wal_ends_read") >= asked,
        };
        let is_whole = is_write_through || asked < ENOUGH.0 || of("recovered") >= ENOUGH.1;
        let holds = holds && is_whole;
        held &= holds;
        let (name, word) =
            (case["cases"][0].as_str().unwrap_or_default(), case["verdict"]["verdict"].as_str().unwrap_or_default());
        println!(
            "{name:<40} {word:<14} {:>6} by the end of WAL {:>5} by all steps; power-protected: {} states",
            of("wal_ends_read"),
            of("recovered"),
            protected.unwrap_or(0)
        );
        if !holds {
            println!("  {case}");
        }
    }
    println!("{}: {:.0} s", if held { "all hold" } else { "not all hold" }, done.took.as_secs_f64());
    held
}
