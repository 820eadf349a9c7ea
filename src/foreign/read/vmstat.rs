//! `vmstat` of Linux (procps), FreeBSD and illumos. `/proc/vmstat` is read elsewhere.
//!
//! | figure | unit | Linux | FreeBSD | illumos |
//! |---|---|---|---|---|
//! | `run_queue`, `blocked_tasks`, `swapped_tasks` | tasks | r b | r b w | r b w |
//! | `swap_used_bytes`, `swap_free_bytes` | B | swpd | | swap |
//! | `free_bytes`, `buffer_bytes`, `cache_bytes`, `inactive_bytes`, `active_bytes` | B | free buff cache inact active | fre | free |
//! | `virtual_bytes` | B | | avm | |
//! | `swap_in_bytes_per_s`, `swap_out_bytes_per_s` | B/s | si so | | |
//! | `read_bytes_per_s`, `write_bytes_per_s` (blocks of 1 KiB) | B/s | bi bo | | |
//! | `page_in_bytes_per_s`, `page_out_bytes_per_s`, `freed_bytes_per_s`, `memory_deficit_bytes` | B/s, B | | | pi po fr de |
//! | `page_in_per_s`, `page_out_per_s`, `freed_per_s` | pages/s | | pi po fr | |
//! | `faults_per_s`, `reclaims_per_s`, `scans_per_s` | faults/s, pages/s | | flt re sr | mf re sr |
//! | `interrupts_per_s`, `system_calls_per_s`, `context_switches_per_s` | 1/s | in cs | in sy cs | in sy cs |
//! | `user_percent`, `system_percent`, `idle_percent`, `iowait_percent`, `steal_percent`, `guest_percent` | % | us sy id wa st gu | us sy id | us sy id |
//! | `ops_per_s` in a row with the label `device` | ops/s | | da0 | s0 |
//!
//! Labels: `report`, `time` (`-t`). Each line is a report; one that has not a figure for each column is listed as not read.
//!
//! Linux' memory is in KiB unless `-S` says otherwise, which no heading tells. The unit is that of the command or of the
//! words about it; without either KiB is assumed and a note says so. What versions scale differently under `-S`, `si` and
//! `so`, is left out then. Sources: vmstat(8) of procps-ng, FreeBSD and illumos.

#[cfg(test)]
mod tests;

use super::output::{Line, Output};
use super::table::{self, KIB, Known};
use crate::foreign::clean::number;

/// Whether the text holds the names of a vmstat.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| Header::of(line.text).is_some())
}

/// Reads every vmstat in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut reader = Reader::default();
    lines.iter().for_each(|line| reader.take(*line));
    reader.close();
    reader.outputs
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Linux,
    FreeBsd,
    Illumos,
}

impl System {
    fn tool(self) -> &'static str {
        match self {
            System::Linux => "vmstat",
            System::FreeBsd => "vmstat (FreeBSD)",
            System::Illumos => "vmstat (illumos)",
        }
    }

    fn columns(self) -> &'static [(&'static str, &'static str, &'static str, f64)] {
        match self {
            System::Linux => LINUX,
            System::FreeBsd => FREEBSD,
            System::Illumos => ILLUMOS,
        }
    }
}

/// Column, name, unit and factor, of all systems.
const COMMON: &[(&str, &str, &str, f64)] = &[
    ("r", "run_queue", "tasks", 1.0),
    ("b", "blocked_tasks", "tasks", 1.0),
    ("w", "swapped_tasks", "tasks", 1.0),
    ("free", "free_bytes", "B", KIB),
    ("re", "reclaims_per_s", "pages/s", 1.0),
    ("sr", "scans_per_s", "pages/s", 1.0),
    ("in", "interrupts_per_s", "interrupts/s", 1.0),
    ("cs", "context_switches_per_s", "switches/s", 1.0),
    ("us", "user_percent", "%", 1.0),
    ("sy", "system_percent", "%", 1.0),
    ("id", "idle_percent", "%", 1.0),
];

const LINUX: &[(&str, &str, &str, f64)] = &[
    ("swpd", "swap_used_bytes", "B", KIB),
    ("buff", "buffer_bytes", "B", KIB),
    ("cache", "cache_bytes", "B", KIB),
    ("inact", "inactive_bytes", "B", KIB),
    ("active", "active_bytes", "B", KIB),
    ("si", "swap_in_bytes_per_s", "B/s", KIB),
    ("so", "swap_out_bytes_per_s", "B/s", KIB),
    ("bi", "read_bytes_per_s", "B/s", KIB),
    ("bo", "write_bytes_per_s", "B/s", KIB),
    ("wa", "iowait_percent", "%", 1.0),
    ("st", "steal_percent", "%", 1.0),
    ("gu", "guest_percent", "%", 1.0),
];

