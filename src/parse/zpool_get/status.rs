//! `zpool status`: health of a pool and errors of its devices.

use super::super::output::{Line, Output, Row};
use super::super::{table, zpool_iostat};

/// Paragraphs of the output; each goes on until the next.
const KEYS: [&str; 9] = ["pool", "state", "status", "action", "see", "scan", "scrub", "config", "errors"];

/// Whether this is the heading of the devices.
fn is_heading(words: &[&str]) -> bool {
    words.starts_with(&["NAME", "STATE", "READ", "WRITE", "CKSUM"])
}

fn paragraph<'a>(line: Line<'a>) -> Option<(&'static str, &'a str)> {
    let (key, rest) = line.text.trim().split_once(':')?;
    let key = KEYS.into_iter().find(|known| *known == key)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (key, rest.trim()))
}

/// Whether a status begins at `at`: with `pool:` or, cut off, with the devices.
pub(super) fn begins(lines: &[Line<'_>], at: usize) -> bool {
    match paragraph(lines[at]) {
        Some(("pool", name)) => {
            let near = &lines[at + 1..lines.len().min(at + 4)];
            !name.is_empty() && near.iter().any(|line| matches!(paragraph(*line), Some(("state", _))))
        }
        _ => is_heading(&table::words(lines[at].text)),
    }
}

/// The status that begins at `at`, and how many lines it takes.
pub(super) fn read(lines: &[Line<'_>], at: usize) -> Option<(Output, usize)> {
    if !begins(lines, at) {
        return None;
    }
    let number = lines[at].number;
    let mut output = Output { tool: "zpool status", lines: (number, number), ..Output::default() };
    let mut devices = Devices::default();
    let mut used = 0;
    while let Some(line) = lines.get(at + used) {
        let words = table::words(line.text);
        match paragraph(*line) {
            Some(("pool", _)) if used > 0 => break,
            Some((key, text)) => {
                devices.inside = false;
                if key == "pool" {
                    text.clone_into(&mut devices.pool);
                }
                output.facts.push((key.to_owned(), text.to_owned()));
            }
            None if is_heading(&words) => devices.inside = true,
            None if words.is_empty() => {}
            None if table::is_prompt(line.text) => break,
            None if devices.inside => match devices.row(&words, *line) {
                Some(Ok(row)) => output.rows.extend(row),
                Some(Err(unread)) => output.unread.push(unread),
                None => break,
            },
            None => match output.facts.last_mut().filter(|(key, _)| key != "errors" && key != "config") {
                Some((_, text)) => *text = format!("{text} {}", line.text.trim()),
                None => break,
            },
        }
        table::extend(&mut output, line.number);
        used += 1;
    }
    output.facts.retain(|(_, text)| !text.is_empty());
    if devices.grouped {
        table::note(&mut output, "whether a device stands in the group above it or beside it cannot be known for sure");
    }
    Some((output, used.max(1)))
}

#[derive(Default)]
struct Devices {
    inside: bool,
    pool: String,
    section: Option<String>,
    vdev: Option<String>,
    started: bool,
    grouped: bool,
}

impl Devices {
    /// The row of a device, nothing for a line that only names a part of the pool; none when it is no such line.
    fn row(&mut self, words: &[&str], line: Line<'_>) -> Option<Result<Option<Row>, super::super::output::Unread>> {
        const STATES: [&str; 9] =
            ["ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "AVAIL", "INUSE", "SPLIT"];
        let name = *words.first()?;
        if words.len() == 1 && zpool_iostat::is_section(name) {
            (self.section, self.vdev) = (Some(name.to_owned()), None);
            return Some(Ok(None));
        }
        let state = words.get(1).filter(|state| STATES.contains(state))?;
        let spare = matches!(*state, "AVAIL" | "INUSE");
        let counters = if spare { &[][..] } else { words.get(2..5).unwrap_or_default() };
        let numbers: Option<Vec<f64>> = counters.iter().map(|word| table::bytes(word)).collect();
        let Some(numbers) = numbers.filter(|numbers| spare || numbers.len() == 3) else {
            return Some(Err(table::unread(line, "errors of reading, writing and checksums")));
        };
        let mut labels = self.place(name);
        labels.push(("state", (*state).to_owned()));
        let remark = words.get(2 + counters.len()..).unwrap_or_default().join(" ");
        labels.extend((!remark.is_empty()).then_some(("remark", remark)));
        let mut row = table::row(labels, line.number);
        let names = ["read_errors", "write_errors", "checksum_errors"];
        for ((name, number), word) in names.iter().zip(numbers).zip(counters) {
            row.figures.push(table::figure(name, "count", number, word, line.number));
        }
        Some(Ok(Some(row)))
    }

    fn place(&mut self, name: &str) -> Vec<(&'static str, String)> {
        let first = !std::mem::replace(&mut self.started, true);
        if self.pool.is_empty() && first {
            name.clone_into(&mut self.pool);
        }
        let mut labels = vec![("pool", self.pool.clone())];
        labels.extend(self.section.clone().map(|section| ("section", section)));
        if first && name == self.pool {
            return labels;
        }
        if zpool_iostat::is_group(name) {
            self.grouped = true;
            self.vdev = Some(name.to_owned());
            labels.push(("vdev", name.to_owned()));
            return labels;
        }
        labels.extend(self.vdev.clone().map(|vdev| ("vdev", vdev)));
        labels.push(("device", name.to_owned()));
        labels
    }
}
