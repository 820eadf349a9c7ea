//! Things that only certain rooms may do, and things that none may.

use super::source::{Kind, Source, Token, all};
use std::path::Path;

/// What only `host` does, so that commands are logged and a test can stand in: spawn, read a clock, sleep.
const HOST_ONLY: [[&str; 2]; 4] =
    [["process", "Command"], ["Instant", "now"], ["SystemTime", "now"], ["thread", "sleep"]];

/// Lines where `path` stands in code that is not for tests.
fn lines_with(source: &Source, [first, second]: [&str; 2]) -> Vec<usize> {
    let code = source.code();
    let found = code.windows(3).filter(|t| t[0].is(first) && t[1].kind == Kind::Colons && t[2].is(second));
    found.map(|t| t[0].line).collect()
}

/// Attributes that a file uses: `#[name` and `#![name`.
fn uses_attribute(source: &Source, name: &str) -> Option<usize> {
    let opens = |t: &[Token]| (t[0].is_sign('#') || t[0].is_sign('!')) && t[1].is_sign('[') && t[2].is(name);
    source.tokens.windows(3).find(|t| opens(t)).map(|t| t[0].line)
}

fn in_room(source: &Source, room: &str) -> bool {
    source.path.starts_with(format!("src/{room}"))
}

/// Rooms that touch files: `store` in its folders, `cli` where the person points, `host` for all others.
const TOUCH_FILES: [&str; 3] = ["host", "store", "cli"];

/// Files that touch files although their room may not, and why.
const ARE_MEASURED: [(&str, &str); 5] = [
    ("src/probe/operation.rs", "between two looks at the clock stands nothing but these calls"),
    ("src/probe/synced.rs", "the calls themselves"),
    ("src/probe/growth.rs", "its writes into a growing file are what is measured"),
    ("src/probe/walk.rs", "opening the segment with a row's flags is part of the row"),
    ("src/probe/site.rs", "works through the open folder alone, as its name may lead elsewhere by the end"),
];

/// Methods of `Path` and `File` that ask the disk; none takes an argument.
const ASK_THE_DISK: [&str; 10] = [
    "exists",
    "try_exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "metadata",
    "symlink_metadata",
    "canonicalize",
    "read_dir",
    "read_link",
];

/// Lines that touch files: whatever the modules `fs` of std and rustix have, a file opened by its type, a path's methods.
fn lines_touching_files(source: &Source) -> Vec<usize> {
    let code = source.code();
    let opens = |word: &Token| ["open", "create", "create_new", "options"].iter().any(|name| word.is(name));
    let asks = |word: &Token| ASK_THE_DISK.iter().any(|name| word.is(name));
    let touches = |t: &[&Token]| match t[1].kind {
        Kind::Colons => (t[0].is("File") && opens(t[2])) || ((t[0].is("Path") || t[0].is("PathBuf")) && asks(t[2])),
        _ => t[0].is_sign('.') && asks(t[1]) && t[2].is_sign('(') && t[3].is_sign(')'),
    };
    let module = code.iter().filter(|token| token.is("fs")).map(|token| token.line);
    module.chain(code.windows(4).filter(|t| touches(t)).map(|t| t[0].line)).collect()
}

#[test]
fn only_host_touches_files() {
    let measured = |source: &Source| ARE_MEASURED.iter().any(|(path, _)| source.path == Path::new(path));
    for source in all().iter().filter(|source| source.path.starts_with("src")) {
        let lines = lines_touching_files(source);
        if measured(source) {
            assert!(!lines.is_empty(), "{} touches no files: take it off the list", source.at(1));
        } else if !TOUCH_FILES.iter().any(|room| in_room(source, room)) {
            assert!(lines.is_empty(), "{}: files belong to host/", source.at(lines[0]));
        }
    }
    for (path, why) in ARE_MEASURED {
        assert!(all().iter().any(|source| source.path == Path::new(path)), "{path} is not there; it was listed: {why}");
    }
}

/// Ways to open a file by its name that follow links and wait for pipes.
const FOLLOWS: [[&str; 2]; 4] = [["File", "open"], ["fs", "read"], ["fs", "read_to_string"], ["fs", "copy"]];

#[test]
fn files_of_a_run_are_opened_within_its_folder() {
    // An import locks folders, and reads none of their files.
    let locks = |source: &Source| source.path == Path::new("src/store/import.rs");
    for source in all().iter().filter(|source| in_room(source, "store") && !locks(source)) {
        for path in FOLLOWS {
            let lines = lines_with(source, path);
            assert!(lines.is_empty(), "{}: use host::files::open_within", source.at(lines[0]));
        }
    }
}

