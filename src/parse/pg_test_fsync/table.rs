//! Which test a row of `pg_test_fsync` belongs to: from its heading where that is known, else from the order of tables
//! and rows, which is the same in every version; and what else the text around the rows tells.

use super::METHODS;
use super::figure;
use crate::parse::output::{Figure, Output};
use crate::parse::web::{self, Word};

/// Rows that stand under one heading.
pub(super) struct Table {
    pub(super) test: Test,
    /// What its heading says, where it is one of the first two.
    pub(super) methods: Option<Writes>,
    /// Size that its heading names.
    pub(super) write_bytes: Option<u64>,
    /// Its rows among the output's.
    pub(super) rows: Vec<usize>,
}

/// The tests in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    /// One of the first two; the place of its last row among the methods.
    Methods(usize),
    Sizes,
    Descriptor,
    NotSynced,
}

impl Test {
    fn place(self) -> u8 {
        match self {
            Test::Methods(_) => 0,
            Test::Sizes => 1,
            Test::Descriptor => 2,
            Test::NotSynced => 3,
        }
    }
}

/// How many writes a heading speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    One,
    Two,
}

/// What the words before a row say.
#[derive(Default)]
pub(super) struct Heading {
    /// The line where a heading begins.
    pub(super) line: Option<u32>,
    /// Whether there is a heading of the first two tests.
    pub(super) is_methods: bool,
    /// One write or two.
    pub(super) methods: Option<Writes>,
    /// The size in it.
    pub(super) write_bytes: Option<u64>,
}

