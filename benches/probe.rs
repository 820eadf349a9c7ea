//! Whether a probe measures what pg_test_fsync does, row by row on four filesystems: `make bench`. Prints ratios and goals,
//! asserts nothing: times belong to the machine.
//!
//! Both programs take turns on the same filesystem, ABBA, so that drift hits both alike; each pair is a block.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::cluster::install;
use pgstrata::host::Host;
use pgstrata::stats::interval::TrialMean;
use pgstrata::stats::ratio::{BlockMean, ratio};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgstrata");

/// On the machine's disk, or wherever cargo builds.
const IMAGES: &str = env!("CARGO_TARGET_TMPDIR");

/// Pairs of runs on each filesystem: theirs looks at a row for one second, ours over the whole run, so that a disk whose
/// speed drifts needs several.
const ROUNDS: u32 = 3;

/// pg_test_fsync has 16 tests on Linux, a second each with `-s 1`; ours takes the last second to watch idle devices first.
const SECONDS: &str = "17";

/// A difference as small as this is none.
const SAME_WITHIN: f64 = 0.05;

/// Rows agree when their ratio surely is no further from 1 than this.
const SURE_WITHIN: f64 = 0.15;

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
}

/// A filesystem that is gone when this is dropped.
struct Mounted {
    mount: PathBuf,
    _folder: TempDir,
    _image: Option<TempDir>,
}

impl Mounted {
    fn of(kind: &str) -> Result<Mounted, String> {
        let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir().unwrap();
        let mount = folder.path().join("mount");
        fs::create_dir(&mount).unwrap();
        if kind == "tmpfs" {
            call(Command::new("mount").args(["-t", "tmpfs", "-o", "size=512m", "pgstrata-bench"]).arg(&mount))?;
            return Ok(Mounted { mount, _folder: folder, _image: None });
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
        Ok(Mounted { mount, _folder: folder, _image: Some(images) })
    }
}

impl Drop for Mounted {
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
    println!("pgstrata probe / pg_test_fsync of PostgreSQL {version}, {ROUNDS} pairs of {SECONDS} s, 95 % intervals");
    println!(
        "  goal: no row differs, that is, is surely off and by more than {} %; one agrees when all of its interval lies \
         within {} %\n",
        SAME_WITHIN * 100.0,
        SURE_WITHIN * 100.0
    );
    for kind in ["ext4", "xfs", "btrfs", "tmpfs"] {
        if let Err(why) = compare_on(kind, theirs) {
            println!("skipped: {kind}: {why}\n");
        }
    }
}

fn compare_on(kind: &str, theirs: &Path) -> Result<(), String> {
    let mounted = Mounted::of(kind)?;
    let mut our_rows = Vec::new();
    let mut their_rows = Vec::new();
    for round in 0..ROUNDS {
        for turn in 0..2 {
            if (round + turn) % 2 == 0 {
                let args = ["--format", "pg_test_fsync", "--seconds", SECONDS];
                let text = call(Command::new(PROGRAM).arg("probe").arg(&mounted.mount).args(args))?;
                our_rows.push(rates(&text));
            } else {
                let file = mounted.mount.join("pg_test_fsync.out");
                their_rows.push(rates(&call(Command::new(theirs).args(["-s", "1", "-f"]).arg(file))?));
            }
        }
    }
    println!("{kind}{}", if kind == "tmpfs" { "" } else { ", on an image on disk" });
    let mut tally = BTreeMap::new();
    let rows: Vec<String> = their_rows[0].iter().map(|(row, _)| row.clone()).collect();
    for row in &rows {
        *tally.entry(print_row(row, &our_rows, &their_rows)).or_insert(0) += 1;
    }
    let tally: Vec<String> = tally.iter().map(|(word, rows)| format!("{rows} {word}")).collect();
    println!("  of {} rows: {}\n", rows.len(), tally.join(", "));
    Ok(())
}

/// Rows by name, in their order.
type Rates = Vec<(String, f64)>;

/// Prints a row's comparison and gives its last word.
fn print_row(row: &str, ours: &[Rates], theirs: &[Rates]) -> &'static str {
    let of_run = |run: &Rates| run.iter().find(|(name, _)| name == row).map(|(_, rate)| *rate);
    let of = |runs: &[Rates]| -> Vec<f64> { runs.iter().filter_map(of_run).collect() };
    let (ours, theirs) = (of(ours), of(theirs));
    let found = ratio(&blocks(&ours), &blocks(&theirs));
    let Some((found, (low, high))) = found.and_then(|found| Some((found, found.interval?))) else {
        println!("  {row:<32} not measured by both");
        return "not measured by both";
    };
    let word = if found.tells_apart() && (found.value - 1.0).abs() > SAME_WITHIN {
        "DIFFERS"
    } else if low > 1.0 - SURE_WITHIN && high < 1.0 + SURE_WITHIN {
        "agrees"
    } else {
        "not sure"
    };
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (ours, theirs) = (mean(&ours), mean(&theirs));
    let interval = match high / low {
        ratio if ratio < 10.0 => format!("({low:.3} to {high:.3})"),
        _ => "(a factor of 10 and more)".to_owned(),
    };
    println!("  {row:<32} {:.3} {interval:<16}  {ours:>9.0} / {theirs:>9.0} a second  {word}", found.value);
    word
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
