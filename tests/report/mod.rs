//! The report as people get it: the page in a real browser, the text in a terminal, CSV and JSON in a program.

mod ageing;
mod chromium;
mod effects;
mod facts;
mod first_screens;
mod foreign;
mod hostile;
mod layout;
mod live;
mod openmetrics;
mod over_time;
mod over_time_page;
mod page;
mod runs;
mod sample;
mod section_titles;
mod serve;
mod stored_runs;
mod text;
mod verdicts;
mod windows;

use pgstrata::analyse::findings::Findings;
use pgstrata::report::ALL;

/// A report in the form with this extension.
fn rendered(extension: &str, findings: &Findings) -> String {
    let renderer = ALL.iter().find(|renderer| renderer.extension == extension).unwrap();
    (renderer.text)(findings).unwrap()
}
