//! What `pg_test_fsync` prints, versions 9.1 to 18, in any language, as people post it (formats: the program's source
//! and its message catalogues).
//!
//! Line ends mean nothing here: a row is a name, then `N ops/sec`, then in most versions `N usecs/op`, wherever a page
//! broke it. Names of methods are the same in every language, headings and units are not. So a unit is a word with a
//! slash. The test that a row belongs to follows from its heading; from the order of the tables only where the heading is
//! in a language that is not known.

mod table;
#[cfg(test)]
mod tests;

use super::output::{Figure, Line, Output, Row, Unread};
use crate::foreign::clean::{self as web, Word};

/// Methods in the order in which each of the first two tests takes them.
const METHODS: [&str; 5] = ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];

/// Whether there is a row of it. A line that was wrapped may hide one, not all.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| {
        if !METHODS.iter().chain(&["write,"]).any(|method| line.text.contains(method)) {
            return false;
        }
        let words: Vec<&str> = line.text.split_whitespace().collect();
        words.windows(2).any(|two| match METHODS.contains(&two[0]) {
            true => is_absent(two[1]).is_some(),
            false => web::number(two[0]).is_some() && is_unit(two[1]),
        })
    })
}

/// All outputs in a text, in order.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let commands = web::commands(lines);
    let mut words = web::words_without(lines, &commands);
    words.retain(|word| word.text != "|");
    let mut reading = Reading { lines, commands, ..Reading::default() };
    let mut at = 0;
    // Words since the last row: its name is at their end, headings and notes before it.
    let mut since = 0;
    while at < words.len() {
        if let Some(taken) = reading.head(&words, at) {
            at += taken;
            since = at;
            continue;
        }
        let Some((value, taken)) = value(&words[at..]) else {
            at += 1;
            continue;
        };
        let before = &words[since..at];
        if let Some(name) = name(before) {
            let places = Places { heading: since, name: at - name.words, value: at, end: at + taken };
            reading.row(&words, places, name.row, value);
            since = at + taken;
        }
        at += taken;
    }
    reading.finish(&words)
}

/// What a row says.
#[derive(Clone, Copy)]
enum Value<'a> {
    /// Operations a second and perhaps microseconds an operation.
    Rate(Word<'a>, f64, Option<(Word<'a>, f64)>),
    /// That there is no figure; with an asterisk, that the file system is why.
    Absent { asterisk: bool },
}

/// A value at the front of `words`, and how many of them it takes.
fn value<'a>(words: &[Word<'a>]) -> Option<(Value<'a>, usize)> {
    let first = words.first()?;
    if let Some((asterisk, taken)) = absent(words) {
        return Some((Value::Absent { asterisk }, taken));
    }
    let unit = unit(&words[1..]).filter(|_| is_of_a_rate(words[1].text))?;
    let behind = &words[1 + unit..];
    let time = behind.first().filter(|word| web::number(word.text).is_some());
    let time_unit = time.and_then(|_| self::unit(&behind[1..])).filter(|_| is_of_a_time(behind[1].text));
    let (Some(time), Some(time_unit)) = (time, time_unit) else {
        return Some((Value::Rate(*first, web::number(first.text).filter(is_possible)?, None), 1 + unit));
    };
    let (rate, us) = rate_and_time(first.text, time.text)?;
    Some((Value::Rate(*first, rate, Some((*time, us))), 2 + unit + time_unit))
}

/// No storage does fewer than none, nor a thousand million a second.
fn is_possible(rate: &f64) -> bool {
    (0.0..1e9).contains(rate) && rate.is_sign_positive()
}

