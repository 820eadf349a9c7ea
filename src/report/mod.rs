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
pub(crate) mod cut;
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
mod profiled;
mod rankings;
mod section_titles;
pub(crate) mod serve;
mod sheet;
pub(crate) mod shelf;
mod snapshots;
mod stages;
mod table;
mod template;
pub mod terminal;
pub mod text;
mod trials;
mod windows;
mod words;

use crate::analyse::findings::Findings;
use crate::error::Result;

pub const ALL: &[Renderer] = &[
    Renderer { extension: "html", text: |findings| page::page(findings, None, None) },
    Renderer { extension: "txt", text: |findings| Ok(terminal::page(findings)) },
    Renderer { extension: "json", text: json::document },
    Renderer { extension: "csv", text: |findings| Ok(csv::measures(findings).to_csv()) },
    Renderer { extension: "md", text: |findings| Ok(markdown::page(findings)) },
    Renderer { extension: "openmetrics", text: |findings| Ok(openmetrics::samples(findings)) },
];

/// A format of reports.
pub struct Renderer {
    /// File extension, and name for `--format`.
    pub extension: &'static str,
    /// The report in this form, or why it cannot be made.
    pub text: fn(&Findings) -> Result<String>,
}
