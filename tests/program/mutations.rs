//! A run folder that was damaged in 60 ways, 500 in the full suite: each gives a report or an error, soon, and no trial gets another's figures.

use crate::depth::is_full;
use crate::program::workshop::{Workshop, can_build_stacks};
use pgstrata::analyse::load;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

const SEED: u64 = 20_261_122;
const LIMIT: Duration = Duration::from_secs(60);

/// Every file that a report reads.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = ["run.json", "plan.toml", "events.jsonl"].map(|name| folder.join(name)).to_vec();
    for case in ["one.tpcb", "another-with-a-long-name.tpcb"] {
        for trial in ["1", "2"] {
            for name in ["trial.json", "seconds.parquet", "latency.hist"] {
                found.push(folder.join("trials").join(case).join(trial).join(name));
            }
        }
    }
    assert!(found.iter().all(|path| path.is_file()), "{found:?}");
    found
}

/// The figures of each trial, by case and number; or the error.
fn figures(folder: &Path) -> Result<BTreeMap<(String, u64), Value>, (String, String)> {
    let (send, receive) = channel();
    let path = folder.to_path_buf();
    let reader = std::thread::spawn(move || send.send(load::findings(&path)).unwrap());
    let found = receive.recv_timeout(LIMIT);
    assert!(found.is_ok() || !reader.is_finished(), "it panicked");
    let found = found.unwrap_or_else(|_| panic!("it hangs"));
    let findings = found.map_err(|e| (format!("{:?}", e.kind()), e.chain()))?;
    let trials = serde_json::to_value(&findings.trials).unwrap();
    let key = |trial: &Value| (trial["case"].as_str().unwrap().to_owned(), trial["trial"].as_u64().unwrap());
    Ok(trials
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| (key(trial), serde_json::json!([trial["rate"], trial["throughput"]])))
        .collect())
}

/// Damages one file; says how.
fn mutate(path: &Path, all: &[PathBuf], random: &mut ChaCha8Rng) -> String {
    let mut bytes = fs::read(path).unwrap();
    let at = random.random_range(0..bytes.len().max(1));
    let what = random.random_range(0..10);
    match what {
        0..=3 => {
            for _ in 0..=what {
                let at = random.random_range(0..bytes.len());
                bytes[at] ^= random.random_range(1..=255u8);
            }
            fs::write(path, bytes).unwrap();
        }
        4 => fs::write(path, &bytes[..at]).unwrap(),
        5 => fs::write(path, [&bytes[..at], &bytes].concat()).unwrap(),
        6 => {
            let twins: Vec<&PathBuf> =
                all.iter().filter(|it| it.file_name() == path.file_name() && *it != path).collect();
            if let Some(twin) = twins.choose(random) {
                fs::copy(twin, path).unwrap();
            }
        }
        _ => {
            fs::remove_file(path).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            match what {
                7 => rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap(),
                8 => File::create(path).unwrap().set_len(10 << 30).unwrap(),
                _ => {}
            }
        }
    }
    format!("{what} at {at}")
}

#[test]
fn a_damaged_run_folder_never_panics_hangs_or_swaps_figures() {
    if !can_build_stacks("mutations of a run folder") {
        return;
    }
    let shop = Workshop::new();
    let folder = shop.finished();
    let all = files(&folder);
    let whole = figures(&folder).unwrap();
    assert_eq!(whole.len(), 4, "{whole:?}");
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut errors, mut fewer) = (0, 0);
    let mutations = if is_full() { 500 } else { 60 };
    for n in 0..mutations {
        let path = &all[n % all.len()];
        let before = fs::read(path).unwrap();
        let how = mutate(path, &all, &mut random);
        match figures(&folder) {
            Err((kind, message)) => {
                assert!(matches!(&*kind, "Store" | "User"), "{} {how}: {kind} {message}", path.display());
                errors += 1;
            }
            Ok(found) => {
                fewer += usize::from(found.len() < whole.len());
                for (key, figures) in &found {
                    let swapped = whole.iter().any(|(other, theirs)| other != key && theirs == figures);
                    assert!(!swapped, "{} {how}: {key:?} has another trial's figures", path.display());
                }
            }
        }
        if fs::symlink_metadata(path).is_ok() {
            fs::remove_file(path).unwrap();
        }
        fs::write(path, before).unwrap();
    }
    assert!(
        errors > mutations / 10 && fewer > mutations / 5,
        "{errors} errors, {fewer} with trials left out: nothing was damaged"
    );
    assert_eq!(figures(&folder).unwrap(), whole);
}
