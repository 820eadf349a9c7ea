//! The sample with hostile text in place of whatever comes from outside.

use crate::report::sample;
use pgstrata::analyse::findings::{Findings, StackByHand};

/// A name that breaks out of whatever does not escape it: elements, attributes, scripts, terminals, CSV.
pub const HOSTILE: &str =
    "</script><img src=x onerror=\"window.hacked=1\">'\"`{{7*7}}{b|c}\u{1b}[2J\u{202e}\u{2028},;\n=1+1 \u{9b}31m&amp;";

/// The sample with every text that comes from outside replaced by, or ended with, something hostile; a long name has no blank.
pub fn hostile() -> Findings {
    let plain = sample::findings();
    let mut value = serde_json::to_value(&plain).unwrap();
    spoil(&mut value, "");
    let mut spoiled: Findings = serde_json::from_value(value).unwrap();
    spoiled.by_hand = plain.by_hand.iter().map(spoiled_script).collect();
    spoiled.run.name = format!("{HOSTILE}{}", "x".repeat(300));
    spoiled
}

/// Scripts are in no document of JSON.
fn spoiled_script(StackByHand { stack, case, script }: &StackByHand) -> StackByHand {
    let spoiled = |text: &String| format!("{text}{HOSTILE}");
    let script = script.as_ref().map(spoiled).map_err(spoiled);
    StackByHand { stack: spoiled(stack), case: spoiled(case), script }
}

/// The hostile text in a page or a CSV: what drives a terminal, reorders or hides stands there as its code.
pub fn shown(text: &str) -> String {
    let hidden = [('\u{1b}', "{U+001B}"), ('\u{9b}', "{U+009B}"), ('\u{202e}', "{U+202E}"), ('\u{2028}', "{U+2028}")];
    hidden.iter().fold(text.to_owned(), |text, (c, code)| text.replace(*c, code))
}

/// Ends every string with the hostile text, but for words of our own (enums), which could not hold it. Keys of maps
/// stay: `clients` decides which charts there are.
fn spoil(value: &mut serde_json::Value, key: &str) {
    match value {
        serde_json::Value::String(text) => {
            let is_word = matches!(
                key,
                "class"
                    | "by"
                    | "kind"
                    | "step"
                    | "fits"
                    | "write_cache"
                    | "role"
                    | "claim"
                    | "verdict"
                    | "outcome"
                    | "counter"
            ) && !text.contains(' ');
            let is_wait_class = key == "class" && !["flushed", "volatile"].contains(&text.as_str());
            if key != "clients" && (!is_word || is_wait_class) {
                text.push_str(HOSTILE);
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| spoil(item, key)),
        serde_json::Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| spoil(field, name)),
        _ => {}
    }
}
