//! A text that somebody cut: its last word may go on behind its end, its first one may have begun before it.
//!
//! A tool ends its lines, so only a text without a line feed at its end may be cut there. Many copy one without: what
//! shows to be whole is taken.

use super::kinds::Taken;
use super::wraps::report;
use crate::parse::output::{Figure, Output, Row, Unread};
use crate::parse::web;
use std::collections::BTreeMap;

/// Takes out what may be cut off at either end of a text.
pub(super) fn check(text: &str, taken: &mut Vec<Taken>) {
    let text = text.trim_start_matches('\u{feff}');
    for Taken { output, .. } in taken.iter_mut() {
        end(text, output);
        begin(text, output);
        output.rows.retain(|row| !row.figures.is_empty() || row.absent.is_some() || row.labels.len() > 1);
    }
    taken.retain(|it| !it.output.rows.is_empty() || !it.output.facts.is_empty() || !it.output.unread.is_empty());
}

fn unread(line: u32, text: &str, wanted: String) -> Unread {
    Unread { line, text: text.trim().chars().take(200).collect(), wanted }
}

fn end(text: &str, output: &mut Output) {
    const WHY: &str = "the text ends here without a line feed";
    let line = text.rsplit('\n').next().unwrap_or_default();
    // Behind a blank a number is whole, and a statement may go on.
    let Some(word) = line.split_whitespace().next_back() else { return };
    let touches = line.ends_with(word);
    let number = u32::try_from(text.matches('\n').count() + 1).unwrap_or(u32::MAX);
    if output.lines.1 != number {
        return;
    }
    let mut lost = Vec::new();
    let is_last = |(_, value): &&(&str, String)| value.split_whitespace().next_back() == Some(word);
    let of_name = |row: &Row| row.labels.iter().any(|it| matches!(it.0, "time" | "statement") && is_last(&it));
    let in_a_name = output.rows.last().is_some_and(of_name);
    let whole = |before: &str| !before.ends_with(|c: char| c.is_ascii_digit() || ".,".contains(c));
    let ends = |figure: &Figure| figure.line == number && word.strip_suffix(&figure.text).is_some_and(whole);
    let digit = touches && word.ends_with(|c: char| c.is_ascii_digit()) && !in_a_name;
    let find = |(at, row): (usize, &Row)| row.figures.iter().rposition(ends).map(|figure| (at, figure));
    let found = output.rows.iter().enumerate().rev().find_map(find).filter(|_| digit);
    if let Some((row, figure)) = found.filter(|(row, figure)| !is_whole(output, *row, *figure)) {
        let figure = output.rows[row].figures.remove(figure);
        lost.push(unread(number, line, format!("{}: {WHY}, so the number may be cut off", figure.name)));
    }
    let is_closed = word.ends_with([';', ')', '>', '"', '\'', '%']);
    if found.is_none() && !is_closed && end_of_names(output, number, word, touches) {
        lost.push(unread(number, line, format!("all of `{word}`: {WHY}, so it may be cut off")));
    }
    report(output, lost);
}

/// Takes out names that end with the last word of the text, unless they stand elsewhere too; a row without its name goes
/// with it. Says whether there were any.
fn end_of_names(output: &mut Output, number: u32, word: &str, touches: bool) -> bool {
    const MORE: [&str; 8] = ["mount", "statement", "script", "remark", "type", "state", "health", "time"];
    let is_cut = |value: &str| value.split_whitespace().next_back() == Some(word);
    let mut again: BTreeMap<String, usize> = BTreeMap::new();
    for (_, value) in output.rows.iter().flat_map(|row| &row.labels).filter(|(_, value)| is_cut(value)) {
        *again.entry(value.clone()).or_default() += 1;
    }
    let mut any = false;
    let last = output.rows.len();
    let at_end = |(at, row): &(usize, &mut Row)| at + 1 == last || last_line(row) == number;
    for (_, row) in output.rows.iter_mut().enumerate().filter(at_end) {
        let before = row.labels.len();
        let goes_on = |name: &str| touches || matches!(name, "statement" | "script");
        let cut = |(name, value): &(&str, String)| goes_on(name) && again.get(value) == Some(&1);
        if row.labels.iter().any(|label| cut(label) && !MORE.contains(&label.0)) {
            row.figures.clear();
            row.labels.clear();
        }
        row.labels.retain(|label| !cut(label));
        any |= row.labels.len() < before;
    }
    let facts = output.facts.len();
    let known = ["simple", "extended", "prepared"].contains(&word);
    output.facts.retain(|(name, value)| name == "command" || known || !touches || !is_cut(value));
    let version =
        output.version.take_if(|version| touches && word.trim_start_matches('(').starts_with(version.as_str()));
    any || output.facts.len() < facts || version.is_some()
}

