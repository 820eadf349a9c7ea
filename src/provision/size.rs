//! Sizes in plans that may be relative to the storage below: `4GiB`, `80%`.

use crate::record::options::{OptionProblem, Options};
use crate::units::Bytes;

/// Checks a size or a whole number of a plan, if it is given; `rule` says what it must be.
///
/// # Errors
/// The key and the rule.
pub(super) fn check(options: &Options, key: &str, fits: fn(u64) -> bool, rule: &str) -> Result<(), OptionProblem> {
    let number = options.integer(key).and_then(|number| u64::try_from(number).ok());
    match options.size(key).map(|size| size.0).or(number) {
        Some(given) if !fits(given) => Err(OptionProblem::at(key, rule)),
        _ => Ok(()),
    }
}

pub(super) fn is_sector(bytes: u64) -> bool {
    [512, 1024, 2048, 4096].contains(&bytes)
}

pub(super) fn is_in_mib(bytes: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(1 << 20)
}

/// True for a power of two from 4 KiB on.
pub(super) fn is_power(bytes: u64) -> bool {
    bytes >= 4096 && bytes.is_power_of_two()
}

/// A requested size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    Bytes(u64),
    Percent(f64),
}

impl Size {
    /// `None` if it is neither a size nor a share of at most 100 %.
    pub fn parse(text: &str) -> Option<Size> {
        match text.trim().strip_suffix('%') {
            Some(share) => share.trim().parse().ok().filter(|share| (0.0..=100.0).contains(share)).map(Size::Percent),
            None => Bytes::parse(text).ok().map(|bytes| Size::Bytes(bytes.0)),
        }
    }

    /// Also `None` if it is 0.
    pub fn above_zero(text: &str) -> Option<Size> {
        Size::parse(text).filter(|size| ![Size::Bytes(0), Size::Percent(0.0)].contains(size))
    }

    /// Size in bytes, given the total; shares are rounded to whole MiB, a multiple of any block.
    pub fn bytes(self, all: u64) -> u64 {
        const STEP: u64 = 1 << 20;
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Percent(share) => (all as f64 * share / 100.0) as u64 / STEP * STEP,
        }
    }
}
