//! A table as used by every renderer: displayed cells, and for each row its CSV fields in full precision.
//!
//! Displayed text is rounded; CSV keeps the values of the analysis, with the unit in the header. The page carries the
//! CSV fields as data attributes, so that its download buttons yield the same bytes as [`Table::to_csv`] of the rows
//! shown.

use super::words::{class_key, class_meaning, class_title, estimate_text, fields, percent, visible};
use crate::analyse::findings::{DurabilityClass, Estimate};
use crate::units::{Bytes, grouped, significant};
use serde::Serialize;

/// Most decimals of a figure: milliseconds to the microsecond.
const DECIMALS_MAX: i32 = 3;
/// Most rows of a table on a page: a browser takes seconds for about ten tables of this size.
pub(super) const ROWS_MAX: usize = 1000;
/// Longest name that is never wrapped, characters.
const SHORT_NAME: usize = 34;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Table {
    /// Unique within the page; also the name of its CSV file.
    pub id: String,
    pub caption: String,
    /// Explanation, if needed.
    pub note: Option<String>,
    /// Columns, left to right.
    pub columns: Vec<TableColumn>,
    /// Groups of rows; most tables have one.
    pub groups: Vec<TableGroup>,
    /// Number of rows in all groups.
    pub length: usize,
    /// Number of rows shown on a page, if not all.
    pub cut_to: Option<usize>,
    /// CSV headings: those of the groups' fields, then those of the columns.
    pub csv_head: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TableColumn {
    pub title: String,
    /// Unit, unless the cells have it.
    pub unit: Option<String>,
    /// True for numbers, which are aligned to the right.
    pub numeric: bool,
    /// Headings of its CSV fields.
    #[serde(skip)]
    pub csv: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct TableGroup {
    /// Heading above the rows.
    pub heading: Option<String>,
    /// Explanation of the heading.
    pub note: Option<String>,
    /// Class in the style sheet: a durability class.
    pub style: &'static str,
    pub rows: Vec<TableRow>,
    /// Notes below the rows.
    pub below: Vec<String>,
    #[serde(skip)]
    lead: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TableRow {
    pub cells: Vec<Cell>,
    pub csv: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Cell {
    /// Main text.
    pub text: String,
    /// Smaller text after it: the interval, a remark.
    pub aside: Option<String>,
    /// Text below it: a reason for caution.
    pub remark: Option<String>,
    /// Text that a page folds below it: a log.
    pub more: Option<String>,
    /// The number in its column's unit, if all numbers of the column are shown with the same decimals.
    #[serde(skip)]
    pub value: Option<f64>,
    /// Classes in the style sheet.
    pub style: &'static str,
    /// Its CSV fields, as many as the column has headings.
    #[serde(skip)]
    pub csv: Vec<String>,
}

/// A column with what it shows of a row.
pub(super) type ShownColumn<'c, R> = (TableColumn, &'c dyn Fn(&R) -> Cell);

/// A table before its columns: what has a row each, and the cells with which rows begin.
pub(super) struct TableOver<R> {
    pub id: String,
    pub caption: String,
    /// Columns of the cells with which rows begin.
    pub first: Vec<TableColumn>,
    pub rows: Vec<(Vec<Cell>, R)>,
}

impl TableColumn {
    /// A column of text.
    pub fn text(title: &str) -> TableColumn {
        TableColumn { title: title.to_owned(), unit: None, numeric: false, csv: vec![title.to_owned()] }
    }

    /// A column of text whose CSV heading is in lower case.
    pub fn label(title: &str) -> TableColumn {
        TableColumn::text(title).csv(&[&title.to_lowercase()])
    }

    /// A column of numbers in `unit`; an empty unit for plain counts.
    pub fn number(title: &str, unit: &str) -> TableColumn {
        let unit = (!unit.is_empty()).then(|| unit.to_owned());
        let heading = unit.as_ref().map_or_else(|| title.to_owned(), |unit| format!("{title} ({unit})"));
        TableColumn { title: title.to_owned(), unit, numeric: true, csv: vec![heading] }
    }

    /// A column of numbers with its unit as shown, and that of the CSV.
    pub fn units(title: &str, unit: &str, csv_unit: &str) -> TableColumn {
        TableColumn::number(title, unit).csv(&[&format!("{title} ({csv_unit})")])
    }

    /// A column of figures with intervals.
    pub fn estimate(title: &str, name: &str, unit: &str) -> TableColumn {
        let heading = format!("{title}, 95 % interval");
        let csv = ["", " low", " high"].map(|end| format!("{name}{end} ({unit})"));
        TableColumn::number(&heading, unit).csv(&[&csv[0], &csv[1], &csv[2], "trials"])
    }

    /// A column of numbers that may have ends.
    pub fn bounded(title: &str) -> TableColumn {
        TableColumn::number(title, "").csv(&[title, &format!("{title} low"), &format!("{title} high")])
    }

    /// Sets CSV headings that differ from the title.
    pub fn csv(mut self, headings: &[&str]) -> TableColumn {
        self.csv = headings.iter().map(|&heading| heading.to_owned()).collect();
        self
    }
}

impl Cell {
    /// A text, the same in the CSV.
    pub fn text(text: impl Into<String>) -> Cell {
        let text = text.into();
        Cell { csv: vec![text.clone()], text, ..Cell::default() }
    }

    /// The name of a case; `csv` is its id. Short names are not wrapped.
    pub fn case(label: &str, id: &str) -> Cell {
        let style = if label.chars().count() <= SHORT_NAME { "name short" } else { "name" };
        Cell::text(label).csv(vec![id.to_owned()]).style(style)
    }

    /// A device, followed by its node of the stack.
    pub fn device(name: &str, node: &str) -> Cell {
        Cell::text(name).aside(node).csv(vec![name.to_owned(), node.to_owned()])
    }

    /// A number, formatted by `shown`; a dash and an empty CSV field if it is missing.
    pub fn number<N: ToString + Copy>(value: Option<N>, shown: impl FnOnce(N) -> String) -> Cell {
        match value {
            Some(value) => Cell { text: shown(value), csv: vec![value.to_string()], ..Cell::default() },
            None => Cell::none(1).style("absent"),
        }
    }

    /// A count, styled unless it is zero.
    pub fn count(value: u64, style: &'static str) -> Cell {
        Cell::number(Some(value), grouped).style(if value > 0 { style } else { "" })
    }

    /// A share of 0 to 1, as per cent.
    pub fn share(value: impl Into<Option<f64>>) -> Cell {
        Cell::number(value.into(), percent)
    }

    /// Bytes with their unit.
    pub fn bytes(value: Option<f64>) -> Cell {
        Cell::number(value, |bytes| Bytes(bytes.round() as u64).to_string())
    }

    /// A dash for what is missing, and the empty CSV fields of its columns.
    pub fn none(fields: usize) -> Cell {
        Cell::text("–").csv(vec![String::new(); fields])
    }

    /// A measured number in its column's unit: [`Table::even`] gives all figures of a column the same decimals.
    pub fn figure(value: Option<f64>) -> Cell {
        Cell { value, ..Cell::number(value, significant) }
    }

    /// A figure with its interval; `missing` is the reason if there is none.
    pub fn estimate(estimate: Option<&Estimate>, missing: Option<&str>) -> Cell {
        let Some(found) = estimate else {
            return Cell::none(4).aside(missing.unwrap_or_default()).style("absent");
        };
        let (value, interval) = estimate_text(found);
        Cell::text(value)
            .aside(if found.trials == 1 { "" } else { &interval })
            .csv([fields(estimate), vec![found.trials.to_string()]].concat())
    }

    /// A figure with its interval, where it has one.
    pub fn bounded(estimate: Option<&Estimate>) -> Cell {
        let Some(found) = estimate else { return Cell::none(3) };
        let (value, interval) = estimate_text(found);
        Cell { aside: found.low.is_some().then_some(interval), ..Cell::text(value).csv(fields(estimate)) }
    }

    /// "yes" or "no", an alarm if that is bad.
    pub fn yes(is: Option<bool>, bad: bool) -> Cell {
        let Some(is) = is else { return Cell::none(1).style("absent") };
        Cell::text(if is { "yes" } else { "no" }).style(if is == bad { "alarm" } else { "" })
    }

    /// Adds a smaller remark after the text.
    pub fn aside(mut self, aside: impl Into<String>) -> Cell {
        let aside = aside.into();
        self.aside = (!aside.is_empty()).then_some(aside);
        self
    }

    pub fn remark(mut self, remark: Option<String>) -> Cell {
        self.remark = remark;
        self
    }

    /// Shows the first line; a longer text is folded below it.
    pub fn log(text: &str) -> Cell {
        let first = text.lines().next().unwrap_or_default();
        let more = (first.len() < text.trim_end().len()).then(|| text.to_owned());
        Cell { more, ..Cell::text(first) }.csv(vec![text.to_owned()])
    }

    /// Sets the classes in the style sheet.
    pub fn style(mut self, style: &'static str) -> Cell {
        self.style = style;
        self
    }

    /// Sets the CSV fields, instead of the text.
    pub fn csv(mut self, fields: Vec<String>) -> Cell {
        self.csv = fields;
        self
    }
}

impl<R> TableOver<R> {
    /// The table with these columns after those with which rows begin.
    pub fn columns(self, columns: &[ShownColumn<'_, R>]) -> Table {
        let shown = columns.iter().map(|(column, _)| column.clone());
        let table = Table::new(self.id, self.caption, self.first.into_iter().chain(shown).collect());
        let shown = |row| columns.iter().map(move |(_, cell)| cell(row));
        table.rows(self.rows.iter().map(|(first, row)| first.iter().cloned().chain(shown(row)).collect()))
    }
}

impl Table {
    /// A table with a row for each of `rows`.
    pub fn over<R>(id: impl Into<String>, title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> TableOver<R> {
        let rows = rows.into_iter().map(|row| (Vec::new(), row)).collect();
        TableOver { id: id.into(), caption: title.into(), first: Vec::new(), rows }
    }

    /// A table without rows.
    pub fn new(id: impl Into<String>, caption: impl Into<String>, columns: Vec<TableColumn>) -> Table {
        let csv_head = columns.iter().flat_map(|column| &column.csv).cloned().collect();
        let (id, caption, groups) = (id.into(), caption.into(), Vec::new());
        Table { id, caption, note: None, columns, groups, length: 0, cut_to: None, csv_head }
    }

    /// Sets the explanation.
    pub fn note(mut self, note: impl Into<String>) -> Table {
        self.note = Some(note.into());
        self
    }

    /// Sets the headings of the CSV fields that groups put before those of their rows.
    pub fn lead(mut self, headings: &[&str]) -> Table {
        self.csv_head.splice(0..0, headings.iter().map(|&heading| heading.to_owned()));
        self
    }

    /// Opens a group; `lead` are the first CSV fields of its rows.
    pub fn open_group(&mut self, heading: Option<String>, note: Option<String>, lead: Vec<String>) {
        self.groups.push(TableGroup { heading, note, lead, ..TableGroup::default() });
    }

    /// Opens the group of a durability class.
    pub fn open_class(&mut self, class: DurabilityClass, lead: Vec<String>) {
        let (heading, note) = (Some(class_title(class).to_owned()), Some(class_meaning(class).to_owned()));
        self.groups.push(TableGroup { heading, note, style: class_key(class), lead, ..TableGroup::default() });
    }

    /// Adds notes below the rows of the last group.
    pub fn below(&mut self, sentences: impl IntoIterator<Item = String>) {
        if let Some(group) = self.groups.last_mut() {
            group.below.extend(sentences);
        }
    }

    /// Adds a row to the last group.
    pub fn push(&mut self, cells: Vec<Cell>) {
        if self.groups.is_empty() {
            self.groups.push(TableGroup::default());
        }
        self.length += 1;
        if let Some(group) = self.groups.last_mut() {
            let csv = group.lead.iter().chain(cells.iter().flat_map(|cell| &cell.csv)).cloned().collect();
            group.rows.push(TableRow { cells, csv });
        }
    }

    /// Adds rows to the last group.
    pub fn rows(mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Table {
        rows.into_iter().for_each(|cells| self.push(cells));
        self
    }

    /// Cuts the table to the rows that a page shows, with a note.
    pub fn first(mut self) -> Table {
        let mut left = ROWS_MAX;
        for group in &mut self.groups {
            group.rows.truncate(left);
            group.rows.shrink_to_fit();
            left -= group.rows.len();
        }
        if self.length > ROWS_MAX {
            self.cut_to = Some(ROWS_MAX);
            let note =
                format!("The first {ROWS_MAX} of {} rows. All of them: pgstrata report FOLDER --json.", self.length);
            self.note = Some(self.note.map_or(note.clone(), |own| format!("{own} {note}")));
        }
        self
    }

    /// Shows no column that tells nothing: `–`, 0 or closed loop (which has a note) in every row. The CSV has them all.
    pub fn telling(mut self) -> Table {
        for at in (0..self.columns.len()).rev() {
            let mut cells = self.groups.iter().flat_map(|group| &group.rows).filter_map(|row| row.cells.get(at));
            if self.length > 0 && cells.all(|cell| ["–", "0", "closed loop"].contains(&&*cell.text)) {
                self.columns.remove(at);
                self.groups.iter_mut().flat_map(|group| &mut group.rows).for_each(|row| drop(row.cells.remove(at)));
            }
        }
        self
    }

    /// Gives the figures of each column the same number of decimals: three digits of the middle one, at most three
    /// decimals. A figure that would be shown as 0 is shown as less than the last digit.
    pub fn even(mut self) -> Table {
        for column in 0..self.columns.len() {
            let rows = self.groups.iter().flat_map(|group| &group.rows);
            let values: Vec<f64> = rows.filter_map(|row| row.cells.get(column)?.value).collect();
            let mut sizes: Vec<f64> = values.iter().copied().map(f64::abs).filter(|size| *size > 0.0).collect();
            let whole = values.iter().all(|value| value.fract() == 0.0);
            sizes.sort_by(f64::total_cmp);
            let Some(middle) = sizes.get(sizes.len() / 2) else { continue };
            let decimals = if whole { 0 } else { (2 - middle.log10().floor() as i32).clamp(0, DECIMALS_MAX) as usize };
            let rows = self.groups.iter_mut().flat_map(|group| &mut group.rows);
            for cell in rows.filter_map(|row| row.cells.get_mut(column)) {
                if let Some(value) = cell.value {
                    cell.text = fixed(value, decimals);
                }
            }
        }
        self
    }

    /// The whole table as CSV (RFC 4180: CRLF, fields quoted if necessary).
    pub fn to_csv(&self) -> String {
        let rows = self.groups.iter().flat_map(|group| &group.rows).map(|row| csv_line(&row.csv));
        std::iter::once(csv_line(&self.csv_head)).chain(rows).collect()
    }
}

fn fixed(value: f64, decimals: usize) -> String {
    let last = 10f64.powi(-(decimals as i32));
    if value > 0.0 && value < last / 2.0 {
        return format!("<{last:.decimals$}");
    }
    if decimals == 0 && value >= 0.0 {
        return grouped(value.round() as u64).replace(' ', "\u{a0}");
    }
    format!("{value:.decimals$}")
}

/// One CSV line, including its line end.
pub(super) fn csv_line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| csv_field(field)).collect();
    format!("{}\r\n", fields.join(","))
}

/// One field, [`visible`], and quoted if it contains a comma, a quote or a line end, or begins or ends with a blank.
fn csv_field(field: &str) -> String {
    let field = visible(field);
    let quote = field.contains([',', '"', '\n', '\r']) || field.trim() != field;
    if quote { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_they_must_be() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,b"), "\"a,b\"");
        assert_eq!(csv_field("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(csv_field("two\nlines"), "\"two\nlines\"");
        assert_eq!(csv_field(" x"), "\" x\"");
    }

    #[test]
    fn csv_has_units_in_headings_and_full_precision_in_rows() {
        let columns =
            vec![TableColumn::text("case"), TableColumn::number("rate", "tps").csv(&["rate (tps)", "low (tps)"])];
        let mut table = Table::new("t", "T", columns).lead(&["class"]);
        table.open_group(Some("Flushed".to_owned()), None, vec!["flushed".to_owned()]);
        let rate = Cell::number(Some(1_234.567_89), |_| "1230".to_owned());
        let rate = rate.csv(vec!["1234.56789".to_owned(), String::new()]);
        table.push(vec![Cell::text("a,b"), rate]);
        assert_eq!(table.to_csv(), "class,case,rate (tps),low (tps)\r\nflushed,\"a,b\",1234.56789,\r\n");
    }

    #[test]
    fn the_figures_of_a_column_have_the_same_decimals() {
        let mut table = Table::new("t", "T", vec![TableColumn::number("p99", "ms")]);
        for value in [3.04, 10.6, 23.6, 2.0, 23.0, 0.000_399] {
            table.push(vec![Cell::figure(Some(value))]);
        }
        let csv = table.to_csv();
        let even = table.even();
        let texts: Vec<&str> = even.groups[0].rows.iter().map(|row| row.cells[0].text.as_str()).collect();
        assert_eq!(texts, ["3.0", "10.6", "23.6", "2.0", "23.0", "<0.1"]);
        assert_eq!(even.to_csv(), csv, "a CSV keeps every digit");
    }

    #[test]
    fn absent_numbers_are_dashes_in_html_and_empty_in_csv() {
        let cell = Cell::number(None::<f64>, |v| v.to_string());
        assert_eq!((cell.text.as_str(), cell.csv), ("–", vec![String::new()]));
    }
}