fn last_line(row: &Row) -> u32 {
    row.figures.iter().map(|figure| figure.line).max().unwrap_or(row.line)
}

fn decimals(figure: &Figure) -> usize {
    let number = figure.text.trim_end_matches(|c: char| !c.is_ascii_digit());
    number.rfind(['.', ',']).map_or(0, |at| number.len() - at - 1)
}

/// Whether others show that no digit can follow: of its column in other rows, else of its unit or of all in its row.
fn is_whole(output: &Output, row: usize, figure: usize) -> bool {
    let of = &output.rows[row];
    let figure = &of.figures[figure];
    let others = |other: &&Figure| !std::ptr::eq(*other, figure);
    let column = output.rows.iter().flat_map(|row| &row.figures).filter(others).filter(|it| it.name == figure.name);
    let here = || of.figures.iter().filter(others).filter(|it| it.line == figure.line);
    let of_unit = here().filter(|it| it.unit == figure.unit);
    let fractions: Vec<usize> = here().map(decimals).filter(|count| *count > 0).collect();
    let (column, of_unit): (Vec<usize>, Vec<usize>) = (column.map(decimals).collect(), of_unit.map(decimals).collect());
    let like = |many: &[usize], least: usize| many.len() >= least && many.iter().all(|it| *it == decimals(figure));
    if decimals(figure) > 0 {
        return if column.is_empty() { like(&of_unit, 1) || like(&fractions, 2) } else { like(&column, 1) };
    }
    // No tool prints 05, and the parts of a processor's time no more than 100.
    let is_part = ["user_", "nice_", "system_", "iowait_", "steal_", "idle_", "guest_", "interrupt_"]
        .iter()
        .any(|part| figure.name.starts_with(part) && figure.unit == "%");
    let integers = if column.is_empty() { is_part && like(&of_unit, 1) } else { like(&column, 1) };
    integers && (figure.text == "0" || is_part && figure.value > 10.0)
}

fn begin(text: &str, output: &mut Output) {
    let line = text.split('\n').next().unwrap_or_default();
    let mut lost = Vec::new();
    if begin_of_rows(text, output) {
        lost.push(unread(1, line, "what stands before this line".to_owned()));
    }
    let Some(word) = line.split_whitespace().next().filter(|word| line.starts_with(word)) else {
        report(output, lost);
        return;
    };
    let first = |figure: &Figure| figure.line == 1 && text.starts_with(&figure.text);
    let found = output.rows.iter().enumerate().find_map(|(at, row)| Some((at, row.figures.iter().position(first)?)));
    if let Some((row, figure)) = found.filter(|(row, figure)| contradicts(output, *row, *figure)) {
        let figure = output.rows[row].figures.remove(figure);
        lost.push(unread(1, line, format!("{}: the text begins here, and the number lacks its begin", figure.name)));
    }
    // Over names of columns that end with the device's stand blanks, unless they were cut.
    let over = line.split_whitespace().next_back().is_some_and(|last| last.eq_ignore_ascii_case("device"));
    if over && output.lines.0 == 1 && text.split_whitespace().filter(|it| *it == word).count() < 2 {
        for row in output.rows.iter_mut().filter(|row| row.labels.iter().any(|(name, _)| *name == "device")) {
            row.figures.drain(..row.figures.len().min(1));
        }
        lost.push(unread(1, line, format!("the begin of `{word}`, with which the text begins")));
    }
    if begin_of_names(output, word) {
        lost.push(unread(1, line, format!("the begin of `{word}`, with which the text begins")));
    }
    report(output, lost);
}

