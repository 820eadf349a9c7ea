//! What pgbench prints for people, versions 8.4 to 18, as they post it: summaries, progress, initialisation (formats:
//! pgbench.c of each version). The strict reader of our own runs is `pgbench_summary`.
//!
//! A line end means little here: an item is its phrase and the numbers behind it, wherever a page broke it. Only the
//! statements of `-r` need their lines, and only where one ends.

mod items;
#[cfg(test)]
mod tests;

use super::output::{Figure, Line, Output, Row, Unread};
use crate::foreign::clean::{self as web, Word};
use items::{ITEMS, Reads};

/// Whether a line of pgbench is there.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    const PHRASES: [&str; 10] = [
        "number of transactions actually processed:",
        "cluding connections establishing)",
        "(without initial connection time)",
        "number of transactions per client:",
        "statement latencies in milliseconds",
        "tuples (",
        "tuples done.",
        "-side generate ",
        "(drop tables ",
        "(create tables ",
    ];
    let has = |phrase: &str| lines.iter().any(|line| line.text.contains(phrase));
    // A summary may be cut off before its counts.
    let of_head = has("query mode: ") && has("number of clients: ") && !has("tps");
    of_head
        || lines.iter().any(|line| {
            PHRASES.iter().any(|phrase| line.text.contains(phrase))
                || line.text.contains("progress: ") && line.text.contains(" tps")
        })
}

/// All outputs in a text, in order. The tool of an initialisation is `pgbench -i`.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut reading = Reading::new(lines);
    while reading.at < reading.words.len() {
        if !(reading.item() || reading.statement()) {
            reading.at += 1;
        }
    }
    reading.finish(lines)
}

const RUN: &str = "pgbench";
const INITIALISATION: &str = "pgbench -i";

/// A script whose part of the summary is being read.
struct Script {
    name: String,
    row: Option<usize>,
}

/// Statements that follow a heading.
struct Statements {
    /// Counts between latency and text: failures, then retries.
    counts: usize,
    /// Row of the last one.
    row: Option<usize>,
}

struct Reading<'a> {
    words: Vec<Word<'a>>,
    /// Which words have become part of something.
    taken: Vec<bool>,
    at: usize,
    /// Commands behind prompts, with their lines.
    commands: Vec<(u32, &'a str)>,
    outputs: Vec<Output>,
    /// Row of the summary in the last output.
    summary: Option<usize>,
    script: Option<Script>,
    statements: Option<Statements>,
}

