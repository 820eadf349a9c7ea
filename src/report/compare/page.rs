//! Page of a comparison: one file that opens from disk, needs no network and no script, and uses the report's style
//! sheet.

use super::super::sheet::{self, sheet};
use super::tables::{facts_table, grouped, known_of, pair_table, refused_table, sides_table};
use crate::analyse::compare::findings::ComparisonFindings;
use crate::error::Result;
use minijinja::{Value, context};

const TEMPLATE: &str = include_str!("page.html");
/// Additions to the report's style sheet.
const OWN_STYLE: &str = include_str!("page.css");

/// Renders the page; on a server, `home` links to its list of runs.
///
/// # Errors
/// A bug: a template that does not render.
pub fn page(findings: &ComparisonFindings, home: Option<&str>) -> Result<String> {
    let compared = findings.pairs.iter().flat_map(|pair| &pair.rows).filter(|row| row.comparison.is_some());
    let of_sides = findings.sides.iter().flat_map(|side| side.caveats.iter().map(|text| (&*side.mark, text.clone())));
    let caveats = findings.caveats.iter().map(|text| (format!("{text}."), String::new()));
    let caveats: Vec<(String, String)> = caveats.chain(grouped(of_sides)).collect();
    let left_out = findings.sides.iter().filter(|side| !side.left_out.is_empty());
    let left_out = grouped(left_out.map(|side| (side.mark.as_str(), side.left_out.join(", "))));
    let own = context! {
            version => findings.compared_by,
            answer => findings.answer.lines().collect::<Vec<_>>(),
            labels => findings.sides.iter().map(|side| side.label.clone()).collect::<Vec<_>>(),
            compared => compared.count(),
            refused_count => findings.refused.len(),
            differing => findings.facts_that_differ.len(),
            caveats => caveats,
            left_out => left_out,
            pairs => pairs(findings),
            sides => sheet("compare", &sides_table(findings)),
            refused => sheet("compare", &refused_table(findings)),
            facts => sheet("compare", &facts_table(findings, "facts", "Facts that differ", &findings.facts_that_differ)),
            known_of => known_of(findings).into_iter().map(|(who, keys)| (who, keys.join(", "))).collect::<Vec<_>>(),
    };
    sheet::render("a comparison", TEMPLATE, OWN_STYLE, home, own)
}

fn pairs(findings: &ComparisonFindings) -> Vec<Value> {
    let shown = findings.pairs.iter().enumerate().filter(|(_, pair)| !pair.rows.is_empty());
    let views = shown.map(|(index, pair)| {
        let table = pair_table(findings, index, pair);
        let marks = [pair.side, pair.against].map(|place| findings.sides[place].mark.as_str()).join(" / ");
        let labels = [pair.side, pair.against].map(|place| &findings.sides[place].label);
        let title = format!("{marks}: {} against {}", labels[0], labels[1]);
        context! { title, caveat => pair.caveat, sheet => sheet("compare", &table) }
    });
    views.collect()
}