/// Takes out names that may lack their begin. Says whether there were any.
fn begin_of_names(output: &mut Output, word: &str) -> bool {
    // What is mounted begins with a slash, is called as its type, or stands elsewhere too.
    let again = output.rows.iter().flat_map(|row| &row.labels).filter(|(_, value)| value == word).count() > 1;
    let mut any = false;
    for row in &mut output.rows {
        let before = row.labels.len();
        row.labels.retain(|(name, value)| match *name {
            "filesystem" => row.line != 1 || again || value != word || word.starts_with("/dev/"),
            "time" => value.split(' ').next() != Some(word) || is_stamp(word),
            _ => true,
        });
        any |= row.labels.len() < before;
    }
    any
}

/// Takes out a first line that cannot be told without what stood before it. Says whether there was one.
fn begin_of_rows(text: &str, output: &mut Output) -> bool {
    let in_a_list = text.contains("\n - ") || text.contains("\n- ");
    // Before a method stand eight blanks, so with fewer words of its name may be gone.
    let touches = !text.starts_with("        ");
    let mut any = false;
    let here = |row: &Row| row.figures.iter().filter(|figure| figure.line == 1).count();
    // A page that joined all lines lacks nothing.
    if output.rows.iter().filter(|row| here(row) > 0).count() > 1 {
        return false;
    }
    for row in output.rows.iter_mut().filter(|row| here(row) > 0) {
        let has = |wanted: &str| row.labels.iter().any(|(name, value)| *name == wanted || value == wanted);
        // Methods have their section over them; the dash before a script's item tells it from the summary's.
        let lacks = match output.tool {
            "pg_test_fsync" => touches && has("method"),
            "pgbench" => in_a_list && has("summary"),
            _ => false,
        };
        if lacks {
            row.figures.retain(|figure| figure.line != 1);
            if row.figures.is_empty() {
                row.labels.clear();
            }
        }
        any |= lacks;
    }
    any
}

/// Whether a word is a whole date, time of day, number of seconds, or a day's name.
fn is_stamp(word: &str) -> bool {
    let date = word.split('T').next().unwrap_or_default();
    let groups: Vec<usize> = date.split(['/', '.', '-', ':']).map(str::len).collect();
    matches!(groups[..], [2, 2, 2 | 4] | [4, 2, 2] | [9..=11])
        || word.chars().all(char::is_alphabetic) && word.len() > 2
}

/// Whether the first number of a text cannot be whole: with a zero before it, or by what its own row says.
fn contradicts(output: &Output, row: usize, figure: usize) -> bool {
    let row = &output.rows[row];
    let figure = &row.figures[figure];
    let value = |name: &str| row.figures.iter().find(|it| it.name == name).map(|it| it.value);
    let far = |expected: f64, share: f64| (figure.value - expected).abs() > expected.abs() * share;
    let digits = figure.text.as_bytes();
    if digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit() {
        return true;
    }
    match figure.name.as_str() {
        // The line before it is not there.
        "full_records_out" => true,
        "full_records_in" => value("full_records_out").is_some_and(|out| out != figure.value),
        "tuples" => {
            let (total, share) = (value("tuples_total"), value("tuples_share"));
            total.zip(share).is_some_and(|(total, share)| (figure.value / total * 100.0 - share).abs() > 1.0)
        }
        "copied_bytes" => {
            let size = row.labels.iter().find(|(name, _)| *name == "size").and_then(|(_, size)| in_bytes(size));
            let by_rate = value("elapsed_us").zip(value("bytes_per_s")).map(|(us, rate)| us / 1e6 * rate);
            size.map_or(by_rate.is_some_and(|bytes| far(bytes, 0.5)), |bytes| far(bytes, 0.2))
        }
        _ => false,
    }
}

/// `82 MB, 78 MiB`, `100.0MB` in bytes, as exactly as that is written.
fn in_bytes(size: &str) -> Option<f64> {
    let size = size.split(", ").next()?;
    let end = size.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
    let unit = size[end..].trim_start().chars().next()?.to_ascii_lowercase();
    let power = "bkmgtpe".find(unit)?;
    Some(web::number(&size[..end])? * 1000f64.powi(i32::try_from(power).ok()?))
}
