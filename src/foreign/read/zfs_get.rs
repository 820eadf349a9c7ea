//! `zfs get` and `zpool get`: properties, under their heading or with tabs and all four columns as `-H` prints them.
//!
//! A property is a row with the labels `name`, `property`, `value` (as printed), `source`, and no figures.
//!
//! Sources: zpool(8), zfs(8), zpoolprops(7), zfsprops(7) of OpenZFS; zpool(1M) of illumos.

use super::output::{Output, Row, TextLine};
use super::table;

/// Reads every table of properties in the text.
pub fn read(lines: &[TextLine<'_>]) -> Vec<Output> {
    table::scan(lines, |at| properties(lines, at))
}

/// Printed columns and their labels.
const ALL: [(&str, &str); 4] = [("NAME", "name"), ("PROPERTY", "property"), ("VALUE", "value"), ("SOURCE", "source")];

/// The columns named in a heading of `get`.
fn heading(words: &[&str]) -> Option<Vec<&'static str>> {
    let columns: Option<Vec<_>> =
        words.iter().map(|word| ALL.iter().find(|(printed, _)| printed == word).map(|(_, name)| *name)).collect();
    columns.filter(|columns| columns.contains(&"property") && columns.contains(&"value"))
}

/// True for a line printed with `-H`.
fn is_scripted(line: TextLine<'_>) -> bool {
    line.text.matches('\t').count() == 3 && property(&ALL.map(|(_, name)| name), line).is_some()
}

/// The output that begins on a line, and how many lines were consumed.
fn properties(lines: &[TextLine<'_>], at: usize) -> (Option<Output>, usize) {
    let heading_here = heading(&table::words(lines[at].text));
    let scripted = lines[at..].iter().take_while(|line| heading_here.is_none() && is_scripted(**line)).count();
    // Four columns of other data may end with dashes, too.
    if heading_here.is_none() && !lines[at..at + scripted].iter().any(|line| !line.text.ends_with("\t-")) {
        return (None, scripted.max(1));
    }
    let columns = heading_here.unwrap_or_else(|| ALL.map(|(_, name)| name).to_vec());
    let mut output = table::output("zfs get", lines[at].number);
    let mut used = usize::from(scripted == 0);
    let mut name = None;
    while let Some(line) = lines.get(at + used) {
        let words = table::words(line.text);
        if words.is_empty() || table::is_omission(line.text) || heading(&words).is_some() {
            used += 1;
            continue;
        }
        let same = name.is_some_and(|name| words[0] == name);
        match property(&columns, *line) {
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
    let mut labels = output.rows.iter().flat_map(|row| &row.labels);
    if labels.any(|(name, value)| {
        name == "property" && matches!(value.as_str(), "health" | "autoexpand" | "failmode" | "ashift")
    }) {
        "zpool get".clone_into(&mut output.tool);
    }
    let any = !output.rows.is_empty() || !output.unread.is_empty();
    (any.then_some(output), used)
}

/// One property, or `None` if the words are not such a row.
fn property(columns: &[&'static str], line: TextLine<'_>) -> Option<Row> {
    // Tabs or two blanks separate columns, so names and values may contain blanks; a page may have collapsed them.
    let parts = line.text.replace("  ", "\t");
    let parts: Vec<&str> = parts.split('\t').map(str::trim).filter(|part| !part.is_empty()).collect();
    let words = if parts.len() >= columns.len() { parts } else { table::words(line.text) };
    let mut rest = words.as_slice();
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
            [.., from] if from.starts_with("inherited from ") => 1,
            _ => return None,
        };
        let (before, found) = rest.split_at(rest.len() - length);
        rest = before;
        source = Some(found.join(" "));
    }
    let value = rest.join(" ");
    // Without a trailing source a sentence looks like a property: accept only short values.
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
