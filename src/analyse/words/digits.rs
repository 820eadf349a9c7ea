//! Digits of a figure, as its interval justifies: the same in sentences, tables and charts.

use crate::analyse::findings::Estimate;
use crate::analyse::findings::estimate::BEYOND_USE;
use crate::units::grouped;

/// A figure with no more digits than its interval justifies, and `1180–1290` or the reason for no interval.
pub fn estimate_text(estimate: &Estimate) -> (String, String) {
    let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
        let trials = if estimate.trials == 1 { "1 trial".to_owned() } else { format!("{} trials", estimate.trials) };
        let half = estimate.range.map_or(0.0, |(least, most)| (most - least) / 2.0);
        let last = last_digit(estimate.value, half);
        let why = match estimate.range {
            Some((least, most)) => format!("2 trials: {}–{}", rounded(least, last), rounded(most, last)),
            None => format!("no interval from {trials}"),
        };
        return (rounded(estimate.value, last), why);
    };
    if low == high {
        return (rounded(estimate.value, last_digit(estimate.value, 0.0)), "no spread".to_owned());
    }
    if estimate.is_beyond_use() {
        let value = rounded(estimate.value, last_digit(estimate.value, 0.0));
        return (value, format!("interval reaches beyond {BEYOND_USE}×"));
    }
    let last = last_digit(estimate.value, (high - low) / 2.0);
    (rounded(estimate.value, last), format!("{}–{}", rounded(low, last), rounded(high, last)))
}

/// "1.19 times ext4 (1.10 to 1.29)": for a sentence, with its unit (" times ext4") and the ends of the interval or
/// range, if there is one.
pub fn in_sentence(estimate: &Estimate, unit: &str) -> String {
    let (value, ends) = estimate_text(estimate);
    let is_known = estimate.low.is_some() && !estimate.is_beyond_use() || estimate.range.is_some();
    let ends = if is_known { format!(" ({})", ends.replace('\u{2013}', " to ")) } else { String::new() };
    format!("{value}{unit}{ends}")
}

/// Power of ten of the last significant digit, from the half width of the interval by the rounding of the Particle Data
/// Group: two of its digits while they are below 3.55, else one. Between 3 and 5 digits of the figure, and whole
/// numbers from 100 to 9999.
pub fn last_digit(value: f64, half_width: f64) -> i32 {
    let first = power(value.abs());
    if matches!(first, 2 | 3) {
        return 0;
    }
    if half_width <= 0.0 {
        return first - 2;
    }
    let leading = half_width / 10f64.powi(power(half_width));
    let by_width = if leading < 3.55 { power(half_width) - 1 } else { power(half_width) };
    by_width.clamp(first - 4, first - 2)
}

fn power(x: f64) -> i32 {
    if x > 0.0 && x.is_finite() { x.log10().floor() as i32 } else { 0 }
}

/// `value` rounded to the digit at 10^`last`, with thousands separated.
pub fn rounded(value: f64, last: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if last < 0 {
        return format!("{value:.*}", last.unsigned_abs() as usize);
    }
    let step = 10f64.powi(last);
    let whole = (value / step).round() * step;
    let sign = if whole < 0.0 { "-" } else { "" };
    format!("{sign}{}", grouped(whole.abs() as u64).replace(' ', "\u{a0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate::of(value, Some((low, high)), 3)
    }

    #[test]
    fn a_figure_shows_no_more_digits_than_its_interval_carries() {
        let shown = |e: Estimate| {
            let (value, interval) = estimate_text(&e);
            format!("{value} ({interval})")
        };
        assert_eq!(shown(estimate(1234.56, 1180.2, 1290.7)), "1235 (1180–1291)");
        assert_eq!(shown(estimate(212.34, 205.9, 218.8)), "212 (206–219)");
        assert_eq!(shown(estimate(12_345.6, 12_344.0, 12_347.0)), "12\u{a0}346 (12\u{a0}344–12\u{a0}347)");
        assert_eq!(shown(estimate(1.017, 0.973, 1.061)), "1.02 (0.97–1.06)");
        assert_eq!(shown(estimate(1.017, 1.007, 1.027)), "1.017 (1.007–1.027)");
        assert_eq!(shown(estimate(402_123.0, 394_000.0, 410_200.0)), "402\u{a0}000 (394\u{a0}000–410\u{a0}000)");
        assert_eq!(shown(estimate(0.0123, 0.0119, 0.0127)), "0.0123 (0.0119–0.0127)");
        assert_eq!(shown(estimate(0.005, 0.005, 0.005)), "0.00500 (no spread)");
    }

    #[test]
    fn an_interval_beyond_a_factor_of_ten_is_called_so() {
        let shown = |value, low, high| estimate_text(&estimate(value, low, high));
        let beyond = |value: &str| (value.to_owned(), "interval reaches beyond 10×".to_owned());
        assert_eq!(shown(15.3, 0.000_001, 173_070_513.61), beyond("15.3"));
        assert_eq!(shown(22.3, 0.06, 40.0), beyond("22.3"));
        assert_eq!(shown(12.0, 0.0, 90.0).1, "0.0–90.0");
    }

    #[test]
    fn two_trials_have_a_range_and_no_interval() {
        let two = Estimate { range: Some((980.2, 1250.7)), ..Estimate::of(1107.2, None, 2) };
        assert_eq!(estimate_text(&two), ("1107".to_owned(), "2 trials: 980–1251".to_owned()));
    }

    #[test]
    fn a_figure_without_interval_says_so() {
        let one = Estimate::of(812.4, None, 1);
        assert_eq!(estimate_text(&one), ("812".to_owned(), "no interval from 1 trial".to_owned()));
    }
}
