//! Formatting of numbers in sentences.

use crate::units::{grouped, significant};

/// A rate: whole from 1000 on, as the sources print it, else three digits.
pub fn rate(value: f64) -> String {
    if value >= 999.5 { grouped(value.round() as u64) } else { significant(value) }
}

/// A time with two digits: one computed from a rate justifies no more.
pub(crate) fn milliseconds(us: f64) -> String {
    let ms = us / 1e3;
    if ms == 0.0 || !ms.is_finite() {
        return format!("{ms} ms");
    }
    let decimals = (1 - ms.abs().log10().floor() as i32).clamp(0, 6) as usize;
    format!("{ms:.decimals$} ms")
}

#[cfg(test)]
mod tests {
    use super::{milliseconds, rate};

    #[test]
    fn numbers_in_sentences_have_only_significant_digits() {
        assert_eq!((rate(3753.183), rate(85.246), rate(115_687.3)), ("3753".into(), "85.2".into(), "115 687".into()));
        assert_eq!((milliseconds(11_730.0), milliseconds(266.4)), ("12 ms".into(), "0.27 ms".into()));
    }
}
