//! Interrupts, kills, closed pipes: nothing is left, or what is left is known.

use crate::probe::faults::can_fuse;
use crate::probe::fuse::{Faults, Fuse};
use crate::probe::ground::folder;
use crate::probe::program::{Running, command, left, nothing_is_left, probe};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longer than any test waits.
const LONG: &str = "600";

fn ends_in_order(folder: &Path, signal: Signal) {
    let running = Running::midway(folder, LONG);
    let began = Instant::now();
    running.send(signal);
    let ended = running.end().with_code(130);
    assert!(ended.stdout.is_empty(), "{}", ended.said());
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    nothing_is_left(folder);
}

#[test]
fn an_interrupt_ends_the_probe_and_leaves_nothing() {
    let folder = folder();
    ends_in_order(folder.path(), Signal::INT);
    ends_in_order(folder.path(), Signal::TERM);
}

#[test]
fn an_interrupt_is_heard_while_the_files_are_made() {
    let folder = folder();
    let running = Running::start(&mut command(folder.path(), &["--seconds", LONG]));
    // From here on it has its handlers, or falls before it made anything.
    while left(folder.path()).is_empty() {
        std::thread::yield_now();
    }
    running.send(Signal::INT);
    running.end().with_code(130);
    nothing_is_left(folder.path());
}

#[test]
fn an_interrupt_is_heard_on_a_slow_filesystem() {
    if !can_fuse("interrupt on a slow FUSE") {
        return;
    }
    let below = folder();
    let slow = Faults { delay: Duration::from_millis(20), ..Faults::default() };
    let fuse = Fuse::mount(below.path(), slow);
    ends_in_order(&fuse.mount, Signal::INT);
    nothing_is_left(below.path());
}

#[test]
fn the_folder_of_a_killed_probe_is_kept_and_reported() {
    let folder = folder();
    fs::write(folder.path().join("mine"), "mine").unwrap();
    let running = Running::midway(folder.path(), LONG);
    running.send(Signal::KILL);
    assert_eq!(running.end().code, None);
    let dead = left(folder.path());
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let name = dead[0].file_name().unwrap().to_str().unwrap();

    let ended = Running::start(&mut command(folder.path(), &["--seconds", "1"])).end().with_code(0);
    assert!((ended.stdout() + &ended.stderr()).contains(name), "{}", ended.said());
    let ended = Running::start(&mut command(folder.path(), &["--seconds", "1", "--json"])).end().with_code(0);
    let notes = ended.result().record.notes;
    assert!(notes.iter().any(|note| note.contains(name)), "{notes:?}");
    assert_eq!(left(folder.path()), dead, "not its own, not its to remove");
    assert_eq!(fs::read(folder.path().join("mine")).unwrap(), b"mine");
}

#[test]
fn concurrent_probes_of_a_folder_keep_each_others_files() {
    let folder = folder();
    let other = Running::midway(folder.path(), LONG);
    let ended = Running::start(&mut command(folder.path(), &["--json", "--seconds", "1"])).end();
    let living = left(folder.path());
    assert_eq!(living.len(), 1, "{living:?}");
    let name = living[0].file_name().unwrap().to_str().unwrap();
    let notes = ended.with_code(0).result().record.notes;
    let advice = notes.iter().find(|note| note.contains(name) && (note.contains("killed") || note.contains("rm ")));
    assert!(advice.is_none(), "the other one is alive: {advice:?}");
    other.send(Signal::INT);
    other.end().with_code(130);
    nothing_is_left(folder.path());
}

#[test]
fn a_reader_that_leaves_after_one_line_does_no_harm() {
    let folder = folder();
    for args in [&["--seconds", "1"][..], &["--seconds", "1", "--csv"], &["--seconds", "1", "--json"]] {
        let mut child = command(folder.path(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        assert!(!errors.contains("panicked") && !first.is_empty(), "{args:?}: {errors}");
        nothing_is_left(folder.path());
    }
}

#[test]
fn nothing_to_write_results_to_is_an_error() {
    let folder = folder();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command(folder.path(), &["--seconds", "1"]).stdout(full).output().unwrap();
    assert!(!output.status.success() && output.status.code() != Some(101), "{output:?}");
    nothing_is_left(folder.path());
    probe(folder.path(), &["--seconds", "1"]).with_code(0);
}
