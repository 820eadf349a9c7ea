//! Links between the pages of the documentation lead somewhere, every page is in its summary, and none is too long or wide.

use super::source::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pages that only the site has: `pgstrata man --markdown` and `scripts/docs` write them.
const GENERATED: [&str; 6] =
    ["commands.md", "layers.md", "workloads.md", "samplers.md", "plans/README.md", "adr/README.md"];

/// Folders whose pages `scripts/docs` lists by itself.
const LISTED: [&str; 2] = ["docs/adr", "docs/plans"];

/// Lines of a page, and characters of a line; not of decision records, nor of ARCHITECTURE.md, whose tables are read by tests.
const LINES: usize = 200;
const WIDTH: usize = 120;

/// Every page, below the folder of `Cargo.toml`.
fn pages() -> Vec<PathBuf> {
    let of = |folder: &str| {
        let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "md"));
        names.map(|name| Path::new(folder).join(name)).collect::<Vec<_>>()
    };
    ["", "docs", "docs/adr", "docs/plans"].into_iter().flat_map(of).collect()
}

/// Targets of the links `[text](target)` of a page; code blocks and spans have none.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        if code || line.starts_with("    ") {
            continue;
        }
        let plain: String = line.split('`').step_by(2).collect();
        let targets = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(str::to_owned));
    }
    found
}

/// Anchors of a page, by its headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: char| (c.is_alphanumeric() || "-_ ".contains(c)).then_some(if c == ' ' { '-' } else { c });
    headings.map(|heading| heading.to_lowercase().chars().filter_map(kept).collect()).collect()
}

/// Why a link of a page leads nowhere.
fn wrong(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = root().join(page.parent().unwrap_or(Path::new("")));
    let target = if path.is_empty() { root().join(page) } else { folder.join(path) };
    if !target.exists() {
        return Some(format!("{}: {link}: no such file", page.display()));
    }
    let known = anchor.is_empty() || anchors(&std::fs::read_to_string(&target).unwrap()).contains(anchor);
    (!known).then(|| format!("{}: {link}: no such heading", page.display()))
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut found = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let of_summary = page == Path::new("docs/SUMMARY.md");
        for link in links(&std::fs::read_to_string(root().join(&page)).unwrap()) {
            seen += 1;
            if !(of_summary && GENERATED.contains(&link.as_str())) {
                found.extend(wrong(&page, &link));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(seen > 100, "only {seen} links were seen");
}

#[test]
fn the_summary_has_every_page_once() {
    let summary = links(&std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap());
    let listed = |page: &PathBuf| LISTED.iter().any(|folder| page.starts_with(folder));
    for page in pages().into_iter().filter(|page| !listed(page) && page != Path::new("docs/SUMMARY.md")) {
        let link =
            page.strip_prefix("docs").map_or_else(|_| format!("../{}", page.display()), |p| p.display().to_string());
        assert_eq!(summary.iter().filter(|one| **one == link).count(), 1, "{} in docs/SUMMARY.md", page.display());
    }
}

#[test]
fn pages_have_at_most_200_lines_of_120_characters() {
    let mut found = Vec::new();
    let is_apart = |page: &PathBuf| page.starts_with("docs/adr") || page == Path::new("ARCHITECTURE.md");
    for page in pages().into_iter().filter(|page| !is_apart(page)) {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let mut is_generated = false;
        for (number, line) in text.lines().enumerate() {
            // `make validate` writes what is between `<!-- part -->` and `<!-- /part -->`.
            is_generated = if line.starts_with("<!-- ") { !line.starts_with("<!-- /") } else { is_generated };
            if line.chars().count() > WIDTH && !is_generated {
                found.push(format!("{}:{}: more than {WIDTH} characters", page.display(), number + 1));
            }
        }
        if text.lines().count() > LINES {
            found.push(format!("{}: more than {LINES} lines", page.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn broken_links_outside_of_code_are_reported() {
    assert_eq!(links("a [b](c.md), [d](e#f)\n```\n[x](y)\n```\n    [x](y)\n`[x](y)` [g](h)"), ["c.md", "e#f", "h"]);
    assert!(wrong(Path::new("docs/words.md"), "nothing.md").unwrap().contains("no such file"));
    assert!(wrong(Path::new("docs/words.md"), "../README.md#no-such").unwrap().contains("no such heading"));
    assert_eq!(wrong(Path::new("README.md"), "docs/words.md#words"), None);
    assert!(anchors("## The run folder: `a_b`, c").contains("the-run-folder-a_b-c"));
}
