//! Imports other people's measurements: files of tools' output become records. Unpacks a file, detects its encoding and
//! kind by its content, passes its lines to the readers, and keeps every number with its line.
//!
//! Absent on purpose: opening files, interpreting the numbers, storing them.
//!
//! # Add a reader, or a publication
//!
//! A reader is `read/<tool>.rs` with `read`, its line in `KINDS`, fixtures. It works line by line: a line is read as a
//! whole or listed as not read, never repaired; the property tests of `tests` try it on cut, folded and spliced texts.
//! Figures that nothing compares and no rule uses are not read (list and limit in `tests/house/sizes.rs`). Nobody below
//! `cli` uses this room.
//!
//! A publication is a folder in `shelf/` with the raw output as published and a `publication.toml` (`manifest`): where
//! it comes from, what varied, which file belongs to which case, what is missing, each conclusion as a claim that
//! figures can answer. `build.rs` embeds it. Its numbers go into `COUNTS` of `shelf::tests`, what its figures answer
//! into `tests/shelf.rs`. A rule on figures belongs into `analyse::shelf`; it sees any import.

mod cases;
mod clean;
mod decode;
mod guard;
mod log;
pub(crate) mod manifest;
mod read;
pub mod shelf;
mod stated;
#[cfg(test)]
mod tests;
mod unpack;

pub use cases::{by_file, trial, unknown};
pub use decode::decode;

use crate::error::{Context, Error, Result};
use crate::foreign::clean as web;
use crate::foreign::read::output::{Output, TextLine};
use crate::record::imported::{ImportedFile, ImportedLog};
use std::io::Read;
use unpack::{Packing, Tap, fill};

/// Content of one file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileReading {
    pub file: ImportedFile,
    /// Outputs in line order; each has `file: 0`. A log of transactions is an output without rows.
    pub outputs: Vec<Output>,
    pub log: Option<ImportedLog>,
}

/// Largest unpacked text other than a log of transactions, bytes.
pub const MOST_TEXT: usize = 64 << 20;
/// Longest line other than in a log or JSON, bytes. A page that joins all lines of an output makes some ten thousand;
/// readers need not be fast beyond that.
const LONGEST_LINE: usize = 256 * 1024;
/// Bytes examined to decide if a file is a log of transactions.
const SAMPLE: usize = 256 * 1024;

/// Reads one file. A log of transactions takes constant memory; other text at most a few times [`MOST_TEXT`].
///
/// # Errors
/// [`crate::error::Kind::User`], naming the file: it cannot be read or unpacked, is empty, is not text, is larger than
/// [`MOST_TEXT`], or is not the output of a known tool.
pub fn read(name: &str, reader: &mut dyn Read) -> Result<FileReading> {
    let mut reading = read_as(if name == "-" { "standard input" } else { name }, reader)?;
    reading.file.name = name.to_owned();
    Ok(reading)
}

/// The tool whose output a file begins with; `None` if no known tool's, or if it cannot be read. Takes constant memory
/// and reads only the beginning.
pub fn recognised(reader: &mut dyn Read) -> Option<String> {
    let head = fill(reader, unpack::MAGIC_BYTES).ok()?;
    let mut plain = unpacked(Packing::of(&head), head.as_slice().chain(reader));
    let sample = fill(&mut plain, SAMPLE).ok()?;
    if log::is_log(&sample) && !also_holds_others(&sample) {
        return Some("pgbench -l".to_owned());
    }
    let (text, _) = decode::decode(sample).ok()?;
    if log::aggregated(&text).is_some() {
        return Some("pgbench -l".to_owned());
    }
    read::outputs(&web::lines(&text), true).first().map(|taken| taken.output.tool.clone())
}