impl<'a> Reading<'a> {
    fn new(lines: &[Line<'a>]) -> Reading<'a> {
        let commands = web::commands(lines);
        let words = web::words_without(lines, &commands);
        let taken = vec![false; words.len()];
        Reading { words, taken, at: 0, commands, outputs: Vec::new(), summary: None, script: None, statements: None }
    }

    /// The word `ahead` of the next one; empty at the end.
    fn word(&self, ahead: usize) -> &'a str {
        self.words.get(self.at + ahead).map_or("", |word| word.text)
    }

    fn line(&self) -> u32 {
        self.words.get(self.at).or(self.words.last()).map_or(1, |word| word.line)
    }

    fn take(&mut self, count: usize) {
        let end = (self.at + count).min(self.words.len());
        self.taken[self.at..end].fill(true);
        self.at = end;
    }

    /// How many words `phrase` takes where it stands here.
    fn phrase(&self, phrase: &str) -> Option<usize> {
        let mut count = 0;
        for wanted in phrase.split(' ') {
            if self.word(count) != wanted {
                return None;
            }
            count += 1;
        }
        Some(count)
    }

    /// Takes the next word as a number, without the brackets, signs and commas around it.
    fn number(&mut self, name: &str, unit: &'static str) -> Option<Figure> {
        let word = *self.words.get(self.at)?;
        let figure = figure(bare(word.text), name, unit, word.line)?;
        self.take(1);
        Some(figure)
    }

    /// Takes an item of pgbench's that stands here.
    fn item(&mut self) -> bool {
        // Inside a statement's text an item would be part of it.
        if self.statements.as_ref().is_some_and(|statements| statements.row.is_some()) && !self.statement_may_end() {
            return false;
        }
        let start = self.at;
        let dashed = start > 0 && self.words[start - 1].text == "-";
        let found = ITEMS.iter().find_map(|(phrase, reads)| self.phrase(phrase).map(|count| (count, reads)));
        let done = match found {
            Some((count, reads)) => {
                self.at += count;
                let done = self.reads(*reads, dashed);
                self.taken[start..start + count].fill(done);
                done
            }
            None => self.banner() || self.tuples() || self.script_transactions(dashed),
        };
        match done {
            true => {
                let last = self.words[self.at.saturating_sub(1)].line;
                if let Some(output) = self.outputs.last_mut() {
                    output.lines.1 = last;
                }
            }
            false => self.at = start,
        }
        done
    }

    /// Reads what stands behind an item's phrase.
    fn reads(&mut self, reads: Reads, dashed: bool) -> bool {
        // Of no transactions there is no rate: the line is the output's, and unread.
        if is_no_number(bare(self.word(0)))
            && self.outputs.last().is_some_and(|output| output.lines.1 + 1 >= self.line())
        {
            self.extend_to(self.line());
        }
        match reads {
            Reads::Number(name, unit) => {
                let read = self.number(name, unit);
                read.is_some_and(|figure| self.keep(vec![figure], dashed))
            }
            Reads::Share(name) => self.share(name, dashed),
            Reads::Late => self.late(dashed),
            Reads::Lag => self.lag(),
            Reads::Latency(name) => self.latency(name, dashed),
            Reads::Tps => self.tps(),
            Reads::Fact(name) => self.fact(name),
            Reads::Script => self.script(),
            Reads::Weight => self.weight(),
            Reads::Statements => self.statements_heading(),
            Reads::Progress => self.progress(),
            Reads::Times => self.times(),
        }
    }

    /// `pgbench (15.3 (Debian 15.3-0+deb12u1))`, `pgbench (18.4, server 15.3)`.
    fn banner(&mut self) -> bool {
        let version =
            self.word(1).strip_prefix('(').filter(|version| version.starts_with(|c: char| c.is_ascii_digit()));
        let (true, Some(version)) = (self.word(0) == "pgbench", version) else { return false };
        let line = self.line();
        let begun = self.outputs.last().is_some_and(|output| {
            output.tool == RUN && output.rows.is_empty() && output.facts.is_empty() && output.version.is_none()
        });
        if !begun {
            self.begin(RUN, line);
        }
        let end = (2..12).find(|ahead| self.word(*ahead - 1).ends_with(')')).unwrap_or(2);
        let server = (2..end).find(|ahead| self.word(*ahead - 1) == "server").map(|ahead| bare(self.word(ahead)));
        let build = (1..end).map(|ahead| self.word(ahead)).collect::<Vec<_>>().join(" ");
        let build = build.strip_prefix('(').and_then(|build| build.strip_suffix(')')).unwrap_or(&build).to_owned();
        if let Some(output) = self.outputs.last_mut() {
            output.version = Some(bare(version).to_owned());
            output.facts.push(("build".to_owned(), build));
            output.facts.extend(server.map(|server| ("server version".to_owned(), server.to_owned())));
        }
        self.take(end);
        true
    }

    fn begin(&mut self, tool: &'static str, line: u32) {
        // A command belongs to the output that stands below it.
        let from = self.outputs.last().map_or(0, |output| output.lines.1);
        let mut output = Output { tool, lines: (line, line), ..Output::default() };
        let command = web::command_of(&self.commands, "pgbench", from, line);
        output.facts.extend(command.map(|command| ("command".to_owned(), command.to_owned())));
        self.outputs.push(output);
        self.summary = None;
        self.script = None;
        self.statements = None;
    }

    /// Puts figures into the row of the summary, or of the script where they stand behind its dash.
    fn keep(&mut self, figures: Vec<Figure>, dashed: bool) -> bool {
        let Some(first) = figures.first() else { return false };
        let (line, name) = (first.line, first.name.clone());
        if dashed {
            let script = self.script.get_or_insert_with(|| Script { name: String::new(), row: None });
            if let Some(row) = script.row {
                self.extend_row(row, figures);
                return true;
            }
            let labels = vec![("part", "script".to_owned()), ("script", script.name.clone())];
            let row = self.row(RUN, Row { labels, figures, line, ..Row::default() });
            self.script = self.script.take().map(|script| Script { row: Some(row), ..script });
            return true;
        }
        let has = |row: &Row| row.figures.iter().any(|figure| figure.name == name);
        let again = self.summary.and_then(|row| self.outputs.last()?.rows.get(row)).is_some_and(has);
        if again {
            self.begin(RUN, line);
        }
        match self.summary {
            Some(row) => self.extend_row(row, figures),
            None => {
                let labels = vec![("part", "summary".to_owned())];
                self.summary = Some(self.row(RUN, Row { labels, figures, line, ..Row::default() }));
            }
        }
        self.statements = None;
        true
    }

    fn extend_row(&mut self, row: usize, figures: Vec<Figure>) {
        if let Some(row) = self.outputs.last_mut().and_then(|output| output.rows.get_mut(row)) {
            row.figures.extend(figures);
        }
    }

    /// Adds a row to the last output of a tool, which it begins where there is none; says which row it is.
    fn row(&mut self, tool: &'static str, row: Row) -> usize {
        if self.outputs.last().is_none_or(|output| output.tool != tool) {
            let (script, line) = (self.script.take(), row.line);
            self.begin(tool, line);
            self.script = script;
        }
        let Some(output) = self.outputs.last_mut() else { return 0 };
        output.rows.push(row);
        output.rows.len() - 1
    }

    /// Whether the text of a statement can be at its end here.
    fn statement_may_end(&self) -> bool {
        let Some(before) = self.at.checked_sub(1).map(|before| &self.words[before]) else { return true };
        let is_dash =
            before.text == "-" && (before.first || self.at < 2 || ends_statement(self.words[self.at - 2].text));
        self.words[self.at].first || is_dash || ends_statement(before.text)
    }

    /// Whether a number here can be the next statement's latency, and not one in the text of `last` that a page broke. A
    /// text need not end with a semicolon (before version 9.6), but then it stands on one line and is whole.
    fn statement_may_begin(&self, last: Option<usize>) -> bool {
        const GOES_ON: [&str; 12] =
            ["AND", "OR", "WHERE", "SET", "BETWEEN", "VALUES", "IN", "THEN", "ELSE", "WHEN", "LIMIT", "OFFSET"];
        let Some(before) = self.at.checked_sub(1).map(|before| &self.words[before]) else { return true };
        if ends_statement(before.text) {
            return true;
        }
        let row = last.and_then(|row| self.outputs.last()?.rows.get(row));
        let on_one_line = row.is_some_and(|row| row.line == before.line);
        let open = before.text.ends_with(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '"' | '_'));
        self.words[self.at].first && on_one_line && !open && !GOES_ON.contains(&before.text.to_uppercase().as_str())
    }

