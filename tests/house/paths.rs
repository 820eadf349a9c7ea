//! Which paths of this crate a file names: `use crate::a::{b, c::d}`, `crate::a::b` in code, `super::..`, `pgstrata::a`.

use super::source::{Kind, Source, Token};
use std::path::Path;

/// A path from the crate's root, as written somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// `["record", "case", "CaseSpec"]`; a trailing `*` for a glob.
    pub path: Vec<String>,
    pub line: usize,
    /// In code for tests.
    pub in_test: bool,
}

/// The module path of a file below `src/`: `src/plan/mod.rs` -> `["plan"]`, `src/plan/matrix.rs` -> `["plan", "matrix"]`.
pub fn module_of(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix("src").unwrap_or(path).with_extension("");
    let mut parts: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") || matches!(parts.as_slice(), [only] if only == "lib") {
        parts.pop();
    }
    parts
}

/// Every path of this crate that the file names outside of its own imports' aliases.
pub fn named(source: &Source) -> Vec<Named> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    let mut inline = InlineModules::new();
    for (i, token) in tokens.iter().enumerate() {
        inline.step(tokens, i);
        let continues = i > 0 && tokens[i - 1].kind == Kind::Colons;
        let starts = ["crate", "super", "self", "pgstrata", "pgstrata_stats"].iter().any(|word| token.is(word));
        if continues || !starts || tokens.get(i + 1).map(|t| &t.kind) != Some(&Kind::Colons) {
            continue;
        }
        let mut module = module_of(&source.path);
        module.extend(inline.names());
        for (written, line) in tree(tokens, i).0 {
            found.extend(resolve(&module, &written).map(|path| Named { path, line, in_test: token.in_test }));
        }
    }
    found
}

/// What the file re-exports by name, from the crate's root.
pub fn reexported(source: &Source) -> Vec<Vec<String>> {
    let module = module_of(&source.path);
    let tokens = &source.tokens;
    let is_public = |i: usize| i > 0 && (tokens[i - 1].is("pub") || tokens[i - 1].is_sign(')'));
    let starts = (0..tokens.len().saturating_sub(1)).filter(|i| tokens[*i].is("use") && is_public(*i));
    let paths = starts.flat_map(|i| tree(tokens, i + 1).0);
    paths.filter_map(|(written, _)| resolve(&module, &written)).collect()
}

/// Turns a path as written in `module` into one from the root; `None` where it only names the root itself.
fn resolve(module: &[String], written: &[String]) -> Option<Vec<String>> {
    let mut at: Vec<String> = module.to_vec();
    let mut rest = written;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" | "pgstrata" => at.clear(),
            "pgstrata_stats" => at = vec!["stats".to_owned()],
            "self" => {}
            "super" => drop(at.pop()),
            _ => break,
        }
        rest = after;
    }
    at.extend(rest.iter().cloned());
    Some(at).filter(|path| !path.is_empty())
}

/// Reads a path or a tree of paths at `i`: all paths with their lines, and where reading ended.
fn tree(tokens: &[Token], mut i: usize) -> (Vec<(Vec<String>, usize)>, usize) {
    let mut path: Vec<String> = Vec::new();
    let mut line = tokens[i].line;
    while let Some(token) = tokens.get(i) {
        match &token.kind {
            Kind::Word(word) => path.push(word.clone()),
            Kind::Sign('*') if !path.is_empty() => path.push("*".to_owned()),
            Kind::Sign('{') => {
                let (branches, end) = branches(tokens, i + 1);
                let joined = |(branch, line): (Vec<String>, usize)| ([path.clone(), branch].concat(), line);
                return (branches.into_iter().map(joined).collect(), end);
            }
            _ => break,
        }
        line = token.line;
        i += 1;
        if tokens.get(i).map(|t| &t.kind) != Some(&Kind::Colons) {
            break;
        }
        i += 1;
    }
    (vec![(path, line)], i)
}

fn branches(tokens: &[Token], mut i: usize) -> (Vec<(Vec<String>, usize)>, usize) {
    let mut found = Vec::new();
    while i < tokens.len() && !tokens[i].is_sign('}') {
        if tokens[i].word().is_none() && !tokens[i].is_sign('*') {
            i += 1;
            continue;
        }
        if tokens[i].is_sign('*') {
            found.push((vec!["*".to_owned()], tokens[i].line));
            i += 1;
            continue;
        }
        let (paths, end) = tree(tokens, i);
        found.extend(paths);
        i = end;
        if tokens.get(i).is_some_and(|t| t.is("as")) {
            i += 2;
        }
    }
    (found, i + 1)
}

/// The inline modules (`mod tests { ... }`) around a token.
struct InlineModules {
    depth: usize,
    /// Name, and depth of its braces.
    open: Vec<(String, usize)>,
}

impl InlineModules {
    fn new() -> Self {
        InlineModules { depth: 0, open: Vec::new() }
    }

    fn step(&mut self, tokens: &[Token], i: usize) {
        if tokens[i].is_sign('{') {
            if i >= 2 && tokens[i - 2].is("mod") {
                let name = tokens[i - 1].word().unwrap_or_default().to_owned();
                self.open.push((name, self.depth));
            }
            self.depth += 1;
        } else if tokens[i].is_sign('}') {
            self.depth = self.depth.saturating_sub(1);
            if self.open.last().is_some_and(|(_, depth)| *depth == self.depth) {
                self.open.pop();
            }
        }
    }

    fn names(&self) -> Vec<String> {
        self.open.iter().map(|(name, _)| name.clone()).collect()
    }
}

fn paths(file: &str, text: &str) -> Vec<String> {
    named(&Source::of(file, text)).into_iter().map(|named| named.path.join("::")).collect()
}

#[test]
fn groups_of_imports_are_taken_apart() {
    let found = paths("src/run/mod.rs", "use crate::{record::{case::CaseSpec, run as r}, host, store::*};");
    assert_eq!(found, ["record::case::CaseSpec", "record::run", "host", "store::*"]);
}

#[test]
fn paths_in_code_count_as_imports() {
    let found = paths("src/plan/mod.rs", "fn f() -> crate::host::Host { crate::store::open::<u8>(1) }");
    assert_eq!(found, ["host::Host", "store::open"]);
}

#[test]
fn a_path_through_super_is_resolved() {
    assert_eq!(
        paths("src/plan/order.rs", "use super::matrix::A; use super::super::host::B;"),
        ["plan::matrix::A", "host::B"]
    );
    assert_eq!(paths("src/plan/mod.rs", "use super::host::B; mod t { use super::*; }"), ["host::B", "plan::*"]);
}

#[test]
fn imports_of_test_modules_are_told_from_others() {
    let source = Source::of(
        "src/plan/mod.rs",
        "use crate::a::A;\n#[cfg(test)]\nmod tests { use crate::b::B; }\nuse crate::c::C;",
    );
    let tests: Vec<bool> = named(&source).iter().map(|named| named.in_test).collect();
    assert_eq!(tests, [false, true, false]);
}

#[test]
fn paths_in_strings_comments_and_other_crates_do_not_count() {
    assert!(paths("src/plan/mod.rs", "// crate::a\nuse std::{fs, io}; const S: &str = \"crate::b\";").is_empty());
}
