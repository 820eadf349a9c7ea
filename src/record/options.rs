//! Options of a layer or workload: the table from the plan, and the description that it is checked against.

use crate::units::{Bytes, Micros};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One value of an option as given in the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// Text.
    Text(String),
    /// A list that is one value, never an axis (the plan expands axes).
    List(Vec<OptionValue>),
    /// Named values: properties of a ZFS dataset.
    Map(BTreeMap<String, OptionValue>),
}

impl OptionValue {
    /// The value as a person would write it outside TOML; items of a list or map are joined by `,`.
    pub fn plain(&self) -> String {
        match self {
            OptionValue::Boolean(b) => b.to_string(),
            OptionValue::Integer(i) => i.to_string(),
            OptionValue::Number(n) => n.to_string(),
            OptionValue::Text(t) => t.clone(),
            OptionValue::List(items) => items.iter().map(OptionValue::plain).collect::<Vec<_>>().join(","),
            OptionValue::Map(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={}", value.plain())).collect();
                pairs.join(",")
            }
        }
    }
}

/// The options of one layer or workload, checked against its [`OptionSpec`]s, with one value per key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(pub BTreeMap<String, OptionValue>);

/// Value of an [`OptionKind::OrDefault`] that leaves the current setting unchanged.
pub(crate) const LEAVE: &str = "default";

/// Type of an option's value.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A whole number with a minimum.
    Integer {
        /// Smallest value allowed.
        min: i64,
    },
    /// A number above zero, fractions allowed.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any text.
    Text,
    /// An absolute path.
    Path,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// SQL, which may have several lines, or a file.
    Sql,
    /// A word, a file or SQL, or a list of them.
    SqlOrList,
    /// A list of texts.
    TextList,
    /// A size with its unit: `6GiB`.
    Size,
    /// A time span with its unit: `60s`.
    Span,
    /// A whole number, or a share of the machine's memory: `50% of RAM`.
    IntegerOrShare,
    /// Text, a number, or a boolean.
    Scalar,
    /// A table of arbitrary names, each with a [`OptionKind::Scalar`]: ZFS properties.
    Properties,
    /// A value of this kind, or [`LEAVE`].
    OrDefault(&'static OptionKind),
    /// A table with these options.
    Table(&'static [OptionSpec]),
}

/// Description of one option, used for checks, the JSON schema, the example plan and the manual. A list of values makes
/// an axis of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Key in the plan.
    pub key: &'static str,
    /// Type of its value.
    pub kind: OptionKind,
    /// True if a plan must set it.
    pub required: bool,
    /// Effect of leaving it out, as a value or in words; `None` for no effect.
    pub default: Option<&'static str>,
    /// One sentence for the manual.
    pub doc: &'static str,
}

impl OptionSpec {
    /// An option that every plan must set.
    pub(crate) const fn required(key: &'static str, kind: OptionKind) -> OptionSpec {
        OptionSpec { key, kind, required: true, default: None, doc: "" }
    }

    /// An option without a default.
    pub(crate) const fn optional(key: &'static str, kind: OptionKind) -> OptionSpec {
        OptionSpec { key, kind, required: false, default: None, doc: "" }
    }

    /// An option with a default, a value or words.
    pub(crate) const fn with_default(key: &'static str, kind: OptionKind, default: &'static str) -> OptionSpec {
        OptionSpec { key, kind, required: false, default: Some(default), doc: "" }
    }

    /// Adds the sentence for the manual.
    pub(crate) const fn doc(self, doc: &'static str) -> OptionSpec {
        OptionSpec { doc, ..self }
    }
}

/// A problem with the options of a layer or workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionProblem {
    /// The key at fault; `None` for the table as a whole.
    pub key: Option<String>,
    /// Problem, for the user.
    pub message: String,
    /// Remedy, if known.
    pub help: Option<String>,
}

impl OptionProblem {
    /// A problem with one key.
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Self {
        OptionProblem { key: Some(key.into()), message: message.into(), help: None }
    }

    /// Adds the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Options {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&OptionValue> {
        self.0.get(key)
    }

    /// True if no option is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets `key`.
    pub fn set(&mut self, key: &str, value: OptionValue) {
        self.0.insert(key.to_owned(), value);
    }

    /// Sets each key without a value to its text.
    pub(crate) fn set_where_absent(&mut self, pairs: &[(&str, &str)]) {
        for (key, text) in pairs {
            self.0.entry((*key).to_owned()).or_insert_with(|| OptionValue::Text((*text).to_owned()));
        }
    }

    /// Those of the keys that have a value, with that value as in the plan.
    pub(crate) fn given<'k>(&'k self, keys: &'k [&str]) -> impl Iterator<Item = (String, String)> + 'k {
        keys.iter().filter_map(|key| Some(((*key).to_owned(), self.get(key)?.plain())))
    }

    /// The text of `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        if let Some(OptionValue::Text(text)) = self.get(key) { Some(text) } else { None }
    }

    /// Texts of `key`; a single text is a list of one, an absent key an empty list.
    pub fn texts(&self, key: &str) -> Vec<String> {
        match self.get(key) {
            Some(OptionValue::List(items)) => items.iter().map(OptionValue::plain).collect(),
            Some(value) => vec![value.plain()],
            None => Vec::new(),
        }
    }

    /// The whole number of `key`.
    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        if let Some(OptionValue::Integer(i)) = self.get(key) { Some(*i) } else { None }
    }

    /// The number of `key`.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key) {
            Some(OptionValue::Integer(i)) => Some(*i as f64),
            Some(OptionValue::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// The flag `key`.
    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        if let Some(OptionValue::Boolean(b)) = self.get(key) { Some(*b) } else { None }
    }

    /// Size of `key`. The plan has checked that it parses.
    pub fn size(&self, key: &str) -> Option<Bytes> {
        self.text(key).and_then(|text| Bytes::parse(text).ok())
    }

    /// Table of `key`; empty if absent.
    pub fn table(&self, key: &str) -> Options {
        if let Some(OptionValue::Map(pairs)) = self.get(key) { Options(pairs.clone()) } else { Options::default() }
    }

    /// Time span of `key`, if set.
    ///
    /// # Errors
    /// If it cannot be parsed.
    pub(crate) fn checked_span(&self, key: &str) -> Result<Option<Micros>, OptionProblem> {
        self.text(key).map(|text| Micros::parse(text).map_err(|message| OptionProblem::at(key, message))).transpose()
    }

    /// The same, which must not be zero.
    pub(crate) fn positive_span(&self, key: &str) -> Result<Option<Micros>, OptionProblem> {
        match self.checked_span(key)? {
            Some(Micros(0)) => Err(OptionProblem::at(key, "must be greater than 0")),
            span => Ok(span),
        }
    }

    /// Time span of `key`. The plan has checked that it parses.
    pub fn span(&self, key: &str) -> Option<Micros> {
        self.text(key).and_then(|text| Micros::parse(text).ok())
    }
}
