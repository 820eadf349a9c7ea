//! The words that a person reads: a list of all of them, and phrases that must not come back.
//!
//! `scripts/user-strings` prints the list: string literals of the sources, help texts, page templates and the manual.

use super::source::{all, root};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What is not said, and what is said instead. Lower case; found anywhere in a text.
const PHRASES: [(&str, &str); 24] = [
    ("the noises differ", "the cases' variances differ"),
    ("tells no two cases apart", "cannot separate cases"),
    ("takes away nine tenths", "X axis: percentile (log)"),
    ("others wrote a part", "part of it written by other programs"),
    ("by the tool's own account", "the tool reports"),
    ("to stay as they are", "at this ratio and variance"),
    ("were to be expected", "expected at least"),
    ("its device's word", "its device's claim"),
    ("device's word is all there", "the device claims to need no flushes"),
    ("where you stand", "for comparison"),
    ("before you believe a", "caveats"),
    ("what would make it go", "how to fix it"),
    ("from the least to the most", "min to max"),
    ("the other way round", "in the opposite direction"),
    ("no tool that is known", "no known tool"),
    ("settle that first", "resolve that first"),
    ("the disk's own word", "reported by the disk"),
    ("would have shown", "detectable"),
    ("not seen to be", "not shown to be"),
    ("lies in memory", "is in memory"),
    ("what would settle it", "to verify"),
    ("what it stands on cannot be seen", "the storage below is not visible"),
    ("three steps in a row", "three consecutive steps"),
    (" at a power cut", "on power loss"),
];

/// A text that a person can see, and where it stands.
struct Seen {
    at: String,
    text: String,
}

/// Everything: strings with at least two words, doc lines of `cli` (clap prints them) and of columns (stored with their figures),
/// templates, README and docs.
fn everything() -> Vec<Seen> {
    let mut found = Vec::new();
    for source in all().iter().filter(|source| source.path.starts_with("src")) {
        for (line, text) in source.prose() {
            let is_doc = text.starts_with("//");
            let is_shown = ["src/cli", "src/record/columns"].iter().any(|folder| source.path.starts_with(folder));
            let is_help = text.starts_with("///") && is_shown;
            if is_help || (!is_doc && text.trim_matches('"').split_whitespace().count() > 1) {
                found.push(Seen { at: source.at(line), text: text.split_whitespace().collect::<Vec<_>>().join(" ") });
            }
        }
    }
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CHANGELOG.md")];
    for (folder, ends) in [("docs", "md"), ("src/report/html", "html"), ("src/report/html", "js"), ("demo", "toml")] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        let paths = entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
        pages.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == ends)));
    }
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let is_script = page.extension().is_some_and(|extension| extension == "js");
        let says = |line: &&str| line.contains(' ') && (!is_script || line.contains(['"', '`']));
        for (number, line) in text.lines().enumerate().filter(|(_, line)| says(&line.trim())) {
            found.push(Seen { at: format!("{}:{}", page.display(), number + 1), text: line.to_owned() });
        }
    }
    found
}

/// The phrases of the list that a text holds.
fn slips(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let held = PHRASES.iter().filter(|(phrase, _)| text.contains(phrase));
    held.map(|(phrase, instead)| format!("not \"{phrase}\" but \"{instead}\"")).collect()
}

#[test]
fn no_text_says_what_the_trade_says_otherwise() {
    let mut list = String::new();
    let mut found = Vec::new();
    for Seen { at, text } in everything() {
        writeln!(list, "{at}: {text}").unwrap();
        found.extend(slips(&text).into_iter().map(|slip| format!("{at}: {slip}: {text}")));
    }
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("user-strings.txt"), list).unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
