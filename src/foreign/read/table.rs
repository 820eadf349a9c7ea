//! Helpers for readers of tables: numbers with suffixes, time stamps, shell lines, and lines that could not be read.
//!
//! Tools of operating systems print rows of figures under rows of names. Pages collapse the blanks between them, so
//! figures are matched to names by order and count, never by position in the line.

use super::output::{Figure, Output, Row, TextLine, Unread};
use crate::foreign::clean as web;

/// One kibibyte; iostat, zpool and df mean this when they print `k`, `kB` or `K`.
pub(super) const KIB: f64 = 1024.0;

/// A decimal number with an optional percent sign.
pub(super) fn percent(text: &str) -> Option<f64> {
    web::number(text.strip_suffix('%').unwrap_or(text))
}

/// A size with a suffix: `7.31K`, `43.5T`, `936K`, `51Gi`, `4.0KiB`; a power of 1024. `None` without a suffix.
pub(super) fn suffixed(text: &str) -> Option<f64> {
    let bare = text.strip_suffix('B').unwrap_or(text);
    let bare = bare.strip_suffix('i').unwrap_or(bare);
    let power = "KMGTPEZ".find(bare.chars().next_back()?.to_ascii_uppercase())?;
    let number = web::number(bare.get(..bare.len() - 1)?)?;
    Some(number * KIB.powi(i32::try_from(power + 1).ok()?))
}

/// A size or a bare number of bytes.
pub(super) fn bytes(text: &str) -> Option<f64> {
    // macOS prints zero as `0Bi`.
    let plain = web::number(text).or_else(|| suffixed(text));
    plain.or_else(|| text.strip_suffix("Bi").or(text.strip_suffix('B')).and_then(web::number))
}

/// A time span as printed by ZFS, in microseconds: `30ms`, `1us`, `988ns`, `2s`; a bare number is nanoseconds (`-p`).
pub(super) fn span_us(text: &str) -> Option<f64> {
    let units = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let named = units.iter().find_map(|(unit, factor)| Some(web::number(text.strip_suffix(unit)?)? * factor));
    named.or_else(|| Some(web::number(text)? / 1e3))
}

pub(in crate::foreign) fn figure(name: &str, unit: &str, value: f64, text: &str, line: u32) -> Figure {
    Figure { name: name.to_owned(), unit: unit.to_owned(), value, text: text.to_owned(), line }
}

/// An output that begins on this line.
pub(super) fn output(tool: &str, line: u32) -> Output {
    Output { tool: tool.to_owned(), lines: (line, line), ..Output::default() }
}

