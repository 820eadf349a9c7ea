//! Findings to pages, tables, JSON. Knows neither records nor how a number came about.

use crate::analyse::findings::Findings;
use crate::error::Result;
use std::io::Write;

/// Every renderer.
pub const ALL: &[&dyn Renderer] = &[];

/// One form of a report.
pub trait Renderer: Sync {
    /// File extension and name for `--format`: `html`, `json`, `txt`.
    fn extension(&self) -> &'static str;
    /// Writes the report.
    ///
    /// # Errors
    /// When the writer fails.
    fn render(&self, findings: &Findings, out: &mut dyn Write) -> Result<()>;
}
