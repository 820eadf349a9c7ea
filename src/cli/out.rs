//! Printing to standard output and standard error, with control characters of foreign text escaped.
//!
//! A reader that goes away (`pgstrata plan FILE | head`) is not an error: later output is dropped, and the work
//! continues. Absent on purpose: the content of the output.

use crate::error::{Error, Result};
use crate::host::terminal::{self, Columns};
use crate::report::json;
use crate::report::text::{self, paragraph};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::OnceLock;

/// Maximum width of filled lines on wider terminals: longer ones are hard to read.
const WIDEST: u16 = 120;
/// Width of a terminal that does not report it.
const USUAL: u16 = 80;
/// Accepted range of the variable COLUMNS.
const SENSIBLE: std::ops::RangeInclusive<u16> = 40..=1000;

/// Width of tables and paragraphs: the terminal's, at most 120; elsewhere that of the variable COLUMNS, else 100.
pub fn width() -> u16 {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    width_of(terminal::columns(&std::io::stdout()), asked)
}

fn width_of(columns: Columns, asked: Option<u16>) -> u16 {
    match columns {
        Columns::OfTerminal(columns) => columns.unwrap_or(USUAL).clamp(*SENSIBLE.start(), WIDEST),
        Columns::NoTerminal => asked.filter(|asked| SENSIBLE.contains(asked)).unwrap_or(text::COLUMNS),
    }
}

/// Writes the result of `text` for the width of standard output.
///
/// # Errors
/// As [`bytes`].
pub fn fitted(text: impl FnOnce() -> String) -> Result<()> {
    bytes(text::at_width(width(), text).as_bytes())
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless the variable NO_COLOR is set
    Auto,
    /// Always, even to files and pipes
    Always,
    /// Never
    Never,
}

static CHOSEN: OnceLock<Colour> = OnceLock::new();

/// Fixes the choice for the process; the first call counts.
pub fn set_colour(colour: Colour) {
    CHOSEN.get_or_init(|| colour);
}

/// True if standard error supports color.
pub fn stderr_takes_colour() -> bool {
    takes_colour(std::io::stderr().is_terminal())
}

fn takes_colour(is_terminal: bool) -> bool {
    match CHOSEN.get().copied().unwrap_or(Colour::Auto) {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            // https://no-color.org: a non-empty value disables color.
            let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
            is_terminal && !refused && !dumb
        }
    }
}

/// Columns of the terminal on standard error; `None` if it is not a terminal.
pub fn stderr_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes bytes to standard output as they are.
///
/// # Errors
/// If standard output cannot be written, except because its reader is gone.
pub fn bytes(bytes: &[u8]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    settle(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Writes text and a line end to standard output. The caller has made foreign parts [`harmless`].
///
/// # Errors
/// As [`bytes`].
pub fn line(text: &str) -> Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

/// Writes a value as one indented JSON document to standard output.
///
/// # Errors
/// As [`bytes`].
pub fn json(value: &impl Serialize) -> Result<()> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(&json::harmless(&text)),
        Err(error) => Err(Error::bug(error.to_string()).while_doing("write JSON")),
    }
}

/// A value as one line of JSON.
///
/// # Errors
/// A bug: a value that JSON cannot represent.
pub fn json_line(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::bug(e.to_string()))
}

/// Writes a value as JSON, or as text for the width of standard output.
///
/// # Errors
/// As [`bytes`].
pub fn json_or(as_json: bool, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if as_json { json(value) } else { fitted(text) }
}

/// Writes a remark that is not a result to standard error, folded at the terminal's width. Dropped without a reader.
pub fn remark(text: &str) {
    match stderr_columns() {
        Some(columns) => to_stderr(&folded(text, columns)),
        None => to_stderr(&format!("{text}\n")),
    }
}

/// The text with lines wider than `columns` folded, keeping their indent.
fn folded(text: &str, columns: usize) -> String {
    let columns = u16::try_from(columns).unwrap_or(WIDEST).clamp(*SENSIBLE.start(), WIDEST);
    let lines = text.split('\n').map(|line| match line.chars().count() > usize::from(columns) {
        true => {
            let indent = &line[..line.len() - line.trim_start().len()];
            text::at_width(columns, || paragraph(indent, line))
        }
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// Shows a line of progress that replaces the previous one.
pub fn passing(text: &str) {
    let columns = stderr_columns().unwrap_or(80).saturating_sub(1);
    let text: String = harmless(text).chars().take(columns).collect();
    to_stderr(&format!("\r\u{1b}[K{text}\r"));
}

/// Writes the error and its hint to standard error.
pub fn error(error: &Error) {
    to_stderr(&shown(error, stderr_takes_colour(), stderr_columns()));
}

/// Writes output of another program to standard error, escaped.
pub fn to_stderr_bytes(bytes: &[u8]) {
    to_stderr(&harmless_lines(&String::from_utf8_lossy(bytes)));
}

fn to_stderr(text: &str) {
    // If standard error is closed, nobody can be notified.
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}

/// Result of writing to standard output. A reader that is gone is not an error.
///
/// # Errors
/// Any other.
pub fn settle(written: std::io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::store(error.to_string()).while_doing("write to standard output"))
        }
        _ => Ok(()),
    }
}

