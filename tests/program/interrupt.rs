//! Ctrl-C: one undoes what is built and keeps what is complete; a second one leaves at once.

use crate::program::machine::traces;
use crate::program::workshop::{Workshop, can_build_stacks, run_id, said};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Output, Stdio};
use std::time::Duration;

const PLAN: &str = r#"
name = "interrupted"
seed = 7
blocks = 2

[stack.ext4]
device = { loop = "256MiB", in = "IMAGES" }
filesystem = "ext4"

[stack.tmp]
filesystem = { tmpfs = "256MiB" }
wal = "ext4"

[postgres]
settings = { shared_buffers = "16MB", max_wal_size = "64MB", min_wal_size = "32MB" }

[workload.tpcb]
pgbench = { scale = 1, clients = 2, duration = "3s", warmup = "1s" }
"#;

/// A run with its events, in the middle of the measurement of its second trial.
struct Running {
    child: Child,
    events: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(shop: &Workshop) -> Running {
        let images = shop.path().join("images");
        fs::create_dir(&images).unwrap();
        let plan = shop.file("plan.toml", &PLAN.replace("IMAGES", images.to_str().unwrap()));
        let mut command = shop.pgstrata(&["run", "--json", plan.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut running = Running { child, events };
        running.wait_for(&["\"trial_done\""]);
        running.wait_for(&["\"step_started\"", "\"measure\""]);
        running.wait_for(&["\"second\""]);
        running
    }

    fn wait_for(&mut self, words: &[&str]) {
        let has_all = |line: &String| words.iter().all(|word| line.contains(word));
        assert!(self.events.by_ref().map_while(Result::ok).any(|line| has_all(&line)), "no event has {words:?}");
    }

    /// As a person does who knows the process, not its children.
    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    fn end(self) -> Output {
        // The rest of the events is read, so that nothing waits for a reader.
        let _events = std::thread::spawn(move || self.events.count());
        self.child.wait_with_output().unwrap()
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map(|list| list.map(|e| e.unwrap().path()).collect()).unwrap_or_default()
}

/// The records of complete trials with their inodes, and whatever else lies beside the trials.
fn trials(folder: &Path) -> Vec<(PathBuf, u64)> {
    let all = list(&folder.join("trials")).into_iter().flat_map(|case| list(&case));
    all.map(|trial| (trial.clone(), fs::metadata(trial.join("trial.json")).map_or(0, |record| record.ino()))).collect()
}

fn nothing_is_left(shop: &Workshop, id: &str) {
    assert!(traces(id).is_empty(), "{:?}", traces(id));
    assert!(list(&shop.path().join("images")).is_empty());
    let state = list(&shop.state()).into_iter().chain(list(&shop.state().join("ledger")));
    let state: Vec<PathBuf> = state.filter(|path| !path.ends_with("ledger")).collect();
    assert!(state.is_empty(), "{state:?}");
}

fn resumes_to_the_end(shop: &Workshop, folder: &Path, complete: &[(PathBuf, u64)]) {
    let output = shop.pgstrata(&["run", "--resume", folder.to_str().unwrap()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let now = trials(folder);
    assert_eq!(now.len(), 4, "{now:?}");
    assert!(complete.iter().all(|trial| now.contains(trial)), "{complete:?} was repeated: {now:?}");
    nothing_is_left(shop, &run_id(folder));
}

#[test]
fn an_interrupt_undoes_everything_and_the_run_can_resume() {
    if !can_build_stacks("one Ctrl-C") {
        return;
    }
    let shop = Workshop::new();
    let running = Running::start(&shop);
    running.interrupt();
    let output = running.end();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let folder = shop.run_folder();
    nothing_is_left(&shop, &run_id(&folder));
    let complete = trials(&folder);
    // On a busy machine the second may have ended before the signal came.
    assert!((1..4).contains(&complete.len()) && complete.iter().all(|trial| trial.1 != 0), "{complete:?}");
    assert!(folder.join("report.html").exists());
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    assert!(events.lines().last().unwrap().contains("\"interrupted\""), "{events}");
    resumes_to_the_end(&shop, &folder, &complete);
}

#[test]
fn a_second_interrupt_exits_at_once_and_clean_finishes() {
    if !can_build_stacks("two Ctrl-C") {
        return;
    }
    let shop = Workshop::new();
    let running = Running::start(&shop);
    running.interrupt();
    // Two of a signal at the very same moment are one; tearing down takes many times longer than this.
    std::thread::sleep(Duration::from_millis(15));
    running.interrupt();
    let output = running.end();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let folder = shop.run_folder();
    let id = run_id(&folder);
    assert!(!folder.join("report.html").exists(), "it ended in order instead of at once");
    assert!(!traces(&id).is_empty(), "it had undone everything");
    let cleaned = shop.pgstrata(&["clean"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", said(&cleaned));
    assert!(String::from_utf8_lossy(&cleaned.stdout).contains(&format!("run {id}: cleaned up")), "{}", said(&cleaned));
    nothing_is_left(&shop, &id);
    let complete: Vec<_> = trials(&folder).into_iter().filter(|(_, inode)| *inode != 0).collect();
    assert!((1..4).contains(&complete.len()), "{complete:?}");
    resumes_to_the_end(&shop, &folder, &complete);
}
