//! Builds that cannot be: each ends in an error that says what to do. Nothing is downloaded but lists of packages.

use super::ground::{pgstrata, said, stderr};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;

/// Builds in an empty cache.
fn build(args: &[&str]) -> Option<Output> {
    let there = |name: &str| {
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|d| std::path::Path::new(d).join(name).exists())
    };
    for program in ["mmdebstrap", "qemu-system-x86_64", "mke2fs"] {
        if !there(program) {
            println!("skipped: needs the program {program} (scripts/setup guest)");
            return None;
        }
    }
    let cache = tempfile::tempdir().unwrap();
    let output = pgstrata(&["guest", "build"]).args(args).env("PGSTRATA_CACHE", cache.path()).output().unwrap();
    let left: Vec<_> = std::fs::read_dir(cache.path().join("guest")).into_iter().flatten().flatten().collect();
    let chroots = left.iter().flat_map(|suite| std::fs::read_dir(suite.path().join(".modules.part"))).flatten();
    assert_eq!(chroots.count(), 0, "a chroot is left");
    Some(output)
}

/// A mirror that answers everything with 404.
fn empty_mirror() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/debian", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer) {
                    let answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                    if stream.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_suite_that_the_mirror_lacks_is_refused_with_those_that_work() {
    let Some(output) = build(&["--suite", "trixy", "--mirror", &empty_mirror()]) else { return };
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = stderr(&output);
    assert!(text.contains("no suite `trixy`") && text.contains("bookworm, trixie"), "{text}");
}

#[test]
fn a_mirror_that_cannot_be_reached_is_named() {
    let Some(output) = build(&["--mirror", "http://127.0.0.1:9/debian"]) else { return };
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let text = stderr(&output);
    assert!(text.contains("127.0.0.1") && text.contains("--mirror"), "{text}");
}

#[test]
fn a_guest_that_is_not_built_is_told_how_to_build() {
    let cache = tempfile::tempdir().unwrap();
    let output = pgstrata(&["guest", "run", "--", "true"]).env("PGSTRATA_CACHE", cache.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(stderr(&output).contains("pgstrata guest build --suite trixie"), "{}", said(&output));
    let status = pgstrata(&["guest", "status"]).env("PGSTRATA_CACHE", cache.path()).output().unwrap();
    assert_eq!(status.status.code(), Some(1), "{}", said(&status));
}
