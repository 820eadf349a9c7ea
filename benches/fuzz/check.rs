//! The rules for what a reader gives: each number stands in the line that it names, and is that number.

use pgstrata::import::{self, Kind};
use pgstrata::parse::output::{Figure, Line, Output};
use pgstrata::parse::web;
use std::collections::BTreeMap;

/// A text through one reader.
pub fn kind(kind: &Kind, text: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(text);
    let lines = web::lines(&text);
    let outputs = kind.outputs(&lines);
    outputs.iter().map(|output| check(output, &lines)).sum()
}

fn check(output: &Output, lines: &[Line<'_>]) -> Result<u64, String> {
    let last = lines.last().map_or(0, |line| line.number);
    let mut numbers = 0;
    if output.lines.0 > output.lines.1 || output.lines.1 > last {
        return Err(format!("an output has the lines {:?} of {last}", output.lines));
    }
    for row in &output.rows {
        for figure in &row.figures {
            numbers += 1;
            stands(&figure.text, figure.line, lines).map_err(|why| format!("{}: {why}", figure.name))?;
            is_its_number(figure)?;
        }
    }
    match output.unread.iter().find(|unread| unread.line > last) {
        Some(unread) => Err(format!("line {} is unread, of {last}", unread.line)),
        None => Ok(numbers),
    }
}

/// Whether a number stands in its line with nothing of it left out.
fn stands(text: &str, number: u32, lines: &[Line<'_>]) -> Result<(), String> {
    let is_line = |line: &&Line<'_>| line.number == number;
    let mut pieces = lines.iter().filter(is_line).peekable();
    if pieces.peek().is_none() {
        return Err(format!("`{text}` stands in line {number}, which is not there"));
    }
    let whole = |line: &Line<'_>| line.text.match_indices(text).any(|(at, _)| is_whole(line.text, at, text.len()));
    match pieces.any(whole) {
        true => Ok(()),
        false => Err(format!("`{text}` does not stand whole in line {number}")),
    }
}

/// Whether neither digits nor a mark with digits go on before or behind.
fn is_whole(line: &str, at: usize, length: usize) -> bool {
    let (before, behind) = (&line[..at], &line[at + length..]);
    let is_mark = |c: char| matches!(c, '.' | ',');
    let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let goes_on_before = digit(before.chars().next_back())
        || before.ends_with(is_mark) && digit(before.chars().rev().nth(1))
        || before.ends_with('-') && before[..before.len() - 1].chars().next_back().is_none_or(char::is_whitespace);
    let goes_on_behind = digit(behind.chars().next()) || behind.starts_with(is_mark) && digit(behind.chars().nth(1));
    !goes_on_before && !goes_on_behind
}

/// Whether a value is its text's number, times what some unit means.
fn is_its_number(figure: &Figure) -> Result<(), String> {
    let text = figure.text.trim_matches(|c: char| c.is_whitespace() || "()\";:\u{200b}\u{feff}".contains(c));
    // The number is what stands before its unit.
    let is_blank = |c: char| c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{202f}');
    let end = text.find(|c: char| is_blank(c) || c.is_alphabetic() && !matches!(c, 'e' | 'E') || c == '%');
    let digits = text[..end.unwrap_or(text.len())].trim_end_matches(|c: char| !c.is_ascii_digit());
    let bad = || format!("{}: `{}` gives {} {}", figure.name, figure.text, figure.value, figure.unit);
    // JSON may have longer exponents than any locale's number.
    let number = web::number(digits).or_else(|| digits.parse().ok()).ok_or_else(bad)?;
    if !figure.value.is_finite() {
        return Err(bad());
    }
    let close = |factor: f64| (figure.value - number * factor).abs() <= 1e-9 * (number * factor).abs();
    let times = |base: f64, powers: std::ops::RangeInclusive<i32>| powers.map(|power| base.powi(power)).any(close);
    // Sectors of 512 bytes; nanoseconds to hours as microseconds; sizes of every prefix, of 1024 and of 1000.
    // A heading of df says how large its blocks are, which may be anything after it was mangled.
    let in_blocks = matches!(figure.name.as_str(), "size_bytes" | "used_bytes" | "available_bytes");
    match in_blocks || times(1024.0, 0..=8) || times(1000.0, -3..=8) || close(512.0) || close(6e7) || close(3.6e9) {
        true => Ok(()),
        false => Err(bad()),
    }
}

/// Bytes through the whole of `import`.
pub fn file(bytes: &[u8]) -> Result<u64, String> {
    let reading = match import::read("fuzz", &mut &bytes[..]) {
        Ok(reading) => reading,
        Err(error) if error.kind() == pgstrata::error::Kind::User => return Ok(0),
        Err(error) => return Err(format!("the fault of the file is told as {error:?}")),
    };
    if reading.file.bytes != bytes.len() as u64 {
        return Err(format!("{} of {} bytes were seen", reading.file.bytes, bytes.len()));
    }
    let figures = reading.outputs.iter().flat_map(|output| &output.rows).flat_map(|row| &row.figures);
    let mut numbers = figures.count() as u64;
    if let Some(log) = &reading.log {
        let kept: u64 = log.latency.steps.iter().map(|(_, count)| count).sum();
        if kept != log.done {
            return Err(format!("{kept} latencies of {} transactions", log.done));
        }
        let last = reading.outputs.last().map_or(0, |output| u64::from(output.lines.1));
        let told = log.done + log.skipped + log.failed + log.lines_unread;
        if told > last {
            return Err(format!("{told} lines are told of {last}"));
        }
        numbers += told;
    }
    let sorted = import::cases(vec![reading.clone(), reading], &BTreeMap::new());
    match sorted.cases.iter().map(|case| case.trials.len()).sum() {
        1 | 2 => Ok(numbers),
        count => Err(format!("two files became {count} trials")),
    }
}
