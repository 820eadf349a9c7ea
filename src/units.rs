//! Quantities with units: printing and parsing.
//!
//! Independent of the domain. Sizes are powers of 1024 when written `KiB`, `MiB`, `GiB`, `TiB` (or `kB`, `MB`, `GB`,
//! `TB`, which PostgreSQL also reads as powers of 1024, so that a plan has one meaning for both).

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A time span in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub u64);

const KIB: u64 = 1024;
const SIZE_UNITS: [(&str, u64); 5] =
    [("TiB", KIB * KIB * KIB * KIB), ("GiB", KIB * KIB * KIB), ("MiB", KIB * KIB), ("KiB", KIB), ("B", 1)];

impl Bytes {
    /// Reads `6GiB`, `512 MB`, `8kB`, `4096B`.
    ///
    /// # Errors
    /// A sentence for the user: an unknown unit, a missing number, more than 2^64 bytes.
    pub fn parse(text: &str) -> Result<Bytes, String> {
        let (number, unit) = split_number(text)?;
        let factor = match unit {
            "B" => 1,
            "k" | "K" | "kB" | "KB" | "KiB" => KIB,
            "M" | "MB" | "MiB" => KIB.pow(2),
            "G" | "GB" | "GiB" => KIB.pow(3),
            "T" | "TB" | "TiB" => KIB.pow(4),
            "" => return Err(format!("`{text}` has no unit; write it as 512MiB or 6GiB")),
            other => return Err(format!("unknown unit `{other}` in `{text}`; use B, KiB, MiB, GiB or TiB")),
        };
        scale(number, factor, text).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits in the largest unit that keeps the number at 1 or above: `6 GiB`, `1.5 MiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = SIZE_UNITS.iter().find(|(_, factor)| self.0 >= *factor).copied().unwrap_or(("B", 1));
        write!(f, "{} {unit}", significant(self.0 as f64 / factor as f64))
    }
}

impl Micros {
    /// Reads `60s`, `5min`, `1h`, `250ms`, `100us`.
    ///
    /// # Errors
    /// A sentence for the user: an unknown unit or a missing number.
    pub fn parse(text: &str) -> Result<Micros, String> {
        let (number, unit) = split_number(text)?;
        let factor = match unit {
            "us" | "µs" => 1,
            "ms" => 1_000,
            "s" | "sec" => 1_000_000,
            "m" | "min" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            "" => return Err(format!("`{text}` has no unit; write it as 5ms, 60s or 1h")),
            other => return Err(format!("unknown unit `{other}` in `{text}`; use us, ms, s, min, h or d")),
        };
        scale(number, factor, text).map(Micros)
    }

    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in milliseconds.
    pub(crate) fn millis(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

impl fmt::Display for Micros {
    /// `950 us`, `1.25 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.0;
        match us {
            0..1_000 => write!(f, "{us} us"),
            1_000..1_000_000 => write!(f, "{} ms", significant(us as f64 / 1e3)),
            1_000_000..120_000_000 => write!(f, "{} s", significant(us as f64 / 1e6)),
            120_000_000..7_200_000_000 => {
                write!(f, "{} min {} s", us / 60_000_000, us % 60_000_000 / 1_000_000)
            }
            _ => write!(f, "{} h {} min", us / 3_600_000_000, us % 3_600_000_000 / 60_000_000),
        }
    }
}

/// A number with at most three significant digits: `0.0123`, `1.5`, `42`, `12 300`.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        // A sum of nothing is -0.
        return format!("{}", value + 0.0);
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let rounding = 10f64.powi((magnitude - 2).max(0));
    let text = format!("{:.decimals$}", (value / rounding).round() * rounding);
    let text = if decimals == 0 {
        if magnitude <= 2 { format!("{value:.decimals$}") } else { text }
    } else {
        format!("{value:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    group_thousands(&text)
}

/// A ratio above 1 as a difference: `5.8 %`, `20 %`, from 2 on `a factor of 2.4`.
pub(crate) fn beyond(ratio: f64) -> String {
    let per_cent = (ratio - 1.0) * 100.0;
    match per_cent {
        _ if ratio >= 2.0 => format!("a factor of {}", significant(ratio)),
        _ if per_cent < 9.95 => format!("{per_cent:.1} %"),
        _ => format!("{per_cent:.0} %"),
    }
}

/// A whole number with thin spaces between groups of three digits: `12 345`.
pub(crate) fn grouped(value: u64) -> String {
    group_thousands(&value.to_string())
}

fn group_thousands(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut grouped = String::with_capacity(text.len() + text.len() / 3);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && whole.len() > 4 {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}

fn split_number(text: &str) -> Result<(&str, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() { Err(format!("`{text}` does not start with a number")) } else { Ok((number, unit.trim())) }
}

fn scale(number: &str, factor: u64, text: &str) -> Result<u64, String> {
    let too_large = || format!("`{text}` is too large");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(too_large);
    }
    let value: f64 = number.parse().map_err(|_| format!("`{number}` in `{text}` is not a number"))?;
    let scaled = value * factor as f64;
    if scaled >= u64::MAX as f64 { Err(too_large()) } else { Ok(scaled.round() as u64) }
}

/// A number with its noun: `1 trial`, `4 trials`.
pub fn count<N: Copy + fmt::Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = if n == 1.into() { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn differences_from_twofold_on_are_printed_as_factors() {
        let shown = [1.0061, 1.058, 1.2, 1.9996, 2.4, 31.2].map(beyond);
        assert_eq!(shown, ["0.6 %", "5.8 %", "20 %", "100 %", "a factor of 2.4", "a factor of 31.2"]);
    }

    #[test]
    fn sizes_read_as_people_write_them() {
        assert_eq!(Bytes::parse("6GiB"), Ok(Bytes(6 << 30)));
        assert_eq!(Bytes::parse("1.5 MB"), Ok(Bytes(3 << 19)));
        assert_eq!(Bytes::parse("8kB"), Ok(Bytes(8192)));
        assert!(Bytes::parse("6").unwrap_err().contains("no unit"));
        assert!(Bytes::parse("6 gigs").unwrap_err().contains("unknown unit `gigs`"));
        assert!(Bytes::parse("99999999999TiB").unwrap_err().contains("too large"));
        assert!(Bytes::parse("GiB").unwrap_err().contains("does not start with a number"));
    }

    #[test]
    fn spans_read_as_people_write_them() {
        assert_eq!(Micros::parse("60s"), Ok(Micros(60_000_000)));
        assert_eq!(Micros::parse("2.5ms"), Ok(Micros(2_500)));
        assert_eq!(Micros::parse("1h"), Ok(Micros(3_600_000_000)));
        assert!(Micros::parse("60").unwrap_err().contains("no unit"));
    }

    #[test]
    fn quantities_print_with_three_digits_and_their_unit() {
        assert_eq!(Bytes(6 << 30).to_string(), "6 GiB");
        assert_eq!(Bytes(8192 + 205).to_string(), "8.2 KiB");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Micros(1_254).to_string(), "1.25 ms");
        assert_eq!(Micros(250_000_000).to_string(), "4 min 10 s");
        assert_eq!(significant(12_345.6), "12 300");
        assert_eq!(significant(0.012_345), "0.0123");
        assert_eq!(significant(999.6), "1000");
        assert_eq!(grouped(1_234_567), "1 234 567");
    }

    proptest! {
        #[test]
        fn whole_bytes_survive_printing_and_reading(n in any::<u32>()) {
            prop_assert_eq!(Bytes::parse(&format!("{n}B")), Ok(Bytes(u64::from(n))));
        }
    }
}
