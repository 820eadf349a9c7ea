//! Run folders that come from somebody else, who has put something else in the place of a file.

use crate::report::runs;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What the program says and whether it succeeds; it fails the test when it hangs.
fn said(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let log = folder.join("said");
    let out = File::create(&log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgstrata"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).stderr(out.try_clone().unwrap()).stdout(out);
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{args:?} hangs: {}", fs::read_to_string(log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    (status.code(), fs::read_to_string(log).unwrap())
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn the_report_replaces_only_the_entry_with_its_name() {
    let place = tempfile::tempdir().unwrap();
    let run = runs::make(place.path(), "0ld", 1.0);
    let victim = place.path().join("victim");
    fs::write(&victim, "keep").unwrap();
    for name in ["report.html", "trials.parquet"] {
        let file = run.join(name);
        for what in ["link", "dangling link", "device", "pipe", "twin"] {
            drop(fs::remove_file(&file));
            match what {
                "link" => symlink(&victim, &file).unwrap(),
                "dangling link" => symlink(place.path().join("nothing"), &file).unwrap(),
                "device" => symlink("/dev/full", &file).unwrap(),
                "pipe" => make_pipe(&file),
                _ => fs::hard_link(&victim, &file).unwrap(),
            }
            let (code, text) = said(place.path(), &["report", run.to_str().unwrap()]);
            assert_eq!(code, Some(0), "{what} {name}: {text}");
            assert!(fs::symlink_metadata(&file).unwrap().is_file(), "{what} {name}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "keep", "{what} {name}");
        }
        // A report that cannot be written is not announced.
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        let (code, text) = said(place.path(), &["report", run.to_str().unwrap()]);
        assert!(code == Some(5) && text.contains(file.to_str().unwrap()) && !text.contains("\nreport  "), "{text}");
        fs::remove_dir(&file).unwrap();
    }
    assert!(!place.path().join("nothing").exists());
    // Where the person points, a link is followed.
    symlink(&victim, place.path().join("mine.html")).unwrap();
    assert_eq!(said(place.path(), &["report", run.to_str().unwrap(), "-o", "mine.html"]).0, Some(0));
    assert!(fs::read_to_string(&victim).unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn no_command_follows_links_or_pipes_in_a_run_folder() {
    let place = tempfile::tempdir().unwrap();
    let run = runs::make(place.path(), "0ld", 1.0);
    let other = runs::make(place.path(), "0new", 1.0);
    let (run_name, other_name) = (run.to_str().unwrap(), other.to_str().unwrap());
    fs::create_dir(run.join("verdicts")).unwrap();
    // Of different blocks, so that they can be merged.
    for stack in ["ext4", "xfs"] {
        fs::remove_dir_all(run.join("trials").join(stack).join("2")).unwrap();
        fs::remove_dir_all(run.join("trials").join(stack).join("3")).unwrap();
        fs::remove_dir_all(other.join("trials").join(stack).join("1")).unwrap();
    }
    let commands: [&[&str]; 3] = [
        &["report", run_name],
        &["compare", run_name, other_name],
        &["merge", run_name, other_name, "--into", "merged"],
    ];
    for name in ["run.json", "plan.toml", "events.jsonl", "trials/ext4/1/trial.json", "verdicts/ext4.json"] {
        let file = run.join(name);
        let kept = place.path().join("kept");
        if file.exists() {
            fs::rename(&file, &kept).unwrap();
        } else {
            fs::write(&kept, "{}").unwrap();
        }
        let length = fs::metadata(&kept).unwrap().len();
        for what in ["link", "pipe"] {
            if what == "link" {
                symlink(&kept, &file).unwrap();
            } else {
                make_pipe(&file);
            }
            for command in commands {
                let (code, text) = said(place.path(), command);
                let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let is_named = unfolded.contains(&format!("{name} is a")) && unfolded.contains("only regular files");
                // A comparison counts a damaged trial as one that is not there, and a merge takes the others.
                let may_go_without = name.starts_with("trials") && command[0] != "report";
                assert!(is_named || may_go_without, "{what} {name}: {command:?}: {code:?} {text}");
                assert_eq!(fs::metadata(&kept).unwrap().len(), length, "{what} {name}: {command:?}");
                drop(fs::remove_dir_all(place.path().join("merged")));
            }
            fs::remove_file(&file).unwrap();
        }
        if name.starts_with("verdicts") {
            continue;
        }
        fs::rename(&kept, &file).unwrap();
    }
}