#[test]
fn touching_a_file_is_found_in_each_of_its_shapes() {
    let touches = |text: &str| !lines_touching_files(&Source::of("src/plan/a.rs", text)).is_empty();
    for text in [
        "use std::fs;",
        "use std::{fs::File, io};",
        "use std::os::unix::fs::MetadataExt;",
        "use rustix::fs::{Mode, open};",
        "fn f() { File::open(path)?; }",
        "fn f() { path.join(name).exists(); }",
        "fn f() { paths.filter(Path::is_dir); }",
    ] {
        assert!(touches(text), "{text}");
    }
    for text in [
        "use crate::host::files::{self, File};",
        "fn f() { files::open(path)?; paths::exists(path); node.exists(host); }",
        "#[cfg(test)] mod tests { use std::fs; }",
        "// fs::read",
    ] {
        assert!(!touches(text), "{text}");
    }
}

#[test]
fn only_host_spawns_sleeps_and_asks_the_time() {
    for source in all().iter().filter(|source| source.path.starts_with("src") && !in_room(source, "host")) {
        for path in HOST_ONLY {
            let lines = lines_with(source, path);
            assert!(lines.is_empty(), "{}: `{}` belongs to host/", source.at(lines[0]), path.join("::"));
        }
    }
}

/// Lines that begin a thread: `thread::spawn` and `scope.spawn`, which panic where the system has none left, and `thread::Builder`.
fn lines_with_threads(source: &Source) -> Vec<usize> {
    let code = source.code();
    let of_scope = |t: &[&Token]| t[0].is("scope") && t[1].is_sign('.') && t[2].is("spawn");
    let found = code.windows(3).filter(|t| of_scope(t)).map(|t| t[0].line);
    let built = code.iter().filter(|token| token.is("spawn_scoped")).map(|token| token.line);
    let of_module = ["spawn", "Builder"].into_iter().flat_map(|name| lines_with(source, ["thread", name]));
    found.chain(built).chain(of_module).collect()
}

#[test]
fn threads_are_begun_by_one_door() {
    // That of `main` has a stack of its own size, and nothing stands yet.
    let begins = ["src/host/threads.rs", "src/main.rs"];
    let others =
        |source: &&Source| source.path.starts_with("src") && !begins.iter().any(|it| source.path == Path::new(it));
    for source in all().iter().filter(others) {
        let lines = lines_with_threads(source);
        assert!(lines.is_empty(), "{}: use host::threads", source.at(lines[0]));
    }
    let finds = |text: &str| !lines_with_threads(&Source::of("src/run/a.rs", text)).is_empty();
    assert!(finds("fn f() { scope.spawn(|| 1); }") && finds("fn f() { std::thread::spawn(f); }"));
    assert!(finds("fn f() { std::thread::Builder::new().spawn(f); }") && finds("fn f() { b.spawn_scoped(s, f); }"));
    assert!(!finds("fn f() { host.spawn(&c); threads::begin(scope, f); }"));
}

#[test]
fn only_host_is_unsafe_and_says_why() {
    for source in all() {
        for two in source.tokens.windows(2).filter(|two| two[0].is("unsafe")) {
            let line = two[0].line;
            assert!(in_room(source, "host"), "{}: `unsafe` belongs to host/", source.at(line));
            // Declarations (`unsafe extern`, `unsafe fn`) promise nothing; blocks and implementations do.
            let promises = two[1].is_sign('{') || two[1].is("impl");
            let near = source.text.lines().take(line).skip(line.saturating_sub(6));
            let says_why = near.into_iter().any(|line| line.contains("SAFETY:"));
            assert!(!promises || says_why, "{}: no `SAFETY:` line", source.at(line));
        }
    }
}

#[test]
fn no_test_is_ignored() {
    for source in all() {
        let found = uses_attribute(source, "ignore");
        assert!(found.is_none(), "{}: a test that cannot run says so and why", source.at(found.unwrap_or(1)));
    }
}

#[test]
fn a_suppressed_lint_is_expected_with_a_reason() {
    for source in all() {
        let found = uses_attribute(source, "allow");
        assert!(found.is_none(), "{}: use `#[expect(..., reason = \"...\")]`", source.at(found.unwrap_or(1)));
    }
}

#[test]
fn a_door_is_found_in_code_only() {
    let source = Source::of(
        "src/plan/a.rs",
        "// Instant::now\nfn f() { std::time::Instant::now(); }\n#[cfg(test)] mod t { fn g() { Instant::now() } }",
    );
    assert_eq!(lines_with(&source, ["Instant", "now"]), [2]);
    assert_eq!(uses_attribute(&Source::of("a.rs", "\n#[ignore = \"slow\"]\nfn f() {}"), "ignore"), Some(2));
    assert_eq!(uses_attribute(&Source::of("a.rs", "// #[ignore]\nlet s = \"#[ignore]\";"), "ignore"), None);
}
