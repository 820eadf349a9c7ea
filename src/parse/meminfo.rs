//! `/proc/meminfo`: use of memory.

use super::fields::kilobytes;
use crate::error::Result;

const SOURCE: &str = "/proc/meminfo";

/// Bytes; `None` if the kernel does not report the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meminfo {
    /// Memory managed by the kernel.
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    /// Estimate of the memory available to programs without swapping (Linux 3.14).
    pub available_bytes: Option<u64>,
    /// Page cache, without swap cache and without block device buffers.
    pub cached_bytes: Option<u64>,
    /// Page cache not yet written.
    pub dirty_bytes: Option<u64>,
    /// Page cache being written now.
    pub writeback_bytes: Option<u64>,
    pub swap_total_bytes: Option<u64>,
    pub swap_free_bytes: Option<u64>,
}

impl Meminfo {
    /// Swap space in use.
    pub fn swap_used_bytes(&self) -> Option<u64> {
        Some(self.swap_total_bytes?.saturating_sub(self.swap_free_bytes?))
    }
}

/// Reads the figures of [`Meminfo`], ignoring other lines.
///
/// # Errors
/// With line and item if one of these figures is not a number of `kB`.
pub fn parse(text: &str) -> Result<Meminfo> {
    let bytes = |item: &str| {
        let mut lines = text.lines().zip(1..);
        let found = lines.find_map(|(line, number)| Some((number, line.strip_prefix(item)?.strip_prefix(':')?)));
        found.map(|(number, rest)| kilobytes(SOURCE, number, item, rest)).transpose()
    };
    Ok(Meminfo {
        total_bytes: bytes("MemTotal")?,
        free_bytes: bytes("MemFree")?,
        available_bytes: bytes("MemAvailable")?,
        cached_bytes: bytes("Cached")?,
        dirty_bytes: bytes("Dirty")?,
        writeback_bytes: bytes("Writeback")?,
        swap_total_bytes: bytes("SwapTotal")?,
        swap_free_bytes: bytes("SwapFree")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const LINUX_6_18: &str = "MemTotal:       24684084 kB
MemFree:        24130328 kB
MemAvailable:   24240928 kB
Buffers:            2000 kB
Cached:           269096 kB
SwapTotal:       1048576 kB
SwapFree:        1000000 kB
Dirty:               164 kB
Writeback:             0 kB
HugePages_Total:       0
";

    #[test]
    fn figures_are_in_bytes() {
        let memory = parse(LINUX_6_18).unwrap();
        assert_eq!(memory.total_bytes, Some(24_684_084 * 1024));
        assert_eq!(memory.dirty_bytes, Some(164 * 1024));
        assert_eq!(memory.writeback_bytes, Some(0));
        assert_eq!(memory.swap_used_bytes(), Some(48576 * 1024));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_absent() {
        let old = parse("MemTotal: 10 kB\nMemFree: 5 kB\n").unwrap();
        assert_eq!((old.available_bytes, old.swap_used_bytes()), (None, None));
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse("MemTotal: 10 kB\nDirty: lots kB\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/meminfo line 2: `Dirty` is `lots`, not a whole number (u64)");
        let text = parse("Dirty: 5 MB\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/meminfo line 1: `Dirty` has the unit `MB`, not `kB`");
        assert!(parse("Dirty: 5\n").unwrap_err().to_string().contains("`unit` is missing"));
        assert!(parse(&format!("Dirty: {} kB\n", u64::MAX)).unwrap_err().to_string().contains("more than 2^64"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(Dirty|MemTotal|\\PC{0,9}):?[ 0-9kMB]{0,30}\n?") {
            drop(parse(&text));
        }
    }
}
