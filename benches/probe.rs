//! What a probe measures beside what pg_test_fsync does, and what keeping every latency costs: `make bench`. Prints
//! ratios and goals, asserts nothing: times belong to the machine.
//!
//! Both programs take turns on the same filesystem, ABBA, so that drift hits both alike; each pair is a block.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::cluster::install;
use pgstrata::host::Host;
use pgstrata::host::signals::Interrupt;
use pgstrata::host::time::now;
use pgstrata::probe::{self, Choice, Observer, Request, WAL_BLOCK};
use pgstrata::stats::interval::TrialMean;
use pgstrata::stats::ratio::{BlockMean, ratio};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// On the machine's disk, or wherever cargo builds.
const IMAGES: &str = env!("CARGO_TARGET_TMPDIR");

/// Pairs of runs on each filesystem.
const ROUNDS: u32 = 4;

/// pg_test_fsync has 17 tests on Linux and takes this long with `-s 1`.
const SECONDS: &str = "17";

/// Two programs that do the same agree when their ratio is this near to 1, or cannot be told from 1.
const AGREES_WITHIN: f64 = 0.05;

fn main() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the probe's benches need root to mount filesystems");
        return;
    }
    let host = Host::this();
    let mut found =
        install::find_all(&host).into_iter().map(|install| (install.bin.join("pg_test_fsync"), install.version));
    match found.find(|(program, _)| program.exists()) {
        Some((theirs, version)) => compare(&theirs, &version),
        None => println!("skipped: no pg_test_fsync was found on this machine\n"),
    }
    if let Err(why) = cost(&host) {
        println!("skipped: the cost of an operation: {why}");
    }
}

/// A filesystem that is gone when this is dropped.
struct Ground {
    mount: PathBuf,
    _folder: TempDir,
    _image: Option<TempDir>,
}

