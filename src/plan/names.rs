//! Names given in a plan: of the plan itself, its stacks and its workloads.
//!
//! They become parts of folder names and labels, so they are short and of plain characters.

use super::limits::Key;
use super::problem::{Problem, Problems};
use super::tree::{Pair, Toml, get};

/// Longest name of a stack or workload, characters.
pub(super) const MAX_LENGTH: usize = 40;

/// Pattern of a name, a regular expression for the schema.
pub(super) const PATTERN: &str = "^[a-z0-9][a-z0-9_-]{0,39}$";

/// True if `text` is a valid name.
pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_LENGTH).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_')
        && !text.starts_with(['-', '_'])
}

/// Adds a problem if `key` is not a valid name for a `what`.
pub(super) fn check(key: &Key, what: &str, problems: &mut Problems) {
    if !is_name(&key.text) {
        let lower = key.text.to_lowercase();
        let letters = lower.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' });
        let plain: String = letters.take(MAX_LENGTH).collect();
        let near = plain.trim_matches(['-', '_']);
        let help = format!(
            "use at most {MAX_LENGTH} characters of a-z, 0-9, - and _, starting with a letter or digit{}",
            if is_name(near) { format!(": `{near}`") } else { String::new() }
        );
        problems.add(Problem::at(&key.span, format!("`{}` is not a valid name for a {what}", key.text)).help(help));
    }
}

/// The tables `[kind.NAME]`; at least one is required.
pub(super) fn named_tables<'t>(root: &'t [Pair], kind: &str, example: &str, problems: &mut Problems) -> Vec<&'t Pair> {
    let found = get(root, kind);
    let (message, verb) = match found.map(|(_, node)| (&node.value, node)) {
        Some((Toml::Table(pairs), _)) if !pairs.is_empty() => return pairs.iter().collect(),
        None | Some((Toml::Table(_), _)) => (format!("the plan has no {kind}"), "add"),
        Some((_, node)) => (format!("`{kind}` must be named tables, found {}", node.noun()), "write"),
    };
    let span = found.map_or(0..0, |(key, _)| key.span.clone());
    problems.add(Problem::at(&span, message).help(format!("{verb} {example}")));
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        for good in ["ext4", "2nd", "xfs-disk_1", &"a".repeat(40)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "Ext4", "-x", "_x", "a.b", "a b", "ä", "../x", &"a".repeat(41)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_bad_name_is_answered_with_a_good_one() {
        let mut problems = Problems::default();
        check(&Key { text: "My Disk".into(), span: 0..7 }, "stack", &mut problems);
        let shown = problems.render("My Disk", "p", super::super::problem::Paint::Plain);
        assert!(shown.contains("`my-disk`"), "{shown}");
    }
}
