//! Human-readable output of pgbench, versions 8.4 to 18, as posted: summaries and progress (formats: pgbench.c of each
//! version). The strict reader of our own runs is `parse::pgbench_summary`. What `pgbench -i` prints is not read.
//!
//! Line by line: an item is a line that fits one of the [`SUMMARY`] or [`SCRIPT`] templates as a whole. A line that
//! begins like one and does not fit is listed as not read.

#[cfg(test)]
mod tests;

use super::output::{Figure, Output, Row, TextLine};
use super::table::{self, extend, figure, note};
use crate::foreign::clean::{number, prompt};

/// Lines of a summary. `{name unit}` matches a number. Longer forms precede shorter ones.
const SUMMARY: &[&str] = &[
    "scaling factor: {scale}",
    "partitions: {partitions count}",
    "number of clients: {clients count}",
    "number of threads: {threads count}",
    "maximum number of tries: {max_tries count}",
    "number of transactions per client: {transactions_per_client count}",
    "number of transactions actually processed: {transactions count}/{transactions_asked count}",
    "number of transactions actually processed: {transactions count}",
    "number of failed transactions: {failed count} ({failed_share %}%)",
    "number of serialization failures: {serialization_failures count} ({serialization_failures_share %}%)",
    "number of deadlock failures: {deadlock_failures count} ({deadlock_failures_share %}%)",
    "number of other failures: {other_failures count} ({other_failures_share %}%)",
    "number of transactions retried: {retried count} ({retried_share %}%)",
    "number of retried transactions: {retried count} ({retried_share %}%)",
    "total number of retries: {retries count}",
    "number of retries: {retries count}",
    "number of transactions skipped: {skipped count} ({skipped_share %}%)",
    "number of transactions skipped: {skipped count} ({skipped_share %} %)",
    "number of transactions above the {latency_limit ms} ms latency limit: {late count}/{late_of count} ({late_share %}%)",
    "number of transactions above the {latency_limit ms} ms latency limit: {late count}/{late_of count} ({late_share %} %)",
    "number of transactions above the {latency_limit ms} ms latency limit: {late count} ({late_share %} %)",
    "duration: {duration s} s",
    "latency average: {latency_mean ms} ms",
    "latency average = {latency_mean ms} ms (including failures)",
    "latency average = {latency_mean ms} ms",
    "latency stddev: {latency_stddev ms} ms",
    "latency stddev = {latency_stddev ms} ms",
    "rate limit schedule lag: avg {lag_mean ms} (max {lag_max ms}) ms",
    "initial connection time = {initial_connection_time ms} ms",
    "average connection time = {average_connection_time ms} ms",
    "tps = {tps_including_connecting tx/s} (including connections establishing)",
    "tps = {tps_excluding_connecting tx/s} (excluding connections establishing)",
    "tps = {tps_including_reconnecting tx/s} (including reconnection times)",
    "tps = {tps tx/s} (without initial connection time)",
];

/// Lines about one script of several, after their dash; summary lines may occur there too.
const SCRIPT: &[&str] = &[
    "weight: {weight} (targets {target_share %}% of total)",
    "{script_transactions count} transactions ({script_share %}% of total, tps = {tps tx/s})",
    "{script_transactions count} transactions ({script_share %}% of total)",
    "number of transactions actually processed: {transactions count} (tps = {tps tx/s})",
];

/// Comma-separated items of a progress line.
const PROGRESS: &[&str] = &[
    "progress: {at s} s",
    "{tps tx/s} tps",
    "lat {latency_mean ms} ms stddev {latency_stddev ms}",
    "lat {latency_mean ms} ms",
    "stddev {latency_stddev ms}",
    "lag {lag_mean ms} ms",
    "{skipped count} skipped",
    "{failed count} failed",
    "{retried count} retried",
    "{retries count} retries",
];

/// Texts without a number.
const FACTS: [&str; 3] = ["transaction type", "query mode", "partition method"];
/// Headings of statement tables, with the counts between latency and text: failures, then retries.
const STATEMENTS: [(&str, &[&str]); 3] = [
    ("statement latencies in milliseconds:", &[]),
    ("statement latencies in milliseconds and failures:", &["failures"]),
    ("statement latencies in milliseconds, failures and retries:", &["failures", "retries"]),
];

