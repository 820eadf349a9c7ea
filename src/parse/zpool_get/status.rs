//! `zpool status`: health of a pool and errors of its devices.

use super::super::output::{Figure, Line, Output, Row, Unread};
use super::super::{table, zpool_iostat};

/// Paragraphs of the output; each goes on until the next.
const KEYS: [&str; 9] = ["pool", "state", "status", "action", "see", "scan", "scrub", "config", "errors"];

/// Columns that every version has.
const USUAL: [&str; 5] = ["NAME", "STATE", "READ", "WRITE", "CKSUM"];

/// Whether this is the heading of the devices.
fn is_heading(words: &[&str]) -> bool {
    words.starts_with(&USUAL)
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
            None if is_heading(&words) => {
                devices.inside = true;
                devices.more = words[USUAL.len()..].iter().map(|&word| word.to_owned()).collect();
            }
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
    if !devices.put_in_tree(&mut output.rows) && devices.grouped {
        table::note(&mut output, "whether a device stands in the group above it or beside it cannot be known for sure");
    }
    Some((output, used.max(1)))
}

type Counters = (Vec<Figure>, Option<(&'static str, String)>, usize);

#[derive(Default)]
struct Devices {
    inside: bool,
    /// Columns of options: `SLOW` (`-s`), `POWER`, `DIO` (`-d`).
    more: Vec<String>,
    /// Indentation and name of each line, and whether it is a row.
    shown: Vec<(usize, String, bool)>,
    pool: String,
    section: Option<String>,
    vdev: Option<String>,
    started: bool,
    grouped: bool,
}

impl Devices {
    /// The row of a device, nothing for a line that only names a part of the pool; none when it is no such line.
    fn row(&mut self, words: &[&str], line: Line<'_>) -> Option<Result<Option<Row>, Unread>> {
        const STATES: [&str; 9] =
            ["ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "AVAIL", "INUSE", "SPLIT"];
        let name = *words.first()?;
        if words.len() == 1 && zpool_iostat::is_section(name) {
            (self.section, self.vdev) = (Some(name.to_owned()), None);
            self.shown.push((line.indent, name.to_owned(), false));
            return Some(Ok(None));
        }
        let state = words.get(1).filter(|state| STATES.contains(state))?;
        let spare = matches!(*state, "AVAIL" | "INUSE");
        let counters = if spare { Ok((Vec::new(), None, 0)) } else { self.counters(words, line) };
        let (figures, power, columns) = match counters {
            Ok(counters) => counters,
            Err(unread) => return Some(Err(unread)),
        };
        self.shown.push((line.indent, name.to_owned(), true));
        let mut labels = self.place(name);
        labels.push(("state", (*state).to_owned()));
        labels.extend(power);
        let remark = words.get(2 + columns..).unwrap_or_default().join(" ");
        labels.extend((!remark.is_empty()).then_some(("remark", remark)));
        Some(Ok(Some(Row { figures, ..table::row(labels, line.number) })))
    }

    /// The counters of a device, whether it has power (`--power`), and how many columns that takes.
    fn counters(&self, words: &[&str], line: Line<'_>) -> Result<Counters, Unread> {
        let columns: Vec<&str> =
            ["READ", "WRITE", "CKSUM"].into_iter().chain(self.more.iter().map(String::as_str)).collect();
        let mut figures = Vec::new();
        let mut power = None;
        for (index, column) in columns.iter().enumerate() {
            let word = words.get(2 + index).copied().unwrap_or_default();
            let name = match *column {
                "READ" => "read_errors",
                "WRITE" => "write_errors",
                "CKSUM" => "checksum_errors",
                "SLOW" => "slow_ios",
                "DIO" => "direct_io_errors",
                "POWER" => {
                    power = Some(("power", word.to_owned())).filter(|_| !matches!(word, "" | "-"));
                    continue;
                }
                // Columns of scripts (`-c`) are not known, nor is what stands behind them.
                _ => break,
            };
            // A pool has no slow ones of its own.
            let is_absent = word == "-" && index >= 3;
            match table::bytes(word) {
                Some(number) => figures.push(table::figure(name, "count", number, word, line.number)),
                None if is_absent => {}
                None => return Err(table::unread(line, format!("a count for {column}"))),
            }
        }
        Ok((figures, power, columns.len()))
    }

    /// Gives each row its place from the indentation; false where that was lost.
    fn put_in_tree(&self, rows: &mut [Row]) -> bool {
        let shown: Vec<(usize, &str)> = self.shown.iter().map(|(indent, name, _)| (*indent, name.as_str())).collect();
        let Some(places) = zpool_iostat::places(&shown) else { return false };
        let of_rows = places.into_iter().zip(&self.shown).filter(|(_, (_, _, is_row))| *is_row);
        for ((place, _), row) in of_rows.zip(rows) {
            let kept = row.labels.iter().position(|(name, _)| *name == "state").unwrap_or_default();
            let rest = row.labels.split_off(kept);
            row.labels = place.labels().into_iter().flatten().chain(rest).collect();
        }
        true
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