/// Reads the words before a row.
pub(super) fn heading(words: &[Word<'_>]) -> Heading {
    let mut heading = Heading::default();
    for (at, word) in words.iter().enumerate() {
        let is_note = word.text.contains("wal_sync_method");
        let size = super::size(&words[at..]);
        if is_note || size.is_some() || word.text == "Compare" || word.text.starts_with("O_DIRECT") {
            heading.line.get_or_insert(word.line);
        }
        heading.is_methods |= is_note;
        if let Some((bytes, _)) = size {
            heading.write_bytes = Some(bytes);
            // The number of writes stands near the size, as a word of the language.
            let near = &words[at.saturating_sub(6)..(at + 4).min(words.len())];
            heading.methods = near.iter().rev().find_map(|word| writes(word.text)).or(heading.methods);
        }
    }
    heading
}

/// The word for one or two in the languages of the program's catalogues.
fn writes(word: &str) -> Option<Writes> {
    const ONE: [&str; 15] = [
        "one",
        "einem",
        "μία",
        "una",
        "une",
        "１個の",
        "ერთი",
        "하나의",
        "uma",
        "однократной",
        "en",
        "один",
        "jeden",
        "一个",
        "bir",
    ];
    const TWO: [&str; 15] = [
        "two",
        "zwei",
        "δύο",
        "dos",
        "deux",
        "due",
        "２個の",
        "ორი",
        "두개의",
        "duas",
        "двухкратной",
        "två",
        "два",
        "两个",
        "iki",
    ];
    match (ONE.contains(&word), TWO.contains(&word)) {
        (true, _) => Some(Writes::One),
        (_, true) => Some(Writes::Two),
        _ => None,
    }
}

/// Whether a row of `test` cannot belong to the output that the tables are of.
pub(super) fn begins_anew(tables: &[Table], test: &Test, said: &Heading) -> bool {
    let Some(last) = tables.last() else { return false };
    match (last.test, test) {
        (Test::Methods(before), Test::Methods(now)) => {
            let methods = tables.iter().filter(|table| matches!(table.test, Test::Methods(_))).count();
            let again = said.methods == Some(Writes::One) || last.methods == Some(Writes::Two) || methods > 1;
            again && begins_table(Some(last), test, said) && (*now <= before || said.is_methods)
        }
        (last, now) => now.place() < last.place(),
    }
}

/// Whether a row of `test` begins a table.
pub(super) fn begins_table(last: Option<&Table>, test: &Test, said: &Heading) -> bool {
    let Some(last) = last else { return true };
    match (last.test, test) {
        (Test::Methods(before), Test::Methods(now)) => said.is_methods || said.methods.is_some() || *now <= before,
        (last, now) => last.place() != now.place(),
    }
}

/// Writes the tests and sizes into the labels of the rows.
pub(super) fn settle(output: &mut Output, tables: &[Table], has_head: bool) {
    let of_methods: Vec<&Table> = tables.iter().filter(|table| matches!(table.test, Test::Methods(_))).collect();
    // It is the size of WAL blocks that the program was built with, so it is the same in all tests but one.
    let write_bytes = tables.iter().find_map(|table| table.write_bytes);
    for table in tables {
        let place = of_methods.iter().position(|other| std::ptr::eq(*other, table));
        let test = match table.test {
            Test::Methods(_) => match (table.methods, place, of_methods.len()) {
                (Some(Writes::Two), ..) | (None, Some(1), _) => "two writes",
                (Some(Writes::One), ..) | (None, _, 2..) => "one write",
                (None, ..) if has_head => "one write",
                (None, ..) => {
                    let note =
                        "its beginning is missing: whether its first rows are of one write or of two cannot be told";
                    output.notes.push(note.to_owned());
                    "one write or two"
                }
            },
            Test::Sizes => "open_sync sizes",
            Test::Descriptor => "descriptor",
            Test::NotSynced => "not synced",
        };
        for row in &table.rows {
            let Some(row) = output.rows.get_mut(*row).map(|row| &mut row.labels) else { continue };
            if let Some(bytes) = table.write_bytes.or(write_bytes).filter(|_| table.test != Test::Sizes) {
                row.insert(0, ("write_bytes", bytes.to_string()));
            }
            row.insert(0, ("test", test.to_owned()));
        }
    }
}

/// `2000 operations per test`, `5 seconds per test`, in the languages of the program's catalogues, at the front of
/// `words`: the figure and how many words it takes.
pub(super) fn head(words: &[Word<'_>]) -> Option<(Figure, usize)> {
    const PER: [&str; 7] = ["per", "pro", "par", "por", "ανά", "на", "a"];
    const TEST: [&str; 9] = ["test", "Test", "prueba", "teste", "τεστ", "тест", "testu", "teszt", "test:"];
    let first = words.first()?;
    let word = |at: usize| words.get(at).map_or("", |word| word.text);
    if let Some(value) = web::number(first.text).filter(|value| value.fract() == 0.0) {
        if PER.contains(&word(2)) && TEST.contains(&word(3)) {
            return Some(match word(1) {
                "operations" => (figure("operations_per_test", "count", first, value), 4),
                _ => (figure("seconds_per_test", "s", first, value), 4),
            });
        }
        return foreign_head(words);
    }
    // `на тест отводится 5 сек.`, `テスト１件あたり 5秒`, `검사 간격: 5초`: the number stands last.
    let number_at = match (first.text, word(1)) {
        ("на", "тест") => 3,
        ("テスト１件あたり", _) => 1,
        ("검사", "간격:") => 2,
        _ => return foreign_head(words),
    };
    let stated = words.get(number_at)?;
    let digits = stated.text.trim_end_matches(['秒', '초']);
    let value = web::number(digits)?;
    let mut figure = figure("seconds_per_test", "s", stated, value);
    figure.text = digits.to_owned();
    Some((figure, number_at + if number_at == 3 { 2 } else { 1 }))
}

/// The head in a language that is not known: a short line with one whole number, over the line about direct I/O, which is
/// in that language too. Takes the words of the line.
fn foreign_head(words: &[Word<'_>]) -> Option<(Figure, usize)> {
    const MOST_WORDS: usize = 6;
    let first = words.first().filter(|word| word.first)?;
    let end = words.iter().take(MOST_WORDS + 1).position(|word| word.line != first.line)?;
    let (line, below) = words.split_at(end);
    let below: Vec<&str> = below.iter().take_while(|word| word.line == first.line + 1).map(|word| word.text).collect();
    let english = below.contains(&"supported") && below.contains(&"platform");
    if english || !below.iter().any(|word| word.contains("O_DIRECT") || word.contains("F_NOCACHE")) {
        return None;
    }
    let mut numbers = line.iter().filter(|word| word.text.contains(|c: char| c.is_ascii_digit()));
    let (word, None) = (numbers.next()?, numbers.next()) else { return None };
    let mut runs = word.text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
    let (text, None) = (runs.next()?, runs.next()) else { return None };
    let mut figure = figure("seconds_per_test", "s", word, web::number(text)?);
    figure.text = text.to_owned();
    Some((figure, end))
}

/// Version, facts and notes from the words of an output, whose headings may begin before its first row.
pub(super) fn finish(output: &mut Output, words: &[Word<'_>], from: u32) {
    // The footnote of the last table and the end by an error stand behind the last row.
    const BEHIND: u32 = 4;
    let lines = output.lines.0.max(from)..=output.lines.1.saturating_add(BEHIND);
    let inside: Vec<&str> = words.iter().filter(|word| lines.contains(&word.line)).map(|word| word.text).collect();
    let has = |wanted: &str| inside.contains(&wanted);
    let pair = |first: &str, second: &str| inside.windows(2).any(|two| two[0] == first && two[1].starts_with(second));
    let direct = match () {
        () if has("F_NOCACHE") => Some("F_NOCACHE"),
        () if pair("O_DIRECT", "supported") => Some("O_DIRECT"),
        () if has("O_DIRECT") => Some("O_DIRECT"),
        () if pair("Direct", "I/O") && pair("not", "supported") => Some("not supported"),
        () => None,
    };
    output.facts.extend(direct.map(|direct| ("direct I/O".to_owned(), direct.to_owned())));
    if pair("write", "failed") || pair("fsync", "failed") || pair("open", "failed") {
        output.notes.push("the tool ended early: a write or sync failed".to_owned());
    }
    output.version = version(output, &inside);
    let rows = output.rows.iter().filter(|row| !row.labels.is_empty()).count();
    if rows < 2 * METHODS.len() + 8 {
        output.notes.push(format!("{rows} of its {} rows are there", 2 * METHODS.len() + 8));
    }
}

/// The version, as far as the form tells it.
fn version(output: &Output, words: &[&str]) -> Option<String> {
    let figures = || output.rows.iter().flat_map(|row| &row.figures);
    let heads = |name: &str| figures().any(|figure| figure.name == name);
    let latencies = heads("latency_mean");
    let has = |wanted: &str| words.contains(&wanted);
    let sizes = output.rows.iter().any(|row| row.labels.iter().any(|(_, label)| label == "open_sync sizes"));
    let english_sizes = words.windows(2).any(|two| two[0] == "open_sync" && two[1].starts_with("write"));
    let translated = !words.iter().any(|word| word.starts_with("ops/sec")) || sizes && !english_sizes;
    let told = if heads("operations_per_test") {
        "9.1"
    } else if heads("rate") && !latencies {
        // A latency that was cut off would look the same; a single row does not tell.
        if figures().filter(|figure| figure.name == "rate").count() < 2 {
            return None;
        }
        "9.2"
    } else if has("Non-Sync'ed") {
        "9.3 or 9.4"
    } else if words.iter().any(|word| word.contains("\"wal_sync_method\"")) || has("F_NOCACHE") {
        "17 or newer"
    } else if translated || words.windows(3).any(|three| three == ["second", "per", "test"]) {
        "11 or newer"
    } else if has("Non-sync'ed") {
        "9.5 or newer"
    } else if latencies {
        "9.3 or newer"
    } else {
        return None;
    };
    Some(told.to_owned())
}