/// The error and its hint, each with its label; folded at `columns` if given.
fn shown(error: &Error, colour: bool, columns: Option<usize>) -> String {
    let message = ("error:", "1;91", escape(&error.chain(), true, colour));
    let hint = error.hint_text().map(|hint| ("hint:", "1;96", escape(hint, true, false)));
    let parts = std::iter::once(message).chain(hint).map(|(word, code, text)| {
        // Lines of a plan with marks below them must stay as they are.
        let text = match columns.filter(|_| !text.contains('\n')) {
            Some(columns) => folded(&format!("{word} {text}"), columns),
            None => format!("{word} {text}\n"),
        };
        // After the folding, which counts every character and escapes those that control a terminal.
        if colour { text.replacen(word, &format!("\u{1b}[{code}m{word}\u{1b}[0m"), 1) } else { text }
    });
    parts.collect()
}

/// Escapes control characters and marks that reverse the direction of text, so that foreign text (names, output of
/// tools) is safe on one line of a terminal.
pub fn harmless(text: &str) -> String {
    escape(text, false, false)
}

/// Same, for text of several lines: line ends and tabs stay.
pub fn harmless_lines(text: &str) -> String {
    escape(text, true, false)
}

fn escape(text: &str, keep_lines: bool, keep_colours: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = colour_sequence(rest).filter(|_| keep_colours) {
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        match c {
            '\n' | '\t' if keep_lines => out.push(c),
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Length of the escape sequence at the start of `text` if it only sets a readable color or weight, as used in plan
/// snippets. Other sequences do not count.
fn colour_sequence(text: &str) -> Option<usize> {
    let (codes, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let mut codes_of = codes.split(';');
    let are_known =
        codes_of.all(|code| matches!(code, "" | "0" | "1" | "22" | "39" | "91" | "92" | "93" | "94" | "95" | "96"));
    are_known.then_some("\u{1b}[m".len() + codes.len())
}

/// The text after `lead`, with foreign parts escaped, wrapped with an indent as wide as the lead.
pub(crate) fn wrapped(lead: &str, text: &str) -> String {
    let mark = lead.trim_start_matches('\n');
    format!("{}{}", &lead[..lead.len() - mark.len()], paragraph(mark, &harmless(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal_and_elsewhere_what_columns_says() {
        let of = |columns, asked| width_of(columns, asked);
        assert_eq!(of(Columns::OfTerminal(Some(80)), Some(200)), 80);
        assert_eq!((of(Columns::OfTerminal(Some(250)), None), of(Columns::OfTerminal(None), None)), (120, 80));
        assert_eq!((of(Columns::NoTerminal, None), of(Columns::NoTerminal, Some(140))), (100, 140));
        assert_eq!(of(Columns::NoTerminal, Some(3)), 100);
    }

    #[test]
    fn remarks_wrap_at_terminal_width_and_short_lines_stay_unchanged() {
        let text = format!("warning: {}\n  a  b   c", "word ".repeat(40).trim_end());
        let lines = folded(&text, 80);
        assert!(lines.lines().all(|line| line.chars().count() <= 80) && lines.lines().count() == 4, "{lines}");
        assert!(lines.ends_with("\n  a  b   c\n"), "{lines}");
    }

    #[test]
    fn foreign_text_cannot_drive_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\nc\u{9b}d\u{202e}e"), "a\\u{1b}[2Jb\\u{d}\\u{a}c\\u{9b}d\\u{202e}e");
        assert_eq!(harmless_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
        assert_eq!(harmless("Größe 5 µs"), "Größe 5 µs");
    }

    #[test]
    fn errors_keep_their_lines_and_only_harmless_colours() {
        let error =
            Error::user("bad\n\u{1b}[1m\u{1b}[91mword\u{1b}[0m\u{1b}[8mhidden\u{1b}]0;title\u{7}").hint("fix\u{1b}it");
        assert_eq!(
            shown(&error, true, Some(80)),
            "\u{1b}[1;91merror:\u{1b}[0m bad\n\u{1b}[1m\u{1b}[91mword\u{1b}[0m\\u{1b}[8mhidden\\u{1b}]0;title\\u{7}\n\
             \u{1b}[1;96mhint:\u{1b}[0m fix\\u{1b}it\n"
        );
        assert!(shown(&error, false, None).starts_with("error: bad\n\\u{1b}[1m"));
    }

    #[test]
    fn errors_are_folded_with_their_colours_at_the_terminals_width() {
        let error = Error::user("word ".repeat(30).trim_end()).hint("look ".repeat(30).trim_end());
        let plain = shown(&error, false, Some(80));
        assert!(plain.lines().count() == 4 && plain.lines().all(|line| line.chars().count() <= 80), "{plain}");
        let painted = plain.replacen("error:", "\u{1b}[1;91merror:\u{1b}[0m", 1).replacen(
            "hint:",
            "\u{1b}[1;96mhint:\u{1b}[0m",
            1,
        );
        assert_eq!(shown(&error, true, Some(80)), painted);
    }

    #[test]
    fn a_closed_pipe_is_no_error_unlike_a_full_disk() {
        assert!(settle(Err(ErrorKind::BrokenPipe.into())).is_ok());
        let error = settle(Err(ErrorKind::StorageFull.into())).unwrap_err();
        assert!(error.to_string().starts_with("failed to write to standard output"), "{error}");
        assert_eq!(error.kind().exit_code(), 5);
    }
}
