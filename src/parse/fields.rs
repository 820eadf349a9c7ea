//! The fields of one line of a kernel file, read one by one, and the keys and values that a tool prints; an error names
//! file or tool, line, item and wanted type.

use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// The unread fields of a line.
pub(super) struct Fields<'a> {
    source: &'a str,
    line: usize,
    rest: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of line number `line` (from 1) of the file `source`.
    pub(super) fn new(source: &'a str, line: usize, text: &'a str) -> Fields<'a> {
        Fields { source, line, rest: text.split_ascii_whitespace() }
    }

    /// The next field as text.
    ///
    /// # Errors
    /// If the line has ended.
    pub(super) fn text(&mut self, item: &str) -> Result<&'a str> {
        self.rest.next().ok_or_else(|| Error::host(format!("{} line {}: `{item}` is missing", self.source, self.line)))
    }

    /// The next field as a whole number.
    ///
    /// # Errors
    /// If the line has ended or the field is not a whole number that fits.
    pub(super) fn count<T: std::str::FromStr>(&mut self, item: &str) -> Result<T> {
        let text = self.text(item)?;
        self.number(item, text)
    }

    /// The next field as a whole number; `None` if the line has ended.
    ///
    /// # Errors
    /// If the field exists but is not a whole number that fits.
    pub(super) fn count_if_there<T: std::str::FromStr>(&mut self, item: &str) -> Result<Option<T>> {
        self.rest.next().map(|text| self.number(item, text)).transpose()
    }

    /// Part of this line as a whole number.
    ///
    /// # Errors
    /// If it is not a whole number that fits.
    pub(super) fn number<T: std::str::FromStr>(&self, item: &str, text: &str) -> Result<T> {
        let (source, line) = (self.source, self.line);
        text.parse().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            Error::host(format!("{source} line {line}: `{item}` is `{text}`, not a whole number ({wanted})"))
        })
    }
}

/// The lines that are not blank, with their index from 0.
pub(super) fn filled_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
}

/// Adds a word to those of a value.
pub(super) fn add_word(value: &mut String, between: &str, word: &str) {
    value.push_str(if value.is_empty() { "" } else { between });
    value.push_str(word);
}

/// An error about the line with this index in what a tool printed.
pub(super) fn wrong_line(tool: &str, index: usize, line: &str, what: &str) -> Error {
    Error::tool(format!("{tool}, line {}: {what}: `{line}`", index + 1))
}

/// The values by their keys.
///
/// # Errors
/// Names the first of these keys that is missing.
pub(super) fn having<V>(tool: &str, fields: BTreeMap<String, V>, keys: &[&str]) -> Result<BTreeMap<String, V>> {
    let missing = keys.iter().find(|key| !fields.contains_key(**key));
    missing.map_or(Ok(fields), |key| Err(Error::tool(format!("{tool} printed no `{key}`"))))
}

/// The kilobytes after `Key:`, as in `MemTotal:  24684084 kB`, converted to bytes.
///
/// # Errors
/// If number or unit are not in the kernel's format.
pub(super) fn kilobytes(source: &str, line: usize, item: &str, text: &str) -> Result<u64> {
    let mut fields = Fields::new(source, line, text);
    let number: u64 = fields.count(item)?;
    match fields.text("unit")? {
        "kB" => number.checked_mul(1024).ok_or_else(|| {
            Error::host(format!("{source} line {line}: `{item}` is `{number}` kB, more than 2^64 bytes"))
        }),
        other => Err(Error::host(format!("{source} line {line}: `{item}` has the unit `{other}`, not `kB`"))),
    }
}