/// The name most similar to the wanted one, if any: it contains it, or nearly equals it.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.6;
    // Shorter parts occur in too many names.
    const SHORTEST_PART: usize = 3;
    let likenesses = names.into_iter().map(|name| {
        let part = if name.contains(wanted) && wanted.len() >= SHORTEST_PART { NEAR } else { 0.0 };
        (strsim::normalized_damerau_levenshtein(name, wanted).max(part), name)
    });
    likenesses.filter(|(likeness, _)| *likeness >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// A hint with the most similar name, if any, followed by `else_`.
pub fn hint_at_nearest(wanted: &str, names: &[String], else_: &str) -> String {
    let Some(name) = nearest(wanted, names.iter().map(String::as_str)) else { return else_.to_owned() };
    let first = else_.chars().next().unwrap_or_default();
    format!("did you mean `{name}`? {}{}", first.to_uppercase(), &else_[first.len_utf8()..])
}

/// Reads one file that messages call `name`.
fn read_as(name: &str, reader: &mut dyn Read) -> Result<FileReading> {
    let mut tap = Tap::new(reader);
    let head = fill(&mut tap, unpack::MAGIC_BYTES).or_user(|| format!("read {name}"))?;
    let packing = Packing::of(&head);
    let what = || match packing {
        Some(packing) => format!("unpack {name}, which is packed with {}", packing.name()),
        None => format!("read {name}"),
    };
    let mut plain = unpacked(packing, head.as_slice().chain(&mut tap));
    let damaged = |error: Error| match packing {
        Some(_) => error.hint("damaged or truncated: copy it again, or unpack what can be read and import that"),
        None => error,
    };
    let sample = fill(&mut plain, SAMPLE).or_user(what).map_err(damaged)?;
    let mut reading = FileReading::default();
    if log::is_log(&sample) && !also_holds_others(&sample) {
        let (log, output) = log::read(&sample, &mut plain).or_user(what).map_err(damaged)?;
        reading.log = Some(log);
        reading.outputs.push(output);
    } else {
        let (text, encoding) = whole_text(name, sample, &mut plain).or_user(what).map_err(damaged)??;
        reading.file.encoding = encoding.map(str::to_owned);
        match log::aggregated(&text).filter(|_| !also_holds_others(text.as_bytes())) {
            Some((log, output)) => (reading.log, reading.outputs) = (Some(log), vec![output]),
            None => read_text(name, &text, &mut reading)?,
        }
    }
    drop(plain);
    // Bytes after the end of the packed data belong to the file too.
    std::io::copy(&mut tap, &mut std::io::sink()).or_user(|| format!("read {name}"))?;
    reading.file.packed = packing.map(|packing| packing.name().to_owned());
    reading.file.bytes = tap.bytes;
    reading.file.sha256 = tap.sha256();
    Ok(reading)
}

fn unpacked<'a>(packing: Option<Packing>, whole: impl Read + 'a) -> Box<dyn Read + 'a> {
    match packing {
        Some(packing) => packing.unpack(whole),
        None => Box::new(whole),
    }
}

/// True if a text short enough to be sampled whole contains another tool's output beside a log's lines.
fn also_holds_others(sample: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(sample) else { return false };
    let lines = web::lines(text);
    sample.len() < SAMPLE && {
        read::KINDS.iter().any(|(_, read)| read(&lines).iter().any(|output| !output.rows.is_empty()))
    }
}

/// Reads and decodes the rest of a text that is not a log. The outer error is the reader's.
fn whole_text(name: &str, sample: Vec<u8>, rest: &mut dyn Read) -> std::io::Result<Result<decode::Text>> {
    if sample.iter().all(u8::is_ascii_whitespace) && sample.len() < SAMPLE {
        return Ok(Err(Error::user(format!("{name} is empty"))));
    }
    let mut bytes = sample;
    // The first bytes are enough to recognise a binary file, so it need not be read to its end.
    if !decode::is_binary(&bytes) {
        rest.take((MOST_TEXT + 1 - bytes.len()) as u64).read_to_end(&mut bytes)?;
    }
    if bytes.len() > MOST_TEXT {
        let longest = bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or_default();
        let what = if longest == bytes.len() { "one line of more than" } else { "more than" };
        return Ok(Err(Error::user(format!(
            "{name} has {what} {} MiB of text that is not a pgbench log",
            MOST_TEXT >> 20
        ))
        .hint("import the part that holds the output of the tool")));
    }
    Ok(decode::decode(bytes).map_err(|what| {
        Error::user(format!("{name} is not text: it is {what}")).hint("import what a tool printed, as text")
    }))
}

