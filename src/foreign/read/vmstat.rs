//! `vmstat` of Linux (procps), FreeBSD and illumos, and macOS' `vm_stat`. `/proc/vmstat` is read elsewhere.
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
//! Labels: `report`, `time` (`-t`). Each line is a report. Of `vm_stat` each line is a figure, `pages_free` and the like
//! in pages, or with an interval each column; its size of a page is a fact.
//!
//! Linux' memory is in KiB unless `-S` says otherwise, which no heading tells. The unit is that of the command or of the
//! words about it; without either KiB is assumed and a note says so. What versions scale differently under `-S`, `si` and
//! `so`, is left out then. Sources: vmstat(8) of procps-ng, FreeBSD and illumos, vm_stat(1) of macOS.

mod mach;

use super::output::{Line, Output};
use super::table::{self, KIB, Known, known};
use crate::foreign::clean as web;

/// Whether the text holds the names of a vmstat.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| Header::of(line.text).is_some() || mach::is_heading(line.text))
}

/// A form of vmstat that the text holds and that is not read: counts since boot by disk, or one a line.
#[must_use]
pub fn form_not_read(lines: &[Line<'_>]) -> Option<&'static str> {
    lines.iter().find_map(|line| {
        let words = table::words(line.text);
        let totals = matches!(words.as_slice(), [number, "K", "total", "memory"] if web::number(number).is_some());
        let disks = words.starts_with(&["total", "merged", "sectors", "ms"]);
        disks.then_some("vmstat -d").or(totals.then_some("vmstat -s"))
    })
}

/// Reads every vmstat in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut reader = Reader::default();
    let mut at = 0;
    while at < lines.len() {
        at += match mach::read(lines, at) {
            Some((output, used)) => {
                reader.close();
                reader.outputs.push(output);
                used
            }
            None => reader.take(lines, at),
        };
    }
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
}

/// The names over the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    system: System,
    columns: Vec<String>,
    /// Name of the time zone over the time stamps of `-t`.
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
        if zone {
            words.pop();
        }
        let whole = words.starts_with(&["r", "b"]) && has(&words, "us") && has(&words, "id") && has(&words, "sy");
        whole.then(|| Header { system, columns: words.into_iter().map(str::to_owned).collect(), zone })
    }

    /// What the column at `index` is; none for a disk.
    fn meaning(&self, index: usize) -> Option<Known> {
        let name = self.columns.get(index)?.as_str();
        let of = |list: &[Known]| list.iter().find(|known| known.column == name).copied();
        // `sy` stands for system calls first and for the system's time later.
        let again = self.columns.iter().skip(index + 1).any(|later| later == name);
        if name == "sy" && again {
            return Some(known("sy", "system_calls_per_s", "calls/s", 1.0));
        }
        let own = match self.system {
            System::Linux => of(LINUX),
            System::FreeBsd => of(FREEBSD),
            System::Illumos => of(ILLUMOS),
        };
        own.or_else(|| of(COMMON))
    }
}

const COMMON: &[Known] = &[
    known("r", "run_queue", "tasks", 1.0),
    known("b", "blocked_tasks", "tasks", 1.0),
    known("w", "swapped_tasks", "tasks", 1.0),
    known("free", "free_bytes", "B", KIB),
    known("re", "reclaims_per_s", "pages/s", 1.0),
    known("sr", "scans_per_s", "pages/s", 1.0),
    known("in", "interrupts_per_s", "interrupts/s", 1.0),
    known("cs", "context_switches_per_s", "switches/s", 1.0),
    known("us", "user_percent", "%", 1.0),
    known("sy", "system_percent", "%", 1.0),
    known("id", "idle_percent", "%", 1.0),
];

const LINUX: &[Known] = &[
    known("swpd", "swap_used_bytes", "B", KIB),
    known("buff", "buffer_bytes", "B", KIB),
    known("cache", "cache_bytes", "B", KIB),
    known("inact", "inactive_bytes", "B", KIB),
    known("active", "active_bytes", "B", KIB),
    known("si", "swap_in_bytes_per_s", "B/s", KIB),
    known("so", "swap_out_bytes_per_s", "B/s", KIB),
    known("bi", "read_bytes_per_s", "B/s", KIB),
    known("bo", "write_bytes_per_s", "B/s", KIB),
    known("wa", "iowait_percent", "%", 1.0),
    known("st", "steal_percent", "%", 1.0),
    known("gu", "guest_percent", "%", 1.0),
];

