//! Summary of a case: its facts and main figures.

use super::findings::{MainFigure, PublishedCase};
use crate::analyse::imported::select::{rows, synced, tps};
use crate::record::imported::ImportedCase;

/// Summary of a case.
pub(super) fn case(case: &ImportedCase) -> PublishedCase {
    let mut tools: Vec<String> = Vec::new();
    for output in case.trials.iter().flat_map(|trial| &trial.outputs) {
        if !tools.contains(&output.tool) {
            tools.push(output.tool.clone());
        }
    }
    PublishedCase {
        name: case.name.clone(),
        facts: case.facts.clone(),
        trials: case.trials.iter().filter(|trial| !trial.outputs.is_empty()).count(),
        tools,
        figures: rows(case).map(|found| found.row.figures.len()).sum(),
        main: main_figures(case),
        caveats: case.caveats.clone(),
    }
}

/// Transactions per second, and the rate of each sync method with one write; means over the trials.
fn main_figures(case: &ImportedCase) -> Vec<MainFigure> {
    let mut found: Vec<(MainFigure, usize)> = Vec::new();
    let mut add = |name: &str, unit: &str, value: f64| match found.iter_mut().find(|(it, _)| it.name == name) {
        Some((figure, count)) => {
            *count += 1;
            figure.value += (value - figure.value) / *count as f64;
        }
        None => found.push((MainFigure { name: name.to_owned(), unit: unit.to_owned(), value }, 1)),
    };
    for row in rows(case) {
        if let Some(tps) = tps(&row) {
            add("tps", &tps.unit, tps.value);
        }
    }
    for (_, method, rate) in synced(rows(case), "one write") {
        add(method, "ops/s", rate);
    }
    found.into_iter().map(|(figure, _)| figure).collect()
}
