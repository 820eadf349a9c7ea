//! The promise of the ledger: a run that is killed at any moment leaves nothing that `pgstrata clean` does not undo,
//! touches nothing else, goes on with `--resume`, and neither loses nor repeats a trial that was complete.
//!
//! A kill in every step of a trial, twenty in the full suite, each at a random moment; before every third the folder of the images
//! gets another name. Two tests, side by side, have every second kill each. The seed is printed.

use crate::depth::is_full;
use crate::program::machine::{shared_memory, still_there, traces};
use crate::program::workshop::{Workshop, can_build_stacks, run_id, said};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PLAN: &str = r#"
name = "killed"
seed = 7
blocks = 1
baseline = "ext4"

[stack.ext4]
device = { loop = "192MiB", in = "IMAGES" }
filesystem = "ext4"

[stack.tmp]
filesystem = { tmpfs = "256MiB" }
wal = "ext4"

[postgres]
settings = { shared_buffers = "16MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "1s", warmup = "1s" }
"#;

/// Of one block, so each has one trial.
const CASES: usize = 2;

const SEED: u64 = 20_261_121;
/// Each step's longest random delay after it has begun, milliseconds.
const STEPS: [(&str, u64); 9] = [
    ("check", 20),
    ("template", 2500),
    ("images", 900),
    ("build", 300),
    ("load", 1500),
    ("warm_up", 900),
    ("measure", 1200),
    ("tear_down", 400),
    ("store", 15),
];

#[test]
fn a_killed_run_resumes_without_losing_or_repeating_trials() {
    if can_build_stacks("kill -9 at random moments of a run") {
        kills_lose_and_repeat_no_trial(0);
    }
}

#[test]
fn runs_killed_in_other_steps_resume_without_losing_trials() {
    if can_build_stacks("kill -9 at further random moments of a run") {
        kills_lose_and_repeat_no_trial(1);
    }
}

/// Every second kill from this one on, the last one when a trial is complete, then the rest of the run.
fn kills_lose_and_repeat_no_trial(first: usize) {
    let workshop = Workshop::new();
    let images = workshop.path().join("images");
    fs::create_dir(&images).unwrap();
    let plan = workshop.file("plan.toml", &PLAN.replace("IMAGES", images.to_str().unwrap()));
    let bystander = Bystander::make(workshop.path());
    let place = workshop.path().to_str().unwrap();
    let before = traces(place);
    let mut random = ChaCha8Rng::seed_from_u64(SEED + first as u64);
    println!("seed {SEED}");
    let mut folder: Option<PathBuf> = None;
    let mut complete = BTreeMap::new();
    let all = if is_full() { 20 } else { STEPS.len() };
    let mut kills = first;
    while kills < all {
        let (step, longest_ms) = STEPS[kills % STEPS.len()];
        let delay = Duration::from_millis(random.random_range(0..=longest_ms));
        let renames = kills % 3 == 2;
        let now = if renames { workshop.path().join("renamed") } else { images.clone() };
        let meanwhile = || fs::rename(&images, &now).unwrap();
        // The last one in the last trial, so that there is one to lose.
        let trial = if kills + 2 < all { 0 } else { (CASES - 1).saturating_sub(complete.len()) };
        let killed = run_and_kill(
            &workshop,
            &[plan.to_str().unwrap()],
            folder.as_deref(),
            Moment { step, trial, delay },
            meanwhile,
        );
        let now = if now.exists() { now } else { images.clone() };
        println!("kill {kills}: {delay:?} into {step}, in {}: {killed}", now.display());
        folder = newest(&workshop.results()).or(folder);
        let id = folder.as_deref().map(run_id);
        let marks = || id.as_deref().into_iter().chain([place]);
        let memory: BTreeSet<String> = marks().flat_map(shared_memory).collect();
        let cleaned = workshop.pgstrata(&["clean"]).output().unwrap();
        assert!(cleaned.status.success(), "{}", said(&cleaned));
        let left: BTreeSet<String> = marks().flat_map(traces).chain(still_there(memory)).collect();
        assert_eq!(left, before, "after {delay:?} into {step}; clean said {}", said(&cleaned));
        assert!(fs::read_dir(&now).unwrap().next().is_none(), "an image is left");
        fs::rename(&now, &images).unwrap();
        let state: Vec<_> = walk(&workshop.state()).collect();
        assert!(state.is_empty(), "ledgers or templates are left: {state:?}");
        bystander.is_untouched();
        if let Some(folder) = &folder {
            let now = trials(folder);
            are_kept(&complete, &now);
            complete = now;
        }
        if killed {
            kills += 2;
        } else {
            // All trials are complete: begin another run for the kills that are left.
            (folder, complete) = (None, BTreeMap::new());
            fs::remove_dir_all(workshop.results()).unwrap();
        }
    }
    let folder = folder.unwrap();
    let output = workshop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let now = trials(&folder);
    assert!(now.len() == CASES && !complete.is_empty(), "{now:?} after {complete:?}");
    are_kept(&complete, &now);
    assert!(folder.join("report.html").exists());
    assert!(traces(&run_id(&folder)).is_empty());
    assert_eq!(traces(place), before);
    bystander.is_untouched();
}

fn are_kept(complete: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) {
    for (trial, identity) in complete {
        assert_eq!(now.get(trial), Some(identity), "the complete trial {trial} was lost or repeated");
    }
}

/// A while after a step of a trial has begun.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    pub step: &'a str,
    /// Which of those that are left, the first is 0.
    pub trial: usize,
    pub delay: Duration,
}