    /// Takes `0.326 0 BEGIN;`, or words that go on with the last one's text.
    fn statement(&mut self) -> bool {
        let Some(statements) = &self.statements else { return false };
        let (counts, last) = (statements.counts, statements.row);
        if (last.is_none() || self.statement_may_begin(last))
            && let Some(row) = self.statement_row(counts)
        {
            let line = row.line;
            let row = self.row(RUN, row);
            self.statements = Some(Statements { counts, row: Some(row) });
            self.extend_to(line);
            return true;
        }
        let Some(before) = self.at.checked_sub(1).map(|before| self.words[before]) else { return false };
        let word = self.words[self.at];
        // A dash begins an item of the next script or stands in a text.
        let goes_on = word.line <= before.line + 1 && word.text != "-";
        let row = last.and_then(|row| self.outputs.last_mut()?.rows.get_mut(row)).filter(|_| goes_on);
        let Some((_, text)) = row.and_then(|row| row.labels.last_mut()) else {
            if !(goes_on || word.text == "-") {
                self.statements = None;
            }
            return false;
        };
        // A text that was ended goes on only on its own line: a comment behind it.
        if word.first && text.ends_with(';') {
            self.statements = None;
            return false;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word.text);
        self.take(1);
        self.extend_to(word.line);
        true
    }

    fn extend_to(&mut self, line: u32) {
        if let Some(output) = self.outputs.last_mut() {
            output.lines.1 = output.lines.1.max(line);
        }
    }