const FREEBSD: &[(&str, &str, &str, f64)] = &[
    ("avm", "virtual_bytes", "B", KIB),
    ("fre", "free_bytes", "B", KIB),
    ("flt", "faults_per_s", "faults/s", 1.0),
    ("pi", "page_in_per_s", "pages/s", 1.0),
    ("po", "page_out_per_s", "pages/s", 1.0),
    ("fr", "freed_per_s", "pages/s", 1.0),
];

const ILLUMOS: &[(&str, &str, &str, f64)] = &[
    ("swap", "swap_free_bytes", "B", KIB),
    ("mf", "faults_per_s", "faults/s", 1.0),
    ("pi", "page_in_bytes_per_s", "B/s", KIB),
    ("po", "page_out_bytes_per_s", "B/s", KIB),
    ("fr", "freed_bytes_per_s", "B/s", KIB),
    ("de", "memory_deficit_bytes", "B", KIB),
];

/// The names over the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    system: System,
    columns: Vec<String>,
    /// Whether the name of a time zone stands over the time stamps of `-t`.
    zone: bool,
}

impl Header {
    fn of(text: &str) -> Option<Header> {
        let mut words = table::words(text);
        let has = |words: &[&str], name: &str| words.contains(&name);
        let system = match () {
            () if has(&words, "swpd") || has(&words, "bi") => System::Linux,
            () if has(&words, "avm") => System::FreeBsd,
            () if has(&words, "mf") && has(&words, "de") => System::Illumos,
            () => return None,
        };
        let last = words.last()?;
        let zone =
            system == System::Linux && last.chars().all(|c| c.is_ascii_uppercase() || "+-0123456789".contains(c));
        words.truncate(words.len() - usize::from(zone));
        let whole = words.starts_with(&["r", "b"]) && has(&words, "us") && has(&words, "id") && has(&words, "sy");
        whole.then(|| Header { system, columns: words.into_iter().map(str::to_owned).collect(), zone })
    }

    /// What the column at `index` is; none for a disk.
    fn meaning(&self, index: usize) -> Option<Known> {
        let column = self.columns.get(index)?.as_str();
        // `sy` stands for system calls first and for the system's time later.
        if column == "sy" && self.columns[index + 1..].iter().any(|later| later == column) {
            return Some(Known { name: "system_calls_per_s", unit: "calls/s", factor: 1.0 });
        }
        let found = self.system.columns().iter().chain(COMMON).find(|(known, ..)| *known == column);
        found.map(|(_, name, unit, factor)| Known { name, unit, factor: *factor })
    }
}

/// The unit of Linux' memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Memory {
    /// KiB, since nothing says otherwise.
    #[default]
    Assumed,
    /// So many bytes.
    Said(f64),
    /// A unit that vmstat does not have.
    Unknown,
}

impl Memory {
    /// What `-S k`, `-wSM` or `--unit=M` among the arguments says; `None` without one.
    fn of(arguments: &str) -> Option<Memory> {
        let mut words = arguments.split_whitespace().skip_while(|word| *word == "vmstat");
        let unit = words.find_map(|word| match word.strip_prefix("--unit") {
            Some(unit) => Some(unit.trim_start_matches('=')),
            None => word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?.split_once('S').map(|(_, unit)| unit),
        })?;
        let unit = if unit.is_empty() { words.next().unwrap_or_default() } else { unit };
        Some(match unit.trim_matches(|c: char| !c.is_ascii_alphanumeric()) {
            "k" => Memory::Said(1e3),
            "K" => Memory::Said(KIB),
            "m" => Memory::Said(1e6),
            "M" => Memory::Said(KIB * KIB),
            _ => Memory::Unknown,
        })
    }

    /// What a number of the column is multiplied with; none where its unit is not known.
    fn factor(self, system: System, known: Known) -> Option<f64> {
        let swap_traffic = known.name.starts_with("swap_") && known.unit == "B/s";
        match self {
            _ if system != System::Linux || !(swap_traffic || known.unit == "B") => Some(known.factor),
            Memory::Said(KIB) | Memory::Assumed => Some(known.factor),
            Memory::Said(factor) => (!swap_traffic).then_some(factor),
            Memory::Unknown => None,
        }
    }
}