/// Starts or resumes the run, waits for the moment, does something, and kills it. False when it ended before.
pub fn run_and_kill(
    workshop: &Workshop,
    start: &[&str],
    folder: Option<&Path>,
    at: Moment<'_>,
    meanwhile: impl FnOnce(),
) -> bool {
    let mut args = vec!["run", "--json"];
    match folder {
        Some(folder) => args.extend(["--resume", folder.to_str().unwrap()]),
        None => args.extend(start),
    }
    let mut child = workshop.pgstrata(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(child.stdout.take().unwrap());
    let wanted = format!("\"step\":\"{}\"", at.step);
    let begins = |line: &String| line.contains("step_started") && line.contains(&wanted);
    if events.lines().map_while(Result::ok).filter(begins).nth(at.trial).is_none() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "it ended by itself with {}", said(&output));
        return false;
    }
    std::thread::sleep(at.delay);
    meanwhile();
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

/// Everything in the state folder but the empty folder of ledgers.
fn walk(state: &Path) -> impl Iterator<Item = PathBuf> {
    let inside = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|e| e.path());
    let ledgers = state.join("ledger");
    inside(state).chain(inside(&ledgers)).filter(move |path| *path != ledgers).collect::<Vec<_>>().into_iter()
}

/// The trials that are complete: path below the run folder, and the inode of their record.
fn trials(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let Ok(cases) = fs::read_dir(folder.join("trials")) else { return found };
    for case in cases.map(|e| e.unwrap().path()) {
        for trial in fs::read_dir(&case).unwrap().map(|e| e.unwrap().path()) {
            if !trial.file_name().unwrap().to_string_lossy().starts_with('.') {
                let record = fs::metadata(trial.join("trial.json")).unwrap();
                assert!(trial.join("seconds.parquet").exists() && trial.join("latency.hist").exists());
                found.insert(trial.strip_prefix(folder).unwrap().display().to_string(), record.ino());
            }
        }
    }
    found
}

fn newest(results: &Path) -> Option<PathBuf> {
    let list = fs::read_dir(results).ok()?;
    list.filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
}

/// Somebody else's loop device, mount and process: nothing of it may change.
struct Bystander {
    device: String,
    target: PathBuf,
    process: std::process::Child,
}

impl Bystander {
    fn make(folder: &Path) -> Bystander {
        let (image, target) = (folder.join("pgstrata-like.img"), folder.join("somebody"));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&target).unwrap();
        let run = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        run("mount", &[&device, target.to_str().unwrap()]);
        fs::write(target.join("precious"), "precious").unwrap();
        let process = Command::new("sleep").arg("3600").current_dir(&target).spawn().unwrap();
        Bystander { device, target, process }
    }

    fn is_untouched(&self) {
        assert_eq!(fs::read_to_string(self.target.join("precious")).unwrap(), "precious");
        assert!(Path::new(&format!("/proc/{}/cwd", self.process.id())).exists());
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        for command in [["umount", self.target.to_str().unwrap_or_default()], ["losetup", "-d"]] {
            let mut undo = Command::new(command[0]);
            undo.arg(command[1]);
            if command[0] == "losetup" {
                undo.arg(&self.device);
            }
            drop(undo.status());
        }
    }
}
