//! Lines that a terminal or `fold` broke at a width, inside of words: which they are, and what can be taken from them.
//!
//! Whether a line was broken or only happens to be the widest cannot be seen. So such a text is read twice, as it stands
//! and with its lines joined: where joining reads all that the lines alone give, it is right; else only that counts
//! which both give. A number that stands on two lines is never taken.

use super::guard;
use super::kinds::{self, Taken};
use crate::parse::output::{Figure, Line, Output, Row, Unread};
use crate::parse::web;
use std::collections::{BTreeMap, BTreeSet};

const WANTED: &str = "a line that is not broken inside a word or number";

/// The outputs of all tools in a text whose lines are `lines`.
pub(super) fn outputs(text: &str, lines: &[Line<'_>]) -> Vec<Taken> {
    let alone = kinds::outputs(lines);
    let Some(joined) = Joined::of(text) else { return alone };
    let (whole, parted) = joined.outputs();
    let unread = |taken: &[Taken]| taken.iter().map(|it| it.output.unread.len()).sum::<usize>();
    let rows = |taken: &[Taken]| taken.iter().map(|it| it.output.rows.len() + it.output.facts.len()).sum::<usize>();
    // Properties and mounts may be words alone.
    let as_many_words = count(&alone) > 0 || rows(&whole) >= rows(&alone);
    if as_many_words && count(&whole) + parted >= count(&alone) && unread(&whole) <= unread(&alone) + parted {
        return whole;
    }
    // What is read to the last line as it stands, and not when it is joined, was not broken.
    let last = if text.ends_with('\n') { 0 } else { lines.last().map_or(0, |line| line.number) };
    let inner = alone.iter().flat_map(|it| &it.output.unread).filter(|unread| unread.line != last).count();
    if inner == 0 && (unread(&whole) > parted || rows(&whole) < rows(&alone)) {
        return alone;
    }
    both(alone, &whole, lines)
}

fn count(taken: &[Taken]) -> usize {
    taken.iter().flat_map(|it| &it.output.rows).map(|row| row.figures.len()).sum()
}

/// A text with its broken lines joined.
struct Joined {
    text: String,
    /// For each line of `text`, where in it the lines of the original begin, and their numbers.
    pieces: Vec<Vec<(usize, u32)>>,
}

/// A line as it was given, without its end.
struct Raw<'a> {
    text: &'a str,
    /// In characters.
    width: usize,
    /// Characters before its first word: blanks, quote marks, bars.
    indent: usize,
}

impl<'a> Raw<'a> {
    fn of(line: &'a str) -> Raw<'a> {
        let text = line.strip_suffix('\r').unwrap_or(line);
        let is_edge = |c: char| c.is_whitespace() || c == '|';
        let text = if text.trim_end().ends_with('|') { text.trim_end_matches(is_edge) } else { text };
        let text = text.strip_suffix('\u{a0}').unwrap_or(text);
        let indent = text.chars().take_while(|c| is_edge(*c) || *c == '>').count();
        Raw { text, width: text.chars().count(), indent }
    }

    fn words(&self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.text.split_whitespace().filter(|word| !matches!(*word, ">" | ">>" | "|"))
    }

    /// Where each word begins and ends, in characters.
    fn edges(&self) -> Vec<(usize, usize)> {
        let (mut edges, mut from) = (Vec::new(), None);
        for (at, c) in self.text.chars().chain([' ']).enumerate() {
            match (c.is_whitespace(), from) {
                (true, Some(begin)) => {
                    edges.push((begin, at));
                    from = None;
                }
                (false, None) => from = Some(at),
                _ => {}
            }
        }
        edges
    }

    fn is_empty(&self) -> bool {
        self.words().next().is_none()
    }

    /// Whether nothing of a tool's output goes on here.
    fn parts(&self) -> bool {
        self.is_empty()
            || self.text.contains("```")
            || web::prompt(self.text).is_some_and(|command| !command.is_empty())
    }

    fn numbers(&self) -> Vec<bool> {
        let is_number = |word: &&str| word.trim_end_matches('%').ends_with(|c: char| c.is_ascii_digit());
        self.words().map(|word| is_number(&word) && word.starts_with(|c: char| c.is_ascii_digit())).collect()
    }
}

impl Joined {
    fn of(text: &str) -> Option<Joined> {
        let raws: Vec<Raw<'_>> = text.split('\n').map(Raw::of).collect();
        let margin = raws.iter().filter(|raw| !raw.is_empty()).map(|raw| raw.indent).min()?;
        let mut goes_on = BTreeSet::new();
        let mut offset = 0;
        for block in raws.split(Raw::parts) {
            goes_on.extend(broken(block, margin).into_iter().map(|at| offset + at));
            offset += block.len() + 1;
        }
        if goes_on.is_empty() {
            return None;
        }
        let mut joined = Joined { text: String::with_capacity(text.len()), pieces: Vec::new() };
        let mut begin = 0;
        for (at, (line, raw)) in text.split('\n').zip(&raws).enumerate() {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let behind = at > 0 && goes_on.contains(&(at - 1));
            if behind {
                let margin = raw.text.char_indices().nth(margin).map_or(raw.text.len(), |(byte, _)| byte);
                let from = joined.text.len() - begin;
                joined.pieces.last_mut()?.push((from, number));
                joined.text.push_str(&raw.text[margin..]);
            } else {
                if at > 0 {
                    joined.text.push('\n');
                }
                begin = joined.text.len();
                joined.pieces.push(vec![(0, number)]);
                joined.text.push_str(if goes_on.contains(&at) { raw.text } else { line });
            }
        }
        Some(joined)
    }