    /// The numbers of a statement's row; its text follows.
    fn statement_row(&mut self, counts: usize) -> Option<Row> {
        const NAMES: [&str; 2] = ["failures", "retries"];
        let word = self.words.get(self.at)?;
        // pgbench prints three decimals, before version 12 six: a wrapped text may begin with a number too.
        let decimals = word.text.rsplit(['.', ',']).next().filter(|decimals| decimals.len() < word.text.len())?;
        let mut figures = vec![figure(word.text, "latency_mean", "ms", word.line)?];
        if !matches!(decimals.len(), 3 | 6) {
            return None;
        }
        for (ahead, name) in NAMES.iter().take(counts).enumerate() {
            let word = self.words.get(self.at + 1 + ahead)?;
            figures.push(figure(word.text, name, "count", word.line).filter(|figure| figure.value.fract() == 0.0)?);
        }
        let behind = self.word(1 + counts);
        if !behind
            .starts_with(|c: char| c.is_alphabetic() || matches!(c, '\\' | '(' | '-' | '/' | ':' | '"' | '{' | '*'))
        {
            return None;
        }
        let line = word.line;
        let script = self.script.as_ref().map_or(String::new(), |script| script.name.clone());
        let labels = vec![("part", "statement".to_owned()), ("script", script), ("statement", String::new())];
        self.take(1 + counts);
        Some(Row { labels, figures, line, ..Row::default() })
    }

    /// Versions by their form, and the lines that hold numbers which were not taken.
    fn finish(mut self, lines: &[Line<'a>]) -> Vec<Output> {
        let tells = |output: &Output| {
            let is_one = |row: &Row| {
                let named = |figure: &Figure| figure.name.starts_with("tps") || figure.name == "transactions";
                let has_clients = row.figures.iter().any(|figure| figure.name == "clients");
                let of_head = has_clients && output.facts.iter().any(|(name, _)| name == "query mode");
                row.labels.first().is_none_or(|(_, part)| part != "summary") || row.figures.iter().any(named) || of_head
            };
            output.rows.iter().any(is_one) || output.version.is_some()
        };
        self.outputs.retain(tells);
        let left: Vec<u32> = std::iter::zip(&self.words, &self.taken)
            .filter(|(word, taken)| {
                !**taken && (web::number(bare(word.text)).is_some() || is_no_number(bare(word.text)))
            })
            .map(|(word, _)| word.line)
            .collect();
        for output in &mut self.outputs {
            if output.version.is_none() && output.tool == RUN {
                output.version = items::version(output).map(str::to_owned);
            }
            let before = |number: u32| lines.partition_point(|line| line.number < number);
            let (first, behind) = (before(output.lines.0), before(output.lines.1.saturating_add(1)));
            // What ended a run early stands right behind it, or before its summary.
            let near = &lines[first..before(output.lines.1.saturating_add(3)).max(first)];
            let aborted =
                |line: &&Line<'_>| line.text.contains("Run was aborted") || line.text.contains(" aborted in ");
            let note = |line: &Line<'_>| format!("line {}: {}", line.number, shortened(line.text));
            output.notes.extend(near.iter().filter(aborted).map(note));
            let inside = lines[first..behind.max(first)].iter();
            let unread = inside.filter(|line| left.binary_search(&line.number).is_ok()).map(|line| Unread {
                line: line.number,
                text: shortened(line.text),
                wanted: "an item that pgbench prints".to_owned(),
            });
            output.unread = unread.collect();
            let mut figures = output.rows.iter().flat_map(|row| &row.figures);
            if output.tool == RUN && !figures.any(|figure| figure.name.starts_with("tps")) {
                output.notes.push("it has no rate: the summary is cut off, or the run was ended".to_owned());
            }
        }
        self.outputs
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

/// A number without the brackets, commas and signs around it.
fn bare(text: &str) -> &str {
    text.trim_start_matches('(').trim_end_matches([')', '%', ',', ';', ':'])
}

/// Whether it is what C prints for a number that is none: `-nan`, `NaN`, `inf`.
fn is_no_number(text: &str) -> bool {
    matches!(text.trim_start_matches(['-', '+']).to_ascii_lowercase().as_str(), "nan" | "nan(ind" | "inf")
}

fn figure(text: &str, name: &str, unit: &'static str, line: u32) -> Option<Figure> {
    let value = web::number(text)?;
    Some(Figure { name: name.to_owned(), unit, value, text: text.to_owned(), line })
}

/// Whether a statement's text may end with this word: what pgbench lists are commands with a semicolon and
/// backslash commands, mostly with a bracket or a unit of time at their end.
fn ends_statement(word: &str) -> bool {
    word.ends_with([';', ')', ':']) || matches!(word, "us" | "ms" | "s")
}