#[derive(Default)]
struct Reader {
    outputs: Vec<Output>,
    current: Option<(Header, Output)>,
    report: u32,
    called: Option<String>,
    memory: Memory,
    /// Whether somebody left out what stood before the first row.
    cut: bool,
}

impl Reader {
    fn take(&mut self, line: Line<'_>) {
        let is_over_heading = line.text.trim_start_matches('-').starts_with("procs") || line.text.starts_with("kthr ");
        if line.text.is_empty() || is_over_heading || self.is_command(line.text) {
            return;
        }
        if let Some(header) = Header::of(line.text) {
            if self.current.as_ref().is_none_or(|(current, _)| *current != header) {
                self.end();
                let output = table::output(header.system.tool(), line.number);
                self.current = Some((header, output));
            }
            return;
        }
        let Some((header, _)) = &self.current else {
            // What a shell line called begins at once, or its beginning is not here; a warning may come first.
            self.called = self.called.take().filter(|_| line.text.starts_with("vmstat:"));
            return;
        };
        let words = table::words(line.text);
        let numbers = table::count_numbers(&words);
        if table::is_omission(line.text) {
            self.cut |= self.report == 0;
        } else if numbers < 4 || numbers * 2 < words.len() {
            self.close();
        } else {
            let wanted = header.columns.len() + 2 * usize::from(header.zone);
            self.row(line, &words, wanted);
        }
    }

    fn row(&mut self, line: Line<'_>, words: &[&str], wanted: usize) {
        let told = self.called.as_deref().map(|arguments| !table::has_option(arguments, 'y'));
        let Some((header, output)) = &mut self.current else { return };
        table::extend(output, line.number);
        let columns = header.columns.len();
        if words.len() != wanted || table::count_numbers(&words[..columns]) != columns {
            output.unread.push(table::unread(line, format!("{columns} figures, one for each column")));
            return;
        }
        self.report += 1;
        let since_boot = if self.report == 1 { told.filter(|since| !(*since && self.cut)) } else { Some(false) };
        let mut labels = vec![("report", self.report.to_string())];
        labels.extend((words.len() > columns).then(|| ("time", words[columns..].join(" "))));
        let mut machine = table::row(labels.clone(), line.number);
        let mut disks = Vec::new();
        for (index, word) in words.iter().take(columns).enumerate() {
            let Some(known) = header.meaning(index) else {
                let device = [labels.as_slice(), &[("device", header.columns[index].clone())]].concat();
                let mut row = table::row(device, line.number);
                row.figures.extend(number(word).map(|it| table::figure("ops_per_s", "ops/s", it, word, line.number)));
                disks.push(row);
                continue;
            };
            let Some(factor) = self.memory.factor(header.system, known) else { continue };
            let value = number(word).map(|number| number * factor).or_else(|| table::bytes(word));
            machine.figures.extend(value.map(|it| table::figure(known.name, known.unit, it, word, line.number)));
        }
        for mut row in [machine].into_iter().chain(disks) {
            row.since_boot = since_boot;
            output.rows.push(row);
        }
    }

    /// Whether a line is a command or says what was called; what ran before it has ended.
    fn is_command(&mut self, text: &str) -> bool {
        let called = table::command(text, "vmstat");
        let said = text.split_once("vmstat").and_then(|(_, rest)| Memory::of(rest));
        if called.is_none() && said.is_none() && !table::is_prompt(text) {
            return false;
        }
        self.close();
        self.called = called.map(str::to_owned);
        self.memory = said.unwrap_or_default();
        true
    }

    /// Ends the output, and what was said of the command.
    fn close(&mut self) {
        self.end();
        self.called = None;
    }

    fn end(&mut self) {
        let (cut, report) = (std::mem::take(&mut self.cut), std::mem::take(&mut self.report));
        let Some((header, mut output)) = self.current.take() else { return };
        let called = self.called.take();
        if report == 0 && output.unread.is_empty() {
            return;
        }
        if called.is_none() || cut {
            table::note(&mut output, "whether the first report is an average since boot cannot be known");
        }
        if header.system == System::Linux {
            let note = match self.memory {
                Memory::Assumed if called.is_none() => Some("memory is taken to be in KiB, as without -S"),
                Memory::Assumed | Memory::Said(KIB) => None,
                Memory::Said(_) => Some("si and so are left out: versions of vmstat scale them differently under -S"),
                Memory::Unknown => Some("memory, si and so are left out: vmstat has no unit of that name for -S"),
            };
            note.into_iter().for_each(|note| table::note(&mut output, note));
        }
        self.outputs.push(output);
    }
}
