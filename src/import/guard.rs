//! What holds for every number that is imported, whatever reader took it: it stands in the line that it names, whole and
//! with its sign, and it is neither infinite nor has it become nothing. A number that breaks this is not taken; its line
//! is listed as unread.
//!
//! Readers take care of it by themselves. This is the net below them: text that a page has mangled may fool one of them
//! in a way that nobody has thought of, and a wrong number is worse than none.

use crate::parse::output::{Figure, Line, Output, Unread};

/// Takes numbers out of an output that do not stand in `lines`, which are in order.
pub(super) fn check(output: &mut Output, lines: &[Line<'_>]) {
    const LONGEST: usize = 200;
    let mut unread: Vec<Unread> = Vec::new();
    for row in &mut output.rows {
        row.figures.retain(|figure| {
            let is_fine = is_there(figure, lines);
            if !is_fine && unread.last().is_none_or(|last| last.line != figure.line) {
                let text = pieces(figure.line, lines).map(|line| line.text).collect::<Vec<_>>().join(" ");
                unread.push(Unread {
                    line: figure.line,
                    text: text.chars().take(LONGEST).collect(),
                    wanted: format!("{} as a whole number of its own, not `{}`", figure.name, figure.text),
                });
            }
            is_fine
        });
    }
    if !unread.is_empty() {
        output.rows.retain(|row| !row.figures.is_empty() || row.absent.is_some() || row.labels.len() > 1);
        output.unread.extend(unread);
        output.unread.sort_by_key(|unread| unread.line);
        output.unread.dedup_by_key(|unread| unread.line);
    }
}

/// The pieces of the line with this number.
fn pieces<'a, 'b>(number: u32, lines: &'b [Line<'a>]) -> impl Iterator<Item = &'b Line<'a>> {
    let from = lines.partition_point(|line| line.number < number);
    lines[from..].iter().take_while(move |line| line.number == number)
}

fn is_there(figure: &Figure, lines: &[Line<'_>]) -> bool {
    let whole = |line: &Line<'_>| {
        let mut places = line.text.match_indices(&figure.text);
        places.any(|(at, text)| is_whole(line.text, at, text.len()))
    };
    let mantissa = figure.text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = figure.value == 0.0 && mantissa.contains(|c: char| matches!(c, '1'..='9'));
    figure.value.is_finite() && !vanished && !figure.text.is_empty() && pieces(figure.line, lines).any(whole)
}

/// Whether neither digits, nor a mark with digits, nor a sign go on before or behind.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let (before, behind) = (&line[..at], &line[at + length..]);
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let ends_with_sign = before.ends_with('-') && before.chars().rev().nth(1).is_none_or(char::is_whitespace);
    let goes_on_before = digit(before.chars().next_back())
        || before.ends_with(['.', ',']) && digit(before.chars().rev().nth(1))
        || ends_with_sign;
    let goes_on_behind = digit(behind.chars().next()) || behind.starts_with(['.', ',']) && digit(behind.chars().nth(1));
    !goes_on_before && !goes_on_behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::output::Row;

    fn kept(text: &str, value: f64, line: &str) -> bool {
        let figure = Figure { name: "rate".into(), unit: "", value, text: text.into(), line: 3 };
        let row = Row { figures: vec![figure], line: 3, ..Row::default() };
        let mut output = Output { rows: vec![row], ..Output::default() };
        check(&mut output, &[Line { number: 2, text: "5" }, Line { number: 3, text: line }]);
        assert_eq!(output.rows.is_empty(), !output.unread.is_empty());
        assert!(output.unread.iter().all(|unread| unread.line == 3 && unread.text == line));
        !output.rows.is_empty()
    }

    #[test]
    fn a_number_that_stands_whole_in_its_line_is_kept() {
        for (text, line) in [
            ("4.48", "\"user\": 4.48, \"x\": 1"),
            ("4", "[4, 5]"),
            ("50%", "(50%)"),
            ("16", "16kB"),
            ("-5", "a -5"),
            ("11", "2026-11-21"),
            ("5", "5."),
            ("5", "25 5"),
        ] {
            assert!(kept(text, 4.0, line), "{text} in {line}");
        }
    }

    #[test]
    fn a_part_of_a_number_and_one_of_another_line_are_not() {
        for (text, line) in [
            ("4", "4,48"),
            ("48", "4.48"),
            ("4", "24"),
            ("4", "42"),
            ("5", "-5"),
            ("5", "a -5"),
            ("5", "none"),
            ("", "x"),
        ] {
            assert!(!kept(text, 4.0, line), "{text} in {line}");
        }
        assert!(!kept("1e308", f64::INFINITY, "1e308") && !kept("1e-400", 0.0, "1e-400") && kept("0.00", 0.0, "0.00"));
    }
}
