//! Remarks on cases, and how the same remark on several cases becomes one caution.
//!
//! Remarks that differ only in a number become one remark with a range. What deserves a remark is decided in
//! `cautions`.

use crate::units::{Bytes, grouped};

/// Placeholder for the number in a remark.
const PLACE: &str = "{}";

/// Weight of a remark, heaviest first: a wrong figure, then an uncertain one, then what the figure measures, then
/// possible disturbances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The run has not ended.
    Unfinished,
    /// Operations failed, or the tool's own counts or times disagree.
    Wrong,
    /// Data can be lost permanently.
    Unsafe,
    /// Cases that are compared ran on different machines.
    Incomparable,
    SingleTrial,
    /// Trials are missing, or give no interval.
    Unsure,
    /// The window lacked something that every production system has.
    Short,
    /// Other programs used the machine.
    Disturbed,
    /// The figures may be limited by something other than storage.
    Elsewhere,
    /// Reads did not reach the storage.
    Cached,
    /// The trials of a case differ in kind.
    Unlike,
    Missing,
    /// Cost of the instrumentation.
    Instrument,
    /// Peculiarities of the machine.
    Machine,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Bytes(u64),
    /// A share of 0 to 1, shown as per cent.
    Share(f64),
    /// A count and its total, shown as `3 of 12`; a range omits the total.
    Of(u64, u64),
    Seconds(u64),
}

impl Number {
    fn size(self) -> f64 {
        match self {
            Number::Bytes(count) | Number::Seconds(count) | Number::Of(count, _) => count as f64,
            Number::Share(share) => share,
        }
    }
}

/// Something worth knowing about one case or the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    pub(crate) weight: Weight,
    /// Text with [`PLACE`] for the number, identical in all cases with the remark.
    pub(crate) words: String,
    pub(crate) number: Option<Number>,
    /// Text for a single case, if it says more.
    own: Option<String>,
}

impl Remark {
    pub fn plain(weight: Weight, words: impl Into<String>) -> Remark {
        Remark { weight, words: words.into(), number: None, own: None }
    }

    /// A remark with a number in place of `{}`.
    pub fn with(weight: Weight, words: impl Into<String>, number: Number) -> Remark {
        Remark { weight, words: words.into(), number: Some(number), own: None }
    }

    /// A remark with `count` of `all` in place of `{}`; `None` if none counts.
    pub fn counted(weight: Weight, words: impl Into<String>, count: u64, all: u64) -> Option<Remark> {
        (count > 0).then(|| Remark::with(weight, words, Number::Of(count, all)))
    }

    pub fn of_share(weight: Weight, words: &str, share: Option<f64>) -> Option<Remark> {
        share.map(|share| Remark::with(weight, words, Number::Share(share)))
    }

    /// Uses `own` if only one case has the remark.
    pub fn alone(mut self, own: String) -> Remark {
        self.own = Some(own);
        self
    }

    /// Text for its own case.
    pub fn text(&self) -> String {
        self.own.clone().unwrap_or_else(|| filled(&self.words, &self.number.into_iter().collect::<Vec<_>>()))
    }
}

/// The words with their number, or with the range of several numbers.
pub(crate) fn filled(words: &str, numbers: &[Number]) -> String {
    let least = numbers.iter().min_by(|a, b| a.size().total_cmp(&b.size()));
    let most = numbers.iter().max_by(|a, b| a.size().total_cmp(&b.size()));
    let number = least.zip(most).map(|(least, most)| if least == most { shown(*least) } else { range(*least, *most) });
    number.map_or_else(|| words.to_owned(), |number| words.replacen(PLACE, &number, 1))
}

/// "308 to 313 MiB": states a common unit once.
fn range(least: Number, most: Number) -> String {
    if let (Number::Of(least, _), Number::Of(most, _)) = (least, most) {
        return if least == most { grouped(least) } else { format!("{} to {}", grouped(least), grouped(most)) };
    }
    let (low, high) = (shown(least), shown(most));
    if low == high {
        return low;
    }
    match (low.rsplit_once(' '), high.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// A share as per cent, without the sign.
pub(crate) fn per_cent(share: f64) -> String {
    let value = share * 100.0;
    let decimals = if value >= 9.95 { 0 } else { usize::from(value < 0.995) + 1 };
    format!("{value:.decimals$}")
}

fn shown(number: Number) -> String {
    match number {
        Number::Bytes(count) => Bytes(count).to_string(),
        Number::Share(share) => format!("{} %", per_cent(share)),
        Number::Of(count, all) => format!("{} of {}", grouped(count), grouped(all)),
        Number::Seconds(1) => "1 second".to_owned(),
        Number::Seconds(count) => format!("{} seconds", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_unit_once_if_both_ends_match() {
        let filled = |numbers: &[Number]| filled("[{}]", numbers);
        assert_eq!(filled(&[Number::Bytes(313 << 20), Number::Bytes(308 << 20)]), "[308 to 313 MiB]");
        assert_eq!(filled(&[Number::Bytes(900 << 20), Number::Bytes(2 << 30)]), "[900 MiB to 2 GiB]");
        assert_eq!(filled(&[Number::Share(0.911), Number::Share(0.99), Number::Share(0.95)]), "[91 to 99 %]");
        assert_eq!(filled(&[Number::Share(0.0054), Number::Share(0.0068)]), "[0.54 to 0.68 %]");
        assert_eq!(filled(&[Number::Share(0.911), Number::Share(0.912)]), "[91 %]");
        assert_eq!(filled(&[Number::Seconds(1), Number::Seconds(3)]), "[1 second to 3 seconds]");
        assert_eq!(filled(&[Number::Of(9, 100), Number::Of(3, 200)]), "[3 to 9]");
        assert_eq!(filled(&[Number::Of(9, 100)]), "[9 of 100]");
        assert_eq!(filled(&[]), "[{}]");
    }
}
