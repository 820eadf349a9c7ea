//! The ways in which a guest ends: each is an error that names the cause, soon, and nothing is left running.

use super::ground::{SUITE, Twin, guest_in_full, in_guest, pgstrata, qemu_of, said, set_mode, stderr};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A guest whose command has begun.
fn begun(script: &str) -> (std::process::Child, u32) {
    let mut child = pgstrata(&["guest", "run", "--suite", SUITE, "--", "sh", "-c", &format!("echo begun; {script}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    if line != "begun\n" {
        panic!("{line:?} {}", said(&child.wait_with_output().unwrap()));
    }
    let qemu = qemu_of(child.id()).unwrap();
    (child, qemu)
}

fn is_gone(pid: u32) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_killed_qemu_is_noticed_at_once() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (child, qemu) = begun("sleep 600");
    let killed = Instant::now();
    signal(qemu, "-KILL");
    let output = child.wait_with_output().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(60), "{:?}", killed.elapsed());
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(stderr(&output).contains("QEMU was killed by signal 9"), "{}", said(&output));
}

#[test]
fn qemu_does_not_outlive_the_program() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (mut child, qemu) = begun("sleep 600");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_gone(qemu));
}

#[test]
fn qemu_is_never_root() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (child, qemu) = begun("sleep 600");
    let status = std::fs::read_to_string(format!("/proc/{qemu}/status")).unwrap();
    let ids = status.lines().find(|line| line.starts_with("Uid:")).unwrap().split_whitespace();
    assert!(ids.skip(1).all(|id| id != "0"), "{status}");
    signal(child.id(), "-INT");
    child.wait_with_output().unwrap();
}

#[test]
fn an_interrupt_reaches_the_command() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let (child, qemu) = begun("trap 'echo caught; exit 3' INT; while :; do sleep 0.1; done");
    signal(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(is_gone(qemu));
}

#[test]
fn a_panic_is_told_with_the_consoles_last_lines() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let output = in_guest(SUITE, &["sh", "-c", "echo c > /proc/sysrq-trigger; sleep 60"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let text = stderr(&output);
    assert!(
        text.contains("the guest's kernel panicked") && text.contains("last lines of the guest's console"),
        "{text}"
    );
}

#[test]
fn memory_that_runs_out_is_named() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let output = in_guest(SUITE, &["sh", "-c", "tail /dev/zero"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(stderr(&output).contains("ran out of its 2 GiB of memory"), "{}", said(&output));
}

#[test]
fn a_full_image_is_the_commands_error() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let output = in_guest(SUITE, &["sh", "-c", "fallocate -l 100G /x; fallocate -l 20G /y || exit 9"]);
    assert_eq!(output.status.code(), Some(9), "{}", said(&output));
    assert!(stderr(&output).contains("No space left on device"), "{}", said(&output));
}

#[test]
fn a_damaged_image_says_how_to_make_it_anew() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let twin = Twin::of(SUITE);
    let image = twin.file(SUITE, "root.ext4");
    std::fs::remove_file(&image).unwrap();
    std::fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
    set_mode(&image, 0o644);
    let output = pgstrata(&["guest", "run", "--suite", SUITE, "--", "true"])
        .env("PGSTRATA_CACHE", twin.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let text = stderr(&output);
    assert!(text.contains("the root image is damaged") && text.contains("guest rm"), "{text}");
}

/// A QEMU that does `with_kvm` where it is asked for KVM, and is the real one otherwise.
fn broken_kvm(folder: &Path, with_kvm: &str) -> String {
    let real = ["/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join("qemu-system-x86_64"));
    let real = real.iter().find(|path| path.is_file()).unwrap();
    let script =
        format!("#!/bin/sh\ncase \" $* \" in *' -accel kvm '*) {with_kvm} ;; esac\nexec {} \"$@\"\n", real.display());
    let path = folder.join("qemu-system-x86_64");
    std::fs::write(&path, script).unwrap();
    set_mode(&path, 0o755);
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_broken_kvm_is_found_out_and_emulation_takes_over() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    if !Path::new("/dev/kvm").exists() {
        println!("skipped: a_broken_kvm_is_found_out_and_emulation_takes_over: there is no /dev/kvm");
        return;
    }
    for (with_kvm, why) in [("echo no vcpu >&2; exit 1", "no vcpu"), ("exec sleep 600", "within 20 s")] {
        let twin = Twin::of(SUITE);
        let path = broken_kvm(twin.path(), with_kvm);
        let run =
            |args: &[&str]| pgstrata(args).env("PGSTRATA_CACHE", twin.path()).env("PATH", &path).output().unwrap();
        let output = run(&["guest", "run", "--suite", SUITE, "--", "true"]);
        assert!(output.status.success(), "{}", said(&output));
        let status: serde_json::Value = serde_json::from_slice(&run(&["guest", "status", "--json"]).stdout).unwrap();
        assert_eq!(status["accelerator"], "tcg", "{status}");
        assert!(status["why"].as_str().unwrap().contains(why), "{status}");
    }
}
