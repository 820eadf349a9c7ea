//! A pgbench log of 1 GB, read by one core: `make bench`. Goals: 500 MB/s or more, memory that does not grow with it.
//!
//! The log is made while it is read, a piece of 32 MB over and over with its seconds going on, so that neither a disk nor
//! the page cache is measured. The time to make it is taken off by reading it once without looking at it.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

use pgstrata::host::time::thread_cpu_us;
use std::fmt::Write as _;
use std::io::Read;

const WHOLE: u64 = 1_000_000_000;
const PIECE: usize = 32 << 20;
const GOAL: f64 = 500.0;

fn main() {
    let piece = piece();
    for (columns, piece) in [("6 columns", &piece), ("8 columns", &with_further_columns(&piece))] {
        read(columns, piece, 10 * PIECE as u64);
        let small = peak_memory_kib();
        let (rate, cpu) = read(columns, piece, WHOLE);
        let grown = peak_memory_kib() - small;
        println!("pgbench -l of {} MB, {columns}: {rate:.0} MB/s of one core ({cpu:.2} s of it)", WHOLE / 1_000_000);
        println!("  goal: {GOAL:.0} MB/s: {}", if rate >= GOAL { "met" } else { "missed" });
        println!("  most memory: {} MB, {grown} KiB of it after the first 335 MB", peak_memory_kib() / 1024);
    }
}

/// Reads so many bytes as a log; MB/s and seconds of the processor.
fn read(columns: &str, piece: &[u8], bytes: u64) -> (f64, f64) {
    let begun = thread_cpu_us();
    std::io::copy(&mut Endless { piece, at: 0 }.take(bytes), &mut std::io::sink()).unwrap();
    let making = thread_cpu_us() - begun;
    let begun = thread_cpu_us();
    let reading = pgstrata::foreign::read("log", &mut Endless { piece, at: 0 }.take(bytes)).unwrap();
    let cpu = (thread_cpu_us() - begun).saturating_sub(making) as f64 / 1e6;
    let log = reading.log.unwrap();
    assert!(log.done > bytes / 100 && log.lines_unread <= 1, "{columns}: {} lines unread", log.lines_unread);
    (bytes as f64 / 1e6 / cpu, cpu)
}

/// A piece over and over.
struct Endless<'a> {
    piece: &'a [u8],
    at: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(self.piece.len() - self.at);
        into[..length].copy_from_slice(&self.piece[self.at..self.at + length]);
        self.at = (self.at + length) % self.piece.len();
        Ok(length)
    }
}

/// Lines as 16 clients make them at 20 000 transactions a second, with latencies from 100 us to some seconds.
fn piece() -> Vec<u8> {
    let (mut text, mut state) = (String::new(), 1u64);
    let mut number = 0u64;
    while text.len() < PIECE {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let latency = 100 + ((state >> 33) % 1000) * (1 + (state >> 60) * (state >> 60) * 20);
        let at = 1_403_826_720_000_000 + number * 50;
        writeln!(text, "{} {} {latency} 0 {} {}", number % 16, number / 16 + 1, at / 1_000_000, at % 1_000_000)
            .unwrap();
        number += 1;
    }
    text.into_bytes()
}

fn with_further_columns(piece: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(piece).unwrap();
    text.lines()
        .fold(String::new(), |mut out, line| {
            writeln!(out, "{line} {} 0", line.len() * 77).unwrap();
            out
        })
        .into_bytes()
}

/// Most memory that this process has had.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
