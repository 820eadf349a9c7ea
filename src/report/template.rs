//! HTML from templates, and what every page has: the style sheet, and texts in which hidden characters are seen.

use super::words::{is_hidden, moment, visible};
use crate::error::{Error, Result};
use crate::units::grouped;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use minijinja::{Environment, Output, State, Value};
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

pub(super) const STYLE: &str = include_str!("html/page.css");

/// Renders the template of `what` with these values.
///
/// # Errors
/// A bug: a template that does not render.
pub(super) fn render(what: &str, template: &str, values: &Value) -> Result<String> {
    let mut environment = Environment::new();
    environment.add_filter("json", |value: Value| visible_json(&value).unwrap_or_default());
    environment.add_filter("moment", |started: &str| moment(started));
    environment.add_filter("grouped", grouped);
    environment.add_filter("unbroken", |text: &str| text.replace(" %", "\u{a0}%"));
    environment.set_formatter(write_visible);
    environment
        .add_template("page.html", template)
        .and_then(|()| environment.get_template("page.html")?.render(values))
        .map_err(|e| Error::bug(format!("the template of {what} does not render: {e:#}")))
}

/// SHA-256 in base64, as used in content security policies.
pub(super) fn sum(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// JSON for a page, with [`visible`] texts.
pub(super) fn visible_json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut json = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut json, VisibleJson))?;
    String::from_utf8(json).map_err(serde::ser::Error::custom)
}

struct VisibleJson;

impl Formatter for VisibleJson {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        out.write_all(visible(fragment).as_bytes())
    }

    fn write_char_escape<W: Write + ?Sized>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::AsciiControl(byte) => write!(out, "{{U+{byte:04X}}}"),
            CharEscape::Backspace => out.write_all(b"{U+0008}"),
            CharEscape::FormFeed => out.write_all(b"{U+000C}"),
            escape => CompactFormatter.write_char_escape(out, escape),
        }
    }
}

/// Writes a value into a page: escaped, and [`visible`] unless it is our own markup.
///
/// # Errors
/// If writing fails.
fn write_visible(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    match value.as_str().filter(|text| !value.is_safe() && text.contains(is_hidden)) {
        Some(text) => minijinja::escape_formatter(out, state, &Value::from(visible(text).into_owned())),
        None => minijinja::escape_formatter(out, state, value),
    }
}
