//! The page of a comparison: one file that opens from disk, needs no network and no script, in the report's style sheet.

use super::super::page::{STYLE, sum};
use super::super::sheet::{MACRO, Sheet};
use super::super::words::write_visible;
use super::tables::{facts_table, grouped, known_of, pair_table, refused_table, sides_table};
use crate::analyse::compare::findings::ComparisonFindings;
use crate::error::{Error, Result};
use minijinja::{Environment, context};
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");
/// What this page has beyond the report's style sheet.
const OWN_STYLE: &str = include_str!("page.css");

#[derive(Serialize)]
struct PairView {
    title: String,
    caveat: Option<String>,
    sheet: Sheet,
}

/// The page; a server's has a link to its list of runs.
///
/// # Errors
/// A bug: a template that does not render.
pub fn page(findings: &ComparisonFindings, home: Option<&str>) -> Result<String> {
    let bug = |e: minijinja::Error| Error::bug(format!("the comparison's template does not render: {e:#}"));
    let text = format!("{MACRO}{TEMPLATE}");
    let mut environment = Environment::new();
    environment.add_filter("json", |value: minijinja::Value| serde_json::to_string(&value).unwrap_or_default());
    environment.set_formatter(write_visible);
    environment.add_template("page.html", &text).map_err(bug)?;
    let style = format!("{STYLE}{OWN_STYLE}");
    let rows = || findings.pairs.iter().flat_map(|pair| &pair.rows);
    let of_sides = findings.sides.iter().flat_map(|side| side.caveats.iter().map(|text| (&*side.mark, text.clone())));
    let caveats = findings.caveats.iter().map(|text| (format!("{text}."), String::new()));
    let caveats: Vec<(String, String)> = caveats.chain(grouped(of_sides)).collect();
    let left_out = findings.sides.iter().filter(|side| !side.left_out.is_empty());
    let left_out = grouped(left_out.map(|side| (side.mark.as_str(), side.left_out.join(", "))));
    let template = environment.get_template("page.html").map_err(bug)?;
    template
        .render(context! {
            policy => format!("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'", sum(&style)),
            style => style,
            home => home,
            version => findings.compared_by,
            answer => findings.answer.lines().collect::<Vec<_>>(),
            labels => findings.sides.iter().map(|side| side.label.clone()).collect::<Vec<_>>(),
            compared => rows().filter(|row| row.comparison.is_some()).count(),
            refused_count => findings.refused.len(),
            differing => findings.facts_that_differ.len(),
            caveats => caveats,
            left_out => left_out,
            pairs => pairs(findings),
            sides => Sheet::of("compare", sides_table(findings)),
            refused => Sheet::of("compare", refused_table(findings)),
            facts => Sheet::of("compare", facts_table(findings, "facts", "Facts that differ", &findings.facts_that_differ)),
            known_of => known_of(findings).into_iter().map(|(who, keys)| (who, keys.join(", "))).collect::<Vec<_>>(),
        })
        .map_err(bug)
}

fn pairs(findings: &ComparisonFindings) -> Vec<PairView> {
    let shown = findings.pairs.iter().enumerate().filter(|(_, pair)| !pair.rows.is_empty());
    let view = |(index, pair)| {
        let table = pair_table(findings, index, pair);
        let marks = [pair.side, pair.against].map(|place| findings.sides[place].mark.as_str()).join(" / ");
        let labels = [pair.side, pair.against].map(|place| &findings.sides[place].label);
        PairView {
            title: format!("{marks}: {} against {}", labels[0], labels[1]),
            caveat: pair.caveat.clone(),
            sheet: Sheet::of("compare", table),
        }
    };
    shown.map(view).collect()
}
