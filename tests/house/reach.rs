//! No dead files: every Rust file is reached by `mod` lines from a root that cargo knows.

use super::source::{Source, Token, all};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files that cargo starts from.
fn is_root(path: &Path) -> bool {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    matches!(
        *parts,
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "stats", "mod.rs"]
            | ["tests", "main.rs"]
            | ["benches", _]
            | ["benches", _, "main.rs"]
    )
}

/// The folder in which a file's `mod x;` lines look for `x`.
fn folder_of_children(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let own_folder = is_root(path) || path.file_name().is_some_and(|name| name == "mod.rs");
    if own_folder { folder.to_path_buf() } else { path.with_extension("") }
}

/// Every file that a source's `mod x;` lines may mean, inline modules around them taken as folders; and whether the
/// line is for tests.
fn children(source: &Source) -> Vec<(PathBuf, bool)> {
    let (mut found, mut inline, mut depth) = (Vec::new(), Vec::new(), 0usize);
    let tokens = &source.tokens;
    for (i, token) in tokens.iter().enumerate() {
        if token.is_sign('{') {
            depth += 1;
        } else if token.is_sign('}') {
            depth = depth.saturating_sub(1);
            inline.retain(|(_, at)| *at < depth);
        }
        let Some(name) = tokens.get(i + 1).and_then(|t| t.word()).filter(|_| token.is("mod")) else { continue };
        match tokens.get(i + 2) {
            Some(next) if next.is_sign('{') => inline.push((name.to_owned(), depth)),
            Some(next) if next.is_sign(';') => {
                let folder: PathBuf = inline.iter().map(|(name, _)| name).collect();
                let folder = folder_of_children(&source.path).join(folder);
                let files = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
                found.extend(files.map(|file| (file, token.in_test)));
            }
            _ => {}
        }
    }
    found
}

/// The files that roots reach, on lines that are not for tests or on any line.
fn reached(sources: &[Source], with_tests: bool) -> BTreeSet<PathBuf> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<PathBuf> = sources.iter().map(|s| s.path.clone()).filter(|path| is_root(path)).collect();
    while let Some(path) = next.pop() {
        let source = sources.iter().find(|source| source.path == path);
        if let Some(source) = source.filter(|_| !reached.contains(&path)) {
            let wanted = children(source).into_iter().filter(|(_, for_tests)| with_tests || !for_tests);
            next.extend(wanted.map(|(file, _)| file));
            reached.insert(path);
        }
    }
    reached
}

/// The files that no root reaches.
fn dead(sources: &[Source]) -> Vec<PathBuf> {
    let reached = reached(sources, true);
    sources.iter().map(|source| source.path.clone()).filter(|path| !reached.contains(path)).collect()
}

/// The files that only lines under `#[cfg(test)]` lead to.
pub fn only_for_tests(sources: &[Source]) -> BTreeSet<PathBuf> {
    &reached(sources, true) - &reached(sources, false)
}

/// What the package of statistics offers and nobody asks for: of it, no compiler warns. A name that another item has
/// too counts as used.
fn unused(sources: &[Source]) -> Vec<String> {
    let kinds = ["fn", "const", "struct", "enum", "trait", "type"];
    let code: Vec<Vec<&Token>> = sources.iter().map(Source::code).collect();
    let offered = sources.iter().zip(&code).filter(|(source, _)| source.path.starts_with("src/stats")).flat_map(
        |(source, code)| {
            let public = code.windows(3).filter(|t| t[0].is("pub") && kinds.iter().any(|kind| t[1].is(kind)));
            public.filter_map(|t| Some((t[2].word()?, source.at(t[2].line))))
        },
    );
    let uses = |name: &str| code.iter().flatten().filter(|token| token.is(name)).count();
    offered.filter(|(name, _)| uses(name) < 2).map(|(name, place)| format!("{place}: {name}")).collect()
}

#[test]
fn every_public_statistic_is_used() {
    assert_eq!(unused(all()), Vec::<String>::new());
    let sources = [("src/stats/a.rs", "pub fn a() {} pub fn b() {} fn c() {}"), ("src/run/mod.rs", "fn r() { b() }")];
    assert_eq!(unused(&sources.map(|(path, text)| Source::of(path, text))), ["src/stats/a.rs:1: a"]);
}

#[test]
fn no_file_is_dead() {
    let dead = dead(all());
    assert!(dead.is_empty(), "no `mod` line leads to {dead:?}");
}

#[test]
fn a_file_without_a_mod_line_is_found() {
    let tree = [
        ("src/lib.rs", "mod a; // mod d;"),
        ("src/a/mod.rs", "mod b; mod inner { mod c; }"),
        ("src/a/b.rs", ""),
        ("src/a/inner/c.rs", "mod e;"),
        ("src/a/inner/c/e.rs", ""),
        ("src/d.rs", ""),
        ("src/a/c.rs", ""),
    ];
    let sources = tree.map(|(path, text)| Source::of(path, text));
    assert_eq!(dead(&sources), [PathBuf::from("src/d.rs"), PathBuf::from("src/a/c.rs")]);
}

#[test]
fn a_file_below_a_test_module_is_for_tests_too() {
    let tree = [
        ("src/lib.rs", "mod a; #[cfg(test)] mod testing;"),
        ("src/a.rs", "#[cfg(test)] mod tests;"),
        ("src/a/tests.rs", ""),
        ("src/testing.rs", "mod more;"),
        ("src/testing/more.rs", ""),
    ];
    let found = only_for_tests(&tree.map(|(path, text)| Source::of(path, text)));
    assert_eq!(found, ["src/a/tests.rs", "src/testing.rs", "src/testing/more.rs"].map(PathBuf::from).into());
}

#[test]
fn no_module_is_put_elsewhere_by_an_attribute() {
    for source in all() {
        let path = source.tokens.windows(3).find(|t| t[0].is_sign('[') && t[1].is("path") && t[2].is_sign('='));
        assert!(path.is_none(), "{}: `#[path]` hides where a module lies", source.at(path.map_or(1, |t| t[1].line)));
    }
}
