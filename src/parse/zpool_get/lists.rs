//! `zpool list` and `zfs list`: a row a pool or dataset.

use super::super::output::{Line, Output};
use super::super::{table, zpool_iostat};

enum Column {
    Bytes(&'static str),
    Percent(&'static str),
    Ratio(&'static str),
    Text(&'static str),
}

fn column(word: &str) -> Option<Column> {
    Some(match word {
        "SIZE" => Column::Bytes("size_bytes"),
        "ALLOC" => Column::Bytes("allocated_bytes"),
        "FREE" => Column::Bytes("free_bytes"),
        "CKPOINT" => Column::Bytes("checkpoint_bytes"),
        "EXPANDSZ" => Column::Bytes("expandable_bytes"),
        "USED" => Column::Bytes("used_bytes"),
        "AVAIL" => Column::Bytes("available_bytes"),
        "REFER" => Column::Bytes("referenced_bytes"),
        "FRAG" => Column::Percent("fragmentation_percent"),
        "CAP" => Column::Percent("capacity_percent"),
        "DEDUP" => Column::Ratio("dedup_ratio"),
        "HEALTH" => Column::Text("health"),
        "ALTROOT" => Column::Text("altroot"),
        "MOUNTPOINT" => Column::Text("mountpoint"),
        _ => return None,
    })
}

/// The columns behind the name, if this is the heading of a list.
pub(super) fn heading(words: &[&str]) -> Option<Vec<String>> {
    let (first, rest) = words.split_first()?;
    let zfs = rest.contains(&"REFER") || rest.contains(&"HEALTH") || rest.contains(&"CAP");
    let all = rest.iter().all(|word| column(word).is_some());
    (*first == "NAME" && zfs && all).then(|| rest.iter().map(|&word| word.to_owned()).collect())
}

/// The list whose heading is at `at`, and how many lines it takes.
pub(super) fn read(lines: &[Line<'_>], at: usize) -> Option<(Output, usize)> {
    let names = heading(&table::words(lines[at].text))?;
    let tool = if names.iter().any(|name| name == "REFER") { "zfs list" } else { "zpool list" };
    let number = lines[at].number;
    let mut output = Output { tool, lines: (number, number), ..Output::default() };
    let mut used = 1;
    let mut shown: Vec<(usize, &str, bool)> = Vec::new();
    while let Some(line) = lines.get(at + used) {
        let words = table::words(line.text);
        let is_part = zpool_iostat::is_section(words.first().copied().unwrap_or_default());
        if words.is_empty() || (is_part && words[1..].iter().all(|word| *word == "-")) {
            shown.extend(words.first().map(|name| (line.indent, *name, false)));
            used += 1;
            continue;
        }
        let is_value = |word: &&&str| {
            **word == "-" || table::bytes(word).is_some() || table::percent(word).is_some() || word.ends_with('x')
        };
        let values = words[1..].iter().filter(is_value).count();
        if values < 2 || values * 2 < words.len() - 1 || table::is_prompt(line.text) {
            break;
        }
        let before = output.rows.len();
        take(&mut output, &names, &words, *line);
        shown.push((line.indent, words[0], output.rows.len() > before));
        table::extend(&mut output, line.number);
        used += 1;
    }
    if tool == "zpool list" {
        put_in_tree(&mut output, &shown);
    }
    (!output.rows.is_empty() || !output.unread.is_empty()).then_some((output, used))
}

/// Puts before the name of each device (`-v`) what it stands in, from the indentation.
fn put_in_tree(output: &mut Output, shown: &[(usize, &str, bool)]) {
    let names: Vec<(usize, &str)> = shown.iter().map(|(indent, name, _)| (*indent, *name)).collect();
    let Some(places) = zpool_iostat::places(&names) else {
        if names.iter().any(|(_, name)| zpool_iostat::is_group(name) || zpool_iostat::is_section(name)) {
            table::note(output, "which rows are devices of which pool cannot be known: the indentation was lost");
        }
        return;
    };
    let of_rows = places.into_iter().zip(shown).filter(|(_, (_, _, is_row))| *is_row);
    for ((place, (_, name, _)), row) in of_rows.zip(&mut output.rows) {
        let above = place.labels().into_iter().flatten().filter(|(_, value)| value != name);
        row.labels.splice(0..0, above);
    }
}

fn take(output: &mut Output, names: &[String], words: &[&str], line: Line<'_>) {
    let texts = names.iter().rev().take_while(|name| matches!(column(name), Some(Column::Text(_)))).count();
    if words.len() > names.len() + 1 || words.len() + texts < names.len() + 1 {
        let wanted = format!("a name and {} values, one for each column", names.len());
        output.unread.push(table::unread(line, wanted));
        return;
    }
    let mut row = table::row(vec![("name", words[0].to_owned())], line.number);
    for (name, word) in names.iter().zip(&words[1..]) {
        let (name, unit, value) = match column(name) {
            Some(Column::Bytes(name)) => (name, "B", table::bytes(word)),
            Some(Column::Percent(name)) => (name, "%", table::percent(word)),
            Some(Column::Ratio(name)) => (name, "ratio", super::web::number(word.trim_end_matches('x'))),
            Some(Column::Text(name)) => {
                row.labels.push((name, (*word).to_owned()));
                continue;
            }
            None => continue,
        };
        match value {
            Some(value) => row.figures.push(table::figure(name, unit, value, word, line.number)),
            None if matches!(*word, "-" | "none") => {}
            None => output.unread.push(table::unread(line, format!("a number for {name}, not `{word}`"))),
        }
    }
    output.rows.push(row);
}
