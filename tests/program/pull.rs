//! `pgstrata pull` with `pgstrata witness`: what the commands say and keep. Killed processes are no power cut, so that is all
//! that is tried here; a disk that loses its power is in the tests of `cut`.

use crate::program::environment::HOSTILE;
use crate::program::workshop::{Workshop, can_build_stacks, said, stderr};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ended with the test, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The only file or folder in `folder` whose name begins so.
fn beginning(folder: &Path, with: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(with))
}

#[test]
fn a_network_witness_checks_commits_after_a_restart() {
    if !can_build_stacks("pulling the plug") {
        return;
    }
    let shop = Workshop::new();
    fs::create_dir(shop.path().join("disk")).unwrap();
    fs::create_dir(shop.path().join("kept")).unwrap();
    let kept = shop.path().join("kept");
    let mut witness = Running(
        shop.pgstrata(&["witness", "--listen", "127.0.0.1:0", "--keep", kept.to_str().unwrap()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(witness.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap().trim_end_matches(',');
    let same_disk = shop.pgstrata(&["pull", "disk", "--witness", kept.join("w").to_str().unwrap()]).output().unwrap();
    assert_eq!(same_disk.status.code(), Some(2), "{}", said(&same_disk));
    assert!(stderr(&same_disk).contains("is on the filesystem whose power is to be cut"), "{}", said(&same_disk));
    let mut pull = shop.pgstrata(&["pull", "disk", "--witness", address, "--clients", "2"]);
    let committing = Running(pull.envs(HOSTILE.iter().copied()).spawn().unwrap());
    let began = Instant::now();
    let lines = || beginning(&kept, "pull-").map_or(0, |path| fs::read_to_string(path).unwrap().lines().count());
    while lines() < 20 {
        assert!(began.elapsed() < Duration::from_secs(300), "no commit was kept");
        sleep(Duration::from_millis(50));
    }
    drop(committing);
    let pulls = beginning(&shop.results(), "pull-").unwrap();
    let resume = |more: &[&str]| {
        let args = [&["pull", "--resume", pulls.to_str().unwrap(), "--judge"], more].concat();
        shop.pgstrata(&args).envs(HOSTILE.iter().copied()).output().unwrap()
    };
    let refused = resume(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(stderr(&refused).contains("not restarted"), "{}", said(&refused));
    let judged = resume(&["--drive-only"]);
    assert_eq!(judged.status.code(), Some(0), "{}", said(&judged));
    let text = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(text.contains("pull 1: holds; ") && text.contains("at most 95.0 % of such pulls"), "{text}");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(pulls.join("pull.json")).unwrap()).unwrap();
    assert_eq!(record["rounds"][0]["end"]["verdict"]["verdict"], "holds", "{record}");
    assert!(record["rounds"][0]["end"]["acknowledged"].as_u64().unwrap() >= 20, "{record}");
    // Nothing is left of it on the machine, and a second verdict on the same pull is refused.
    let again = resume(&["--drive-only"]);
    assert!(stderr(&again).contains("no power cut to judge"), "{}", said(&again));
    let ledgers = fs::read_dir(shop.state().join("ledger")).unwrap().count();
    assert_eq!(ledgers, 0);
}
