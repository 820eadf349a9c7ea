//! `pgstrata report`: recomputes the findings of a run folder and renders them.

use super::commands::with_scripts;
use super::out;
use super::page::to_file;
use crate::analyse;
use crate::analyse::findings::Findings;
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::report::{self, text};
use crate::store::import::ImportFolder;
use std::path::{Path, PathBuf};

/// Recompute and render the report of a run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pgstrata report results/2026-11-21-0241-which-filesystem         the first screen here, report.html in the folder
  pgstrata report results/... --full                               every caveat, and more tables on the terminal
  pgstrata report results/... --json | jq .rankings                the findings as JSON
  pgstrata report results/... --csv -o ranking.csv                 one row per case and metric
  pgstrata report results/... --format md                          Markdown for a ticket: answer, tables, conditions
  pgstrata report results/... --format openmetrics                 findings and seconds for Prometheus

Works anywhere, without root or PostgreSQL: every number comes from the run folder.")]
pub struct Args {
    /// Run folder
    folder: PathBuf,
    /// Output format
    #[arg(long, value_parser = ["txt", "html", "json", "csv", "md", "openmetrics"])]
    format: Option<String>,
    /// Same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Same as --format csv
    #[arg(long, conflicts_with_all = ["format", "json"])]
    csv: bool,
    /// Print every caveat and more tables, as --format txt does, and write report.html, which has all of them
    #[arg(long, conflicts_with_all = ["format", "json", "csv", "output"])]
    full: bool,
    /// Write to this file instead of standard output (for html: instead of report.html in the run folder)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Renders.
///
/// # Errors
/// If the folder is not a run folder, is damaged, or a file cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    if ImportFolder::is_one(&args.folder) {
        return Err(Error::user(format!("{} is an import, and imports have no report", args.folder.display()))
            .hint("compare it with other results: pgstrata compare FOLDER ."));
    }
    let findings = with_scripts(&args.folder)?;
    let format = match (args.json, args.csv) {
        (true, _) => Some("json"),
        (_, true) => Some("csv"),
        (false, false) => args.format.as_deref(),
    };
    match (format, &args.output) {
        (Some(format), Some(path)) => to_file(path, &render(&findings, format)?)?,
        (Some("html"), None) => write_html(&findings, &args.folder)?,
        (Some(format), None) => print(&findings, format)?,
        (None, Some(path)) => to_file(path, &render(&findings, format_of(path)?)?)?,
        (None, None) => {
            if args.full { print(&findings, "txt") } else { print_first_screen(&findings, &args.folder) }?;
            write_html(&findings, &args.folder)?;
        }
    }
    Ok(0)
}

fn write_html(findings: &Findings, folder: &Path) -> Result<()> {
    let elsewhere = "write it somewhere else: pgstrata report FOLDER -o report.html";
    let path = write_in(folder, findings).map_err(|e| e.hint(elsewhere))?;
    out::line(&format!("\nreport      {}", path.display()))
}

/// Writes the analysis into a run folder, the page and the table of trials; returns the path of the page.
///
/// # Errors
/// With the path.
pub(super) fn write_in(folder: &Path, findings: &Findings) -> Result<PathBuf> {
    let path = folder.join("report.html");
    let whole = std::path::absolute(&path).or_user(|| format!("find {}", path.display()))?;
    files::write_whole(&whole, render(findings, "html")?.as_bytes())?;
    analyse::trial_table::write(folder, findings)?;
    Ok(path)
}

/// Format implied by a file name.
fn format_of(path: &Path) -> Result<&'static str> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    report::ALL.iter().map(|renderer| renderer.extension).find(|name| *name == extension).ok_or_else(|| {
        Error::user(format!("the file name {} does not show which format to write", path.display()))
            .hint("use .html, .json, .csv, .md, .openmetrics or .txt, or add --format")
    })
}

fn render(findings: &Findings, format: &str) -> Result<String> {
    let renderer = report::ALL.iter().find(|renderer| renderer.extension == format);
    let renderer = renderer.ok_or_else(|| Error::bug(format!("no renderer for {format}")))?;
    (renderer.text)(findings)
}

/// Prints the first screen, with the answer first.
///
/// # Errors
/// If standard output cannot be written.
pub fn print_first_screen(findings: &Findings, folder: &Path) -> Result<()> {
    out::fitted(|| report::terminal::first_screen(findings, folder))
}

fn print(findings: &Findings, format: &str) -> Result<()> {
    out::bytes(text::at_width(out::width(), || render(findings, format))?.as_bytes())
}
