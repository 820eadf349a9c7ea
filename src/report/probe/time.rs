//! Times of a probe in prose.

use crate::report::probe::numbers::span;

/// A time as prose has it: `1.5 ms`.
pub(crate) fn spoken(ns: u64) -> String {
    let text = span(ns);
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).filter(|unit| *unit > 0);
    unit.map_or_else(|| text.clone(), |unit| format!("{} {}", &text[..unit], &text[unit..]))
}
