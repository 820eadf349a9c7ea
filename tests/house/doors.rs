//! Things that only certain rooms may do, and things that none may.

use super::source::{Kind, Source, Token, all};

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

#[test]
fn only_host_spawns_sleeps_and_asks_the_time() {
    for source in all().iter().filter(|source| source.path.starts_with("src") && !in_room(source, "host")) {
        for path in HOST_ONLY {
            let lines = lines_with(source, path);
            assert!(lines.is_empty(), "{}: `{}` belongs to host/", source.at(lines[0]), path.join("::"));
        }
    }
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
fn a_lint_that_must_give_way_is_expected_with_its_reason() {
    for source in all() {
        let found = uses_attribute(source, "allow");
        assert!(found.is_none(), "{}: use `#[expect(..., reason = \"...\")]`", source.at(found.unwrap_or(1)));
    }
}

#[test]
fn a_door_is_seen_in_code_but_not_in_tests_and_comments() {
    let source = Source::of(
        "src/plan/a.rs",
        "// Instant::now\nfn f() { std::time::Instant::now(); }\n#[cfg(test)] mod t { fn g() { Instant::now() } }",
    );
    assert_eq!(lines_with(&source, ["Instant", "now"]), [2]);
    assert_eq!(uses_attribute(&Source::of("a.rs", "\n#[ignore = \"slow\"]\nfn f() {}"), "ignore"), Some(2));
    assert_eq!(uses_attribute(&Source::of("a.rs", "// #[ignore]\nlet s = \"#[ignore]\";"), "ignore"), None);
}