/// A rate and its time. The program prints thousandths of a rate and whole microseconds, and no marks of thousands; people
/// put them in. So a lone mark before three digits is what fits the other of the two. None where neither does.
fn rate_and_time(rate: &str, time: &str) -> Option<(f64, f64)> {
    let (plain, grouped) = (web::number(rate).filter(is_possible), web::grouped(rate).filter(is_possible));
    let us = web::grouped(time).or_else(|| web::number(time))?;
    let fits = |rate: &Option<f64>| rate.is_some_and(|rate| misfit(0, rate, us).is_none());
    match (fits(&plain), fits(&grouped)) {
        (true, false) => Some((plain?, us)),
        (false, true) => Some((grouped?, us)),
        // A point is the program's own mark: a time that does not fit is told.
        (false, false) if web::grouped(time).is_none() && (grouped.is_none() || rate.contains('.')) => {
            Some((plain?, us))
        }
        _ => None,
    }
}

/// What stands before the slash of a unit, and behind it.
fn parts_of_unit(unit: &str) -> (String, String) {
    let (of, per) = unit.split_once('/').unwrap_or((unit, ""));
    (of.to_lowercase(), per.to_lowercase())
}

/// Whether a unit can be operations a second. Words of languages that are not written in ASCII are not all known.
fn is_of_a_rate(unit: &str) -> bool {
    const NO_OPERATIONS: [&str; 31] = [
        "usec",
        "usecs",
        "useks",
        "usegs",
        "us",
        "µs",
        "μs",
        "мкс",
        "マイクロ秒",
        "მკწმ",
        "微秒",
        "ms",
        "msec",
        "msecs",
        "ns",
        "s",
        "sec",
        "secs",
        "b",
        "kb",
        "mb",
        "gb",
        "kib",
        "mib",
        "gib",
        "ko",
        "mo",
        "кб",
        "мб",
        "bytes",
        "mbit",
    ];
    let (of, per) = parts_of_unit(unit);
    let a_second = !unit.is_ascii() || per.is_empty() || per.starts_with('s');
    a_second && !NO_OPERATIONS.contains(&of.as_str())
}

/// Whether a unit can be microseconds an operation.
fn is_of_a_time(unit: &str) -> bool {
    const NO_MICROSECONDS: [&str; 8] = ["ms", "msec", "msecs", "ns", "nsecs", "s", "sec", "secs"];
    let (of, per) = parts_of_unit(unit);
    // The Italian catalogue has the words of the rate here.
    let an_operation = !unit.is_ascii() || per.is_empty() || per.starts_with('o') || of == "operazioni";
    an_operation && !NO_MICROSECONDS.contains(&of.as_str())
}

