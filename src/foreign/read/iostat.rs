//! `iostat` of Linux (sysstat), FreeBSD, illumos and macOS: devices, processors, terminal, load.
//!
//! Figures have the same names and units on every system. Latency is queue and device together, as a request sees it;
//! `k` and `M` of every iostat are powers of 1024, a sector is 512 bytes.
//!
//! | figure | unit | Linux | FreeBSD | illumos | macOS |
//! |---|---|---|---|---|---|
//! | `read_ops_per_s`, `write_ops_per_s` | ops/s | r/s w/s | r/s w/s | r/s w/s, rps wps | |
//! | `discard_ops_per_s`, `flush_ops_per_s` | ops/s | d/s f/s | | | |
//! | `ops_per_s` | ops/s | tps | tps | tps | tps |
//! | `read_bytes_per_s`, `write_`, `discard_` | B/s | rsec/s rkB/s rMB/s kB_read/s Blk_read/s | kr/s kw/s | kr/s Mr/s | |
//! | `bytes_per_s` | B/s | kB/s (`-s`) | MB/s | kps | MB/s |
//! | `read_bytes`, `write_bytes`, `discard_bytes` | B | kB_read (a total) | kr/i (`-I`) | kr/i (`-I`) | |
//! | `read_ops`, `write_ops`, `ops`, `bytes` | count, B | | r/i w/i xfrs MB (`-I`) | r/i w/i | |
//! | `read_merges_per_s`, `write_`, `discard_`, `merges_per_s` | requests/s | rrqm/s rqm/s | | | |
//! | `read_merged_percent`, `write_`, `discard_` | % | %rrqm | | | |
//! | `request_bytes`, `read_request_bytes`, `write_`, `discard_` | B | avgrq-sz areq-sz rareq-sz | KB/t | | KB/t |
//! | `queue_depth` (mean) | requests | avgqu-sz aqu-sz | | | |
//! | `queue_length` (at the moment of printing) | requests | | qlen | | |
//! | `wait_queue_depth`, `active_queue_depth` | requests | | | wait actv | |
//! | `latency_us`, `read_latency_us`, `write_`, `discard_`, `flush_`, `other_` | us | await r_await | svc_t ms/t ms/r ms/o | svc_t | |
//! | `wait_latency_us`, `active_latency_us` | us | | | wsvc_t asvc_t | |
//! | `service_time_us` (not to be trusted, gone since 12.1.2) | us | svctm | | | |
//! | `latency_total_us`, `busy_us` | us | | tsvc_t/i sb/i | | |
//! | `util_percent`, `wait_util_percent` | % | %util | %b | %b %w | |
//! | `soft_errors`, `hard_errors`, `transport_errors`, `errors` | count | | | s/w h/w trn tot | |
//! | `user_percent`, `nice_`, `system_`, `iowait_`, `steal_`, `interrupt_`, `idle_` | % | avg-cpu | us ni sy in id | us sy wt id | us sy id |
//! | `terminal_in_chars_per_s`, `terminal_out_chars_per_s` | chars/s | | tin tout | tin tout | |
//! | `load_1_min`, `load_5_min`, `load_15_min` | tasks | | | | 1m 5m 15m |
//!
//! Labels: `report` (from 1), `time` (where printed), then `device`, or `cpu`, `tty`, `load` with `all`.

mod columns;
mod json;
mod wide;

use self::wide::Wide;
use super::output::{Line, Output, Row};
use super::table;
use crate::foreign::clean as web;

/// Whether the text holds something that an iostat prints.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    json::is_one(lines)
        || lines.iter().any(|line| Header::of(without_clock(*line).text).is_some())
        || lines.iter().any(|line| Wide::of(None, *line).is_some())
}

/// Reads every report of every iostat in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let lines: Vec<Line<'_>> = lines.iter().map(|line| without_clock(*line)).collect();
    let mut reader = Reader::default();
    let mut at = 0;
    while at < lines.len() {
        at += match json::read(&lines[at..]) {
            Some((output, used)) => {
                reader.close();
                reader.outputs.push(output);
                used
            }
            None => reader.take(&lines, at),
        };
    }
    reader.close();
    reader.outputs
}

/// A line without the clock that a terminal or a log put before it: `[18:01:12]sda 1.00`. It is not iostat's.
fn without_clock(line: Line<'_>) -> Line<'_> {
    let inner = line.text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let is_clock = |text: &str| {
        text.matches(':').count() == 2 && text.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte))
    };
    match inner.filter(|(clock, _)| is_clock(clock)) {
        Some((_, text)) => Line { text: text.trim_start(), ..line },
        None => line,
    }
}

