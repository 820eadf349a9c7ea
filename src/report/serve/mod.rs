//! Pages of `pgstrata serve`: the list of runs, a run in progress, a refusal. They contain no inline script or style,
//! so that the server can forbid both; names are escaped as everywhere.

use super::template::{self, STYLE};
use crate::error::Result;
use minijinja::{Value, context};
use serde::Serialize;

const LIST: &str = concat!(include_str!("head.html"), include_str!("list.html"), include_str!("foot.html"));
const LIVE: &str = concat!(include_str!("head.html"), include_str!("live.html"), include_str!("foot.html"));
const MESSAGE: &str = concat!(include_str!("head.html"), include_str!("message.html"), include_str!("foot.html"));

/// Address of the script for a run in progress.
const LIVE_ADDRESS: &str = "/assets/live.js";
pub const LIVE_SCRIPT: &str = include_str!("live.js");

/// Icon of all pages: three strata.
pub const ICON: &str = include_str!("icon.svg");

/// The style sheet of reports, with these pages' additions.
pub fn style() -> String {
    format!("{STYLE}{}", include_str!("style.css"))
}

#[derive(Debug, Serialize)]
pub struct ListView {
    pub folder: String,
    /// Search text.
    pub query: String,
    /// The run chosen for a comparison: its name, and its name encoded for a URL.
    pub first: Option<(String, String)>,
    pub rows: Vec<RunRow>,
    /// Results that are no runs, newest first.
    pub others: Vec<RunRow>,
    /// Plans with several runs, whose hosts can be compared.
    pub fleets: Vec<FleetLink>,
    /// Number of runs in the folder, and of those that match.
    pub all: usize,
    pub found: usize,
    /// Address of the next page.
    pub more: Option<String>,
}

/// Link to the comparison of the hosts of a plan's runs.
#[derive(Debug, Serialize)]
pub struct FleetLink {
    pub plan: String,
    pub runs: usize,
    pub address: String,
}

/// A run in the list, or another result.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunRow {
    pub name: String,
    /// Its name, encoded for a URL.
    pub address: String,
    /// Name of the plan; of another result its kind.
    pub plan: String,
    /// Start time, RFC 3339.
    pub started: String,
    pub hosts: String,
    pub stacks: String,
    /// Its answer; `None` if it is not computed yet.
    pub answer: Option<String>,
    /// `running`, `complete`, ...; also its class in the style sheet.
    pub state: String,
    pub measured: usize,
    pub trials: usize,
    /// Reason why it cannot be shown.
    pub problem: Option<String>,
}

impl RunRow {
    /// A row with nothing but a name and its address.
    pub fn named(name: &str, address: String) -> RunRow {
        RunRow { name: name.to_owned(), address, ..RunRow::default() }
    }
}

/// A run in progress: first content of its page, then requested again as JSON.
#[derive(Debug, Serialize)]
pub struct LiveView {
    pub name: String,
    pub address: String,
    pub plan: String,
    pub state: String,
    pub is_live: bool,
    pub measured: usize,
    pub trials: usize,
    pub not_run: usize,
    pub now: String,
    pub left: String,
    pub last: String,
    pub warnings: Vec<String>,
}

/// The page of the list.
///
/// # Errors
/// A bug: a template that does not render.
pub fn list(view: &ListView) -> Result<String> {
    render("Runs", LIST, None, &Value::from_serialize(view))
}

/// The page of a run in progress.
///
/// # Errors
/// A bug: a template that does not render.
pub fn live(view: &LiveView) -> Result<String> {
    render(&view.name, LIVE, Some(LIVE_ADDRESS), &Value::from_serialize(view))
}

/// A page with only a message.
///
/// # Errors
/// A bug: a template that does not render.
pub fn message(title: &str, text: &str, hint: Option<&str>) -> Result<String> {
    render(title, MESSAGE, None, &context! { text => text, hint => hint })
}

fn render(title: &str, template: &str, script: Option<&str>, view: &Value) -> Result<String> {
    let values = context! { title, script, version => env!("CARGO_PKG_VERSION"), view };
    template::render("a page of the server", template, &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_contain_no_script_or_style_and_names_are_escaped() {
        let hostile = "<script>x</script>\"'\u{202e}";
        let row = RunRow {
            name: hostile.to_owned(),
            address: "a".to_owned(),
            plan: hostile.to_owned(),
            started: hostile.to_owned(),
            hosts: hostile.to_owned(),
            stacks: hostile.to_owned(),
            answer: Some(hostile.to_owned()),
            state: "complete".to_owned(),
            measured: 1,
            trials: 2,
            problem: None,
        };
        let view = ListView {
            folder: hostile.to_owned(),
            query: hostile.to_owned(),
            first: Some((hostile.to_owned(), "b".to_owned())),
            rows: vec![row],
            others: vec![RunRow { name: hostile.to_owned(), answer: Some(hostile.to_owned()), ..RunRow::default() }],
            fleets: vec![FleetLink { plan: hostile.to_owned(), runs: 2, address: "/fleet".to_owned() }],
            all: 2,
            found: 1,
            more: Some("/?from=1".to_owned()),
        };
        let pages = [list(&view).unwrap(), message(hostile, hostile, Some(hostile)).unwrap()];
        for page in pages {
            assert!(!page.contains("<script") && !page.contains("<style") && !page.contains(" style="), "{page}");
            assert!(page.contains("&lt;script&gt;") && !page.contains('\u{202e}'), "{page}");
        }
    }

    #[test]
    fn an_ongoing_run_is_readable_without_scripts() {
        let view = LiveView {
            name: "run".to_owned(),
            address: "run".to_owned(),
            plan: "which".to_owned(),
            state: "running".to_owned(),
            is_live: true,
            measured: 3,
            trials: 9,
            not_run: 0,
            now: "ext4 #2, measuring".to_owned(),
            left: "2 min".to_owned(),
            last: "\u{2013}".to_owned(),
            warnings: vec!["<b>".to_owned()],
        };
        let page = live(&view).unwrap();
        for part in [
            "value=\"3\" max=\"9\"",
            "ext4 #2, measuring",
            "<li>&lt;b&gt;</li>",
            "<script src=\"/assets/live.js\" defer>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
