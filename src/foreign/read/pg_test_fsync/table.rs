//! Which test a row of `pg_test_fsync` belongs to: from its heading where that is known, else from the order of tables
//! and rows, which is the same in every version; and what else the text around the rows tells.

use super::figure;
use super::{METHODS, NamedRow};
use crate::foreign::clean::{self as web, Word};
use crate::foreign::read::output::{Figure, Output, Row};

/// Rows that stand under one heading.
pub(super) struct Table {
    test: Test,
    heading: Heading,
    /// Its rows, each once.
    names: Vec<NamedRow>,
    /// Their places among the output's.
    rows: Vec<usize>,
    /// Line where its last row ends.
    end: u32,
}

impl Table {
    pub(super) fn new(first: NamedRow, heading: Heading) -> Table {
        Table { test: Test::of(first), heading, names: Vec::new(), rows: Vec::new(), end: 0 }
    }

    pub(super) fn take(&mut self, name: NamedRow, row: usize, end: u32) {
        self.names.push(name);
        self.rows.push(row);
        self.end = end;
    }
}

/// The tests in their order; the first is two, of one write and of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Test {
    Methods,
    Sizes,
    Descriptor,
    NotSynced,
}

impl Test {
    fn of(name: NamedRow) -> Test {
        match name {
            NamedRow::Method(_) => Test::Methods,
            NamedRow::Sizes(_) => Test::Sizes,
            NamedRow::FsyncThenClose | NamedRow::CloseThenFsync => Test::Descriptor,
            NamedRow::NotSynced => Test::NotSynced,
        }
    }
}

/// How many writes a heading speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    One,
    Two,
}

/// What the words before a row say.
#[derive(Default)]
pub(super) struct Heading {
    /// Which word begins a heading.
    pub(super) begins: Option<usize>,
    /// The text up to the note of the first two tests, where that note is there.
    note: Option<String>,
    /// One write or two.
    writes: Option<Writes>,
    /// The size in it.
    write_bytes: Option<u64>,
    /// Whether the heading of a methods' table stands right behind the row before it.
    adjoins: bool,
    /// Whether there are words that are neither of a heading nor of a row.
    prose: bool,
}

impl Heading {
    fn is_one(&self) -> bool {
        self.note.is_some() || self.writes.is_some() || self.write_bytes.is_some()
    }
}

