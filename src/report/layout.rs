//! Layout of text in a terminal: number of columns, and tables within them.
//!
//! Column widths depend on the content: no word and no number is broken. If that is impossible, or below 80 columns,
//! each row becomes a card of `name: value` lines. Absent on purpose: querying the terminal, which `cli` does.

use crate::report::text::{columns, joined, paragraph, printable, push_line, width};
use std::collections::BTreeSet;

/// Width below which rows become cards.
const FEWEST_FOR_A_TABLE: usize = 80;
/// Indentation of a table, columns.
const INDENT: usize = 2;
/// Blanks between two columns.
const GAP: usize = 2;
/// Longest text in a column of numbers that is kept on one line before other columns grow: a rate with its interval.
const NUMBER: usize = 32;

/// Text of a cell without a value.
pub(super) const ABSENT: &str = "–";

/// True if the width allows tables.
pub(super) fn takes_tables() -> bool {
    columns() >= FEWEST_FOR_A_TABLE
}

#[derive(Debug, Clone)]
pub struct TextTable {
    header: Vec<String>,
    rows: Vec<LayoutRow>,
    right: BTreeSet<usize>,
}

#[derive(Debug, Clone)]
enum LayoutRow {
    Cells(Vec<String>),
    /// Folded lines between the rows: heading or notes of a group.
    Between(String),
}

impl TextTable {
    /// A table with these names of columns, without rows; the columns in `right` hold numbers.
    pub fn new<T: ToString>(names: impl IntoIterator<Item = T>, right: &[usize]) -> TextTable {
        let header = names.into_iter().map(|name| name.to_string()).collect();
        TextTable { header, rows: Vec::new(), right: right.iter().copied().collect() }
    }

    /// Adds a row; characters that control a terminal are shown as their code.
    pub fn add_row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(LayoutRow::Cells(cells.into_iter().map(|cell| joined(&printable(&cell.to_string()))).collect()));
    }

    /// The same for each of these.
    pub fn rows<T: ToString, R: IntoIterator<Item = T>>(mut self, rows: impl IntoIterator<Item = R>) -> TextTable {
        rows.into_iter().for_each(|cells| self.add_row(cells));
        self
    }

    /// Adds lines between the rows, unchanged.
    pub fn add_between(&mut self, lines: String) {
        self.rows.push(LayoutRow::Between(lines));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table, indented by two columns, or its cards; without trailing blanks and without columns that are
    /// empty in all rows.
    pub fn shown(&self) -> String {
        self.clone().without_absent().whole()
    }

    fn without_absent(mut self) -> TextTable {
        let cells = self.cells().flat_map(|cells| cells.iter().enumerate());
        let known: BTreeSet<usize> = cells.filter(|(_, cell)| *cell != ABSENT).map(|(column, _)| column).collect();
        if known.is_empty() {
            return self;
        }
        let rows = self.rows.iter_mut().filter_map(|row| match row {
            LayoutRow::Cells(cells) => Some(cells),
            LayoutRow::Between(_) => None,
        });
        for cells in std::iter::once(&mut self.header).chain(rows) {
            let kept = std::mem::take(cells).into_iter().enumerate().filter(|(column, _)| known.contains(column));
            *cells = kept.map(|(_, cell)| cell).collect();
        }
        self.right = (0..).zip(&known).filter(|(_, column)| self.right.contains(column)).map(|(at, _)| at).collect();
        self
    }

    fn whole(&self) -> String {
        let Some(widths) = self.widths() else { return self.cards() };
        let mut text = String::new();
        if !self.header.is_empty() {
            text.push_str(&self.lines(&self.header, &widths));
            let line = widths.iter().sum::<usize>() + GAP * (widths.len() - 1);
            text.push_str(&format!("{}{}\n", " ".repeat(INDENT), "─".repeat(line)));
        }
        for row in &self.rows {
            match row {
                LayoutRow::Cells(cells) => text.push_str(&self.lines(cells, &widths)),
                LayoutRow::Between(lines) => text.push_str(lines),
            }
        }
        text
    }

    fn cells(&self) -> impl Iterator<Item = &[String]> {
        self.rows.iter().filter_map(|row| if let LayoutRow::Cells(cells) = row { Some(cells.as_slice()) } else { None })
    }

    /// Column widths that break no word and give the fewest lines; `None` if that is impossible.
    fn widths(&self) -> Option<Vec<usize>> {
        let rows = std::iter::once(self.header.as_slice()).chain(self.cells());
        // Longest word, and longest line, of each column.
        let (mut widths, mut most) = (Vec::new(), Vec::new());
        for (column, cell) in rows.flat_map(|row| row.iter().enumerate()) {
            if column == widths.len() {
                widths.push(1);
                most.push(1);
            }
            widths[column] = cell.split([' ', '\n']).map(width).fold(widths[column], usize::max);
            most[column] = cell.lines().map(width).fold(most[column], usize::max);
        }
        let gaps = GAP * widths.len().checked_sub(1).filter(|_| takes_tables())?;
        let room = columns().checked_sub(INDENT + gaps + widths.iter().sum::<usize>())?;
        for _ in 0..room {
            // Numbers first, then the column with the most lines: a sentence is not a number.
            let narrow = (0..widths.len()).filter(|column| widths[*column] < most[*column]);
            let widest = narrow.max_by_key(|&column| {
                let is_number = self.right.contains(&column) && most[column] <= NUMBER;
                (is_number, most[column].div_ceil(widths[column]), std::cmp::Reverse(column))
            });
            let Some(column) = widest else { break };
            widths[column] += 1;
        }
        Some(widths)
    }

    /// Renders one row.
    fn lines(&self, cells: &[String], widths: &[usize]) -> String {
        let folded: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| folded(cell, *width)).collect();
        let height = folded.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for at in 0..height {
            let mut line = " ".repeat(INDENT);
            for (column, (cell, room)) in folded.iter().zip(widths).enumerate() {
                let part = cell.get(at).map_or("", String::as_str);
                let blanks = " ".repeat(room.saturating_sub(width(part)));
                let gap = if column == 0 { "" } else { "  " };
                line.push_str(gap);
                if self.right.contains(&column) { line.extend([&blanks, part]) } else { line.extend([part, &blanks]) }
            }
            push_line(&mut text, &line);
        }
        text
    }

    /// Each row as a block of `name: value` lines.
    fn cards(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cells = match row {
                LayoutRow::Cells(cells) => cells,
                LayoutRow::Between(lines) => {
                    text.push_str(lines);
                    continue;
                }
            };
            for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                let name = self.header.get(column).map(|name| name.replace('\n', ", ")).unwrap_or_default();
                let mark = if name.is_empty() { "  ".to_owned() } else { format!("  {name}: ") };
                text.push_str(&paragraph("  ", &format!("{}{cell}", mark.trim_start())));
            }
            text.push('\n');
        }
        text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
    }
}