/// How many words a unit takes: `ops/sec`, `Op./s`, and `usecs/` `op` where a page broke it.
fn unit(words: &[Word<'_>]) -> Option<usize> {
    let text = words.first()?.text;
    match text.strip_suffix('/') {
        Some(start) if is_letters(start) => {
            words.get(1).filter(|next| next.text.starts_with("op") || next.text.starts_with("sec")).map(|_| 2)
        }
        _ => is_unit(text).then_some(1),
    }
}

fn is_unit(word: &str) -> bool {
    word.split_once('/').is_some_and(|(of, per)| is_letters(of) && is_letters(per)) && is_absent(word).is_none()
}

fn is_letters(text: &str) -> bool {
    let text = text.trim_end_matches('.');
    !text.is_empty() && text.chars().all(|c| c.is_alphabetic() || c == 'µ')
}

/// The words that stand for no figure, in the languages of the program's catalogues; whether with an asterisk.
fn absent(words: &[Word<'_>]) -> Option<(bool, usize)> {
    let text = words.first()?.text;
    if text == "ej" {
        let next = words.get(1)?.text;
        return next.trim_end_matches('*').eq("tillämpbar").then_some((next.ends_with('*'), 2));
    }
    is_absent(text).map(|asterisk| (asterisk, 1))
}

fn is_absent(word: &str) -> Option<bool> {
    const ABSENT: [&str; 9] = ["n/a", "N/A", "entf.", "利用不可", "н/д", "不可用", "nd", "n/d", "b/d"];
    ABSENT.contains(&word.trim_end_matches('*')).then_some(word.ends_with('*'))
}

/// The name of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Name {
    /// Which kind of row: of a method's test, of the sizes, ...
    row: NamedRow,
    /// How many words it takes.
    words: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedRow {
    /// A row of the first two tests, by its place in `METHODS`.
    Method(usize),
    /// Writes of this many bytes.
    Sizes(u64),
    /// `write, fsync, close`.
    FsyncThenClose,
    /// `write, close, fsync`.
    CloseThenFsync,
    /// `write`.
    NotSynced,
}

/// The name at the end of `words`.
fn name(words: &[Word<'_>]) -> Option<Name> {
    let ends_with = |wanted: &[&str]| {
        words.len() >= wanted.len()
            && words[words.len() - wanted.len()..].iter().zip(wanted).all(|(word, wanted)| word.text == *wanted)
    };
    if ends_with(&["write,", "fsync,", "close"]) {
        return Some(Name { row: NamedRow::FsyncThenClose, words: 3 });
    }
    if ends_with(&["write,", "close,", "fsync"]) {
        return Some(Name { row: NamedRow::CloseThenFsync, words: 3 });
    }
    if let Some((bytes, words)) = sizes_name(words) {
        return Some(Name { row: NamedRow::Sizes(bytes), words });
    }
    let last = words.last()?;
    // `open_sync write` and `close, fsync` are what is left of other names.
    let is_rest = |before: &Word<'_>| {
        !last.first && before.line == last.line && before.text.ends_with(|c: char| c.is_alphabetic() || c == ',')
    };
    if words.len() > 1 && is_rest(&words[words.len() - 2]) {
        return None;
    }
    if last.text == "write" {
        return Some(Name { row: NamedRow::NotSynced, words: 1 });
    }
    let method = METHODS.iter().position(|method| *method == last.text)?;
    Some(Name { row: NamedRow::Method(method), words: 1 })
}

/// `2 * 8kB open_sync writes`, `16kB open_sync write`, `2 * 8 Ko, écriture avec open_sync`, `запись с open_sync 2 * 8 КБ`
/// at the end of `words`: bytes of one write, and how many words it takes.
fn sizes_name(words: &[Word<'_>]) -> Option<(u64, usize)> {
    const MOST_WORDS: usize = 8;
    let tail = &words[words.len().saturating_sub(MOST_WORDS)..];
    // Chinese puts no blank behind it.
    let open_sync = tail.iter().rposition(|word| word.text.contains("open_sync"))?;
    let star = tail.iter().rposition(|word| word.text.ends_with('*') && is_absent(word.text).is_none());
    let times = star.and_then(|star| match tail[star].text.strip_suffix('*') {
        Some("") => star.checked_sub(1).filter(|at| is_whole(tail[*at].text)),
        Some(number) => is_whole(number).then_some(star),
        None => None,
    });
    let (size, size_at, _) = (0..tail.len()).rev().find_map(|at| size(&tail[at..]).map(|(bytes, n)| (bytes, at, n)))?;
    let begin = match times {
        Some(times) => times.min(open_sync),
        // Version 9.1 says no number of writes; its size stands right before the method, and `write` behind.
        None if open_sync + 2 == tail.len() && size_at + 1 == open_sync => size_at,
        None => return None,
    };
    // A heading speaks of sizes and of open_sync as well, but says no number of writes after it.
    (size_at >= begin).then_some((size, tail.len() - begin))
}

fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A size at the front of `words`, `8kB` or `8 Ko`: bytes, and how many words it takes.
fn size(words: &[Word<'_>]) -> Option<(u64, usize)> {
    const KILOBYTE: [&str; 9] = ["kB", "KB", "kb", "Kb", "Ko", "ko", "КБ", "кБ", "კბ"];
    let trimmed = |text: &'static str, word: &str| -> bool {
        word.trim_end_matches([',', ':', '.', ')']).split('-').next() == Some(text)
    };
    let text = words.first()?.text.trim_start_matches('(');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let kilobytes: u64 = text[..digits].parse().ok()?;
    let unit = &text[digits..];
    let glued = KILOBYTE.iter().any(|known| trimmed(known, unit));
    let apart =
        unit.is_empty() && words.get(1).is_some_and(|next| KILOBYTE.iter().any(|known| trimmed(known, next.text)));
    let taken = if glued { 1 } else { 2 };
    (glued || apart).then(|| Some((kilobytes.checked_mul(1024)?, taken)))?
}

/// Where among the words a row and its parts begin.
#[derive(Clone, Copy)]
struct Places {
    heading: usize,
    name: usize,
    value: usize,
    end: usize,
}

/// What has been read so far.
#[derive(Default)]
struct Reading<'a> {
    lines: &'a [Line<'a>],
    /// Commands behind prompts, with their lines.
    commands: Vec<(u32, &'a str)>,
    outputs: Vec<Output>,
    /// Which of the words each output is.
    spans: Vec<(usize, usize)>,
    /// The tables of the output that is being read.
    tables: Vec<table::Table>,
    has_head: bool,
}

impl Reading<'_> {
    /// `5 seconds per test` and its like at `words[at]`: begins an output. Says how many words it takes.
    fn head(&mut self, words: &[Word<'_>], at: usize) -> Option<usize> {
        let (figure, taken) = table::head(&words[at..])?;
        self.begin(figure.line, at);
        let output = self.outputs.last_mut()?;
        output.rows.push(Row { line: figure.line, figures: vec![figure], ..Row::default() });
        self.has_head = true;
        Some(taken)
    }

    fn begin(&mut self, line: u32, at: usize) {
        self.close();
        let from = self.outputs.last().map_or(0, |output| output.lines.1);
        let command = web::command_of(&self.commands, "pg_test_fsync", from, line);
        let facts = command.map(|command| ("command".to_owned(), command.to_owned())).into_iter().collect();
        self.outputs.push(Output { tool: "pg_test_fsync", lines: (line, line), facts, ..Output::default() });
        self.spans.push((at, at));
    }

    /// The output is whole: names the tests of its tables. A head alone is a sentence like any other.
    fn close(&mut self) {
        if self.tables.is_empty() {
            self.spans.truncate(self.spans.len() - usize::from(self.outputs.pop().is_some()));
        } else if let Some(output) = self.outputs.last_mut() {
            table::settle(output, &self.tables, self.has_head);
        }
        self.tables.clear();
        self.has_head = false;
    }

    /// Takes one row, and what the words before it say about its table.
    fn row(&mut self, words: &[Word<'_>], places: Places, name: NamedRow, value: Value<'_>) {
        let said = table::heading(&words[places.heading..places.name]);
        let Some(first) = words.get(places.value) else { return };
        let names = words.get(places.name).map_or(first.line, |word| word.line);
        let next = table::next(&self.tables, name, &said, names);
        if self.outputs.is_empty() || next == table::Next::Output {
            let begins = said.begins.map_or(places.name, |at| places.heading + at);
            self.begin(words.get(begins).map_or(first.line, |word| word.line), begins);
        }
        if self.tables.is_empty() || next != table::Next::Row {
            self.tables.push(table::Table::new(name, said));
        }
        let (Some(output), Some(table)) = (self.outputs.last_mut(), self.tables.last_mut()) else { return };
        let mut row = Row { labels: labels(name), line: first.line, ..Row::default() };
        match value {
            Value::Rate(word, rate, latency) => {
                row.figures.push(figure("rate", "ops/s", &word, rate));
                if let Some((word, us)) = latency {
                    row.figures.push(figure("latency_mean", "us", &word, us));
                    output.notes.extend(misfit(word.line, rate, us));
                }
            }
            Value::Absent { asterisk: false } => row.absent = Some("n/a: not built in on this platform".to_owned()),
            Value::Absent { asterisk: true } => {
                row.absent = Some("n/a*: this file system with its mount options does not take direct I/O".to_owned());
            }
        }
        let last = words.get(places.end - 1).map_or(first.line, |word| word.line);
        table.take(name, output.rows.len(), last);
        output.rows.push(row);
        output.lines.1 = last;
        if let Some(span) = self.spans.last_mut() {
            span.1 = places.end;
        }
    }

    /// What the whole text says about the outputs: versions, facts, lines that could not be read.
    fn finish(mut self, words: &[Word<'_>]) -> Vec<Output> {
        // The footnote of the last table and the end by an error stand behind the last row.
        const BEHIND: u32 = 4;
        self.close();
        for (index, output) in self.outputs.iter_mut().enumerate() {
            let (begin, end) = self.spans[index];
            let next = self.spans.get(index + 1).map_or(words.len(), |(begin, _)| *begin);
            let behind = words[end..next].partition_point(|word| word.line <= output.lines.1.saturating_add(BEHIND));
            table::finish(output, &words[begin..end + behind]);
            output.unread = unread(output, &words[begin..end], self.lines);
        }
        self.outputs
    }
}

fn labels(row: NamedRow) -> Vec<(&'static str, String)> {
    const ALL_WRITES: u64 = 16 * 1024;
    let method = |method: &str| ("method", method.to_owned());
    match row {
        NamedRow::Method(rank) => vec![method(METHODS[rank])],
        NamedRow::Sizes(bytes) => {
            let mut labels = vec![("write_bytes", bytes.to_string()), method("open_sync")];
            // The test always writes 16 kB in all, in as many writes as that takes.
            if bytes > 0 && ALL_WRITES.is_multiple_of(bytes) {
                labels.insert(0, ("writes", (ALL_WRITES / bytes).to_string()));
            }
            labels
        }
        NamedRow::FsyncThenClose => vec![method("write, fsync, close")],
        NamedRow::CloseThenFsync => vec![method("write, close, fsync")],
        NamedRow::NotSynced => vec![method("write")],
    }
}

fn figure(name: &str, unit: &'static str, word: &Word<'_>, value: f64) -> Figure {
    Figure { name: name.to_owned(), unit, value, text: word.text.to_owned(), line: word.line }
}

/// Says where a rate and its microseconds cannot be of the same measurement: one is the other's inverse, the rate
/// rounded to a thousandth, the time to a whole.
fn misfit(line: u32, rate: f64, us: f64) -> Option<String> {
    const RATE_ROUNDING: f64 = 0.0005;
    if rate <= 0.0 {
        return None;
    }
    let expected = 1e6 / rate;
    let slack = 0.51 + expected / rate * RATE_ROUNDING;
    let fits = (expected - us).abs() <= slack;
    (!fits).then(|| format!("line {line}: {rate} operations a second take {expected:.0} us each, not {us}"))
}

/// Lines inside an output with a number that was not taken.
fn unread(output: &Output, words: &[Word<'_>], lines: &[Line<'_>]) -> Vec<Unread> {
    let figures = output.rows.iter().flat_map(|row| &row.figures).map(|figure| (figure.line, figure.text.as_str()));
    let taken: std::collections::HashSet<(u32, &str)> = figures.collect();
    let is_left = |at: usize| {
        let word = &words[at];
        let of_size = size(&words[at..]).is_some() || words.get(at + 1).is_some_and(|next| next.text.starts_with('*'));
        web::number(word.text).is_some() && !of_size && !taken.contains(&(word.line, word.text))
    };
    let mut left: Vec<u32> = (0..words.len()).filter(|at| is_left(*at)).map(|at| words[at].line).collect();
    left.dedup();
    let line = |number: u32| {
        let line = lines.get(lines.partition_point(|line| line.number < number));
        line.map_or(String::new(), |line| line.text.chars().take(200).collect())
    };
    let wanted = "a row of pg_test_fsync: a method and its operations a second";
    left.into_iter().map(|number| Unread { line: number, text: line(number), wanted: wanted.to_owned() }).collect()
}
