//! Numbers of bounded width.

use crate::units::{grouped, significant};

/// Characters of a histogram, fewest operations first.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Character of an empty bin.
const EMPTY: char = '·';

/// A rate in at most 8 characters: `42.3`, `1024`, `123 000`, `12.3M`.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => significant(per_s),
        _ if per_s < 1e-3 => "<0.001".to_owned(),
        // Whole numbers from 100 on: a fraction of an operation is not significant.
        1000.0..10_000.0 => grouped(per_s.round() as u64),
        _ if per_s < 999.5e3 => significant(per_s),
        _ => scaled(per_s),
    }
}

/// Three digits and a letter: `12.3M`.
fn scaled(value: f64) -> String {
    let steps = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.iter().find(|(size, _)| value >= *size) {
        Some((size, _)) if value / size >= 9999.5 => "huge".to_owned(),
        Some((size, letter)) => format!("{}{letter}", significant(value / size).replace(' ', "")),
        None => significant(value),
    }
}

/// Half width of an interval over its rate in at most 5 characters: `±4.2%`. Intervals are symmetric on the logarithm:
/// beyond a half they are too lopsided for one number.
pub(super) fn half_width(relative: f64) -> String {
    let percent = relative * 100.0;
    match percent {
        p if p >= 50.0 => ">±50%".to_owned(),
        p if p < 0.05 => "±0%".to_owned(),
        p if p < 9.95 => format!("±{p:.1}%"),
        p => format!("±{p:.0}%"),
    }
}

/// A time in at most 6 characters: `950ns`, `1.48ms`, `12.3s`.
pub(super) fn span(ns: u64) -> String {
    let (value, unit) = match ns as f64 {
        // Values that round to 1000 of a unit are shown as 1 of the next.
        v if v < 999.5 => return format!("{ns}ns"),
        v if v < 999.5e3 => (v / 1e3, "us"),
        v if v < 999.5e6 => (v / 1e6, "ms"),
        v if v < 999.5e9 => (v / 1e9, "s"),
        v if v < 3600e12 => return format!("{:.0}h", v / 3600e9),
        _ => return "ages".to_owned(),
    };
    significant(value).replace(' ', "") + unit
}

/// A time in prose: `1.5 ms`.
pub(crate) fn spoken(ns: u64) -> String {
    let text = span(ns);
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).filter(|unit| *unit > 0);
    unit.map_or_else(|| text.clone(), |unit| format!("{} {}", &text[..unit], &text[unit..]))
}

/// An amount in at most 5 characters: `1.0`, `0.02`, `12`, `1.2k`.
pub(super) fn amount(value: f64) -> String {
    match value {
        v if !v.is_finite() => "?".to_owned(),
        0.0 => "0".to_owned(),
        v if v < 0.005 => "<0.01".to_owned(),
        v if v < 0.095 => format!("{v:.2}"),
        v if v < 9.95 => format!("{v:.1}"),
        v if v < 999.5 => format!("{v:.0}"),
        v if v < 99_950.0 => format!("{:.1}k", v / 1e3),
        _ => ">99k".to_owned(),
    }
}

/// Bytes in at most 5 characters, powers of 1024: `8.0k`, `1.2M`.
pub(super) fn bytes(value: f64) -> String {
    let steps = [(1u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "k")];
    let Some((size, letter)) = steps.iter().find(|(size, _)| value >= *size as f64) else {
        return format!("{value:.0}");
    };
    let scaled = value / *size as f64;
    let short = if scaled < 9.95 { format!("{scaled:.1}") } else { format!("{:.0}", scaled.min(9999.0)) };
    format!("{}{letter}", short.strip_suffix(".0").unwrap_or(&short))
}

/// One character per bin. The height is the logarithm of its share, about two steps per decade, so that a single stall
/// among thousands is visible.
pub(super) fn histogram(bins: &[u64]) -> String {
    let most = bins.iter().copied().max().unwrap_or(0);
    bins.iter().map(|operations| block(*operations, most)).collect()
}

fn block(operations: u64, most: u64) -> char {
    if operations == 0 {
        return EMPTY;
    }
    // The seven steps cover four decades below the fullest bin; anything less has the lowest.
    let decades = (most as f64 / operations as f64).log10().min(4.0);
    let step = ((4.0 - decades) / 4.0 * 7.0).round() as usize;
    BLOCKS[step.min(BLOCKS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(
            [rate(42.345), rate(1023.6), rate(123_456.0), rate(12_345_678.0)],
            ["42.3", "1024", "123 000", "12.3M"]
        );
        assert_eq!([span(950), span(1_480_000), span(12_300_000_000)], ["950ns", "1.48ms", "12.3s"]);
        assert_eq!([half_width(0.042), half_width(0.42), half_width(42.0)], ["±4.2%", "±42%", ">±50%"]);
        assert_eq!([amount(1.0), amount(0.02), amount(12.3)], ["1.0", "0.02", "12"]);
        assert_eq!([bytes(8192.0), bytes(8400.0), bytes(0.0)], ["8k", "8.2k", "0"]);
    }

    #[test]
    fn a_single_stall_is_seen_in_the_histogram() {
        assert_eq!(histogram(&[0, 100_000, 1000, 1]), "·█▅▁");
        assert_eq!(histogram(&[0, 0]), "··");
    }

    #[test]
    fn amounts_below_one_have_one_decimal() {
        assert_eq!([amount(0.54), amount(0.096), amount(0.94)], ["0.5", "0.1", "0.9"]);
    }

    proptest! {
        #[test]
        fn no_number_outgrows_its_column(n in any::<u64>(), x in 0.0f64..1e30) {
            prop_assert!(rate(x).chars().count() <= 8, "{}", rate(x));
            prop_assert!(half_width(x).chars().count() <= 6);
            prop_assert!(span(n).chars().count() <= 6, "{}", span(n));
            prop_assert!(amount(x).chars().count() <= 5);
            prop_assert!(bytes(x).chars().count() <= 5, "{}", bytes(x));
        }
    }
}
