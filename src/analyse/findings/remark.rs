//! Remarks on cases, and what becomes of them when several cases have the same one: a single caution.
//!
//! Remarks that differ in a number alone are one remark with a range. Absent on purpose: what is worth a remark; that is
//! for `cautions`.

use crate::units::{Bytes, grouped};

/// Stands for the number in the words of a remark.
const PLACE: &str = "{}";

/// How much a remark weighs, the heaviest first: what makes a figure wrong before what makes it unsure, that before what
/// it is a figure of, that before what may have disturbed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The run has not ended.
    Unfinished,
    /// Operations failed, or the tool counted or timed otherwise.
    Wrong,
    /// Data can be lost for good.
    Unsafe,
    /// What is compared ran on different machines.
    Incomparable,
    SingleTrial,
    /// Trials are missing, or carry no interval.
    Unsure,
    /// The window lacked what every production has.
    Short,
    /// What the figures may be about besides storage.
    Elsewhere,
    /// Others used the machine.
    Disturbed,
    /// Reads did not reach the storage.
    Cached,
    /// Trials of a case were not alike.
    Unlike,
    Missing,
    /// What the instrument cost.
    Instrument,
    /// The machine's own ways.
    Machine,
}

/// The number in a remark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Bytes(u64),
    /// A share of 0 to 1, shown as per cent.
    Share(f64),
    /// A count and its total, shown as `3 of 12`; a range is shown without the total.
    Of(u64, u64),
    Seconds(u64),
}

/// Something worth knowing of one case, or of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Remark {
    pub(crate) weight: Weight,
    /// Words with [`PLACE`] for the number, alike in all cases that have the remark.
    pub(crate) words: String,
    pub(crate) number: Option<Number>,
    /// What is said of one case alone, where that is more.
    own: Option<String>,
}

impl Remark {
    pub fn plain(weight: Weight, words: impl Into<String>) -> Remark {
        Remark { weight, words: words.into(), number: None, own: None }
    }

    /// With a number where `{}` stands.
    pub fn with(weight: Weight, words: impl Into<String>, number: Number) -> Remark {
        Remark { weight, words: words.into(), number: Some(number), own: None }
    }

    /// Says `own` of one case alone, and its words where several cases have the remark.
    #[must_use]
    pub fn alone(mut self, own: String) -> Remark {
        self.own = Some(own);
        self
    }

    /// What is said of its case.
    #[must_use]
    pub fn text(&self) -> String {
        self.own.clone().unwrap_or_else(|| filled(&self.words, &self.number.into_iter().collect::<Vec<_>>()))
    }
}

/// Words with their number, or with the range of several.
pub(crate) fn filled(words: &str, numbers: &[Number]) -> String {
    let size = |number: &Number| match *number {
        Number::Bytes(count) | Number::Seconds(count) | Number::Of(count, _) => count as f64,
        Number::Share(share) => share,
    };
    let least = numbers.iter().min_by(|a, b| size(a).total_cmp(&size(b)));
    let most = numbers.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
    match least.zip(most) {
        None => words.to_owned(),
        Some((least, most)) if least == most => words.replacen(PLACE, &shown(*least), 1),
        Some((least, most)) => words.replacen(PLACE, &range(*least, *most), 1),
    }
}

/// "308 to 313 MiB": the unit once where both have the same.
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

fn shown(number: Number) -> String {
    match number {
        Number::Bytes(count) => Bytes(count).to_string(),
        Number::Share(share) => {
            let value = share * 100.0;
            let decimals = if value >= 9.95 { 0 } else { usize::from(value < 0.995) + 1 };
            format!("{value:.decimals$} %")
        }
        Number::Of(count, all) => format!("{} of {}", grouped(count), grouped(all)),
        Number::Seconds(1) => "1 second".to_owned(),
        Number::Seconds(count) => format!("{} seconds", grouped(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_unit_once_where_both_ends_have_it() {
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
