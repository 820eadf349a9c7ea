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

/// Commands of a page: lines of code, and code spans that begin with the program's name.
fn commands(page: &str) -> Vec<Vec<String>> {
    let lines = blocks(page)
        .concat()
        .into_iter()
        .filter_map(|line| line.split_once("pgstrata ").filter(|(before, _)| is_call(before)));
    let spans = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|span| span.split_once("pgstrata ").filter(|(before, _)| before.is_empty()));
    let words = |(_, rest): (&str, &str)| {
        let rest = rest.split("  #").next().unwrap_or_default().split(" | ").next().unwrap_or_default();
        let rest = rest.split(" > ").next().unwrap_or_default().split("   ").next().unwrap_or_default();
        shlex::split(rest).unwrap_or_else(|| panic!("{rest}: a quote is not closed"))
    };
    lines
        .chain(spans)
        .map(words)
        .filter(|words| words.first().is_some_and(|first| first.starts_with(|c: char| c.is_ascii_lowercase())))
        .collect()
}

/// True if only a path, a user, a machine or a pipe precedes the program's name in a line that calls it.
fn is_call(before: &str) -> bool {
    let before = before.trim();
    before.is_empty()
        || ["sudo", "machine", "bin/", "|"].iter().any(|word| before.starts_with(word) || before.ends_with(word))
}

#[test]
fn every_command_in_the_pages_is_accepted() {
    let mut refused = Vec::new();
    let mut seen = 0;
    for page in pages() {
        for words in commands(&std::fs::read_to_string(&page).unwrap()) {
            seen += 1;
            let line = words.join(" ");
            // clap returns help and version as errors with exit code 0.
            let parsed = super::command().try_get_matches_from(std::iter::once("pgstrata".to_owned()).chain(words));
            if let Err(error) = parsed
                && error.exit_code() != 0
            {
                refused.push(format!(
                    "{}: pgstrata {line}: {}",
                    page.display(),
                    error.to_string().lines().next().unwrap_or_default()
                ));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(seen > 100, "{seen}");
}

#[test]
fn every_whole_plan_in_the_pages_is_accepted() {
    let catalogue = super::catalogue();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks(&text) {
            let plan = block.join("\n");
            if !(plan.contains("[stack.") && plan.contains("[workload.")) {
                continue;
            }
            seen += 1;
            plan::parse(&plan, "p.toml", &catalogue)
                .unwrap_or_else(|error| panic!("{}: {error}\n{plan}", page.display()));
        }
    }
    assert!(seen >= 4, "{seen}");
}