const FREEBSD: &[Known] = &[
    known("avm", "virtual_bytes", "B", KIB),
    known("fre", "free_bytes", "B", KIB),
    known("flt", "faults_per_s", "faults/s", 1.0),
    known("pi", "page_in_per_s", "pages/s", 1.0),
    known("po", "page_out_per_s", "pages/s", 1.0),
    known("fr", "freed_per_s", "pages/s", 1.0),
];

const ILLUMOS: &[Known] = &[
    known("swap", "swap_free_bytes", "B", KIB),
    known("mf", "faults_per_s", "faults/s", 1.0),
    known("pi", "page_in_bytes_per_s", "B/s", KIB),
    known("po", "page_out_bytes_per_s", "B/s", KIB),
    known("fr", "freed_bytes_per_s", "B/s", KIB),
    known("de", "memory_deficit_bytes", "B", KIB),
];

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
    /// The unit that the arguments say: `-S M`, `-wSm`, `--unit=k`. None without `-S`.
    fn of(arguments: &str) -> Option<Memory> {
        let mut words = arguments.split_whitespace();
        let unit = words.by_ref().find_map(|word| match word.strip_prefix("--unit") {
            Some(rest) => Some(rest.trim_start_matches('=')),
            None => word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?.split_once('S').map(|(_, unit)| unit),
        })?;
        let unit = if unit.is_empty() { words.next().unwrap_or_default() } else { unit };
        Some(match unit.trim_matches(['`', '\'', '"', ',', '.', ':', ';', ')']) {
            "k" => Memory::Said(1e3),
            "K" => Memory::Said(KIB),
            "m" => Memory::Said(1e6),
            "M" => Memory::Said(KIB * KIB),
            _ => Memory::Unknown,
        })
    }

    /// What a number of the column is multiplied with; none where its unit is not known.
    fn factor(self, system: System, known: Known) -> Option<f64> {
        let swap_traffic = matches!(known.column, "si" | "so");
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
    /// Lines of something else since the last row.
    strange: usize,
    /// Whether somebody left out what stood before the first row.
    cut: bool,
}

