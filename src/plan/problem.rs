//! Problems of a plan: where, what, and the nearest valid word.
//!
//! Renders problems as snippets of the file. All problems of a plan are collected and shown at once.

use super::limits::{Key, MAX_COMBINATIONS, Span};
use crate::error::Error;
use crate::units::count;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::collections::HashSet;

/// Problems shown in full; a file with more is probably not a plan.
const MAX_SHOWN: usize = 20;

/// Width of rendered snippets, columns.
const WIDTH: usize = 100;

/// Use of terminal colours in rendered problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    /// With ANSI colour sequences; all other control characters are still replaced.
    Coloured,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Problem {
    span: Span,
    pub message: String,
    label: Option<String>,
    also: Option<Box<(Span, String)>>,
    pub help: Option<String>,
}

impl Problem {
    /// A problem at `span`; the message is a lower-case fragment that names the subject.
    pub fn at(span: &Span, message: impl Into<String>) -> Self {
        Problem { span: span.clone(), message: message.into(), label: None, also: None, help: None }
    }

    /// The problem with a value, whose message continues its name: "must be ..., found ...".
    pub fn of(mut self, name: &str) -> Self {
        self.message = format!("{name} {}", self.message);
        self
    }

    /// Adds a text at the span.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds another span that is involved.
    pub fn also(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.also = Some(Box::new((span.clone(), label.into())));
        self
    }

    /// Adds the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the remedy, if one is known.
    pub fn help_if(self, help: Option<String>) -> Self {
        help.into_iter().fold(self, Problem::help)
    }

    fn render(&self, text: &str, file_name: &str, renderer: &Renderer) -> String {
        let primary = AnnotationKind::Primary.span(inside(text, &self.span)).label(self.label.as_deref().map(clean));
        let mut snippet = Snippet::source(harmless(text)).path(clean(file_name)).annotation(primary);
        if let Some((span, label)) = self.also.as_deref() {
            snippet = snippet.annotation(AnnotationKind::Context.span(inside(text, span)).label(clean(label)));
        }
        let mut group: Group<'_> = Level::ERROR.primary_title(clean(&self.message)).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(clean(help)));
        }
        renderer.render(&[group])
    }
}

/// All problems of a plan.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Problems {
    all: Vec<Problem>,
    known: HashSet<Problem>,
    /// Number of combinations of options checked so far.
    combinations: usize,
}

impl Problems {
    /// Adds a problem, unless it is already there.
    pub(super) fn add(&mut self, problem: Problem) {
        if self.known.insert(problem.clone()) {
            self.all.push(problem);
        }
    }