/// Reads every output in a text, in order.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    let mut reading = PgbenchReader::default();
    for line in lines {
        reading.line(*line);
    }
    reading.finish()
}

/// The figures of a text that matches a template completely; runs of blanks count as one.
fn fit(template: &str, text: &str, line: u32) -> Option<Vec<Figure>> {
    begins(template, text).then_some(())?;
    let mut figures = Vec::new();
    let mut rest = text;
    for (place, part) in template.split(['{', '}']).enumerate() {
        if place % 2 == 0 {
            rest = rest.strip_prefix(part)?;
            continue;
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.,".contains(c))).unwrap_or(rest.len());
        let (name, unit) = part.split_once(' ').unwrap_or((part, ""));
        let value = number(&rest[..end])?;
        // A count has no decimals.
        (unit != "count" || value.fract() == 0.0).then_some(())?;
        figures.push(figure(name, unit, value, &rest[..end], line));
        rest = &rest[end..];
    }
    rest.is_empty().then_some(figures)
}

/// True if a text begins like a line of the template. Most differ from the first letters on.
fn begins(template: &str, text: &str) -> bool {
    let mut given = text.bytes();
    template.bytes().take_while(|byte| *byte != b'{').all(|byte| given.next() == Some(byte))
}

/// State of the reader.
#[derive(Default)]
struct PgbenchReader {
    outputs: Vec<Output>,
    /// The last shell command that calls pgbench.
    command: Option<String>,
    /// Row of the summary in the last output.
    summary: Option<usize>,
    /// The script whose section is being read, and its row.
    script: Option<(String, Option<usize>)>,
    /// Inside a statement table: its count columns, and true if the last row's text is complete.
    statements: Option<(&'static [&'static str], bool)>,
}

impl PgbenchReader {
    fn line(&mut self, line: TextLine<'_>) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let text = words.join(" ");
        if let Some(command) = prompt(line.text) {
            self.command = command.contains("pgbench").then(|| command.to_owned()).or(self.command.take());
            self.statements = None;
            return;
        }
        if text.is_empty() {
            return;
        }
        let is_read = self.statement(line, &words)
            || self.item(line, &text)
            || self.progress(line, &text)
            || self.fact(line, &text)
            || self.banner(line, &text)
            || self.heading(line, &text);
        match (is_read, self.outputs.last_mut()) {
            (true, Some(output)) => extend(output, line.number),
            _ => self.unread(line, &text),
        }
    }

    /// Lists a line as not read, if it begins like an item or stands inside the output.
    fn unread(&mut self, line: TextLine<'_>, text: &str) {
        let bare = text.strip_prefix("- ").unwrap_or(text);
        let is_begun = SUMMARY.iter().chain([&SCRIPT[0], &PROGRESS[0]]).any(|template| begins(template, bare))
            || bare.starts_with("tps =");
        let Some(output) = self.outputs.last_mut() else { return };
        let mut words = text.split(' ').map(|word| word.trim_matches(['(', ')', '%', ',', ';']));
        if is_begun || words.any(|word| number(word).is_some()) {
            let wanted = "an item that pgbench prints";
            output.unread.push(table::unread(line, wanted));
        }
        // A line or two of other text may come between.
        if is_begun && line.number <= output.lines.1 + 2 {
            extend(output, line.number);
        }
    }

    fn begin(&mut self, line: u32) -> &mut Output {
        let mut output = table::output("pgbench", line);
        output.facts.extend(self.command.take().map(|command| ("command".to_owned(), command)));
        self.outputs.push(output);
        (self.summary, self.script, self.statements) = (None, None, None);
        let last = self.outputs.len() - 1;
        &mut self.outputs[last]
    }

    /// The current output, or a new one.
    fn output(&mut self, line: u32) -> &mut Output {
        match self.outputs.len() {
            0 => self.begin(line),
            count => &mut self.outputs[count - 1],
        }
    }

