//! Sizes in plans that may be relative to the storage below: `4GiB`, `80%`.

use crate::units::Bytes;

/// A requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Bytes(u64),
    Percent(u64),
}

impl Size {
    /// `None` if it is neither a size nor a share of at most 100 %.
    pub fn parse(text: &str) -> Option<Size> {
        match text.trim().strip_suffix('%') {
            Some(share) => share.trim().parse().ok().filter(|share| *share <= 100).map(Size::Percent),
            None => Bytes::parse(text).ok().map(|bytes| Size::Bytes(bytes.0)),
        }
    }

    /// Size in bytes, given the total; shares are rounded to whole MiB, a multiple of any block.
    pub fn bytes(self, all: u64) -> u64 {
        const STEP: u64 = 1 << 20;
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Percent(share) => (u128::from(all) * u128::from(share) / 100) as u64 / STEP * STEP,
        }
    }
}
