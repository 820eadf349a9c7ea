//! `df` of Linux, busybox, FreeBSD, macOS and illumos.
//!
//! | column | figure | unit |
//! |---|---|---|
//! | Size, 1K-blocks, 512-blocks, kbytes | `size_bytes` | B |
//! | Used; Avail, Available | `used_bytes`; `available_bytes` | B |
//! | Use%, Capacity | `used_percent` | % |
//! | Inodes, IUsed, IFree, IUse% | `inodes`, `inodes_used`, `inodes_free`, `inodes_used_percent` | count, % |
//!
//! Labels: `filesystem`, `type` (`-T`), `mount`. Suffixes are powers of 1024, or of 1000 where the command line has
//! `-H`; sources: df(1) of coreutils, FreeBSD and POSIX.

use super::output::{Line, Output};
use super::{table, web};

/// Whether the text holds the heading of a df.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| columns(line.text).is_some())
}

/// Reads every df in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut si = None;
    let mut at = 0;
    while at < lines.len() {
        if table::is_prompt(lines[at].text) {
            let called = table::command(lines[at].text, "df");
            si = called.map(|it| table::has_option(it, 'H') || it.contains("--si"));
        }
        at += match columns(lines[at].text) {
            Some(columns) => {
                let (output, used) = rows(&columns, lines, at, si.take());
                outputs.extend(output);
                used
            }
            None => 1,
        };
    }
    outputs
}

