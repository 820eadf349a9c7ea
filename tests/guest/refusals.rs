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
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    let of_build = |path: &std::path::PathBuf| {
        let line = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*cache.path().to_string_lossy())
    };
    assert_eq!(processes.filter(of_build).count(), 0, "a process is left");
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
fn an_unavailable_suite_is_refused_with_the_available_ones() {
    let Some(output) = build(&["--suite", "trixy", "--mirror", &empty_mirror()]) else { return };
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let text = stderr(&output);
    assert!(text.contains("no suite `trixy`") && text.contains("bookworm, trixie"), "{text}");
}

/// The address of Debian's packages that apt of this machine uses.
fn machines_mirror() -> Option<String> {
    let folder = std::fs::read_dir("/etc/apt/sources.list.d").ok();
    let files = folder.into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = std::iter::once("/etc/apt/sources.list".into()).chain(files).map(std::fs::read_to_string);
    let all: String = texts.map(Result::unwrap_or_default).collect();
    let mut words = all.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    words.find(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian")).map(str::to_owned)
}

/// A mirror that sends who asks on to another one, and answers 404 to every file of one package.
fn mirror_without(package: &'static str, elsewhere: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/debian", listener.local_addr().unwrap());
    let answer = move |request: &str| {
        let path = request.split_whitespace().nth(1).and_then(|path| path.strip_prefix("/debian/")).unwrap_or_default();
        match path.contains(&format!("/{package}_")) {
            true => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            false => {
                let to = format!("{}/{path}", elsewhere.trim_end_matches('/'));
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
            }
        }
    };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                // Requests may come several at a time, and in pieces.
                let (mut text, mut buffer) = (String::new(), [0; 4096]);
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    text.push_str(&String::from_utf8_lossy(&buffer[..count]));
                    while let Some((request, rest)) = text.split_once("\r\n\r\n") {
                        if stream.write_all(answer(request).as_bytes()).is_err() {
                            return;
                        }
                        text = rest.to_owned();
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_package_that_the_mirror_lists_and_lacks_is_named() {
    const TEST: &str = "a_package_that_the_mirror_lists_and_lacks_is_named";
    let Some(elsewhere) = machines_mirror() else {
        println!("skipped: {TEST}: apt of this machine names no mirror of Debian by http");
        return;
    };
    // One of the first: every system needs it.
    let mirror = mirror_without("base-passwd", elsewhere);
    let Some(output) = build(&["--mirror", &mirror]) else { return };
    let text = stderr(&output);
    if output.status.code() == Some(3) && text.contains("cannot be reached") {
        println!("skipped: {TEST}: the mirror of this machine cannot be reached");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(text.contains("the mirror lacks a package that it lists") && text.contains("/base-passwd_"), "{text}");
    assert!(text.contains("try again in some minutes, or name another mirror with --mirror URL"), "{text}");
}

#[test]
fn a_mirror_that_cannot_be_reached_is_named() {
    let Some(output) = build(&["--mirror", "http://127.0.0.1:9/debian"]) else { return };
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let text = stderr(&output);
    assert!(text.contains("127.0.0.1") && text.contains("--mirror"), "{text}");
}

#[test]
fn a_missing_guest_image_is_refused_with_the_build_command() {
    let cache = tempfile::tempdir().unwrap();
    let output = pgstrata(&["guest", "run", "--", "true"]).env("PGSTRATA_CACHE", cache.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(stderr(&output).contains("pgstrata guest build --suite trixie"), "{}", said(&output));
    let status = pgstrata(&["guest", "status"]).env("PGSTRATA_CACHE", cache.path()).output().unwrap();
    assert_eq!(status.status.code(), Some(1), "{}", said(&status));
}