/// Reads the words before a row. What stands far from the row is not its heading: its own rows were left out.
pub(super) fn heading(words: &[Word<'_>]) -> Heading {
    const FARTHEST: usize = 30;
    const LONGEST: usize = 16;
    let mut heading = Heading::default();
    let near = words.len().saturating_sub(FARTHEST);
    for (at, word) in words.iter().enumerate() {
        let is_note = word.text.contains("wal_sync_method");
        let size = super::size(&words[at..]);
        if is_note || size.is_some() || word.text == "Compare" || word.text.starts_with("O_DIRECT") {
            heading.begins.get_or_insert(at);
        }
        if at < near {
            continue;
        }
        if is_note {
            let texts: Vec<&str> = words[at.saturating_sub(LONGEST)..at].iter().map(|word| word.text).collect();
            heading.note = Some(texts.join(" "));
        }
        if let Some((bytes, _)) = size {
            heading.write_bytes = Some(bytes);
            // The number of writes stands near the size, as a word of the language.
            let beside = &words[at.saturating_sub(6)..(at + 4).min(words.len())];
            heading.writes = beside.iter().rev().find_map(|word| writes(word.text));
            let on_its_line = words[..at].iter().take(LONGEST + 1).all(|other| other.line == word.line);
            heading.adjoins = at <= LONGEST && (on_its_line || words[0].text == "Compare");
        }
    }
    heading.prose = !heading.is_one() && is_prose(words);
    heading
}

/// Whether one of the lines is not the rest of a row that could not be read.
fn is_prose(words: &[Word<'_>]) -> bool {
    let mut lines = words.chunk_by(|one, other| one.line == other.line);
    lines.any(|line| {
        !line.iter().any(|word| super::is_unit(word.text))
            && !line.first().is_some_and(|word| METHODS.contains(&word.text))
    })
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

/// What a row is to the tables before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// One more row of the last table.
    Row,
    /// The first row of a table.
    Table,
    /// The first row of an output.
    Output,
}

/// What the row of that name in `line` is. Its heading says so; without one, a row that the table has already is of another.
pub(super) fn next(tables: &[Table], name: NamedRow, said: &Heading, line: u32) -> Next {
    const MOST_TABLES: usize = 16;
    let Some(last) = tables.last() else { return Next::Table };
    let test = Test::of(name);
    let again = last.names.contains(&name) || last.names.len() >= MOST_TABLES;
    if test != last.test {
        return if test < last.test { Next::Output } else { Next::Table };
    }
    let (NamedRow::Method(rank), Some(NamedRow::Method(before))) = (name, last.names.last()) else {
        return if again { Next::Output } else { Next::Row };
    };
    // Rows that somebody sorted follow each other line by line.
    let back = rank < *before && line > last.end + 1;
    let begins = said.is_one() || again || back;
    if !begins && !said.prose {
        return Next::Row;
    }
    let methods = tables.iter().filter(|table| table.test == Test::Methods).count();
    let anew = said.writes == Some(Writes::One) || last.heading.writes == Some(Writes::Two) || methods > 1;
    match (anew && begins) || methods > MOST_TABLES {
        true => Next::Output,
        false => Next::Table,
    }
}

/// Writes the tests and sizes into the labels of the rows.
pub(super) fn settle(output: &mut Output, tables: &[Table], has_head: bool) {
    // It is the size of WAL blocks that the program was built with, so it is the same in all tests but one.
    let mut sizes: Vec<u64> = tables.iter().filter_map(own_size).collect();
    sizes.dedup();
    let write_bytes = sizes.first().copied().filter(|_| sizes.len() == 1);
    let methods = tables.iter().take_while(|table| table.test == Test::Methods).count();
    for (place, table) in tables.iter().enumerate() {
        let test = match table.test {
            Test::Methods => match writes_of(&tables[..methods], place, has_head) {
                Some(Writes::One) => "one write",
                Some(Writes::Two) => "two writes",
                None => {
                    let note =
                        "whether all of its rows are of one write or of two cannot be told without their heading";
                    if !output.notes.iter().any(|other| other == note) {
                        output.notes.push(note.to_owned());
                    }
                    "one write or two"
                }
            },
            Test::Sizes => "open_sync sizes",
            Test::Descriptor => "descriptor",
            Test::NotSynced => "not synced",
        };
        for row in &table.rows {
            let Some(row) = output.rows.get_mut(*row).map(|row| &mut row.labels) else { continue };
            if let Some(bytes) = own_size(table).or(write_bytes).filter(|_| table.test != Test::Sizes) {
                row.insert(0, ("write_bytes", bytes.to_string()));
            }
            row.insert(0, ("test", test.to_owned()));
        }
    }
    output.notes.extend(mixed(output));
}

/// The size that the heading of a table names, where that is the size of its writes.
fn own_size(table: &Table) -> Option<u64> {
    let names_it = match table.test {
        Test::Methods => table.heading.note.is_some() || table.heading.writes.is_some(),
        Test::NotSynced => true,
        Test::Sizes | Test::Descriptor => false,
    };
    table.heading.write_bytes.filter(|_| names_it)
}

/// Whether the table at `place` among those of methods is of one write or of two. Its heading says so. Without it only
/// neighbours tell: the table before one of two writes is of one, and of two tables with foreign headings the first is.
fn writes_of(tables: &[Table], place: usize, has_head: bool) -> Option<Writes> {
    let own = tables.get(place)?;
    if own.heading.writes.is_some() {
        return own.heading.writes;
    }
    let before = place.checked_sub(1).map(|before| &tables[before]);
    let behind = tables.get(place + 1);
    let is_two = |table: &Table| table.heading.writes == Some(Writes::Two);
    if behind.is_some_and(|table| is_two(table) && table.heading.adjoins) {
        return Some(Writes::One);
    }
    let is_pair = |one: &Table, other: &Table| match (&one.heading.note, &other.heading.note) {
        (Some(one), Some(other)) => !one.ends_with(other.as_str()),
        // Somebody left the headings out, and nothing else.
        (None, None) => has_head && !other.heading.prose && one.names == other.names && one.names.len() > 2,
        _ => false,
    };
    match (before, behind) {
        (None, Some(behind)) if tables.len() == 2 && !is_two(behind) => is_pair(own, behind).then_some(Writes::One),
        (Some(before), None) if tables.len() == 2 && !is_two(before) => is_pair(before, own).then_some(Writes::Two),
        _ => None,
    }
}

/// Says where rows cannot be of one version.
fn mixed(output: &Output) -> Option<String> {
    let has = |row: &&Row, name: &str| row.figures.iter().any(|figure| figure.name == name);
    let (timed, untimed): (Vec<&Row>, Vec<&Row>) =
        output.rows.iter().filter(|row| has(row, "rate")).partition(|row| has(row, "latency_mean"));
    let (timed, untimed) = (timed.first()?, untimed.first());
    let old = output.rows.iter().find(|row| has(row, "operations_per_test"));
    let untimed = untimed.or(old.as_ref())?.line;
    let timed = timed.line;
    Some(format!(
        "lines {timed} and {untimed} are of two versions, or cut off: the times of operations are not in both"
    ))
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

/// Version, facts and notes from the words of an output and those behind its last row.
pub(super) fn finish(output: &mut Output, words: &[Word<'_>]) {
    let inside: Vec<&str> = words.iter().map(|word| word.text).collect();
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
    if mixed(output).is_some() {
        return None;
    }
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
