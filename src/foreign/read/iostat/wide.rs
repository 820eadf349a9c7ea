//! The iostat that prints disks side by side: macOS, FreeBSD without `-x`, illumos without `-x`. Each line is a report.

use super::super::output::{Line, Row};
use super::super::table;
use super::columns;
use crate::foreign::clean::number;

/// One of the groups of columns, from left to right.
struct Group {
    label: &'static str,
    name: String,
    columns: Vec<String>,
}

/// Two lines of names: disks and the like, then their columns.
pub(super) struct Wide {
    groups: Vec<Group>,
    /// Whether the line with the names of the disks was there.
    pub(super) named: bool,
    /// Whose it is.
    pub(super) tool: &'static str,
}

impl Wide {
    /// The heading whose second line is `line`.
    pub(super) fn of(before: Option<Line<'_>>, line: Line<'_>) -> Option<Wide> {
        let words: Vec<&str> = table::words(line.text);
        let starts = |word: &str| matches!(word, "KB/t" | "kps" | "Mps" | "rps");
        let all = words.iter().all(|word| columns::of_any(word).is_some());
        if words.len() < 3 || !all || !words.iter().any(|word| starts(word)) {
            return None;
        }
        let mut groups: Vec<Group> = Vec::new();
        for &word in &words {
            let label = columns::of_machine(word).map_or("device", |(label, _)| label);
            let fresh = groups.last().is_none_or(|last| last.label != label) || starts(word);
            if fresh {
                groups.push(Group { label, name: "all".to_owned(), columns: Vec::new() });
            }
            groups.last_mut()?.columns.push(word.to_owned());
        }
        let named = name(&mut groups, before);
        let has = |column: &str| words.contains(&column);
        let tool = match () {
            () if has("1m") => "iostat (macOS)",
            () if has("KB/t") => "iostat (FreeBSD or macOS)",
            () => "iostat (illumos)",
        };
        Some(Wide { groups, named, tool })
    }

    /// The rows of one line, or what was wanted; `None` when it is no line of figures.
    pub(super) fn rows(&self, line: Line<'_>) -> Option<Result<Vec<Row>, String>> {
        let words: Vec<&str> = table::words(line.text);
        let numbers = words.iter().filter(|word| number(word).is_some()).count();
        if numbers == 0 || numbers * 2 < words.len() {
            return None;
        }
        let wanted: usize = self.groups.iter().map(|group| group.columns.len()).sum();
        if words.len() != wanted || numbers != wanted {
            return Some(Err(format!("{wanted} figures, one for each column")));
        }
        let mut words = words.into_iter();
        let rows = self.groups.iter().map(|group| {
            let mut row = table::row(vec![(group.label, group.name.clone())], line.number);
            for (column, word) in group.columns.iter().zip(words.by_ref()) {
                let figure = columns::of_any(column).zip(number(word)).map(|((_, known), number)| {
                    table::figure(known.name, known.unit, number * known.factor, word, line.number)
                });
                row.figures.extend(figure);
            }
            row
        });
        // A disk without its name is none that anybody knows.
        Some(Ok(rows.filter(|row| self.named || row.labels[0].0 != "device").collect()))
    }

    /// What a line lacks under a heading without the names of the disks.
    pub(super) fn unnamed(&self) -> Option<String> {
        (!self.named).then(|| "the names of the disks above their columns".to_owned())
    }
}

/// Gives the disks their names, where the line before names just as many.
fn name(groups: &mut [Group], before: Option<Line<'_>>) -> bool {
    let words = before.map_or("", |line| line.text).split_whitespace();
    let names: Vec<&str> = words.filter(|word| !matches!(*word, "tty" | "cpu" | "load" | "average")).collect();
    let disks: Vec<&mut Group> = groups.iter_mut().filter(|group| group.label == "device").collect();
    let fits = disks.len() == names.len() && groups_fit(&names);
    if fits {
        disks.into_iter().zip(names).for_each(|(group, name)| group.name = name.to_owned());
    }
    fits
}

/// Whether these look like names of disks: letters first, no sentence marks.
fn groups_fit(names: &[&str]) -> bool {
    let is_name = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && !name.ends_with(['.', ':', ',', ';'])
            && name.contains(|c: char| c.is_ascii_digit())
    };
    names.iter().all(is_name)
}
