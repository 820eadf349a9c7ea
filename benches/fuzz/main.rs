//! Mangled text through every reader of foreign text: `make fuzz`. Each kind is tried for FUZZ_SECONDS (60) and at least
//! FUZZ_VARIANTS (100 000) variants of its fixtures, from FUZZ_SEED (1) on; FUZZ_KIND picks one kind by a part of its
//! name. FUZZ_VARIANTS=1 FUZZ_SECONDS=0 writes the one variant of a seed to target/fuzz-finds, to look at it.
//!
//! Nothing may panic or hang, every number must stand in the line it names, whole and with its sign, and its value must
//! be that number in another unit. What breaks a rule is written to target/fuzz-finds, and the exit code is 1.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program for developers")]

mod check;
mod corpus;
mod mutate;
mod watchdog;

use corpus::Corpus;
use mutate::Random;
use pgstrata::host::time::{now, thread_cpu_us};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use watchdog::Watchdog;

/// How long and how much.
struct Effort {
    seconds: u64,
    variants: u64,
    seed: u64,
}

fn env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn main() -> ExitCode {
    let effort =
        Effort { seconds: env("FUZZ_SECONDS", 60), variants: env("FUZZ_VARIANTS", 100_000), seed: env("FUZZ_SEED", 1) };
    let only = std::env::var("FUZZ_KIND").unwrap_or_default();
    // What panics is caught and written down; a thousand traces would hide it.
    let all = corpus::all();
    // From here on a panic is a find.
    std::panic::set_hook(Box::new(|_| {}));
    let watchdog = Watchdog::start();
    let found: u64 = all.iter().filter(|one| one.name.contains(&only)).map(|one| fuzz(one, &effort, &watchdog)).sum();
    println!("{found} variants broke a rule");
    ExitCode::from(u8::from(found > 0))
}

/// Tries one corpus; how many variants broke a rule.
fn fuzz(corpus: &Corpus, effort: &Effort, watchdog: &Watchdog) -> u64 {
    const MOST_WRITTEN: u64 = 20;
    let (begun, mut tried, mut found, mut numbers) = (now(), 0, 0, 0);
    let mut slowest = (0.0, 0);
    while tried < effort.variants || begun.elapsed().as_secs() < effort.seconds {
        let seed = effort.seed.wrapping_add(tried);
        let variant = corpus.variant(&mut Random::new(seed));
        watchdog.begins(corpus.name, seed, &variant);
        if effort.variants == 1 && tried == 0 {
            println!("{}, seed {seed}: {}", corpus.name, keep(corpus.name, seed, &variant));
        }
        let cpu = thread_cpu_us();
        let verdict = catch_unwind(AssertUnwindSafe(|| (corpus.check)(&variant)));
        let us = (thread_cpu_us() - cpu) as f64 / (variant.len() as f64 / 1024.0 + 1.0);
        if us > slowest.0 {
            slowest = (us, seed);
        }
        tried += 1;
        let why = match verdict {
            Ok(Ok(read)) => {
                numbers += read;
                continue;
            }
            Ok(Err(why)) => why,
            Err(panic) => panic.downcast_ref::<String>().map_or("it panics", String::as_str).to_owned(),
        };
        found += 1;
        if found <= MOST_WRITTEN {
            println!("{}, seed {seed}: {why}\n  {}", corpus.name, keep(corpus.name, seed, &variant));
        }
    }
    println!(
        "{}: {tried} variants of {} texts in {} s, {numbers} numbers checked, {found} bad; the slowest took {:.0} us a KiB (seed {})",
        corpus.name,
        corpus.texts.len(),
        begun.elapsed().as_secs(),
        slowest.0,
        slowest.1
    );
    found
}

/// Writes a variant where it can be looked at.
fn keep(name: &str, seed: u64, variant: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fuzz-finds");
    std::fs::create_dir_all(&folder).unwrap();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = folder.join(format!("{name}-{seed}"));
    std::fs::write(&path, variant).unwrap();
    path.display().to_string()
}
