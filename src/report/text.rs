//! Text for terminals: width, paragraphs, characters that must not be printed.

use std::cell::Cell;
use std::fmt::Write as _;

/// Keeps the groups of digits of a number on one line.
pub(crate) const NO_BREAK: char = '\u{a0}';

thread_local! {
    static CHOSEN: Cell<u16> = const { Cell::new(COLUMNS) };
}

/// Folds text at the width, the first line after `mark`, the others aligned with its text. Words and numbers stay
/// whole; a word longer than a line (a path) is broken after a slash if it has one.
pub fn paragraph(mark: &str, text: &str) -> String {
    let mut folded = String::new();
    let mut line = mark.to_owned();
    let indent = " ".repeat(width(mark).min(columns() / 2));
    let room = columns();
    let text = joined(&printable(text));
    for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        let mut word = word;
        let is_begun = width(&line) > indent.len() && line != mark;
        if is_begun && width(&line) + 1 + width(word) > room {
            push_line(&mut folded, &line);
            line.clone_from(&indent);
        } else if is_begun {
            line.push(' ');
        }
        while width(&line) + width(word) > room {
            let cut = cut(word, room.saturating_sub(width(&line)).max(1));
            push_line(&mut folded, &format!("{line}{}", &word[..cut]));
            line.clone_from(&indent);
            word = &word[cut..];
        }
        line.push_str(word);
    }
    push_line(&mut folded, &line);
    folded
}

/// Position at which a word longer than `room` characters is broken.
fn cut(word: &str, room: usize) -> usize {
    let most = word.char_indices().nth(room).map_or(word.len(), |(at, _)| at);
    word[..most].rfind('/').map(|at| at + 1).filter(|at| *at < word.len()).unwrap_or(most)
}

/// Paragraphs under a heading; empty without any.
pub(crate) fn section(heading: &str, paragraphs: impl IntoIterator<Item = String>) -> String {
    let text: String = paragraphs.into_iter().collect();
    if text.is_empty() { text } else { format!("\n{heading}\n{text}") }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.replace('\u{a0}', " ").trim_end());
    text.push('\n');
}

/// Number of characters, which equals columns for all our own text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Text that cannot control a terminal: control characters (escape sequences, C1, backspace) and those that reorder or
/// hide text (bidirectional controls, zero-width ones) become their code; line ends and tabs become blanks.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            c if c.is_control() || is_invisible(c) => drop(write!(shown, "{{U+{:04X}}}", c as u32)),
            c => shown.push(c),
        }
    }
    shown
}

/// Characters without a glyph that change the appearance of text: zero-width ones, line separators, bidirectional
/// marks, embeddings, overrides and isolates (Unicode Standard Annex 9), byte order mark, tags.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Default width: files, pipes.
pub const COLUMNS: u16 = 100;

/// Runs `work` with this width for its text.
pub fn at_width<T>(columns: u16, work: impl FnOnce() -> T) -> T {
    let before = CHOSEN.replace(columns);
    let done = work();
    CHOSEN.set(before);
    done
}

/// Width of a line, columns.
pub(crate) fn columns() -> usize {
    usize::from(CHOSEN.get())
}

/// Joins the groups of digits of numbers, and their per cent sign: `12 345` is one word, and `65 %`.
pub(crate) fn joined(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_group = |at: usize| at > 0 && digit(at - 1) && (1..=3).all(|ahead| digit(at + ahead)) && !digit(at + 4);
    let is_share = |at: usize| at > 0 && digit(at - 1) && chars.get(at + 1) == Some(&'%');
    let joins = |at: usize| is_group(at) || is_share(at);
    chars.iter().enumerate().map(|(at, c)| if *c == ' ' && joins(at) { NO_BREAK } else { *c }).collect()
}