/// Extracts the outputs of all tools from a text.
fn read_text(name: &str, text: &str, reading: &mut FileReading) -> Result<()> {
    let lines = web::lines(text);
    if let Some(line) = lines.iter().find(|line| line.text.len() > LONGEST_LINE && !line.text.starts_with(['{', '['])) {
        let kib = line.text.len() / 1024;
        return Err(Error::user(format!(
            "line {} of {name} is {kib} KiB long: no known tool prints that",
            line.number
        ))
        .hint("import the part that holds the output of the tool"));
    }
    let taken = read::outputs(&lines, text.ends_with('\n'));
    if !taken.iter().any(|taken| !taken.output.rows.is_empty() || !taken.output.facts.is_empty()) {
        return Err(taken.first().map_or_else(|| of_no_tool(name, &lines), |taken| of_no_form(name, &taken.output)));
    }
    let ranges: Vec<(u32, u32)> = taken.iter().map(|it| it.output.lines).collect();
    reading.file.lines_of_no_output = other_lines(&lines, &ranges);
    reading.file.facts = stated::facts(&lines);
    reading.outputs = taken.into_iter().map(|it| it.output).collect();
    Ok(())
}

/// Error for a form of a known tool's output that is not read.
fn of_no_form(name: &str, output: &Output) -> Error {
    let wanted = output.unread.first().map(|it| format!("; expected {}", it.wanted)).unwrap_or_default();
    Error::user(format!(
        "{name}, line {}: output of {} in a form that is not read{wanted}",
        output.lines.0, output.tool
    ))
}

/// Error for the output of an unknown tool.
fn of_no_tool(name: &str, lines: &[TextLine<'_>]) -> Error {
    const MOST_SHOWN: usize = 100;
    let first = lines.iter().find(|line| !line.text.is_empty());
    let shown = first.map(|line| line.text.chars().take(MOST_SHOWN).collect::<String>()).unwrap_or_default();
    let line = first.map_or(1, |line| line.number);
    let known: Vec<&str> = read::KINDS.iter().map(|(name, _)| *name).chain(["pgbench -l"]).collect();
    let tools: Vec<&str> = known.iter().filter_map(|known| known.split(" -").next()).collect();
    let mut calls =
        lines.iter().filter(|line| tools.iter().any(|tool| read::table::command(line.text, tool).is_some()));
    let what = match calls.next() {
        Some(TextLine { number, text, .. }) => format!("has no output in a known form; line {number} calls `{text}`"),
        None => format!("is not the output of a known tool; line {line} is `{shown}`"),
    };
    Error::user(format!("{name} {what}"))
        .hint(format!("tables are read with their headings (`-H` only of zfs get); known tools: {}", known.join("; ")))
}

/// Runs of lines outside `ranges`, which are sorted by start, that look like figures: at least a third of their words
/// are numbers. Skips commands, dates and prose.
fn other_lines(lines: &[TextLine<'_>], ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let (mut next, mut covered) = (0, 0);
    for line in lines {
        while let Some((_, last)) = ranges.get(next).filter(|(first, _)| *first <= line.number) {
            covered = covered.max(*last);
            next += 1;
        }
        let words = read::table::words(line.text);
        let numbers = read::table::count_numbers(&words);
        if line.number <= covered || numbers == 0 || numbers * 3 < words.len() || stated::is_no_figure(line.text) {
            continue;
        }
        match runs.last_mut().filter(|(_, last)| *last + 1 >= line.number) {
            Some((_, last)) => *last = line.number,
            None => runs.push((line.number, line.number)),
        }
    }
    runs
}