/// Lines of a cell, none wider than `room` unless a word is.
fn folded(cell: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in cell.lines() {
        let mut now = String::new();
        for word in line.split(' ') {
            if !now.is_empty() && width(&now) + 1 + width(word) > room {
                lines.push(std::mem::take(&mut now));
            } else if !now.is_empty() {
                now.push(' ');
            }
            now.push_str(word);
        }
        lines.push(now);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::text;
    use crate::report::text::at_width;

    fn table() -> TextTable {
        let mut table = TextTable::new(["case", "rate", "why"], &[1]);
        table.add_row([
            "ext4, wal_sync_method=fdatasync",
            "12 345 (11 111–13 131) tps",
            "flushes are seen at every level",
        ]);
        table.add_between("  group\n".to_owned());
        table.add_row(["xfs", "9", &"word ".repeat(20)]);
        table
    }

    #[test]
    fn from_80_columns_on_no_word_or_number_is_broken() {
        let whole = ["ext4,", "wal_sync_method=fdatasync", "12 345", "(11 111–13 131)", "flushes", "level"];
        for columns in [80, 100, 120] {
            let text = at_width(columns, || table().shown());
            assert!(text.lines().all(|line| width(line) <= usize::from(columns)), "{text}");
            assert!(whole.iter().all(|word| text.contains(word)), "{columns}: {text}");
            assert!(text.lines().next().is_some_and(|line| line.contains("case") && line.contains("why")), "{text}");
        }
    }

    #[test]
    fn a_column_that_no_row_has_is_left_out() {
        let rows = [["ext4", ABSENT, "12"], ["xfs", ABSENT, ABSENT]];
        let table = TextTable::new(["case", "p99", "tps"], &[1, 2]).rows(rows);
        assert_eq!(table.shown(), "  case  tps\n  ─────────\n  ext4   12\n  xfs     –\n");
    }

    #[test]
    fn a_sentence_among_numbers_leaves_room_for_the_others() {
        let mut table = TextTable::new(["case", "tps", "against baseline", "durability"], &[1, 2]);
        let reason = "0.447 flushes per commit (1.01 per WAL sync) seen at the loop device, and flushes reach vda; vda is \
                      a virtual disk: the storage below is not visible";
        table.add_row(["xfs", "575 (491–672)", "undecided: 1.16× (no interval from 1 trial)", reason]);
        for (columns, most) in [(80, 7), (100, 5), (120, 4)] {
            let text = at_width(columns, || table.shown());
            assert!(text.lines().count() <= 2 + most && text.contains("575 (491–672)"), "{columns}: {text}");
        }
    }

    #[test]
    fn below_80_columns_or_with_overlong_words_rows_become_cards() {
        let text = at_width(60, || table().shown());
        assert!(
            text.starts_with("  case: ext4, wal_sync_method=fdatasync\n  rate: 12 345 (11 111–13 131) tps\n"),
            "{text}"
        );
        assert!(text.contains("\n  group\n") && text.lines().all(|line| width(line) <= 60), "{text}");
        let mut long = table();
        long.add_row(["x".repeat(70).as_str(), "1 234", "y"]);
        assert!(at_width(80, || long.shown()).contains("  rate: 1 234\n"));
        assert!(at_width(120, || long.shown()).contains("─"));
    }

    #[test]
    fn only_groups_of_three_digits_are_one_number() {
        assert_eq!(joined("1 234 567 tps"), "1\u{a0}234\u{a0}567 tps");
        assert_eq!(joined("65 % (61–70 %), a % b"), "65\u{a0}% (61–70\u{a0}%), a % b");
        assert_eq!(joined("in 2026 12 trials, 3 1234"), "in 2026 12 trials, 3 1234");
    }

    #[test]
    fn the_width_holds_for_the_work_alone() {
        assert_eq!((at_width(81, columns), columns()), (81, usize::from(text::COLUMNS)));
    }
}
