//! What holds for every number that is imported, whatever reader took it: it stands in the line that it names, whole and
//! with its sign, and it is neither infinite nor has it become nothing. A number that breaks this is not taken; its line
//! is listed as unread.
//!
//! Readers take care of it by themselves. This is the net below them: text that a page has mangled may fool one of them
//! in a way that nobody has thought of, and a wrong number is worse than none.

use crate::foreign::clean as web;
use crate::foreign::read::output::{Figure, Line, Output, Unread};

/// Takes numbers out of an output that do not stand in `lines`, which are in order.
pub(super) fn check(output: &mut Output, lines: &[Line<'_>]) {
    const LONGEST: usize = 200;
    let mut unread: Vec<Unread> = Vec::new();
    let mut seen = Seen::default();
    for row in &mut output.rows {
        row.figures.retain(|figure| {
            let is_fine = is_a_number(figure) && seen.holds(figure, lines);
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

fn is_a_number(figure: &Figure) -> bool {
    let text = figure.text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.,eE".contains(c))).unwrap_or(text.len());
    let Some((mantissa, exponent)) = text[..end].split_once(['e', 'E']) else {
        let vanished = figure.value == 0.0 && text.contains(|c: char| matches!(c, '1'..='9'));
        return figure.value.is_finite() && !vanished && !text.is_empty();
    };
    // An `E` that is taken for exa, a number below what can be told from nothing.
    let written = format!("{}e{exponent}", mantissa.replace(',', "."));
    let number: f64 =
        if exponent.is_empty() { web::number(mantissa) } else { written.parse().ok() }.unwrap_or(f64::NAN);
    let is_zero = !mantissa.contains(|c: char| matches!(c, '1'..='9'));
    figure.value.is_finite() && (is_zero && figure.value == 0.0 || is_in_a_unit(figure.value / number))
}

/// Whether a ratio of two numbers is what units differ by: powers of 1000 or 1024.
fn is_in_a_unit(ratio: f64) -> bool {
    let powers = (0..=8).flat_map(|power| [1000f64.powi(power), 1024f64.powi(power), 1000f64.powi(-power)]);
    ratio.is_finite() && powers.into_iter().any(|factor| (ratio / factor - 1.0).abs() < 1e-9)
}

/// Where the last number was found: the next one mostly stands behind it. Without that, a page that joined all lines to
/// one would take time in the square of its length.
#[derive(Default)]
struct Seen {
    line: u32,
    at: usize,
}

impl Seen {
    /// Whether a number stands whole in its line.
    fn holds(&mut self, figure: &Figure, lines: &[Line<'_>]) -> bool {
        if self.line != figure.line {
            *self = Seen { line: figure.line, at: 0 };
        }
        let mut pieces = pieces(figure.line, lines);
        let (Some(first), None) = (pieces.next(), pieces.next()) else {
            // A line that a terminal overwrote, or none.
            return self::pieces(figure.line, lines).any(|line| find(line.text, 0, &figure.text).is_some());
        };
        // In a very long line nothing is looked for far before the last number.
        const FAR: usize = 64 * 1024;
        let mut from = if first.text.len() > FAR { self.at.saturating_sub(FAR) } else { 0 };
        while !first.text.is_char_boundary(from) {
            from += 1;
        }
        let found = find(first.text, self.at, &figure.text).or_else(|| find(first.text, from, &figure.text));
        self.at = found.unwrap_or(self.at);
        found.is_some()
    }
}

/// Where a number stands whole at or behind `from`. In a very long line it is not looked for far behind that.
pub(super) fn find(line: &str, from: usize, text: &str) -> Option<usize> {
    const FAR: usize = 1 << 20;
    let mut end = line.len().min(from + FAR);
    while !line.is_char_boundary(end) {
        end += 1;
    }
    let mut places = line.get(from..end)?.match_indices(text).map(|(at, _)| from + at);
    places.find(|at| is_whole(line, *at, text.len()))
}

/// Whether neither digits, nor a mark with digits, nor a sign go on before or behind. A comma is no mark where it parts
/// the fields of a table: what it stands in is then no number.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let (before, behind) = (&line[..at], &line[at + length..]);
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let after_mark = |mark: char| before.ends_with(mark) && digit(before.chars().rev().nth(1));
    let before_mark = |mark: char| behind.starts_with(mark) && digit(behind.chars().nth(1));
    let ends_with_sign = before.ends_with('-') && before.chars().rev().nth(1).is_none_or(char::is_whitespace);
    let goes_on = digit(before.chars().next_back()) || digit(behind.chars().next()) || ends_with_sign;
    let point = after_mark('.') || before_mark('.');
    let comma = after_mark(',') || before_mark(',');
    !(goes_on || point || comma && !is_among_fields(line, at, length))
}

/// Whether the digits and marks around a place are more than one number: `0.3,4.5,10.2`, but not `4,48` or `1,234.5`. No
/// number has so many characters as are looked at.
fn is_among_fields(line: &str, at: usize, length: usize) -> bool {
    const LONGEST: usize = 64;
    let goes_on = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
    let before = line.as_bytes()[..at].iter().rev().take(LONGEST).take_while(goes_on).count();
    let behind = line.as_bytes()[at + length..].iter().take(LONGEST).take_while(goes_on).count();
    web::number(&line[at - before..at + length + behind]).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::read::output::Row;

    fn kept(text: &str, value: f64, line: &str) -> bool {
        let figure = Figure { name: "rate".into(), unit: "", value, text: text.into(), line: 3 };
        let row = Row { figures: vec![figure], line: 3, ..Row::default() };
        let mut output = Output { rows: vec![row], ..Output::default() };
        check(&mut output, &[Line { number: 2, text: "5", indent: 0 }, Line { number: 3, text: line, indent: 0 }]);
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
            ("4", "sd0,4,5,6"),
            ("5.9", "0.1,5.9,0"),
            ("12.3", "0.1,12.3,sd0"),
        ] {
            assert!(kept(text, 4.0, line), "{text} in {line}");
        }
    }

    #[test]
    fn numbers_of_a_line_are_found_in_any_order_and_in_a_line_of_a_megabyte_too() {
        let line: String = (0..150_000).map(|n| format!("{n}é ")).collect();
        let lines = [Line { number: 1, text: &line, indent: 0 }];
        let mut seen = Seen::default();
        let mut holds = |text: String| {
            let figure = Figure { name: String::new(), unit: "", value: 1.0, text, line: 1 };
            seen.holds(&figure, &lines)
        };
        assert!((0..150_000).step_by(3).all(|n| holds(n.to_string())));
        assert!(holds("149000".into()) && holds("149999".into()) && !holds("49998".into()) && !holds("150000".into()));
        let lines = [Line { number: 1, text: "3 4", indent: 0 }, Line { number: 1, text: "5 6", indent: 0 }];
        let mut seen = Seen::default();
        for (text, is_there) in [("4", true), ("3", true), ("6", true), ("7", false)] {
            let figure = Figure { name: String::new(), unit: "", value: 1.0, text: text.into(), line: 1 };
            assert_eq!(seen.holds(&figure, &lines), is_there, "{text}");
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
            ("234", "1,234.5"),
            ("234.5", "1,234.5"),
            ("9", "0.1,5.9,0"),
            ("5", "none"),
            ("", "x"),
        ] {
            assert!(!kept(text, 4.0, line), "{text} in {line}");
        }
        assert!(!kept("1e308", f64::INFINITY, "1e308") && !kept("1e-400", 0.0, "1e-400") && kept("0.00", 0.0, "0.00"));
        assert!(!kept("1e-400GB/s", 1.15e18, "1e-400GB/s") && !kept("1e-5GB/s", 1.15e18, "1e-5GB/s"));
        assert!(
            kept("1e-5GB/s", 1e4, "1e-5GB/s") && kept("5E", 5.0 * 1024f64.powi(6), "5E") && kept("0e5", 0.0, "0e5")
        );
    }
}
