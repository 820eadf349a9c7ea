//! What keeping the latency of every operation costs: `make bench`. Prints ratios and goals, asserts nothing.
//!
//! On memory, where a synced write is two short system calls and any cost of ours shows most. The probe's own loop, the
//! two bare calls, pg_test_fsync and fio take turns, ABBA; each round is a block.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::cluster::install;
use pgstrata::host::Host;
use pgstrata::host::signals::Interrupt;
use pgstrata::host::ticks::Ticker;
use pgstrata::probe::operation::Overwrite;
use pgstrata::probe::tape::Tape;
use pgstrata::record::probe::Way;
use pgstrata::stats::interval::TrialMean;
use pgstrata::stats::ratio::{BlockMean, ratio};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// On memory.
const MEMORY: &str = "/dev/shm";
/// Rounds of our loop against the bare calls, and against the programs, which take at least a second.
const SHORT_ROUNDS: u32 = 40;
const LONG_ROUNDS: u32 = 10;
/// Operations of a short turn.
const OPERATIONS: usize = 100_000;
const BLOCK: usize = 8192;

fn main() {
    let folder = tempfile::Builder::new().prefix("pgstrata-bench-").tempdir_in(MEMORY).unwrap();
    let written = WrittenFile::of(folder);
    println!("One 8 kB write + fdatasync in memory ({MEMORY}), every latency kept\n");
    written.compare("the two bare system calls", 0.97, SHORT_ROUNDS, |written| Some(written.bare()));
    match pg_test_fsync() {
        Some(program) => written.compare("pg_test_fsync -s 1", 1.0, LONG_ROUNDS, |written| written.theirs(&program)),
        None => println!("skipped: no pg_test_fsync was found on this machine"),
    }
    match Command::new("fio").arg("--version").output() {
        Ok(_) => written.compare("fio --ioengine=psync --fdatasync=1", 1.5, LONG_ROUNDS, WrittenFile::fio),
        Err(e) => println!("skipped: fio: {e}"),
    }
}

fn pg_test_fsync() -> Option<PathBuf> {
    let found = install::find_all(&Host::this()).into_iter().map(|install| install.bin.join("pg_test_fsync"));
    found.into_iter().find(|program| program.exists())
}

/// A file as pg_test_fsync makes it: 16 MiB, written before.
struct WrittenFile {
    folder: TempDir,
    bytes: Vec<u8>,
    /// Where the aligned block begins.
    start: usize,
}

impl WrittenFile {
    fn of(folder: TempDir) -> WrittenFile {
        let bytes = vec![0x5a; 2 * BLOCK];
        let start = bytes.as_ptr().align_offset(BLOCK);
        std::fs::write(folder.path().join("file"), vec![1; 16 << 20]).unwrap();
        WrittenFile { folder, bytes, start }
    }

    fn file(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.path()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn block(&self) -> &[u8] {
        &self.bytes[self.start..self.start + BLOCK]
    }

    /// The probe's own loop, a second.
    fn ours(&self, span: Duration) -> f64 {
        let overwrite = Overwrite::new(self.file(), self.block(), 1, Way::Fdatasync);
        let mut tape = Tape::new(Ticker::of(&Host::this()));
        let (mut operations, mut seconds) = (0, 0.0);
        let until = Instant::now() + span;
        while operations == 0 || Instant::now() < until {
            tape.run(Duration::from_millis(30), (1, OPERATIONS), &Interrupt::never(), || overwrite.once()).unwrap();
            operations += tape.operations().count();
            seconds += tape.elapsed().as_secs_f64();
        }
        operations as f64 / seconds
    }

    /// Nothing but the two calls, and the clock at the beginning and the end.
    fn bare(&self) -> f64 {
        let (file, block) = (self.file(), self.block());
        let begun = Instant::now();
        for _ in 0..OPERATIONS {
            rustix::io::pwrite(&file, block, 0).unwrap();
            rustix::fs::fdatasync(&file).unwrap();
        }
        OPERATIONS as f64 / begun.elapsed().as_secs_f64()
    }

    /// Its second row, one write by fdatasync; what comes after that is not waited for.
    fn theirs(&self, program: &Path) -> Option<f64> {
        let file = self.folder.path().join("theirs");
        let mut command = Command::new(program);
        command.args(["-s", "1", "-f"]).arg(&file).env("LC_ALL", "C");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map_while(Result::ok).find(|line| line.trim_start().starts_with("fdatasync"));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(std::fs::remove_file(file));
        line?.split_whitespace().nth(1)?.parse().ok()
    }

    fn fio(&self) -> Option<f64> {
        let mut command = Command::new("fio");
        let fixed = ["--name=sync", "--ioengine=psync", "--fdatasync=1", "--bs=8k", "--rw=write:-8k", "--filesize=16m"];
        let timed = ["--time_based", "--runtime=1", "--output-format=json", "--overwrite=1", "--thread"];
        command.args(fixed).args(timed).arg(format!("--filename={}", self.path().display()));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let json: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
        json["jobs"][0]["write"]["iops"].as_f64()
    }

    /// Ours over another's, in turn.
    fn compare(&self, name: &str, goal: f64, rounds: u32, other: impl Fn(&WrittenFile) -> Option<f64>) {
        let span = Duration::from_millis(if rounds == SHORT_ROUNDS { 100 } else { 1000 });
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    ours.push(self.ours(span));
                } else if let Some(rate) = other(self) {
                    theirs.push(rate);
                }
            }
        }
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let Some(found) = ratio(&blocks(&ours), &blocks(&theirs)).filter(|_| ours.len() == theirs.len()) else {
            println!("skipped: {name} gave no rate");
            return;
        };
        let (low, high) = found.interval.unwrap();
        println!(
            "ours / {name}: {:.3} (95 % {low:.3} to {high:.3}, {rounds} pairs, {:.0} / {:.0} a second); goal at least {goal}",
            found.value,
            mean(&ours),
            mean(&theirs)
        );
    }
}

fn blocks(rates: &[f64]) -> Vec<BlockMean> {
    let block = |(block, mean): (u32, &f64)| BlockMean { block, trial: TrialMean { mean: *mean, within: None } };
    (0..).zip(rates).map(block).collect()
}