/// Names over the figures of devices, one row a device; or over those of the processors.
struct Header {
    columns: Vec<String>,
    /// Whether the device stands behind its figures (`-h` of Linux, `-n` of illumos).
    name_last: bool,
    /// Whether fields are parted by commas (`-r` of illumos).
    commas: bool,
    /// `None` for avg-cpu.
    tool: Option<&'static str>,
}

impl Header {
    fn of(text: &str) -> Option<Header> {
        let commas = text.contains(',');
        let mut words = words(text, commas);
        if words.first() == Some(&"avg-cpu:") {
            let all = words.len() > 1 && words[1..].iter().all(|word| word.starts_with('%'));
            let columns = words[1..].iter().map(|&word| word.to_owned()).collect();
            return all.then_some(Header { columns, name_last: false, commas, tool: None });
        }
        // `disk` is Solaris 2's.
        let is_device = |word: &str| matches!(word.trim_end_matches(':'), "Device" | "device" | "disk");
        let at = words.iter().position(|word| is_device(word))?;
        let extended = words[at].starts_with('D');
        words.remove(at);
        let name_last = at > 0;
        let seen = words.iter().filter(|word| columns::of_device(word).is_some()).count();
        // Behind the columns of devices illumos and FreeBSD print those of terminal and processors (`-tC`).
        let machine = words.iter().rev().take_while(|word| columns::of_machine(word).is_some()).count();
        let sensible = seen >= 2 && seen * 2 > words.len() - machine && (at == 0 || at == words.len());
        let tool = tool_of(&words, extended);
        let columns = words.into_iter().map(str::to_owned).collect();
        sensible.then_some(Header { columns, name_last, commas, tool: Some(tool) })
    }

    /// Adds the names of a line that only goes on with names: the heading was wrapped.
    fn goes_on(&mut self, text: &str) -> bool {
        let words = words(text, self.commas);
        let named = |word: &&str| match self.tool {
            Some(_) => columns::of_device(word).is_some(),
            None => columns::of_machine(word).is_some(),
        };
        let all = !words.is_empty() && words.iter().all(named);
        if all {
            self.columns.extend(words.into_iter().map(str::to_owned));
        }
        all
    }
}

fn words(text: &str, commas: bool) -> Vec<&str> {
    if commas { text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect() } else { table::words(text) }
}

fn tool_of(columns: &[&str], capital: bool) -> &'static str {
    let has = |column: &str| columns.contains(&column);
    if has("actv") || has("trn") {
        "iostat (illumos)"
    } else if has("qlen") || has("tsvc_t/i") {
        "iostat -x (FreeBSD)"
    } else if capital && !has("tps") || has("%util") {
        "iostat -x"
    } else {
        "iostat"
    }
}

/// Where the reader is in the text.
#[derive(Default)]
struct Reader {
    outputs: Vec<Output>,
    current: Option<Current>,
    /// The arguments of the iostat that a shell line called, until its output begins.
    called: Option<String>,
    /// The time stamp over an output that has not begun yet.
    time: Option<String>,
    /// The names over the rows of the last output, where a line of something else ended it.
    broken: Option<Header>,
}

struct Current {
    output: Output,
    header: Option<Header>,
    wide: Option<Wide>,
    report: u32,
    time: Option<String>,
    /// Headings of the present report, to see when the next begins.
    seen: Vec<Vec<String>>,
    /// Whether the first report is an average since boot, where it is known.
    since_boot: Option<bool>,
    /// Whether that is taken from Linux' first line, which `-y` leaves as it is.
    assumed: bool,
}

