//! A plan of every volume, of every device that the kernel makes and of filesystems that few kernels have: from end to end, and
//! killed while it builds them. What the machine lacks is skipped, by name; a guest has it (`tests/guest/layers.rs`).

use crate::depth::is_full;
use crate::program::kill::{Moment, run_and_kill};
use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, run_id, said, skipped};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const VOLUMES: &str = include_str!("../plans/volumes.toml");
const SEED: u64 = 20_261_122;
/// Longest random delay after a build has begun, milliseconds.
const LONGEST_MS: u64 = 4000;

/// The plan with its images in the workshop, and with a seed, which says what is built first.
fn plan(workshop: &Workshop, seed: u64) -> PathBuf {
    let image = format!("{{ in = \"{}\", loop = ", workshop.path().display());
    let text = VOLUMES.replace("{ loop = ", &image).replace("blocks = 1", &format!("blocks = 1\nseed = {seed}"));
    workshop.file("volumes.toml", &text)
}

/// Pools, and block devices but loop devices, which other tests make, too.
fn devices() -> BTreeSet<String> {
    let names = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let devices = names.filter(|name| !name.starts_with("loop") && !name.starts_with("ram"));
    let pools = Command::new("zpool").args(["list", "-H", "-o", "name"]).output();
    let pools = pools.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    devices.chain(pools.lines().map(|name| format!("pool {name}"))).collect()
}

/// The outcome of each trial of a run, by case.
fn outcomes(folder: &Path) -> Vec<(String, serde_json::Value)> {
    let cases = fs::read_dir(folder.join("trials")).unwrap().map(|entry| entry.unwrap().path());
    let read = |case: PathBuf| {
        let record: serde_json::Value = serde_json::from_slice(&fs::read(case.join("1/trial.json")).unwrap()).unwrap();
        (case.file_name().unwrap().to_string_lossy().into_owned(), record["outcome"].clone())
    };
    cases.map(read).collect()
}

#[test]
fn every_kernel_volume_and_device_is_measured_and_removed() {
    const NAME: &str = "a run of every volume";
    if !can_build_stacks(NAME) {
        return;
    }
    let before = devices();
    let workshop = Workshop::new();
    let output = workshop.run(&plan(&workshop, SEED));
    let outcomes = outcomes(&workshop.run_folder());
    assert_eq!(outcomes.len(), VOLUMES.matches("\n[stack.").count(), "{}", said(&output));
    for (case, outcome) in outcomes {
        let text = outcome.to_string();
        assert!(text.contains("measured") || text.contains("not_run"), "{case}: {text}\n{}", said(&output));
        if text.contains("not_run") {
            skipped(NAME, &format!("{case}: {text}"));
        }
    }
    assert_eq!(devices(), before, "{}", said(&output));
    assert_eq!(traces(workshop.path().to_str().unwrap()), BTreeSet::new());
}

#[test]
fn clean_removes_all_volumes_of_a_run_killed_while_building() {
    if !can_build_stacks("kill -9 at random moments of building volumes") {
        return;
    }
    let before = devices();
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    println!("seed {SEED}");
    for kill in 0..if is_full() { 8 } else { 4 } {
        let workshop = Workshop::new();
        let delay = Duration::from_millis(random.random_range(0..=LONGEST_MS));
        let killed = run_and_kill(
            &workshop,
            &[plan(&workshop, kill).to_str().unwrap()],
            None,
            Moment { step: "build", trial: 0, delay },
            || (),
        );
        println!("kill {kill}: {delay:?} into a build: {}", if killed { "killed" } else { "had ended" });
        let cleaned = workshop.pgstrata(&["clean"]).output().unwrap();
        assert!(cleaned.status.success(), "kill {kill}: {}", said(&cleaned));
        assert_eq!(devices(), before, "kill {kill}, {delay:?} into a build; clean said {}", said(&cleaned));
        let left: Vec<String> = [run_id(&workshop.run_folder()).as_str(), workshop.path().to_str().unwrap()]
            .into_iter()
            .flat_map(traces)
            .collect();
        assert!(left.is_empty(), "kill {kill}: {left:?}");
    }
}
