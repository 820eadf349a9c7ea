//! `/proc/diskstats`: counters of each block device since it appeared.
//!
//! Fields by kernel: 14 since Linux 2.6.25, 18 with discards since 4.18, 20 with flushes since 5.5
//! (Documentation/admin-guide/iostats.rst). Later kernels may append fields, which are ignored.

use super::fields::{Fields, filled_lines};
use crate::error::{Error, Result};

const SOURCE: &str = "/proc/diskstats";

/// The kernel counts sectors of 512 bytes regardless of the device's sector size (iostats.rst, "UNIX 512-byte
/// sectors").
const SECTOR_BYTES: u64 = 512;

/// Counters of one device or partition. They start at zero when the device appears, and wrap on 32-bit kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskStats {
    pub major: u32,
    pub minor: u32,
    pub name: String,
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time summed over all reads, milliseconds.
    pub read_ms: u64,
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time summed over all writes, milliseconds.
    pub write_ms: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Time in which at least one request was in flight, milliseconds.
    pub busy_ms: u64,
    /// Time weighted with the number of requests in flight, milliseconds.
    pub queue_ms: u64,
    /// Discards completed; `None` before Linux 4.18.
    pub discards: Option<u64>,
    /// Flush requests completed; `None` before Linux 5.5. Counted for whole devices only, not for partitions.
    pub flushes: Option<u64>,
    /// Time summed over all flushes, milliseconds; `None` before Linux 5.5.
    pub flush_ms: Option<u64>,
}

/// Reads the text of `/proc/diskstats`.
///
/// # Errors
/// With line and item if a field is not a number, or a line has a number of fields that no kernel writes.
pub fn parse(text: &str) -> Result<Vec<DiskStats>> {
    filled_lines(text).map(|(index, line)| device(index + 1, line)).collect()
}

/// Reads `/sys/dev/block/MAJOR:MINOR/stat`: the counters of one device, without its number and name
/// (Documentation/block/stat.rst).
///
/// # Errors
/// As [`parse`].
pub fn parse_stat(text: &str) -> Result<DiskStats> {
    const SOURCE: &str = "/sys/dev/block/*/stat";
    let count = text.split_ascii_whitespace().count() + 3;
    counters(SOURCE, 1, count, &mut Fields::new(SOURCE, 1, text))
}

fn device(line: usize, text: &str) -> Result<DiskStats> {
    let count = text.split_ascii_whitespace().count();
    let mut fields = Fields::new(SOURCE, line, text);
    let (major, minor, name) = (fields.count("major")?, fields.count("minor")?, fields.text("name")?.to_owned());
    Ok(DiskStats { major, minor, name, ..counters(SOURCE, line, count, &mut fields)? })
}

/// The fields after number and name; `count` is the number of all fields.
fn counters(source: &str, line: usize, count: usize, fields: &mut Fields<'_>) -> Result<DiskStats> {
    if !matches!(count, 14 | 18 | 20..) {
        return Err(Error::host(format!("{source} line {line}: {count} fields, expected 14, 18 or at least 20")));
    }
    let mut stats = DiskStats::default();
    (stats.reads, stats.read_bytes, stats.read_ms) =
        transfer(fields, ["reads", "reads merged", "sectors read", "ms reading"])?;
    (stats.writes, stats.write_bytes, stats.write_ms) =
        transfer(fields, ["writes", "writes merged", "sectors written", "ms writing"])?;
    (stats.in_flight, stats.busy_ms, stats.queue_ms) =
        (fields.count("in flight")?, fields.count("ms busy")?, fields.count("ms weighted")?);
    if count >= 18 {
        let names = ["discards", "discards merged", "sectors discarded", "ms discarding"];
        stats.discards = Some(transfer(fields, names)?.0);
    }
    if count >= 20 {
        (stats.flushes, stats.flush_ms) = (Some(fields.count("flushes")?), Some(fields.count("ms flushing")?));
    }
    Ok(stats)
}

/// Reads the four fields of one direction: completed, merged, sectors, milliseconds. Returns completed, bytes,
/// milliseconds.
fn transfer(fields: &mut Fields<'_>, names: [&str; 4]) -> Result<(u64, u64, u64)> {
    let completed = fields.count(names[0])?;
    let _merged: u64 = fields.count(names[1])?;
    let sectors: u64 = fields.count(names[2])?;
    Ok((completed, sectors.saturating_mul(SECTOR_BYTES), fields.count(names[3])?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    const LINUX_6_18: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 72213 11860 9498266 49882 30457 47521 15245936 60022 3 22908 110986 9618 55 800784 909 3754 170
";
    const LINUX_4_19: &str =
        " 254 0 vda 72213 11860 9498266 49882 30457 47521 15245936 60022 0 22908 110986 9618 55 800784 909\n";
    const LINUX_3_10: &str = " 253 0 dm-0 72213 0 9498266 49882 30457 0 15245936 60022 0 22908 110986\n";

    #[test]
    fn a_kernel_with_flush_counts_yields_bytes_and_milliseconds() {
        let devices = parse(LINUX_6_18).unwrap();
        assert_eq!(devices.len(), 2);
        let vda = &devices[1];
        assert_eq!((vda.major, vda.minor, vda.name.as_str()), (254, 0, "vda"));
        assert_eq!((vda.reads, vda.read_bytes, vda.read_ms), (72213, 9_498_266 * 512, 49882));
        assert_eq!((vda.writes, vda.write_bytes, vda.write_ms), (30457, 15_245_936 * 512, 60022));
        assert_eq!((vda.in_flight, vda.busy_ms, vda.queue_ms), (3, 22908, 110_986));
        assert_eq!(vda.discards, Some(9618));
        assert_eq!((vda.flushes, vda.flush_ms), (Some(3754), Some(170)));
        assert_eq!(devices[0].flushes, Some(0));
    }

    #[test]
    fn flush_and_discard_counts_are_absent_on_older_kernels() {
        let old = &parse(LINUX_4_19).unwrap()[0];
        assert_eq!((old.discards, old.flushes, old.flush_ms), (Some(9618), None, None));
        let older = &parse(LINUX_3_10).unwrap()[0];
        assert_eq!((older.writes, older.discards, older.flushes), (30457, None, None));
    }

    #[test]
    fn a_later_kernel_may_append_fields() {
        let text = LINUX_6_18.replace(" 3754 170", " 3754 170 1 2");
        assert_eq!(parse(&text).unwrap()[1].flushes, Some(3754));
    }

    #[test]
    fn a_fault_names_file_line_item_and_type() {
        let text = parse(&LINUX_6_18.replace("15245936", "many")).unwrap_err().to_string();
        assert_eq!(text, "/proc/diskstats line 2: `sectors written` is `many`, not a whole number (u64)");
        let text = parse("8 0 sda 1 2 3\n").unwrap_err().to_string();
        assert_eq!(text, "/proc/diskstats line 1: 6 fields, expected 14, 18 or at least 20");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([0-9]{1,20} ){10,22}\n?|\\PC{0,120}") {
            drop(parse(&text));
        }
    }
}