    /// What all tools give, with the numbers of the original lines, and how many numbers stood on two lines.
    fn outputs(&self) -> (Vec<Taken>, usize) {
        let lines = web::lines(&self.text);
        let mut taken = kinds::outputs(&lines);
        let raw: Vec<&str> = self.text.split('\n').collect();
        let mut parted = 0;
        for Taken { output, .. } in &mut taken {
            parted += self.place(output, &raw);
        }
        taken.retain(|it| !it.output.rows.is_empty() || !it.output.facts.is_empty());
        (taken, parted)
    }

    fn pieces(&self, line: u32) -> &[(usize, u32)] {
        self.pieces.get(line as usize - 1).map_or(&[], Vec::as_slice)
    }

    fn first(&self, line: u32) -> u32 {
        self.pieces(line).first().map_or(line, |(_, number)| *number)
    }

    /// Gives an output the original lines; says how many numbers it lost since they stand on two.
    fn place(&self, output: &mut Output, raw: &[&str]) -> usize {
        output.unread.iter_mut().for_each(|unread| unread.line = self.first(unread.line));
        let last = self.pieces(output.lines.1).last().map_or(output.lines.1, |(_, number)| *number);
        output.lines = (self.first(output.lines.0), last);
        let mut parted = Vec::new();
        // Where the last number of a line was found.
        let mut at: BTreeMap<u32, usize> = BTreeMap::new();
        for row in &mut output.rows {
            row.line = self.first(row.line);
            row.figures.retain_mut(|figure| {
                let text = raw.get(figure.line as usize - 1).copied().unwrap_or_default();
                let line = match self.pieces(figure.line) {
                    [(_, line)] => Some(*line),
                    pieces => {
                        let at = at.entry(figure.line).or_default();
                        let found = guard::find(text, *at, &figure.text).or_else(|| guard::find(text, 0, &figure.text));
                        *at = found.map_or(*at, |found| found + figure.text.len());
                        found.and_then(|from| piece(pieces, from, from + figure.text.len()))
                    }
                };
                match line {
                    Some(line) => figure.line = line,
                    None => parted.push(Unread {
                        line: self.first(figure.line),
                        text: text.chars().take(200).collect(),
                        wanted: format!("{} on one line, not `{}` on two", figure.name, figure.text),
                    }),
                }
                line.is_some()
            });
        }
        output.rows.retain(|row| !row.figures.is_empty() || row.absent.is_some() || row.labels.len() > 1);
        let count = parted.len();
        report(output, parted);
        count
    }
}

/// The line of the one piece in which bytes stand.
fn piece(pieces: &[(usize, u32)], from: usize, to: usize) -> Option<u32> {
    let at = pieces.partition_point(|(begin, _)| *begin <= from).checked_sub(1)?;
    let ends = pieces.get(at + 1).is_none_or(|(next, _)| to <= *next);
    ends.then(|| pieces[at].1)
}

/// Lines of a block behind which it was broken, as far as can be: none where no word can have been.
fn broken(block: &[Raw<'_>], margin: usize) -> Vec<usize> {
    const NARROWEST: usize = 20;
    let widest = block.iter().map(|raw| raw.width).max().unwrap_or_default();
    let full = |at: &usize| block[*at].width == widest && widest >= NARROWEST && !is_table(block, *at);
    let inside = |at: usize| {
        let (line, next) = (&block[at], &block[at + 1]);
        next.indent == margin && !line.text.ends_with(char::is_whitespace)
    };
    let is_word = |at: usize| match (block[at].words().next_back(), block[at + 1].words().next()) {
        (Some(tail), Some(head)) => may_be_one(tail, head),
        _ => false,
    };
    let full: Vec<usize> = (0..block.len().saturating_sub(1)).filter(full).collect();
    // Two lines of names one below the other, of one width, are a table's heading.
    let names = |raw: &Raw<'_>| {
        let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        raw.words().all(is_name) && raw.words().count() > 4
    };
    let heading = |at: usize| block[at + 1].width == widest && names(&block[at]) && names(&block[at + 1]);
    if !full.iter().any(|at| inside(*at) && is_word(*at) && !heading(*at)) {
        return Vec::new();
    }
    full.into_iter().filter(|at| !inside(*at) || is_word(*at)).collect()
}

/// Whether a line and the next are rows of one table, or its heading and first row: their words stand below each other,
/// or are as many and of the same kind.
fn is_table(block: &[Raw<'_>], at: usize) -> bool {
    let (line, next) = (block[at].numbers(), block[at + 1].numbers());
    let (edges, below) = (block[at].edges(), block[at + 1].edges());
    let stands = |(from, to): &&(usize, usize)| edges.iter().any(|edge| edge.0 == *from || edge.1 == *to);
    let aligned = below.iter().skip(1).filter(stands).count();
    // What is written in sentences, in JSON or SQL, has no columns.
    let plain = |raw: &Raw<'_>| !raw.text.contains(['"', '=', ';', '(', ':', '\\']);
    let like = line.len() == next.len() && aligned * 5 >= (below.len() - 1) * 3 || aligned + 1 >= below.len();
    if line.len() > 4 && next.len() > 4 && plain(&block[at]) && plain(&block[at + 1]) && like {
        return true;
    }
    let count = |numbers: &[bool]| numbers.iter().filter(|is| **is).count();
    let is_row = line.len() > 2 && line.len() == next.len() && count(&next) * 2 >= next.len();
    let words = |at: Option<usize>| at.and_then(|at| block.get(at)).map(|raw| raw.words().count());
    let third = [at.checked_sub(1), Some(at + 2)].map(words);
    let alone = third[1].is_none() && third[0].is_none();
    let again = block[at].words().next() == block[at + 1].words().next();
    again || is_row && (line == next || count(&line) == 0) && (alone || third.contains(&Some(line.len())))
}

/// Whether two pieces can be one word.
fn may_be_one(tail: &str, head: &str) -> bool {
    const UNITS: [&str; 16] = ["s", "ms", "us", "ns", "B", "kB", "KB", "MB", "GB", "K", "k", "M", "G", "T", "x", "KiB"];
    let (Some(last), Some(first)) = (tail.chars().next_back(), head.chars().next()) else { return false };
    let is_ruler = |word: &str| word.starts_with("---");
    let fields = |word: &str| word.matches(',').count();
    if is_ruler(head) != is_ruler(tail) || fields(head) > 2 && fields(head) == fields(tail) {
        return false;
    }
    if matches!(last, ')' | ']' | '}' | ';' | '"') {
        return matches!(first, ',' | '.' | ';' | ':' | '%' | ')' | ']' | '}');
    }
    if first.is_ascii_digit() || first.is_alphabetic() {
        let is_number = tail.chars().all(|c| c.is_ascii_digit() || "+-.,(/".contains(c));
        let is_unit = || UNITS.contains(&head.trim_end_matches([',', ')', '.', ';']));
        return match last {
            '0'..='9' if first.is_alphabetic() && is_number => is_unit(),
            _ => true,
        };
    }
    first == '(' && last.is_alphanumeric() || !matches!(first, '(' | '[' | '{' | '<' | '"')
}

/// What both readings give, from the first; what is lost is told.
fn both(mut alone: Vec<Taken>, whole: &[Taken], lines: &[Line<'_>]) -> Vec<Taken> {
    let key = |tool: &'static str, row: &Row, figure: &Figure| {
        (tool, row.labels.clone(), figure.name.clone(), figure.value.to_bits(), figure.text.clone())
    };
    let mut left = BTreeMap::new();
    for Taken { output, .. } in whole {
        for row in &output.rows {
            for figure in &row.figures {
                *left.entry(key(output.tool, row, figure)).or_insert(0usize) += 1;
            }
        }
    }
    for Taken { output, .. } in &mut alone {
        let of_tool = || whole.iter().map(|it| &it.output).filter(|other| other.tool == output.tool);
        let facts = |fact: &(String, String)| of_tool().any(|other| other.facts.contains(fact));
        let facts: Vec<(String, String)> = output.facts.iter().filter(|fact| facts(fact)).cloned().collect();
        let version = output.version.take().filter(|it| of_tool().any(|other| other.version.as_ref() == Some(it)));
        (output.facts, output.version) = (facts, version);
        let (tool, mut lost) = (output.tool, Vec::new());
        for row in &mut output.rows {
            let of = Row { figures: Vec::new(), ..row.clone() };
            row.figures.retain(|figure| {
                let is_there = left.get_mut(&key(tool, &of, figure)).filter(|count| **count > 0);
                if is_there.is_none() {
                    let text = lines.iter().find(|line| line.number == figure.line).map_or("", |line| line.text);
                    let text = text.chars().take(200).collect();
                    lost.push(Unread { line: figure.line, text, wanted: WANTED.to_owned() });
                }
                is_there.map(|count| *count -= 1).is_some()
            });
        }
        output.rows.retain(|row| !row.figures.is_empty() || row.absent.is_some());
        report(output, lost);
    }
    alone.retain(|it| !it.output.rows.is_empty() || !it.output.facts.is_empty() || !it.output.unread.is_empty());
    alone
}

/// Adds lines that could not be read.
pub(super) fn report(output: &mut Output, unread: Vec<Unread>) {
    output.unread.extend(unread);
    output.unread.sort_by_key(|unread| unread.line);
    output.unread.dedup_by_key(|unread| unread.line);
}

#[cfg(test)]
mod tests;