    /// Counts combinations about to be checked; false, with a problem, if there are too many in total.
    pub(super) fn may_check(&mut self, combinations: usize, place: &Span) -> bool {
        self.combinations = self.combinations.saturating_add(combinations);
        let is_few = self.combinations <= MAX_COMBINATIONS;
        if !is_few {
            let message = format!("the plan has more than {MAX_COMBINATIONS} combinations of options up to here");
            self.add(Problem::at(place, message).help("use shorter lists of values"));
        }
        is_few
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every problem as a snippet with line and column, in the order of the file.
    pub fn render(&self, text: &str, file_name: &str, paint: Paint) -> String {
        let renderer = match paint {
            Paint::Plain => Renderer::plain(),
            Paint::Coloured => Renderer::styled(),
        }
        .term_width(WIDTH);
        let mut sorted: Vec<&Problem> = self.all.iter().collect();
        sorted.sort_by_key(|problem| problem.span.start);
        let mut parts: Vec<String> =
            sorted.iter().take(MAX_SHOWN).map(|problem| problem.render(text, file_name, &renderer)).collect();
        parts.extend((sorted.len() > MAX_SHOWN).then(|| format!("and {} more", sorted.len() - MAX_SHOWN)));
        parts.join("\n\n")
    }

    /// The error for the user: the number of problems, then each as a snippet.
    pub fn into_error(self, text: &str, file_name: &str, paint: Paint) -> Error {
        let errors = count(self.len(), "error");
        Error::user(format!("{} has {errors}\n\n{}", clean(file_name), self.render(text, file_name, paint)))
    }
}

/// In words up to this length, a replaced letter is not taken for a typo: `zfs` is not meant as `xfs`.
const SHORT: usize = 4;

/// The known words that `word` may be a typo of: only the nearest ones, and none that is too different.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let lower: String = word.chars().take(64).collect::<String>().to_lowercase();
    let length = lower.chars().count();
    let near = known.into_iter().filter_map(|candidate| {
        let other = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&lower, &other);
        let replaced = length <= SHORT && strsim::hamming(&lower, &other).is_ok_and(|letters| letters == 1);
        let begun = length >= 3 && other.starts_with(&lower);
        let slip = distance <= (length / 4).clamp(1, 3) && !replaced;
        (slip || begun).then_some((distance, candidate))
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    let least = near.iter().map(|(distance, _)| *distance).min();
    near.retain(|(distance, _)| Some(*distance) == least);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// "did you mean `x`?", or the known words if they are few.
pub(super) fn suggestion<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(question) = did_you_mean(word, known.iter().copied()) {
        return question;
    }
    match known.as_slice() {
        [] => "no names are defined here".to_owned(),
        known => format!("known: {}", known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")),
    }
}

/// "did you mean `x`?", if a known word is close enough.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let near = nearest(word, known);
    let (last, before) = near.split_last()?;
    let before: Vec<String> = before.iter().map(|word| format!("`{word}`")).collect();
    Some(match before.is_empty() {
        true => format!("did you mean `{last}`?"),
        false => format!("did you mean {} or `{last}`?", before.join(", ")),
    })
}

/// Where a key of the plan itself belongs; `None` for other words.
pub(super) fn misplaced(word: &str) -> Option<String> {
    let place = match word {
        _ if !super::KEYS.contains(&word) => return None,
        "machine" | "stack" | "postgres" | "workload" | "quick" => "as a [table] of its own",
        "exclude" => "as [[exclude]]",
        _ => "above the first one",
    };
    Some(format!("what follows a [table] belongs to it: write `{word}` {place}"))
}

/// Adds a problem for every key not among `known`; `at` completes "unknown key `x` in ...".
pub fn refuse_unknown<'a>(keys: impl IntoIterator<Item = &'a Key>, known: &[&str], at: &str, problems: &mut Problems) {
    for key in keys {
        let word = key.text.as_str();
        if !known.contains(&word) {
            let help = misplaced(word).unwrap_or_else(|| suggestion(word, known.iter().copied()));
            problems.add(Problem::at(&key.span, format!("unknown key `{word}` in {at}")).help(help));
        }
    }
}

/// The span, clamped to the text and moved to character boundaries.
fn inside(text: &str, span: &Span) -> Span {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The source without the control characters that the renderer lets through: C1 (0x80 to 0x9f) and marks that reverse
/// the direction of text. Replacements have as many bytes, so that spans stay valid.
fn harmless(source: &str) -> String {
    let replaced = source.chars().map(|c| match c {
        '\u{80}'..='\u{9f}' => '\u{b7}',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        _ => c,
    });
    replaced.collect()
}

/// The text with control characters escaped, so that a file cannot control the terminal.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_debug()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_gets_a_suggestion_and_another_word_none() {
        let known = ["ext2", "ext3", "ext4", "xfs", "btrfs", "filesystem"];
        let near = |word| nearest(word, known);
        assert_eq!(near("xsf"), ["xfs"]);
        assert_eq!(near("EXT4"), ["ext4"]);
        assert_eq!(near("ext44"), ["ext4"]);
        assert_eq!(near("file"), ["filesystem"]);
        assert_eq!(near("btfrs"), ["btrfs"]);
        for other in ["zfs", "ext5", "zfs9000", "jfs", "nfs"] {
            assert!(near(other).is_empty(), "{other}");
        }
        assert_eq!(suggestion("ext", known), "did you mean `ext2`, `ext3` or `ext4`?");
        assert!(suggestion("zfs", known).starts_with("known: `ext2`"));
    }

    #[test]
    fn a_problem_shows_line_and_column_without_control_characters() {
        let mut problems = Problems::default();
        problems.add(Problem::at(&(6..9), "bad \u{1b}[31mword").help("say\u{7} so"));
        let shown = problems.render("ok\nxx bad\n", "a\u{1b}b.toml", Paint::Plain);
        assert!(shown.contains(":2:4"), "{shown}");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }

    #[test]
    fn spans_outside_the_text_are_moved_into_it() {
        let mut problems = Problems::default();
        problems.add(Problem::at(&(1..99), "beyond").also(&(50..60), "as well"));
        assert!(problems.render("é", "x", Paint::Coloured).contains("beyond"));
        assert!(problems.render("", "x", Paint::Plain).contains("beyond"));
    }
}
