//! Values of settings as people write them: `30s`, `1GB`, and numbers without a unit in the setting's own.

use crate::units::{Bytes, Micros};

/// Microseconds of a value whose bare numbers are seconds (`checkpoint_timeout`); `None` if it is not a time span.
pub(crate) fn span_us(value: &str) -> Option<u64> {
    let value = value.trim();
    let seconds = value.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000));
    seconds.or_else(|| Micros::parse(value).ok().map(|span| span.0))
}

/// Bytes of a value whose bare numbers count `unit` bytes (`max_wal_size`: 1 MB); `None` if it is not a size.
pub(crate) fn bytes(value: &str, unit: u64) -> Option<u64> {
    let value = value.trim();
    let units = value.parse::<u64>().ok().and_then(|units| units.checked_mul(unit));
    units.or_else(|| Bytes::parse(value).ok().map(|bytes| bytes.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_unit_are_in_the_settings_own() {
        assert_eq!(
            (span_us("300"), span_us("5min"), span_us(" 30s ")),
            (Some(300_000_000), Some(300_000_000), Some(30_000_000))
        );
        assert_eq!((bytes("1024", 1 << 20), bytes("1GB", 1 << 20)), (Some(1 << 30), Some(1 << 30)));
        assert_eq!((bytes("16384", 8192), bytes("128MB", 8192)), (Some(128 << 20), Some(128 << 20)));
        assert_eq!((span_us("soon"), bytes("much", 1)), (None, None));
    }
}
