//! Table of a page without a script; its CSV is a data URL.

use super::table::Table;
use super::template::{self, STYLE, sum};
use crate::error::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use minijinja::{Value, context};

/// The macro `sheet(s)`, which needs the table's macro before it.
const MACRO: &str = concat!(include_str!("html/table.html"), include_str!("html/sheet.html"));

/// Renders a page without a script: `own` are its template's values, in addition to `policy`, `style` and `home`, the
/// address of a server's list of runs.
///
/// # Errors
/// A bug: a template that does not render.
pub(super) fn render(what: &str, template: &str, own_style: &str, home: Option<&str>, own: Value) -> Result<String> {
    let style = format!("{STYLE}{own_style}");
    let policy = format!("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'", sum(&style));
    template::render(what, &format!("{MACRO}{template}"), &context! { policy, style, home, ..own })
}

/// A table for that macro; the file is named `page-TABLE.csv`.
pub(super) fn sheet(page: &str, table: &Table) -> Value {
    let csv = format!("data:text/csv;base64,{}", STANDARD.encode(table.to_csv()));
    context! { table, file => format!("{page}-{}.csv", table.id), csv }
}