impl Reader {
    /// Takes the line at `at` and says how many lines were used.
    fn take(&mut self, lines: &[Line<'_>], at: usize) -> usize {
        let line = lines[at];
        if line.text.trim().is_empty()
            || ["extended device statistics", "extended disk statistics"].iter().any(|it| line.text.contains(it))
            || is_error_heading(line.text)
        {
            self.broken = None;
            return 1;
        }
        if let Some(arguments) = table::command(line.text, "iostat").filter(|_| !line.text.contains("zpool")) {
            self.close();
            self.called = Some(arguments.to_owned());
            return 1;
        }
        if table::is_prompt(line.text) {
            self.close();
            self.called = None;
            return 1;
        }
        if let Some(facts) = linux_heading(line.text) {
            self.close();
            let current = self.open(line, "iostat");
            current.output.facts.extend(facts);
            current.assumed = current.since_boot.is_none();
            current.since_boot = current.since_boot.or(Some(true));
            return 1;
        }
        if let Some(header) = Header::of(line.text) {
            return self.begin(header, lines, at);
        }
        let before = at.checked_sub(1).and_then(|before| lines.get(before)).copied();
        if let Some(wide) = Wide::of(before, line) {
            self.begin_wide(wide, line);
            return 1;
        }
        let time = table::is_time(line.text).then(|| line.text.trim().trim_start_matches("Time: ").to_owned());
        let Some(current) = &mut self.current else {
            self.behind_a_break(lines, at);
            // What a shell line called begins at once, or its beginning is not here.
            let begins = time.is_some() || is_names_of_wide(lines, at);
            self.called = self.called.take().filter(|_| begins);
            self.time = time;
            return 1;
        };
        if time.is_some() {
            current.next_report();
            current.time = time;
            table::extend(&mut current.output, line.number);
            return 1;
        }
        if table::is_omission(line.text) && current.output.rows.is_empty() {
            // What is left of the first report may be of any.
            (current.since_boot, current.assumed) = (None, false);
            return 1;
        }
        let used = current.row(lines, at);
        if used == 0 && !table::is_omission(line.text) && !is_names_of_wide(lines, at) {
            let header = current.header.take();
            self.close();
            self.broken = header;
        }
        used.max(1)
    }

    /// Reports a row that a line of something else parts from its heading: it may be another tool's.
    fn behind_a_break(&mut self, lines: &[Line<'_>], at: usize) {
        let (Some(header), Some(output)) = (&self.broken, self.outputs.last_mut()) else { return };
        if let Some((Ok(_), 1)) = row_words(header, lines, at) {
            output.unread.push(table::unread(lines[at], "a row right behind the others, without other lines between"));
            table::extend(output, lines[at].number);
        }
    }

    fn begin(&mut self, mut header: Header, lines: &[Line<'_>], at: usize) -> usize {
        let mut used = 1;
        while !header.name_last && lines.get(at + used).is_some_and(|next| header.goes_on(next.text)) {
            used += 1;
        }
        let strange = self.current.as_ref().is_some_and(|current| match header.tool {
            Some(tool) => current.output.tool != tool && !matches!(current.output.tool, "iostat" | "iostat -x"),
            None => current.wide.is_some(),
        });
        // Tables of one report have no column in common (`-h`); other columns than before are another iostat's.
        let shares = |seen: &Vec<String>| *seen != header.columns && seen.iter().any(|it| header.columns.contains(it));
        let other = self.current.as_ref().is_some_and(|current| current.seen.iter().any(shares));
        if strange || other {
            self.close();
        }
        let tool = header.tool;
        let current = match self.current.take() {
            Some(current) => self.current.insert(current),
            None => self.open(lines[at], tool.unwrap_or("iostat")),
        };
        current.output.tool =
            if current.output.tool == "iostat" { tool.unwrap_or("iostat") } else { current.output.tool };
        if current.seen.contains(&header.columns) || (tool.is_none() && !current.seen.is_empty()) {
            current.next_report();
        }
        current.output.version = current.output.version.take().or_else(|| version(&header));
        for column in header.columns.iter().filter(|column| !is_known(column)) {
            table::unknown_column(&mut current.output, lines[at], column);
        }
        current.seen.push(header.columns.clone());
        current.header = Some(header);
        current.wide = None;
        lines[at..at + used].iter().for_each(|line| table::extend(&mut current.output, line.number));
        used
    }

    fn begin_wide(&mut self, wide: Wide, line: Line<'_>) {
        let mut current = match self.current.take() {
            Some(current) if current.output.tool == wide.tool => current,
            other => {
                self.current = other;
                self.close();
                self.open(line, wide.tool);
                let Some(opened) = self.current.take() else { return };
                opened
            }
        };
        if !wide.named {
            table::note(
                &mut current.output,
                "the line with the names of the disks is missing: their figures are left out",
            );
        }
        table::extend(&mut current.output, line.number);
        current.header = None;
        current.wide = Some(wide);
        self.current = Some(current);
    }

    fn open(&mut self, line: Line<'_>, tool: &'static str) -> &mut Current {
        self.close();
        // Without `-y`, which Linux alone has, the first report of every iostat is an average since boot.
        let since_boot = self.called.take().map(|arguments| !table::has_option(&arguments, 'y'));
        let output = Output { tool, lines: (line.number, line.number), ..Output::default() };
        let (header, wide, time, seen) = (None, None, self.time.take(), Vec::new());
        self.current.insert(Current { output, header, wide, report: 1, time, seen, since_boot, assumed: false })
    }

    fn close(&mut self) {
        self.broken = None;
        let Some(Current { mut output, since_boot, assumed, .. }) = self.current.take() else { return };
        if output.rows.is_empty() && output.unread.is_empty() {
            return;
        }
        match since_boot {
            Some(true) if assumed => {
                let text = "the first report is an average since boot, unless iostat ran with -y";
                table::note(&mut output, text);
            }
            Some(_) => {}
            None => table::note(&mut output, "whether the first report is an average since boot cannot be known"),
        }
        if output.rows.iter().flat_map(|row| &row.figures).any(|figure| figure.name == "service_time_us") {
            table::note(&mut output, "svctm is computed from %util and the rate; its own manual says not to trust it");
        }
        self.outputs.push(output);
    }
}

impl Current {
    fn next_report(&mut self) {
        if !self.seen.is_empty() {
            self.report += 1;
            self.seen.clear();
            self.time = None;
        }
    }

    /// Reads the row that begins at `at`; 0 when it is none.
    fn row(&mut self, lines: &[Line<'_>], at: usize) -> usize {
        if let Some(wide) = &self.wide {
            let Some(found) = wide.row(lines[at]) else { return 0 };
            table::extend(&mut self.output, lines[at].number);
            match found {
                Ok(rows) => {
                    let report = self.report;
                    self.report += 1;
                    if !wide.named {
                        let wanted = "the names of the disks above their columns".to_owned();
                        self.output.unread.push(table::unread(lines[at], wanted));
                    }
                    rows.into_iter().for_each(|row| self.push(row, report));
                }
                Err(unread) => self.output.unread.push(unread),
            }
            return 1;
        }
        let Some(header) = &self.header else { return 0 };
        let Some((words, used)) = row_words(header, lines, at) else { return 0 };
        let read = match words {
            Ok(words) => Ok(rows(header, &words)),
            Err(wanted) => Err(table::unread(lines[at], wanted)),
        };
        lines[at..at + used].iter().for_each(|line| table::extend(&mut self.output, line.number));
        match read {
            Ok((rows, odd)) => {
                let report = self.report;
                rows.into_iter().for_each(|row| self.push(row, report));
                self.output.unread.extend(odd.into_iter().map(|(line, wanted)| table::unread(line, wanted)));
            }
            Err(unread) => self.output.unread.push(unread),
        }
        used
    }

    fn push(&mut self, mut row: Row, report: u32) {
        let mut labels = vec![("report", report.to_string())];
        labels.extend(self.time.clone().map(|time| ("time", time)));
        labels.append(&mut row.labels);
        row.labels = labels;
        row.since_boot = if report == 1 { self.since_boot } else { Some(false) };
        self.output.rows.push(row);
    }
}

type Words<'a> = Vec<(Line<'a>, &'a str)>;

/// The words of the row that begins at `at`, joined with the lines it was wrapped into, or what was wanted; `None`
/// when the line is no row.
fn row_words<'a>(header: &Header, lines: &[Line<'a>], at: usize) -> Option<(Result<Words<'a>, String>, usize)> {
    let of = |line: Line<'a>| words(line.text, header.commas).into_iter().map(move |word| (line, word));
    let wanted = header.columns.len() + usize::from(header.tool.is_some());
    let mut found: Words<'a> = of(lines[at]).collect();
    let (mut used, mut first) = (1, found.len());
    let name_at = if header.name_last { found.len().saturating_sub(1) } else { 0 };
    let figures: Vec<&str> = match header.tool {
        Some(_) => found.iter().enumerate().filter(|(i, _)| *i != name_at).map(|(_, (_, word))| *word).collect(),
        None => found.iter().map(|(_, word)| *word).collect(),
    };
    let numbers = table::count_numbers(&figures);
    let mut alone = header.tool.is_some() && found.len() == 1 && web::number(found[0].1).is_none();
    if numbers * 2 < figures.len() || (figures.is_empty() && !alone) {
        return None;
    }
    while found.len() < wanted {
        let Some(next) = lines.get(at + used) else { break };
        let more: Words<'a> = of(*next).collect();
        let bare: Vec<&str> = more.iter().map(|(_, word)| *word).collect();
        // Where a row is wrapped its first piece is the longest, unless that is a long name alone; where rows begin with a
        // name, what does not is none.
        let named = header.tool.is_some() && !header.name_last;
        let fits = (more.len() <= first || alone || named) && found.len() + more.len() <= wanted;
        if bare.is_empty() || table::count_numbers(&bare) != bare.len() || !fits {
            break;
        }
        first = if alone { more.len() } else { first };
        found.extend(more);
        used += 1;
        alone = false;
    }
    if alone {
        return None;
    }
    let name = if header.name_last { found.last() } else { found.first() };
    if header.tool.is_some() && name.is_some_and(|(_, name)| web::number(name).is_some()) {
        return Some((Err("a device, and figures".to_owned()), used));
    }
    if found.len() == wanted {
        return Some((Ok(found), used));
    }
    // Columns of terminal and processors stand in the first row of illumos only.
    let machine = header.columns.iter().rev().take_while(|column| columns::of_machine(column).is_some()).count();
    if machine > 0 && found.len() + machine == wanted {
        return Some((Ok(found), used));
    }
    let columns = header.columns.len();
    Some((Err(format!("{columns} figures, one for each column")), used))
}

/// The rows of these words, and what is odd in them: the device's, and those of terminal and processors where their
/// columns stand behind the first device's.
fn rows<'a>(header: &Header, words: &Words<'a>) -> (Vec<Row>, Vec<(Line<'a>, String)>) {
    let mut words = words.clone();
    let first = words.first().map_or(0, |(line, _)| line.number);
    let mut rows = Vec::new();
    if header.tool.is_some() {
        let name = if header.name_last { words.pop() } else { Some(words.remove(0)) };
        rows.push(table::row(vec![("device", name.map_or(String::new(), |(_, word)| word.to_owned()))], first));
    }
    let mut odd = Vec::new();
    for (column, (line, word)) in header.columns.iter().zip(words) {
        let of_device = columns::of_device(column).filter(|_| header.tool.is_some()).map(|known| ("device", known));
        let (owner, name, unit, factor) = match of_device.or_else(|| columns::of_machine(column)) {
            Some((owner, known)) => (owner, known.name.to_owned(), known.unit, known.factor),
            None => continue,
        };
        // With `-h` of Linux a size carries its own unit, whatever the column says.
        let sized = || matches!(unit, "B" | "B/s").then(|| table::suffixed(word)).flatten();
        let Some(value) = table::percent(word).map(|number| number * factor).or_else(sized) else {
            odd.push((line, format!("a number for {column}, not `{word}`")));
            continue;
        };
        let owned = |row: &Row| row.labels.first().is_some_and(|(label, _)| *label == owner);
        let index = rows.iter().position(owned).unwrap_or_else(|| {
            rows.push(table::row(vec![(owner, "all".to_owned())], first));
            rows.len() - 1
        });
        rows[index].figures.push(table::figure(&name, unit, value, word, line.number));
    }
    (rows, odd)
}

fn is_known(column: &str) -> bool {
    columns::of_device(column).is_some() || columns::of_machine(column).is_some()
}

/// illumos' line over the columns of errors, tty and cpu.
fn is_error_heading(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.starts_with("---") || matches!(word, "errors" | "tty" | "cpu"))
}

/// Whether the next line makes this one the names of the disks.
fn is_names_of_wide(lines: &[Line<'_>], at: usize) -> bool {
    lines.get(at + 1).is_some_and(|next| Wide::of(Some(lines[at]), *next).is_some_and(|wide| wide.named))
}

/// What the line of the columns tells of sysstat's age.
fn version(header: &Header) -> Option<String> {
    let has = |column: &str| header.columns.iter().any(|have| have == column);
    match header.tool {
        Some("iostat -x") if has("svctm") => Some("before 12.1.2".to_owned()),
        Some("iostat -x") if has("rareq-sz") || has("areq-sz") => Some("12.1.2 or later".to_owned()),
        _ => None,
    }
}

/// Kernel, host, date, machine and number of CPUs of Linux' first line: `Linux 6.1 (host)  11/21/26  _x86_64_  (2 CPU)`.
fn linux_heading(text: &str) -> Option<Vec<(String, String)>> {
    let (kernel, rest) = text.trim().strip_prefix("Linux ")?.split_once('(')?;
    let (host, rest) = rest.split_once(')')?;
    let kernel = kernel.trim();
    if kernel.is_empty() || kernel.contains(char::is_whitespace) || !rest.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut facts = vec![("kernel", kernel), ("host", host.trim())];
    let (middle, cpus) = match rest.rsplit_once('(') {
        Some((middle, cpus)) => (middle, cpus.trim().strip_suffix("CPU)")),
        None => (rest, None),
    };
    for word in middle.split_whitespace() {
        facts.push(if word.starts_with('_') { ("machine", word.trim_matches('_')) } else { ("date", word) });
    }
    facts.extend(cpus.map(|cpus| ("cpus", cpus.trim())));
    Some(facts.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests;
