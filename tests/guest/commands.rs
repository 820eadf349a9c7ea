//! Commands in a guest.

use super::ground::{SUITE, guest, guest_in_full, in_guest, pgstrata, said, stderr};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_guest_command_returns_streams_and_exit_code_without_network() {
    let Some(_guest) = guest(SUITE) else { return };
    let script = "read line; echo \"out $line\"; echo err >&2; ls /sys/class/net; id -u; exit 7";
    let mut child = pgstrata(&["guest", "run", "--suite", SUITE, "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out in\nlo\n0\n", "{}", said(&output));
    assert_eq!(stderr(&output), "err\n");
}

#[test]
fn much_output_and_much_input_come_through_whole() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let text: Vec<u8> = (0..3_000_000u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mut child = pgstrata(&["guest", "run", "--suite", SUITE, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let sent = text.clone();
    let feeder = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success() && output.stdout == text, "{} bytes came", output.stdout.len());
}

#[test]
fn what_a_guest_writes_is_gone_with_it() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let output = in_guest(SUITE, &["sh", "-c", "echo x > /etc/left && sync && cat /etc/left"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!in_guest(SUITE, &["cat", "/etc/left"]).status.success());
}

#[test]
fn a_command_over_its_limit_is_killed_and_says_so() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let begun = Instant::now();
    let output = pgstrata(&["guest", "run", "--suite", SUITE, "--limit", "2s", "--", "sleep", "600"]).output().unwrap();
    assert_eq!(output.status.code(), Some(124), "{}", said(&output));
    assert!(stderr(&output).contains("limit"), "{}", said(&output));
    assert!(begun.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let Some(_guest) = guest_in_full(SUITE) else { return };
    let output = in_guest(SUITE, &["no-such-program"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(stderr(&output).contains("no-such-program"), "{}", said(&output));
}

#[test]
fn the_guest_has_what_hosts_lack() {
    for suite in ["bookworm", "trixie"] {
        let Some(_guest) = guest_in_full(suite) else { continue };
        let script = "set -e; ls -1 /sys/kernel/debug >/dev/null; ! command -v cc; ! test -e /usr/include/linux
            for module in zfs f2fs nilfs2 jfs btrfs xfs raid456 raid10 dm-thin-pool dm-crypt dm-delay dm-flakey dm-log-writes \
                null_blk zram bcache scsi_debug loop nvme; do modprobe $module || { echo no $module; exit 1; }; done
            truncate -s 128M /var/tmp/a /var/tmp/b /var/tmp/c
            for i in a b c; do losetup -f --show /var/tmp/$i; done
            zpool create -o cachefile=none tank raidz1 /dev/loop0 /dev/loop1 /dev/loop2
            zfs create -o recordsize=8k tank/data; zfs get -Hp -o value recordsize tank/data; zpool destroy tank
            pgstrata --version; pgstrata doctor | head -5";
        let output = in_guest(suite, &["bash", "-c", script]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("8192\npgstrata "), "{suite}: {}", said(&output));
    }
}
