//! Results beside the runs: power cuts, imports, and files that `probe` and `compare` wrote.

use super::{HOME, PLAIN, encoded};
use crate::analyse::compare::findings::ComparisonFindings;
use crate::analyse::probe::findings::ProbeFindings;
use crate::analyse::run::power_cuts;
use crate::cli::out;
use crate::error::Result;
use crate::host::time::{micros, rfc3339};
use crate::report;
use crate::report::serve::RunRow;
use crate::serve::Response;
use crate::store;
use crate::store::import::ImportFolder;
use crate::store::results::Results;
use serde::Deserialize;
use std::time::SystemTime;

/// Lines of a probe's head that are its answer.
const ANSWER_LINES: usize = 3;

/// A page, made when it is asked for.
type Page = Box<dyn FnOnce() -> Result<Response>>;

/// Rows with all of these words, newest first.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn rows(results: &Results, words: &[String]) -> Result<Vec<RunRow>> {
    let mut rows: Vec<RunRow> = Vec::new();
    for name in results.others()? {
        match shown(results, &name) {
            Ok(found) => rows.extend(found.map(|(row, _)| row)),
            Err(error) => rows.push(RunRow { problem: Some(error.chain()), ..RunRow::named(&name, encoded(&name)) }),
        }
    }
    rows.retain(|row| {
        let answer = row.answer.as_deref().unwrap_or_default();
        let text = format!("{} {} {answer}", row.name, row.plan).to_lowercase();
        words.iter().all(|word| text.contains(word))
    });
    rows.sort_by(|a, b| (&b.started, &b.name).cmp(&(&a.started, &a.name)));
    Ok(rows)
}

/// The page of a result; `None` if there is none.
///
/// # Errors
/// If it is damaged.
pub(super) fn page(results: &Results, name: &str) -> Result<Option<Response>> {
    shown(results, name)?.map(|(_, page)| page()).transpose()
}

fn shown(results: &Results, name: &str) -> Result<Option<(RunRow, Page)>> {
    let Some(path) = results.other(name) else { return Ok(None) };
    if ImportFolder::is_one(&path) {
        let record = ImportFolder::open(&path)?.record().clone();
        let names = record.cases.iter().map(|case| case.name.as_str());
        let answer = record.origin.title.clone().unwrap_or_else(|| names.collect::<Vec<_>>().join(", "));
        let row = row(name, "import", answer, record.imported.clone());
        return Ok(Some((row, Box::new(move || Ok(Response::new("application/json", out::json_line(&record)?))))));
    }
    if path.is_dir() {
        return Ok(store::cut::read(&path)?.map(power_cuts::of_plan).map(|found| {
            let row = row(name, "power cut", found.answer.clone(), found.record.made.clone());
            (row, Box::new(move || Ok(Response::page(report::cut::page(&found, Some(HOME))?))) as Page)
        }));
    }
    let is_named = path.extension().is_some_and(|end| end == "json" || end == "html");
    let text = results.text(name).filter(|_| is_named);
    Ok(text.and_then(|(text, written)| {
        of_text(name, text, rfc3339(written.duration_since(SystemTime::UNIX_EPOCH).map_or(0, micros)))
    }))
}

fn row(name: &str, kind: &str, answer: String, made: String) -> RunRow {
    RunRow { plan: kind.to_owned(), answer: Some(answer), started: made, ..RunRow::named(name, encoded(name)) }
}

/// A text that one of our commands printed.
fn of_text(name: &str, text: String, written: String) -> Option<(RunRow, Page)> {
    /// What `probe --json` prints, as far as it is shown.
    #[derive(Deserialize)]
    struct ProbeDocument {
        findings: ProbeFindings,
    }
    if text.contains("name=\"generator\" content=\"pgstrata") && !text.contains("<script") {
        let row = row(name, "page", heading(&text), written);
        return Some((row, Box::new(|| Ok(Response::stored(text)))));
    }
    if let Ok(ProbeDocument { findings }) = serde_json::from_str(&text) {
        let text = report::probe::terminal(&findings, &[]);
        let words = text.lines().take(ANSWER_LINES).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let row = row(name, "probe", words.collect::<Vec<_>>().join("; "), findings.started);
        return Some((row, Box::new(|| Ok(Response::new(PLAIN, text)))));
    }
    let found: ComparisonFindings = serde_json::from_str(&text).ok()?;
    let row = row(name, "comparison", found.answer.lines().next().unwrap_or_default().to_owned(), written);
    Some((row, Box::new(move || Ok(Response::page(report::compare::page(&found, Some(HOME))?)))))
}

/// The heading of a page, as text.
fn heading(page: &str) -> String {
    let found = page.split_once("<h1>").and_then(|(_, rest)| rest.split_once("</h1>"));
    let text = found.map_or("", |(heading, _)| heading);
    let signs = [("&lt;", "<"), ("&gt;", ">"), ("&#x27;", "'"), ("&quot;", "\""), ("&#x2f;", "/"), ("&amp;", "&")];
    signs.iter().fold(text.to_owned(), |text, (code, sign)| text.replace(code, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heading_of_a_page_is_read_as_text() {
        assert_eq!(heading("<main><h1>a &lt;b&gt; 1&#x2f;s &amp;lt;</h1><h1>c</h1>"), "a <b> 1/s &lt;");
        assert_eq!(heading("<main>"), "");
    }

    #[test]
    fn a_file_of_others_is_no_result() {
        for text in ["", "{}", "[1]", "<html><h1>x</h1>", "{\"findings\": {}}"] {
            assert!(of_text("x", text.to_owned(), String::new()).is_none(), "{text}");
        }
        let page = "<meta name=\"generator\" content=\"pgstrata 1\"><h1>x</h1>";
        assert!(of_text("x", page.to_owned(), String::new()).is_some());
        assert!(of_text("x", format!("{page}<script>"), String::new()).is_none());
    }
}
