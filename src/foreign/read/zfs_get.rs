//! `zfs get` and `zpool get`: properties.
//!
//! A property is a row with the labels `name`, `property`, `value` (as printed), `source`, and no figures.
//!
//! Sources: zpool(8), zfs(8), zpoolprops(7), zfsprops(7) of OpenZFS; zpool(1M) of illumos.

use super::output::{Line, Output, Row};
use super::table;

/// Whether the text holds such properties.
#[must_use]
pub fn looks_like(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| heading(&table::words(line.text)).is_some())
}

/// Reads every table of properties in the text.
#[must_use]
pub fn read(lines: &[Line<'_>]) -> Vec<Output> {
    let mut outputs = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        at += match properties(lines, at) {
            Some((output, used)) => {
                outputs.push(output);
                used
            }
            None => 1,
        };
    }
    outputs
}

/// The columns that a heading of `get` names.
fn heading(words: &[&str]) -> Option<Vec<&'static str>> {
    const ALL: [(&str, &str); 4] =
        [("NAME", "name"), ("PROPERTY", "property"), ("VALUE", "value"), ("SOURCE", "source")];
    let columns: Option<Vec<_>> =
        words.iter().map(|word| ALL.iter().find(|(printed, _)| printed == word).map(|(_, name)| *name)).collect();
    columns.filter(|columns| columns.contains(&"property") && columns.contains(&"value"))
}

fn properties(lines: &[Line<'_>], at: usize) -> Option<(Output, usize)> {
    let columns = heading(&table::words(lines[at].text))?;
    let mut output = table::output("zfs get", lines[at].number);
    let mut used = 1;
    let mut name = None;
    while let Some(line) = lines.get(at + used) {
        let words = table::words(line.text);
        if words.is_empty() || table::is_omission(line.text) || heading(&words).is_some() {
            used += 1;
            continue;
        }
        let same = name.is_some_and(|name| words[0] == name);
        match property(&columns, &words, *line) {
            Some(row) => output.rows.push(row),
            None if same && !table::is_prompt(line.text) => {
                output.unread.push(table::unread(*line, columns.join(", ")));
            }
            None => break,
        }
        if columns[0] == "name" {
            name = words.first().copied();
        }
        table::extend(&mut output, line.number);
        used += 1;
    }
    let known = |property: &str| {
        output.rows.iter().any(|row| row.labels.iter().any(|(name, value)| name == "property" && value == property))
    };
    if ["health", "autoexpand", "failmode", "ashift"].into_iter().any(known) {
        "zpool get".clone_into(&mut output.tool);
    }
    let any = !output.rows.is_empty() || !output.unread.is_empty();
    any.then_some((output, used))
}

/// One property, or none where the words are not such a row.
fn property(columns: &[&'static str], words: &[&str], line: Line<'_>) -> Option<Row> {
    let mut rest = words;
    let mut labels: Vec<(&str, String)> = Vec::new();
    for &column in columns.iter().take_while(|column| matches!(**column, "name" | "property")) {
        let (first, behind) = rest.split_first()?;
        let is_property = first.starts_with(|c: char| c.is_ascii_lowercase()) && !first.ends_with([':', ',', '.']);
        if column == "property" && !is_property {
            return None;
        }
        labels.push((column, (*first).to_owned()));
        rest = behind;
    }
    let mut source = None;
    if columns.contains(&"source") {
        let length = match rest {
            [.., "inherited", "from", _] => 3,
            [.., "-" | "default" | "local" | "temporary" | "received" | "none"] => 1,
            _ => return None,
        };
        let (before, found) = rest.split_at(rest.len() - length);
        rest = before;
        source = Some(found.join(" "));
    }
    let value = rest.join(" ");
    // Without a source at its end a sentence looks like a property: only short values count then.
    if value.is_empty() && source.is_none() || source.is_none() && rest.len() > 5 {
        return None;
    }
    let absent = matches!(value.as_str(), "-" | "none").then(|| value.clone());
    labels.push(("value", value));
    labels.extend(source.map(|source| ("source", source)));
    Some(Row { absent, ..table::row(labels, line.number) })
}

#[cfg(test)]
mod tests;
