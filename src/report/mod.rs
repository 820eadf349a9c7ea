//! Renders findings as pages, tables, JSON. Knows neither records nor the computation of numbers.
//!
//! A renderer is one file and one entry in [`ALL`]. Content that several of them show (rankings, latencies, strata,
//! ...) is put into tables once, by `rankings`, `cases`, `latencies`, `backend_time`, `trials` and `environment`; the
//! wording is in `words`.

mod ageing;
mod backend_time;
mod capacity;
mod cases;
pub(crate) mod compare;
mod counters;
mod csv;
mod device_work;
mod devices;
mod differences;
mod disk;
mod drives;
mod effects;
mod embed;
mod environment;
pub(crate) mod fleet;
mod full;
pub(crate) mod json;
mod labelled;
mod latencies;
pub mod layout;
pub(crate) mod limits;
mod markdown;
mod merged;
mod openmetrics;
pub(crate) mod page;
pub(crate) mod power_cuts;
pub(crate) mod probe;
mod rankings;
mod section_titles;
pub(crate) mod serve;
mod sheet;
pub(crate) mod shelf;
mod snapshots;
mod stages;
mod table;
pub mod terminal;
pub mod text;
mod trials;
mod windows;
mod words;

use crate::analyse::findings::Findings;
use crate::error::{Context, Result};
use std::io::Write;

pub const ALL: &[&dyn Renderer] =
    &[&page::Page, &terminal::Terminal, &json::Json, &csv::Csv, &markdown::Markdown, &openmetrics::OpenMetrics];

/// A format of reports.
pub trait Renderer: Sync {
    /// File extension and name for `--format`: `html`, `json`, `txt`, `csv`, `md`, `openmetrics`.
    fn extension(&self) -> &'static str;
    /// The report in this form.
    ///
    /// # Errors
    /// When it cannot be made.
    fn text(&self, findings: &Findings) -> Result<String>;

    /// Writes the report.
    ///
    /// # Errors
    /// When it cannot be made or written.
    fn render(&self, findings: &Findings, out: &mut dyn Write) -> Result<()> {
        out.write_all(self.text(findings)?.as_bytes()).or_host(|| "write the report".to_owned())
    }
}
