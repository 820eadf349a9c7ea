//! Text for terminals: width, paragraphs, characters that must not be printed.

use std::cell::Cell;

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

/// Adds a line without trailing blanks.
pub(crate) fn push_line(text: &mut String, line: &str) {
    text.push_str(line.replace(NO_BREAK, " ").trim_end());
    text.push('\n');
}

/// Number of characters, which equals columns for all our own text.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Text that cannot control a terminal: control characters (escape sequences, C1, backspace) and those that reorder or
/// hide text (bidirectional controls, zero-width ones) become their code; line ends and tabs become blanks.
pub(crate) fn printable(text: &str) -> String {
    replaced(text, |c| match c {
        '\n' | '\t' => Some(" ".to_owned()),
        c => (c.is_control() || is_invisible(c)).then(|| code(c)),
    })
}

/// The text with other text in place of some of its characters.
pub(crate) fn replaced(text: &str, instead: impl Fn(char) -> Option<String>) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match instead(c) {
            Some(other) => shown.push_str(&other),
            None => shown.push(c),
        }
    }
    shown
}

/// A hidden character as it is shown: `{U+001B}`.
pub(crate) fn code(hidden: char) -> String {
    format!("{{U+{:04X}}}", hidden as u32)
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
    let mut before = ' ';
    let mut joined = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let is_inside = c == ' ' && before.is_ascii_digit() && is_rest_of_number(&text[at + 1..]);
        joined.push(if is_inside { NO_BREAK } else { c });
        before = c;
    }
    joined
}

/// True if a text begins with a group of three digits, or the per cent sign.
fn is_rest_of_number(text: &str) -> bool {
    text.starts_with('%') || text.bytes().take_while(u8::is_ascii_digit).count() == 3
}