/// A column between the filesystem and where it is mounted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    Type,
    /// Bytes, and what a number without a suffix is multiplied with.
    Bytes(&'static str, f64),
    Count(&'static str),
    Percent(&'static str),
}

fn columns(heading: &str) -> Option<Vec<Column>> {
    let lower = heading.to_ascii_lowercase();
    let inner = lower.trim().strip_prefix("filesystem")?.trim_end().strip_suffix("mounted on")?;
    let mut words: Vec<&str> = table::words(inner);
    let factor = words.iter().find_map(|word| block(word));
    if words.first() == Some(&"type") {
        words[0] = "#type";
    }
    let column = |word: &&str| {
        let factor = factor.unwrap_or(1.0);
        Some(match *word {
            "#type" => Column::Type,
            "size" | "kbytes" => Column::Bytes("size_bytes", factor),
            "used" => Column::Bytes("used_bytes", factor),
            "avail" | "available" => Column::Bytes("available_bytes", factor),
            "use%" | "capacity" | "%cap" => Column::Percent("used_percent"),
            "inodes" => Column::Count("inodes"),
            "iused" => Column::Count("inodes_used"),
            "ifree" => Column::Count("inodes_free"),
            "iuse%" | "%iused" => Column::Percent("inodes_used_percent"),
            other => Column::Bytes("size_bytes", block(other)?),
        })
    };
    let columns: Option<Vec<Column>> = words.iter().map(column).collect();
    columns.filter(|columns| columns.len() >= 2)
}

/// How many bytes a block of this heading has: `1k-blocks`, `512-blocks`, `1b-blocks`, `kbytes`.
fn block(word: &str) -> Option<f64> {
    if word == "kbytes" {
        return Some(table::KIB);
    }
    let size = word.strip_suffix("-blocks")?;
    table::bytes(&size.to_ascii_uppercase())
}

fn rows(columns: &[Column], lines: &[Line<'_>], at: usize, si: Option<bool>) -> (Option<Output>, usize) {
    let number = lines[at].number;
    let mut output = Output { tool: "df", lines: (number, number), ..Output::default() };
    let mut used = 1;
    let mut suffixes = false;
    while let Some(line) = lines.get(at + used) {
        let words: Vec<(u32, &str)> = table::words(line.text).into_iter().map(|word| (line.number, word)).collect();
        if words.is_empty() || table::is_omission(line.text) {
            used += 1;
            continue;
        }
        let next = lines.get(at + used + 1).filter(|_| words.len() <= columns.len());
        let next: Vec<(u32, &str)> = next
            .map_or(Vec::new(), |next| table::words(next.text).into_iter().map(|word| (next.number, word)).collect());
        let joined: Vec<(u32, &str)> = words.iter().chain(&next).copied().collect();
        let (found, taken) = match find(columns, &words) {
            Some(start) => (Some((start, &words)), 1),
            None if !next.is_empty() => (find(columns, &joined).map(|start| (start, &joined)), 2),
            None => (None, 1),
        };
        let Some((start, words)) = found else {
            let texts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
            let numbers = table::count_numbers(&texts);
            if table::is_prompt(line.text) || numbers < 2 || numbers * 2 < texts.len() {
                break;
            }
            output.unread.push(table::unread(*line, format!("a filesystem, {} values and its mount", columns.len())));
            table::extend(&mut output, line.number);
            used += 1;
            continue;
        };
        suffixes |= words[start..start + columns.len()].iter().any(|(_, word)| table::suffixed(word).is_some());
        take(&mut output, columns, words, start, si == Some(true));
        lines[at + used..at + used + taken].iter().for_each(|line| table::extend(&mut output, line.number));
        used += taken;
    }
    if suffixes && si.is_none() {
        table::note(
            &mut output,
            "sizes are taken for powers of 1024; `df -H` prints powers of 1000 with the same letters",
        );
    }
    let any = !output.rows.is_empty() || !output.unread.is_empty();
    (any.then_some(output), used)
}

/// Where the values begin in a row: behind the filesystem, whose name may have blanks, and before an absolute path.
fn find(columns: &[Column], words: &[(u32, &str)]) -> Option<usize> {
    let fits = |start: &usize| {
        let values = words[*start..].iter().zip(columns);
        let all = values.clone().count() == columns.len();
        let behind = words.get(start + columns.len()..).unwrap_or_default();
        // A path may have blanks; where it has a share in it, two rows stand on one line.
        let share = |(_, word): &(u32, &str)| word.strip_suffix('%').is_some_and(|share| web::number(share).is_some());
        let mount = behind.first().is_some_and(|(_, word)| word.starts_with('/')) && !behind.iter().any(share);
        all && mount
            && values.into_iter().all(|((_, word), column)| match column {
                Column::Type => word.starts_with(|c: char| c.is_ascii_alphabetic()),
                Column::Percent(_) => *word == "-" || table::percent(word).is_some(),
                Column::Bytes(..) | Column::Count(_) => *word == "-" || table::bytes(word).is_some(),
            })
    };
    (1..words.len().min(4)).find(fits)
}

fn take(output: &mut Output, columns: &[Column], words: &[(u32, &str)], start: usize, si: bool) {
    let text = |words: &[(u32, &str)]| words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
    let mut row = table::row(vec![("filesystem", text(&words[..start]))], words[0].0);
    for (column, (line, word)) in columns.iter().zip(&words[start..]) {
        let (name, unit, value) = match column {
            Column::Type => {
                row.labels.push(("type", (*word).to_owned()));
                continue;
            }
            Column::Bytes(name, factor) => {
                let suffixed = if si { thousands(word) } else { table::bytes(word) };
                (*name, "B", web::number(word).map(|number| number * factor).or(suffixed))
            }
            Column::Count(name) => (*name, "count", table::bytes(word)),
            Column::Percent(name) => (*name, "%", table::percent(word)),
        };
        row.figures.extend(value.map(|value| table::figure(name, unit, value, word, *line)));
    }
    row.labels.push(("mount", text(&words[start + columns.len()..])));
    output.rows.push(row);
}

/// A size with a suffix that is a power of 1000.
fn thousands(word: &str) -> Option<f64> {
    let (last, _) = word.char_indices().next_back()?;
    let power = "KMGTPE".find(word[last..].to_ascii_uppercase().as_str())?;
    Some(web::number(&word[..last])? * 1000f64.powi(i32::try_from(power + 1).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::mangle::{any_mangling, numbers_not_read};
    use super::super::table::checks::{is_part, outputs_of};
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const PUBLISHED: &str = include_str!("../../shelf/memory-filesystems-2018/df-h.txt");
    const HERE: [&str; 5] = [
        include_str!("../../tests/fixtures/df/9.1-h.txt"),
        include_str!("../../tests/fixtures/df/9.1-k.txt"),
        include_str!("../../tests/fixtures/df/9.1-T.txt"),
        include_str!("../../tests/fixtures/df/9.1-i.txt"),
        include_str!("../../tests/fixtures/df/busybox-1.35.0.txt"),
    ];

    fn outputs(text: &str) -> Vec<Output> {
        outputs_of(text, looks_like, read)
    }

    fn figures(text: &str, row: usize) -> Vec<(String, f64)> {
        let found = outputs(text);
        found[0].rows[row].figures.iter().map(|figure| (figure.name.clone(), figure.value)).collect()
    }

    #[test]
    fn every_number_that_was_published_is_read() {
        let found = outputs(PUBLISHED);
        assert_eq!(numbers_not_read(PUBLISHED, &found), Vec::<String>::new());
        assert_eq!((found.len(), found[0].rows.len(), found[0].unread.len()), (1, 11, 0));
        assert_eq!(found[0].rows[0].labels[1], ("mount", "/".to_owned()));
        assert_eq!(figures(PUBLISHED, 0)[0], ("size_bytes".to_owned(), 197.0 * 1024f64.powi(3)));
    }

    #[test]
    fn every_form_of_this_machine_is_read() {
        for text in HERE {
            let found = outputs(text);
            let headings = text.lines().next().unwrap_or_default();
            let left: Vec<String> =
                numbers_not_read(text, &found).into_iter().filter(|it| !headings.contains(it.as_str())).collect();
            assert!(left.is_empty() && found[0].unread.is_empty(), "{left:?} {text}");
        }
    }

    #[test]
    fn blocks_are_bytes_and_long_names_may_wrap() {
        let text =
            "Filesystem 512-blocks Used Avail Capacity Mounted on\n/dev/mapper/a-very-long-name\n 8 4 2 50% /my disk\n";
        let found = outputs(text);
        let values: Vec<f64> = figures(text, 0).into_iter().map(|(_, value)| value).collect();
        assert_eq!((values, found[0].lines), (vec![4096.0, 2048.0, 1024.0, 50.0], (1, 3)));
        assert_eq!(found[0].rows[0].labels[1].1, "/my disk");
        let text = "Filesystem 512-blocks Used Available Capacity iused ifree %iused Mounted on\n\
                    map auto_home 0 0 0 100% 0 0 100% /System/Volumes/Data/home\n";
        assert_eq!(outputs(text)[0].rows[0].labels[0].1, "map auto_home");
    }

    #[test]
    fn powers_of_1000_are_known_from_the_command_alone() {
        let table = "Filesystem Size Used Avail Use% Mounted on\n/dev/sda1 2.0T 1.0k 1.0T 1% /\n";
        assert_eq!(figures(&format!("$ df -H\n{table}"), 0)[0].1, 2e12);
        assert_eq!(outputs(table)[0].notes.len(), 1);
        assert!(outputs(&format!("$ df -h\n{table}"))[0].notes.is_empty());
    }

    #[test]
    fn a_row_that_is_cut_off_is_reported_with_its_line() {
        let found = outputs("Filesystem Size Used Avail Use% Mounted on\n/dev/sda1 2.0T 1.0K 1.0T\n");
        assert_eq!((found[0].rows.len(), found[0].unread[0].line), (0, 2));
    }

    fn count(outputs: &[Output]) -> usize {
        outputs.iter().flat_map(|output| &output.rows).map(|row| row.figures.len()).sum()
    }

    proptest! {
        #[test]
        fn mangled_text_gives_the_same_or_less(mangling in any_mangling(), which in 0..HERE.len() + 1) {
            let text = HERE.get(which).copied().unwrap_or(PUBLISHED);
            let (whole, mangled) = (outputs(text), outputs(&mangling.apply(text)));
            prop_assert!(is_part(&mangled, &whole).is_ok(), "{:?} {}", is_part(&mangled, &whole), mangling.apply(text));
            if mangling.keeps_lines() {
                prop_assert!(count(&mangled) == count(&whole), "{}", mangling.apply(text));
            }
        }

        #[test]
        fn no_text_makes_it_panic(
            text in "(Filesystem Size Used Avail Use% Mounted on|Filesystem 1K-blocks Type Mounted on|/|tmpfs|-|[0-9.]{1,4}[KM%]?|[ \\n]){0,40}",
            any in any::<String>(),
        ) {
            outputs(&text);
            outputs(&any);
        }
    }
}
