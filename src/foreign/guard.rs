//! Checks every imported number, whatever reader took it: it stands whole and with its sign in the line it names, is
//! neither infinite nor underflowed to zero, and was not cut off by the end of the text. A number that fails is not
//! taken; its line is listed as unread.
//!
//! Readers ensure this themselves. This is the safety net: a wrong number is worse than none.

use super::clean::number;
use super::read::output::{Figure, Output, Row, TextLine, Unread};

/// Removes numbers from an output that do not stand in `lines`, which are sorted; `ends` is true if the text ends with
/// a line feed.
pub(super) fn check(output: &mut Output, lines: &[TextLine<'_>], ends: bool) {
    const LONGEST: usize = 200;
    let last = lines.last().filter(|_| !ends);
    let mut unread: Vec<Unread> = Vec::new();
    let mut place = (0, 0);
    for row in &mut output.rows {
        let cut = last.filter(|last| ends_with_cut(row, last)).and_then(|_| row.figures.len().checked_sub(1));
        let mut index = 0;
        row.figures.retain(|figure| {
            index += 1;
            let is_fine = cut != Some(index - 1) && is_a_number(figure) && stands(figure, lines, &mut place);
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

/// True if the last number of a row is the last word of a text without a line feed, so that digits may be missing,
/// unless another number of the row has as many decimals.
fn ends_with_cut(row: &Row, last: &TextLine<'_>) -> bool {
    let Some((figure, others)) = row.figures.split_last() else { return false };
    let at_end = figure.line == last.number && last.text.ends_with(&figure.text);
    let is_whole = decimals(figure).is_some() && others.iter().any(|other| decimals(other) == decimals(figure));
    at_end && !is_whole && figure.text.ends_with(|c: char| c.is_ascii_digit())
}

fn decimals(figure: &Figure) -> Option<usize> {
    figure.text.rsplit_once(['.', ',']).map(|(_, decimals)| decimals.len())
}

/// All pieces of the line with this number.
fn pieces<'a, 'b>(number: u32, lines: &'b [TextLine<'a>]) -> impl Iterator<Item = &'b TextLine<'a>> {
    let from = lines.partition_point(|line| line.number < number);
    lines[from..].iter().take_while(move |line| line.number == number)
}

fn is_a_number(figure: &Figure) -> bool {
    let mantissa = figure.text.split(['e', 'E']).next().unwrap_or_default();
    let vanished = figure.value == 0.0 && mantissa.contains(|c: char| matches!(c, '1'..='9'));
    let has_exponent = figure.text.contains(['e', 'E']) && number(&figure.text).is_none();
    let grown = has_exponent && !figure.text.ends_with('E');
    figure.value.is_finite() && !vanished && !grown && !figure.text.is_empty()
}

/// True if a number stands whole in its line. `place` is the line and position of the previous number, which this one
/// usually follows: searching from there keeps very long lines from taking quadratic time.
fn stands(figure: &Figure, lines: &[TextLine<'_>], place: &mut (u32, usize)) -> bool {
    let from = if place.0 == figure.line { place.1 } else { 0 };
    let mut places = pieces(figure.line, lines).filter_map(|line| {
        let behind = find(line.text, from.min(line.text.len()), &figure.text);
        behind.or_else(|| find(line.text, 0, &figure.text))
    });
    let Some(found) = places.next() else { return false };
    *place = (figure.line, found);
    true
}

/// Position of a whole number at or after `from`.
fn find(line: &str, from: usize, text: &str) -> Option<usize> {
    let mut places = line.get(from..)?.match_indices(text).map(|(at, _)| from + at);
    places.find(|at| is_whole(line, *at, text.len()))
}

/// True if no digit, no mark with digits and no sign is adjacent on either side.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let (before, behind) = (&line[..at], &line[at + length..]);
    let (nearest, second) = (before.chars().next_back(), before.chars().rev().nth(1));
    let ends_with_sign = nearest == Some('-') && second.is_none_or(char::is_whitespace);
    !(goes_on(nearest, second) || goes_on(behind.chars().next(), behind.chars().nth(1)) || ends_with_sign)
}

/// True if a number goes on with these characters: a digit, or a mark and a digit.
fn goes_on(nearest: Option<char>, second: Option<char>) -> bool {
    let digit = if matches!(nearest, Some('.' | ',')) { second } else { nearest };
    digit.is_some_and(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str, value: f64, line: &str) -> bool {
        let figure = Figure { name: "rate".into(), unit: String::new(), value, text: text.into(), line: 3 };
        let row = Row { figures: vec![figure], line: 3, ..Row::default() };
        let mut output = Output { rows: vec![row], ..Output::default() };
        check(
            &mut output,
            &[TextLine { number: 2, text: "5", indent: 0 }, TextLine { number: 3, text: line, indent: 0 }],
            true,
        );
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
    fn a_last_number_without_a_line_feed_may_be_truncated() {
        let row = |texts: &[&str]| {
            let figure = |text: &&str| Figure {
                name: "rate".into(),
                unit: String::new(),
                value: text.parse().unwrap(),
                text: (*text).into(),
                line: 1,
            };
            Row { figures: texts.iter().map(figure).collect(), line: 1, ..Row::default() }
        };
        for (texts, ends, left) in [
            (["1.00", "2.00"], false, 2),
            (["1.00", "2.0"], false, 1),
            (["1.00", "2"], false, 1),
            (["1.00", "2.0"], true, 2),
        ] {
            let text = format!("sda {}", texts.join(" "));
            let mut output = Output { rows: vec![row(&texts)], ..Output::default() };
            check(&mut output, &[TextLine { number: 1, text: &text, indent: 0 }], ends);
            assert_eq!((output.rows[0].figures.len(), output.unread.len()), (left, 2 - left), "{text}");
        }
    }

    #[test]
    fn a_part_of_a_number_is_no_match() {
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
        assert!(kept("5E", 5.0 * 1024f64.powi(6), "5E") && kept("0e5", 0.0, "0e5"));
    }
}