/// Every output that begins on a line: `begun` has it, if one does, and how many lines were consumed.
pub(super) fn scan(lines: &[TextLine<'_>], begun: impl Fn(usize) -> (Option<Output>, usize)) -> Vec<Output> {
    let (mut outputs, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        let (output, used) = begun(at);
        outputs.extend(output);
        at += used;
    }
    outputs
}

/// Marks a line as not read.
pub(in crate::foreign) fn unread(line: TextLine<'_>, wanted: impl Into<String>) -> Unread {
    Unread { line: line.number, text: line.text.trim().chars().take(200).collect(), wanted: wanted.into() }
}

/// Counts the line to the output.
pub(super) fn extend(output: &mut Output, line: u32) {
    output.lines = (output.lines.0.min(line), output.lines.1.max(line));
}

/// Reports a column whose meaning and unit are not known, once: its numbers are not taken.
pub(super) fn unknown_column(output: &mut Output, line: TextLine<'_>, column: &str) {
    let text = format!("column `{column}` is not known: its numbers are not read");
    if !output.notes.contains(&text) {
        output.unread.push(unread(line, format!("columns that are known, not `{column}`")));
        output.notes.push(text);
    }
}

/// Adds a note once.
pub(super) fn note(output: &mut Output, text: impl Into<String>) {
    let text = text.into();
    if !output.notes.contains(&text) {
        output.notes.push(text);
    }
}

/// A row without figures yet.
pub(in crate::foreign) fn row(labels: Vec<(&'static str, String)>, line: u32) -> Row {
    Row { labels: owned(labels), line, ..Row::default() }
}

/// Names that this program gives, as they are stored.
pub(super) fn owned(named: impl IntoIterator<Item = (&'static str, String)>) -> Vec<(String, String)> {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// True if the line holds a time stamp and nothing else, as `-t` and `-T` print them.
pub(in crate::foreign) fn is_time(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("Time: ").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let seconds = words.len() == 1 && (9..=11).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let parts = words.iter().all(|word| {
        word.len() <= 5 && word.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
            || word.chars().all(|c| c.is_ascii_digit() || "/-.:T+,Z".contains(c))
    });
    seconds || (words.len() <= 7 && words.iter().any(|word| is_clock(word)) && parts)
}

fn is_clock(word: &str) -> bool {
    let parts: Vec<&str> = word.split_once('T').map_or(word, |(_, time)| time).splitn(3, [':']).collect();
    parts.len() == 3
        && parts[..2].iter().all(|p| p.len() <= 2 && web::number(p).is_some())
        && parts[2].starts_with(|c: char| c.is_ascii_digit())
}

/// The arguments of the command of a shell line that calls `tool`: `$ iostat -x 1`, `root@host:~# zpool iostat -v`. A
/// line without a prompt counts where it is the tool's name with options or numbers and nothing else.
pub(in crate::foreign) fn command<'a>(text: &'a str, tool: &str) -> Option<&'a str> {
    let prompted = web::prompt(text);
    let command = prompted.unwrap_or(text.trim());
    let mut places = command.match_indices(tool).map(|(at, _)| at);
    let at = places.find(|at| command[..*at].is_empty() || command[..*at].ends_with([' ', '/', ';', '|']))?;
    let rest = &command[at + tool.len()..];
    let whole = rest.is_empty() || rest.starts_with(char::is_whitespace);
    let first = rest.split_whitespace().next().unwrap_or_default();
    let options = first.starts_with('-') || web::number(first).is_some();
    (whole && (prompted.is_some() || (at == 0 && options))).then_some(rest)
}

/// True for a shell prompt, with or without a command.
pub(super) fn is_prompt(text: &str) -> bool {
    web::prompt(text).is_some()
}

/// Words of a line, without table bars.
pub(in crate::foreign) fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().filter(|word| *word != "|").collect()
}

/// True if the short options among the arguments include this letter.
pub(super) fn has_option(arguments: &str, letter: char) -> bool {
    arguments.split_whitespace().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
}

/// True if the line marks an omission: `...`, `[...]`, `<snip>`.
pub(super) fn is_omission(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.len() <= 12 && (text.contains("...") || text.contains('…') || text.contains("snip"))
}

/// Counts the words that are numbers in any format that tools print.
pub(in crate::foreign) fn count_numbers(words: &[&str]) -> usize {
    words.iter().filter(|word| percent(word).or_else(|| bytes(word)).is_some()).count()
}

#[cfg(test)]
pub(super) mod checks {
    //! Properties that every reader must keep, whatever was done to the text.

    use super::super::output::{Output, TextLine};

    /// Every number of a text as printed: digits with marks between them, not part of a name such as `ext4`.
    pub(in crate::foreign) fn numbers(text: &str) -> Vec<String> {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
        let mut found = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let in_a_name = rest[..at].ends_with(|c: char| c.is_alphabetic() || c == '_');
            rest = &rest[at..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if !in_a_name {
                found.push(rest[..end].trim_end_matches(['.', ',']).to_owned());
            }
            rest = &rest[end..];
        }
        found
    }

    /// The numbers of `text` without a matching figure, label or fact in `outputs`; each of these matches one number.
    pub(in crate::foreign) fn numbers_not_read(text: &str, outputs: &[Output]) -> Vec<String> {
        let mut left = numbers(text);
        let mut cover = |text: &str| {
            for number in numbers(text) {
                if let Some(at) = left.iter().position(|other| *other == number) {
                    left.remove(at);
                }
            }
        };
        for output in outputs {
            output.facts.iter().for_each(|(_, fact)| cover(fact));
            for row in &output.rows {
                row.labels.iter().for_each(|(_, label)| cover(label));
                row.figures.iter().for_each(|figure| cover(&figure.text));
            }
        }
        left
    }

    /// The outputs of a reader, after asserting that nothing in them is invented.
    pub(in crate::foreign) fn outputs_of(text: &str, read: fn(&[TextLine<'_>]) -> Vec<Output>) -> Vec<Output> {
        let lines = crate::foreign::clean::lines(text);
        let found = read(&lines);
        nothing_is_invented(&lines, &found);
        found
    }

    /// Asserts that every figure stands in its line.
    pub(in crate::foreign) fn nothing_is_invented(lines: &[TextLine<'_>], outputs: &[Output]) {
        let at = |number: u32| lines.iter().find(|line| line.number == number).map_or("", |line| line.text);
        for output in outputs {
            for figure in output.rows.iter().flat_map(|row| &row.figures) {
                assert!(at(figure.line).contains(&figure.text), "{figure:?} is not in `{}`", at(figure.line));
                assert!(figure.value.is_finite(), "{figure:?}");
            }
            assert!(output.lines.0 <= output.lines.1, "{:?}", output.lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    #[test]
    fn suffixes_are_powers_of_1024() {
        assert_eq!((bytes("7.31K"), bytes("43.5T")), (Some(7.31 * 1024.0), Some(43.5 * 1024f64.powi(4))));
        assert_eq!(
            (bytes("936Ki"), bytes("4KiB"), bytes("12B"), bytes("12")),
            (Some(958_464.0), Some(4096.0), Some(12.0), Some(12.0))
        );
        assert_eq!((bytes("0Bi"), bytes("Bi"), suffixed("0Bi")), (Some(0.0), None, None));
        assert_eq!((suffixed("12"), suffixed("K"), suffixed("1.00x"), suffixed("é")), (None, None, None, None));
        assert_eq!(
            (span_us("30ms"), span_us("988ns"), span_us("2000"), span_us("-")),
            (Some(30e3), Some(0.988), Some(2.0), None)
        );
    }

    #[test]
    fn time_stamps_are_told_from_rows() {
        for text in [
            "11/21/26 09:09:58",
            "11/21/2026 09:09:58 AM",
            "2026-11-21T09:09:58+0000",
            "Time: 09:09:58 AM",
            "Thu Jun 26 23:52:00 UTC 2014",
            "1403826720",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in ["vda 1.00 2.00", "12", "0 0 0", "the time is 09:09:58 or thereabouts", ""] {
            assert!(!is_time(text), "{text}");
        }
    }

    #[test]
    fn a_shell_line_gives_its_arguments() {
        assert_eq!(command("$ iostat -x 1", "iostat").map(str::trim), Some("-x 1"));
        assert_eq!(command("root@h:~# /usr/bin/iostat", "iostat").map(str::trim), Some(""));
        assert_eq!(command("iostat -x -y 1", "iostat").map(str::trim), Some("-x -y 1"));
        assert_eq!(command("iostat shows the same", "iostat"), None);
        assert_eq!(command("$ zpool iostat -v", "zpool iostat").map(str::trim), Some("-v"));
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in "\\PC{0,40}") {
            let _ = (bytes(&text), span_us(&text), is_time(&text), command(&text, "é"), is_omission(&text));
        }
    }
}