impl Ground {
    fn of(kind: &str) -> Result<Ground, String> {
        let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir().unwrap();
        let mount = folder.path().join("mount");
        fs::create_dir(&mount).unwrap();
        if kind == "tmpfs" {
            call(Command::new("mount").args(["-t", "tmpfs", "-o", "size=512m", "pgstrata-bench"]).arg(&mount))?;
            return Ok(Ground { mount, _folder: folder, _image: None });
        }
        let images = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir_in(IMAGES).unwrap();
        let image = images.path().join("image");
        File::create_new(&image).unwrap().set_len(1 << 30).unwrap();
        let mut make = Command::new(format!("mkfs.{kind}"));
        if kind == "ext4" {
            // Else the kernel writes the inode tables while something is measured.
            make.args(["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        }
        call(make.arg("-q").arg(&image))?;
        call(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount))?;
        Ok(Ground { mount, _folder: folder, _image: Some(images) })
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Err(error) = call(Command::new("umount").arg(&self.mount)) {
            println!("{error}");
        }
    }
}

/// Its standard output; why it failed, if it did.
fn call(command: &mut Command) -> Result<String, String> {
    let output = command.env("LC_ALL", "C").output().map_err(|e| format!("{command:?}: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{command:?}: {}: {errors}", output.status))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Each row of pg_test_fsync, ours over theirs.
fn compare(theirs: &Path, version: &str) {
    println!("pgstrata probe / pg_test_fsync of PostgreSQL {version}, {ROUNDS} pairs of {SECONDS} s");
    println!("  goal: every row agrees, that is, lies within {} % or cannot be told from 1\n", AGREES_WITHIN * 100.0);
    for kind in ["ext4", "xfs", "btrfs", "tmpfs"] {
        if let Err(why) = compare_on(kind, theirs) {
            println!("skipped: {kind}: {why}\n");
        }
    }
}

fn compare_on(kind: &str, theirs: &Path) -> Result<(), String> {
    let ground = Ground::of(kind)?;
    let mut our_rows = Vec::new();
    let mut their_rows = Vec::new();
    for round in 0..ROUNDS {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                let args = ["--format", "pg_test_fsync", "--seconds", SECONDS];
                let text = call(Command::new(PROGRAM).arg("probe").arg(&ground.mount).args(args))?;
                our_rows.push(rates(&text));
            } else {
                let file = ground.mount.join("pg_test_fsync.out");
                their_rows.push(rates(&call(Command::new(theirs).args(["-s", "1", "-f"]).arg(file))?));
            }
        }
    }
    println!("{kind}{}", if kind == "tmpfs" { "" } else { ", on an image on disk" });
    let mut agree = 0;
    let rows: Vec<String> = their_rows[0].iter().map(|(row, _)| row.clone()).collect();
    for row in &rows {
        agree += usize::from(print_row(row, &our_rows, &their_rows));
    }
    println!("  {agree} of {} rows agree\n", rows.len());
    Ok(())
}

/// Rows by name, in their order.
type Rates = Vec<(String, f64)>;

/// One line of the comparison; whether the row agrees.
fn print_row(row: &str, ours: &[Rates], theirs: &[Rates]) -> bool {
    let of_run = |run: &Rates| run.iter().find(|(name, _)| name == row).map(|(_, rate)| *rate);
    let of = |runs: &[Rates]| -> Vec<f64> { runs.iter().filter_map(of_run).collect() };
    let (ours, theirs) = (of(ours), of(theirs));
    let Some(found) = ratio(&blocks(&ours), &blocks(&theirs)) else {
        println!("  {row:<32} not measured by both");
        return false;
    };
    let near = (found.value - 1.0).abs() <= AGREES_WITHIN;
    let agrees = near || !found.tells_apart();
    let interval = found.interval.map_or_else(String::new, |(low, high)| format!("(95 % {low:.3} to {high:.3})"));
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    println!(
        "  {row:<32} {:.3} {interval:<24} {:>9.0} / {:>9.0} a second  {}",
        found.value,
        mean(&ours),
        mean(&theirs),
        if agrees { "agrees" } else { "DIFFERS" }
    );
    agrees
}

fn blocks(rates: &[f64]) -> Vec<BlockMean> {
    let block = |(block, mean): (u32, &f64)| BlockMean { block, trial: TrialMean { mean: *mean, within: None } };
    (0..).zip(rates).map(block).collect()
}

/// Operations a second of each row of what pg_test_fsync prints; those of the second section are told from those of the
/// first, which have the same names.
fn rates(text: &str) -> Rates {
    let mut rates = Rates::new();
    let mut section = "";
    for line in text.lines() {
        if line.starts_with("Compare") {
            section = if line.contains("two 8kB writes") { "two writes: " } else { "" };
        }
        let Some((front, _)) = line.split_once(" ops/sec") else { continue };
        let Some((label, rate)) = front.trim().rsplit_once(' ') else { continue };
        if let Ok(rate) = rate.parse() {
            rates.push((format!("{section}{}", label.trim()), rate));
        }
    }
    rates
}

/// Turns of each on memory; a turn of ours has this long for each of its rows, as has the bare loop.
const TURNS: u32 = 12;
const SPAN: Duration = Duration::from_millis(250);

struct Deaf;

impl Observer for Deaf {}

/// What an operation of ours costs where the kernel does next to nothing: one write and fdatasync on tmpfs.
fn cost(host: &Host) -> Result<(), String> {
    let ground = Ground::of("tmpfs")?;
    println!("one write of 8 kB and fdatasync on tmpfs, every latency kept, {TURNS} turns each");
    let fio = call(Command::new("fio").arg("--version"));
    let (mut ours, mut bare, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..TURNS {
        for step in 0..3 {
            match if turn % 2 == 0 { step } else { 2 - step } {
                0 => ours.push(of_probe(host, &ground.mount)?),
                1 => bare.push(bare_loop(&ground.mount.join("bare"))),
                _ if fio.is_ok() => theirs.push(of_fio(&ground.mount.join("fio"))?),
                _ => {}
            }
        }
    }
    print_cost("a bare loop of the two system calls", &ours, &bare, 0.97);
    match fio {
        Ok(version) => print_cost(version.trim(), &ours, &theirs, 1.5),
        Err(why) => println!("  skipped: fio: {why}"),
    }
    println!("  (over pg_test_fsync: the row fdatasync on tmpfs above; goal: at least 1.0)");
    Ok(())
}

fn print_cost(name: &str, ours: &[f64], other: &[f64], goal: f64) {
    let Some(found) = ratio(&blocks(ours), &blocks(other)) else { return };
    let interval = found.interval.map_or_else(String::new, |(low, high)| format!(" (95 % {low:.3} to {high:.3})"));
    let about = other.iter().sum::<f64>() / other.len() as f64;
    println!("  ours / {name}: {:.3}{interval}, the other about {about:.0} a second", found.value);
    println!("    goal: at least {goal}");
}

/// Operations a second of our row, while all of pg_test_fsync's rows take turns.
fn of_probe(host: &Host, folder: &Path) -> Result<f64, String> {
    let request = Request {
        folder: folder.to_owned(),
        choice: Choice::Compat,
        budget: SPAN * 17,
        precision: 0.0,
        wal_block: WAL_BLOCK,
        writers: 2,
        seed: 1,
    };
    let record = probe::measure(host, &request, &Interrupt::never(), &Deaf).map_err(|e| e.to_string())?;
    let row = record.rows.iter().find(|row| row.spec.id == "one_write.fdatasync").unwrap();
    let operations: u64 = row.slices.iter().map(|slice| slice.operations).sum();
    let elapsed: u64 = row.slices.iter().map(|slice| slice.elapsed_ns).sum();
    Ok(operations as f64 * 1e9 / elapsed as f64)
}

/// The least that the two calls can cost; the time is looked at every 256 operations.
fn bare_loop(path: &Path) -> f64 {
    let block = vec![7; WAL_BLOCK as usize];
    fs::write(path, vec![7; 16 << 20]).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    file.sync_all().unwrap();
    let (begun, mut operations) = (now(), 0u32);
    while begun.elapsed() < SPAN {
        for _ in 0..256 {
            assert_eq!(rustix::io::pwrite(&file, &block, 0), Ok(block.len()));
            rustix::fs::fdatasync(&file).unwrap();
        }
        operations += 256;
    }
    f64::from(operations) / begun.elapsed().as_secs_f64()
}

/// fio, kept at one place of its file by stepping back what it has written.
fn of_fio(path: &Path) -> Result<f64, String> {
    let mut fio = Command::new("fio");
    fio.args(["--name=bench", "--ioengine=psync", "--fdatasync=1", "--bs=8k", "--rw=write:-8k", "--filesize=16m"]);
    fio.args(["--overwrite=1", "--time_based", "--runtime=1", "--output-format=json"]);
    let text = call(fio.arg(format!("--filename={}", path.display())))?;
    let said: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("fio: {e}: {text}"))?;
    said.pointer("/jobs/0/write/iops").and_then(serde_json::Value::as_f64).ok_or_else(|| format!("fio: {text}"))
}