impl Reader {
    fn take(&mut self, lines: &[Line<'_>], at: usize) -> usize {
        let line = lines[at];
        if line.text.trim().is_empty() || is_over_heading(line.text) {
            return 1;
        }
        if self.is_command(line.text) {
            return 1;
        }
        if let Some((header, used)) = heading(lines, at) {
            if self.current.as_ref().is_none_or(|(current, _)| *current != header) {
                self.close();
                (self.report, self.cut) = (0, false);
                let output =
                    Output { tool: header.system.tool(), lines: (line.number, line.number), ..Output::default() };
                self.current = Some((header, output));
            }
            return used;
        }
        let Some((header, output)) = &mut self.current else {
            // What a shell line called begins at once, or its beginning is not here.
            self.called = None;
            return 1;
        };
        let wanted = header.columns.len() + 2 * usize::from(header.zone);
        let (words, used) = table::wrapped(lines, at, wanted, |word| table::bytes(word).is_some());
        let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        let numbers = table::count_numbers(&texts);
        let is_whole =
            words.len() == wanted && table::count_numbers(&texts[..header.columns.len()]) == header.columns.len();
        if numbers < 4 || numbers * 2 < words.len() || (self.strange > 0 && !is_whole) {
            // A message may stand between the rows, and rows go on behind it; names of columns are another tool's.
            const MOST: usize = 3;
            match table::is_omission(line.text) {
                true => self.cut |= self.report == 0,
                false => self.strange += 1,
            }
            if self.strange > MOST || (numbers == 0 && words.len() > 7) {
                self.close();
            }
            return 1;
        }
        if self.strange > 0 && !output.rows.is_empty() {
            table::note(output, format!("line {} stands behind lines of something else", line.number));
        }
        self.strange = 0;
        lines[at..at + used].iter().for_each(|line| table::extend(output, line.number));
        if !is_whole {
            let columns = header.columns.len();
            output.unread.push(table::unread(line, format!("{columns} figures, one for each column")));
            return used;
        }
        self.report += 1;
        let told = self.called.as_deref().map(|arguments| !table::has_option(arguments, 'y'));
        let since_boot = if self.report == 1 { told.filter(|since| !(*since && self.cut)) } else { Some(false) };
        let kind = Kind { report: self.report, since_boot, memory: self.memory };
        rows(header, output, &words, kind);
        used
    }

    /// Whether a line is a command or says what was called; what ran before it has ended.
    fn is_command(&mut self, text: &str) -> bool {
        if let Some(arguments) = table::command(text, "vmstat") {
            self.close();
            self.called = Some(arguments.to_owned());
            self.memory = Memory::of(arguments).unwrap_or_default();
        } else if table::is_prompt(text) {
            self.close();
            self.called = None;
            self.memory = Memory::default();
        } else if let Some(said) = text.split_once("vmstat").and_then(|(_, rest)| Memory::of(rest)) {
            self.close();
            self.memory = said;
        } else {
            return false;
        }
        true
    }

    fn close(&mut self) {
        self.strange = 0;
        let Some((header, mut output)) = self.current.take() else { return };
        let called = self.called.take();
        if output.rows.is_empty() && output.unread.is_empty() {
            return;
        }
        if called.is_none() || self.cut {
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

/// What the figures of a line are.
#[derive(Clone, Copy)]
struct Kind {
    report: u32,
    since_boot: Option<bool>,
    memory: Memory,
}

/// The rows of one line: the machine's, then one a disk.
fn rows(header: &Header, output: &mut Output, words: &[(u32, &str)], kind: Kind) {
    let line = words.first().map_or(0, |(line, _)| *line);
    let stamp: Vec<&str> = words[header.columns.len()..].iter().map(|(_, word)| *word).collect();
    let mut labels = vec![("report", kind.report.to_string())];
    if !stamp.is_empty() {
        labels.push(("time", stamp.join(" ")));
    }
    let mut machine = table::row(labels.clone(), line);
    let mut disks = Vec::new();
    for (index, (number, word)) in words.iter().take(header.columns.len()).enumerate() {
        match header.meaning(index) {
            Some(known) => {
                let sized = || table::suffixed(word).filter(|_| known.unit == "B");
                let Some(factor) = kind.memory.factor(header.system, known) else { continue };
                let plain = web::number(word).map(|number| number * factor);
                let value = plain.or_else(sized).or_else(|| table::bytes(word));
                machine.figures.extend(value.map(|value| table::figure(known.name, known.unit, value, word, *number)));
            }
            None => {
                let mut labels = labels.clone();
                labels.push(("device", header.columns[index].clone()));
                let mut row = table::row(labels, *number);
                let value = table::bytes(word);
                row.figures.extend(value.map(|value| table::figure("ops_per_s", "ops/s", value, word, *number)));
                disks.push(row);
            }
        }
    }
    machine.since_boot = kind.since_boot;
    disks.iter_mut().for_each(|row| row.since_boot = kind.since_boot);
    output.rows.push(machine);
    output.rows.append(&mut disks);
}

/// The heading at `at`, put together with the next line where that only goes on with names.
fn heading(lines: &[Line<'_>], at: usize) -> Option<(Header, usize)> {
    let header = Header::of(lines[at].text)?;
    let next = lines.get(at + 1).map_or("", |line| line.text);
    let words = table::words(next);
    let names = !words.is_empty() && words.iter().all(|word| word.len() <= 6 && web::number(word).is_none());
    let own = table::is_omission(next) || Header::of(next).is_some() || is_over_heading(next) || words.contains(&"r");
    let joined = || Header::of(&format!("{} {next}", lines[at].text)).map(|header| (header, 2));
    let short = (names && !own && words.len() <= 8).then(joined).flatten();
    Some(short.filter(|(joined, _)| joined.system == header.system).unwrap_or((header, 1)))
}

/// The line over the names: `procs -----------memory----------`, `kthr memory page disk faults cpu`.
fn is_over_heading(text: &str) -> bool {
    let words = table::words(text);
    let first = words.first().is_some_and(|word| matches!(word.trim_matches('-'), "procs" | "kthr"));
    first && words.len() > 2
}

#[cfg(test)]
mod tests;
