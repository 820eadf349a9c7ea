//! Sizes in plans that may be relative to the storage below: `4GiB`, `80%`.

use crate::units::Bytes;

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