    fn item(&mut self, line: TextLine<'_>, text: &str) -> bool {
        if let Some(dashed) = text.strip_prefix("- ") {
            let found = SCRIPT.iter().chain(SUMMARY).find_map(|template| fit(template, dashed, line.number));
            return found.is_some_and(|figures| self.of_script(line.number, figures));
        }
        let Some((template, figures)) = SUMMARY.iter().find_map(|it| Some((it, fit(it, text, line.number)?))) else {
            return false;
        };
        // Without its dash, which a page may have lost, it could belong to one script or to all.
        if self.script.is_some() {
            return false;
        }
        let name = &figures[0].name;
        let summary = self.summary.and_then(|row| self.outputs.last()?.rows.get(row));
        if summary.is_some_and(|row| row.figure(name).is_some()) {
            self.begin(line.number);
        }
        let row = self.summary;
        let output = self.output(line.number);
        if template.ends_with("(including failures)") {
            output.facts.push(("latency average".to_owned(), "including failures".to_owned()));
        }
        match row.and_then(|row| output.rows.get_mut(row)) {
            Some(row) => row.figures.extend(figures),
            None => {
                let labels = vec![("part", "summary".to_owned())];
                output.rows.push(Row { figures, ..table::row(labels, line.number) });
                self.summary = self.outputs.last().map(|output| output.rows.len() - 1);
            }
        }
        self.statements = None;
        true
    }

    fn of_script(&mut self, line: u32, figures: Vec<Figure>) -> bool {
        let (Some((name, row)), Some(output)) = (&mut self.script, self.outputs.last_mut()) else { return false };
        self.statements = None;
        match row.and_then(|row| output.rows.get_mut(row)) {
            Some(known) => {
                let is_new = known.figures.iter().all(|figure| figure.name != figures[0].name);
                known.figures.extend(figures.into_iter().filter(|_| is_new));
                is_new
            }
            None => {
                let labels = vec![("part", "script".to_owned()), ("script", name.clone())];
                output.rows.push(Row { figures, ..table::row(labels, line) });
                *row = Some(output.rows.len() - 1);
                true
            }
        }
    }

    fn progress(&mut self, line: TextLine<'_>, text: &str) -> bool {
        let found = text.split(", ").map(|part| PROGRESS.iter().find_map(|template| fit(template, part, line.number)));
        let parts: Option<Vec<Vec<Figure>>> = found.collect();
        let Some(figures) = parts.map(|parts| parts.concat()).filter(|figures| figures[0].name == "at") else {
            return false;
        };
        let last = self.outputs.last().and_then(|output| output.rows.last()?.figures.first());
        if self.summary.is_some() || last.is_some_and(|last| last.name == "at" && figures[0].value < last.value) {
            self.begin(line.number);
        }
        let labels = vec![("part", "progress".to_owned())];
        self.output(line.number).rows.push(Row { figures, ..table::row(labels, line.number) });
        true
    }

    fn fact(&mut self, line: TextLine<'_>, text: &str) -> bool {
        let mut found = FACTS.into_iter().filter_map(|name| Some((name, text.strip_prefix(name)?.strip_prefix(": ")?)));
        let Some((name, value)) = found.next() else { return false };
        let is_next = name == FACTS[0] && self.summary.is_some();
        if is_next || self.outputs.last().is_none_or(|output| output.fact(name).is_some()) {
            self.begin(line.number);
        }
        self.statements = None;
        self.output(line.number).facts.push((name.to_owned(), value.to_owned()));
        true
    }

    /// `pgbench (15.3 (Debian 15.3-0+deb12u1))`, `pgbench (18.4, server 15.3)`.
    fn banner(&mut self, line: TextLine<'_>, text: &str) -> bool {
        let build = text.strip_prefix("pgbench (").and_then(|rest| rest.strip_suffix(')'));
        let Some(build) = build.filter(|build| build.starts_with(|c: char| c.is_ascii_digit())) else { return false };
        let output = self.begin(line.number);
        output.version = build.split([' ', ',']).next().map(str::to_owned);
        output.facts.push(("build".to_owned(), build.to_owned()));
        // If only the server has another version, it follows `server`.
        let server = build.split_once("server ").map_or(build, |(_, server)| server).split([' ', ',', ')']).next();
        output.facts.extend(server.map(|server| ("server version".to_owned(), server.to_owned())));
        true
    }

