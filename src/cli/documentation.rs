//! Tests that every command and plan shown in the documentation is valid.

use crate::plan;
use std::path::{Path, PathBuf};

/// README and manual; not decision records, which describe the past.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = ["docs", "docs/plans"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let pages = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = pages.filter(|page| page.extension().is_some_and(|ending| ending == "md")).collect();
    pages.extend([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    pages
}

/// Lines of code of a page, by block: fenced, or indented by four.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let mut found = vec![Vec::new()];
    let mut fenced = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        match line.strip_prefix("    ") {
            _ if is_fence => found.push(Vec::new()),
            _ if fenced => found.last_mut().unwrap().push(line),
            Some(code) => found.last_mut().unwrap().push(code),
            None if line.is_empty() => found.last_mut().unwrap().push(line),
            None => found.push(Vec::new()),
        }
    }
    found
}

/// Arguments of the commands in a page's lines of code.
fn commands(page: &str) -> Vec<Vec<String>> {
    let lines = blocks(page).concat().into_iter();
    let called = lines.filter_map(|line| line.split_once("pgstrata ").filter(|(before, _)| is_call(before)));
    called.filter_map(|(_, rest)| words(rest)).collect()
}

/// Arguments of the commands that the text of a page names in code spans; required ones may be left out there.
fn named(page: &str) -> Vec<Vec<String>> {
    page.split('`').skip(1).step_by(2).filter_map(|span| words(span.strip_prefix("pgstrata ")?)).collect()
}

/// Arguments up to a remark, a redirection or a pipe; `None` for prose about the program.
fn words(rest: &str) -> Option<Vec<String>> {
    let ends = ["  ", " #", " | ", " > "].iter().filter_map(|end| rest.find(end));
    let rest = &rest[..ends.min().unwrap_or(rest.len())];
    let words = shlex::split(rest).unwrap_or_else(|| panic!("{rest}: a quote is not closed"));
    words.first()?.starts_with(|first: char| first.is_ascii_lowercase()).then_some(words)
}

/// True if only a path, a user, a machine or a pipe precedes the program's name in a line that calls it.
fn is_call(before: &str) -> bool {
    let before = before.trim();
    before.is_empty()
        || ["sudo", "machine", "bin/", "|"].iter().any(|word| before.starts_with(word) || before.ends_with(word))
}

/// Reason for which the program refuses these arguments.
fn refusal(words: &[String]) -> Option<clap::Error> {
    let arguments = std::iter::once("pgstrata").chain(words.iter().map(String::as_str));
    super::command().try_get_matches_from(arguments).err().filter(|error| error.exit_code() != 0)
}

#[test]
fn every_command_in_the_pages_is_accepted() {
    let mut refused = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let (called, named) = (commands(&text), named(&text));
        seen += called.len() + named.len();
        let lacks = |error: &clap::Error| error.kind() == clap::error::ErrorKind::MissingRequiredArgument;
        let of_called = called.into_iter().filter_map(|words| Some((refusal(&words)?, words)));
        let of_named = named.into_iter().filter_map(|words| Some((refusal(&words).filter(|why| !lacks(why))?, words)));
        refused.extend(of_called.chain(of_named).map(|(why, words)| format!("{}: {words:?}: {why}", page.display())));
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(seen > 100, "{seen}");
}

#[test]
fn every_whole_plan_in_the_pages_is_accepted() {
    let catalogue = super::catalogue();
    let mut refused = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let plans = blocks(&text).into_iter().map(|block| block.join("\n"));
        for plan in plans.filter(|plan| plan.contains("[stack.") && plan.contains("[workload.")) {
            seen += 1;
            refused
                .extend(plan::parse(&plan, "p.toml", &catalogue).err().map(|why| format!("{}: {why}", page.display())));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(seen >= 2, "{seen}");
}
