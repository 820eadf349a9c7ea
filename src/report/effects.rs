//! Effects of the options of a plan that were varied together.

use super::table::{Cell, Table, TableColumn};
use super::words::{estimate_text, fields};
use crate::analyse::findings::{Effects, OptionEffect, PairOutcome, names};
use crate::units::count;

/// A group for each factorial, a row for each level that is not the reference.
pub(super) fn effects_table(effects: &[Effects]) -> Table {
    let columns = vec![
        TableColumn::text("Effect of").csv(&["axis", "level"]),
        TableColumn::text("Instead of").csv(&["reference"]),
        TableColumn::number("Ratio", "").csv(&["ratio", "ratio_low", "ratio_high"]),
        TableColumn::text("Outcome").csv(&["outcome", "at"]),
        TableColumn::number("Pairs", "").csv(&["pairs"]),
    ];
    let note = "Geometric mean over all pairs of trials that differ in this option alone. All intervals of a group hold \
                together with 95 %. An effect that depends on another option is shown at each of its levels; other loads are \
                not judged.";
    let mut table = Table::new("effects", "Effect of each option", columns).lead(&["figure"]).note(note);
    for found in effects.iter().filter(|found| !found.options.is_empty()) {
        let design = format!("{} combinations in {}", found.combinations, count(found.blocks, "block"));
        table.open_group(Some(found.title.clone()), Some(design), vec![found.title.clone()]);
        found.options.iter().for_each(|option| table.push(row(option)));
    }
    table
}

fn row(option: &OptionEffect) -> Vec<Cell> {
    let (ratio, interval) = estimate_text(&option.ratio);
    let words = option.outcome.map_or_else(|| "another load".to_owned(), PairOutcome::words);
    let said = option.at.as_ref().map_or_else(|| words.clone(), |at| format!("depends: {words} at {at}"));
    let durability = if option.differs_in_durability { "; durability differs" } else { "" };
    vec![
        Cell::text(names::of_axis(&option.axis, &option.level)).csv(vec![option.axis.clone(), option.level.clone()]),
        Cell::text(&option.reference),
        Cell::text(format!("{ratio}×")).aside(interval).csv(fields(Some(&option.ratio))),
        Cell::text(format!("{said}{durability}")).csv(vec![words, option.at.clone().unwrap_or_default()]),
        Cell::number(Some(option.pairs), |pairs| pairs.to_string()),
    ]
}