    /// Handles `SQL script 1: NAME`, and the headings of statement tables.
    fn heading(&mut self, line: TextLine<'_>, text: &str) -> bool {
        let bare = text.strip_prefix("- ").unwrap_or(text);
        if let Some(name) = text.strip_prefix("SQL script ").filter(|name| name.contains(": ")) {
            (self.script, self.statements) = (Some((name.to_owned(), None)), None);
        } else if let Some((_, counts)) = STATEMENTS.iter().find(|(heading, _)| *heading == bare) {
            self.statements = Some((counts, true));
        } else if let Some(file) = text.strip_prefix("statement latencies in milliseconds, file ") {
            // Before version 9.6 scripts have only numbers.
            self.script = Some((format!("file {}", file.trim_end_matches(':')), None));
            self.statements = Some((&[], true));
        } else {
            return false;
        }
        self.output(line.number);
        true
    }

    /// Handles `0.326 0 BEGIN;` where a statement may stand: after the heading, or after a complete statement, so that
    /// a number in the middle of a statement is not taken for the next latency.
    fn statement(&mut self, line: TextLine<'_>, words: &[&str]) -> bool {
        let Some((counts, true)) = self.statements else { return false };
        // pgbench prints three decimals, six before version 12.
        let Some(first) = words.first() else { return false };
        if !first.split(['.', ',']).nth(1).is_some_and(|decimals| matches!(decimals.len(), 3 | 6)) {
            return false;
        }
        let latency = first.replace(',', ".").parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
        let (Some(latency), true) = (latency, words.len() > counts.len() + 1) else { return false };
        let mut figures = vec![figure("latency_mean", "ms", latency, first, line.number)];
        for (name, word) in counts.iter().zip(&words[1..]) {
            let Ok(count) = word.parse::<u32>() else { return false };
            figures.push(figure(name, "count", f64::from(count), word, line.number));
        }
        let statement = words[1 + counts.len()..].join(" ");
        if statement.starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        let is_whole = statement.ends_with(';') || statement.starts_with('\\');
        let script = self.script.as_ref().map_or(String::new(), |(name, _)| name.clone());
        let labels = vec![("part", "statement".to_owned()), ("script", script), ("statement", statement)];
        self.output(line.number).rows.push(Row { figures, ..table::row(labels, line.number) });
        self.statements = Some((counts, is_whole));
        true
    }

    /// Infers versions from the format. Drops outputs with neither a count nor a rate.
    fn finish(mut self) -> Vec<Output> {
        self.outputs.retain(|output| {
            let progress = output.rows.iter().any(|row| row.labels[0].1 == "progress");
            let head = output.fact(FACTS[1]).is_some() && !output.rows.is_empty();
            let mut figures = output.rows.iter().flat_map(|row| &row.figures);
            progress || head || figures.any(|figure| figure.name.starts_with("tps") || figure.name == "transactions")
        });
        for output in &mut self.outputs {
            let last = output.lines.1;
            output.unread.retain(|unread| unread.line <= last);
            output.version = output.version.take().or_else(|| version(output).map(str::to_owned));
            if !output.rows.iter().flat_map(|row| &row.figures).any(|figure| figure.name.starts_with("tps")) {
                note(output, "it has no rate: the summary is cut off, or the run was ended");
            }
        }
        self.outputs
    }
}

/// The version implied by the format.
fn version(output: &Output) -> Option<&'static str> {
    let any = |part, names: &[&str]| {
        let mut figures = output.rows.iter().filter(|row| row.labels[0].1 == part).flat_map(|row| &row.figures);
        figures.any(|figure| names.contains(&figure.name.as_str()))
    };
    let has = |name: &str| any("summary", &[name]);
    let builtin = output.fact(FACTS[0]).is_some_and(|kind| kind.starts_with('<'));
    let old = any("summary", &["tps_including_connecting", "tps_excluding_connecting"]);
    match () {
        () if has("failed") || has("max_tries") || any("progress", &["failed"]) => Some("15 or newer"),
        () if any("summary", &["tps", "tps_including_reconnecting"]) => {
            Some(if has("transactions") { "14" } else { "14 or newer" })
        }
        () if !old => None,
        () if has("latency_mean") => Some(if builtin { "9.6 to 13" } else { "9.4 to 13" }),
        () if has("transactions") => Some("8.4 to 9.3"),
        () => Some("13 or older"),
    }
}
