//! Findings in the exact format of PostgreSQL 18's pg_test_fsync, for tools that parse it.
//!
//! The layout was taken from that program's output (`tests/fixtures/pg_test_fsync/18.txt`): labels in 30 columns after
//! 8 blanks, rates in 13 with three decimals, `n/a` in 21.

use crate::analyse::probe::findings::{Family, ProbeFindings, RowFinding, Way};
use crate::units::count;

/// Its five sizes: number of writes, and kB of each.
const SIZES: [(u32, u32); 5] = [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)];
/// Size of a WAL block if no row has it.
const BLOCK_BYTES: u32 = 8192;

pub fn pg_test_fsync(findings: &ProbeFindings) -> String {
    let seconds = count(seconds_per_test(findings), "second");
    let kilobytes = block(findings) / 1024;
    let mut text =
        format!("{seconds} per test\nO_DIRECT supported on this platform for open_datasync and open_sync.\n");
    for (family, number, noun) in [(Family::OneWrite, "one", "write"), (Family::TwoWrites, "two", "writes")] {
        text.push_str(&methods(findings, family, &format!("{number} {kilobytes}kB {noun}")));
    }
    text.push_str(
        "\nCompare open_sync with different write sizes:\n(This is designed to compare the cost of writing 16kB in \
         different write\nopen_sync sizes.)\n",
    );
    for (writes, size) in SIZES {
        let plural = if writes == 1 { "write" } else { "writes" };
        let mut rows = of_family(findings, Family::OpenSyncSizes);
        let row = rows.find(|row| row.spec.writes == writes && row.spec.write_bytes == size * 1024);
        text.push_str(&line(&format!("{writes:>2} * {size:>2}kB open_sync {plural}"), row));
    }
    text.push_str(
        "\nTest if fsync on non-write file descriptor is honored:\n(If the times are similar, fsync() can sync data \
         written on a different\ndescriptor.)\n",
    );
    for label in ["write, fsync, close", "write, close, fsync"] {
        let row = of_family(findings, Family::Descriptor).find(|row| row.spec.label.trim() == label);
        text.push_str(&line(label, row));
    }
    text.push_str(&format!("\nNon-sync'ed {kilobytes}kB writes:\n"));
    text + &line("write", of_family(findings, Family::NotSynced).next())
}

fn methods(findings: &ProbeFindings, family: Family, what: &str) -> String {
    let mut text = format!(
        "\nCompare file sync methods using {what}:\n(in \"wal_sync_method\" preference order, except fdatasync is Linux's \
         default)\n"
    );
    let mut refused = false;
    for (way, name) in Way::METHODS {
        let row = of_family(findings, family).find(|row| row.spec.way == way);
        refused |= row.is_some_and(refuses_direct);
        text.push_str(&line(name, row));
    }
    if refused {
        text.push_str(
            "* This file system and its mount options do not support direct\n  I/O, e.g. ext4 in journaled mode.\n",
        );
    }
    text
}

/// True for a direct I/O row that the filesystem does not support.
fn refuses_direct(row: &RowFinding) -> bool {
    row.spec.direct && row.unavailable.is_some()
}

/// One line; a row that is unavailable or failed has no number.
fn line(label: &str, row: Option<&RowFinding>) -> String {
    let usable = row.filter(|row| row.unavailable.is_none() && row.failure.is_none());
    let rate = usable.and_then(|row| row.rate.as_ref()).map(|rate| rate.per_s).filter(|per_s| *per_s > 0.0);
    match rate {
        Some(per_s) => format!("        {label:<30}{per_s:>13.3} ops/sec  {:>6.0} usecs/op\n", 1e6 / per_s),
        None => {
            let none = if row.is_some_and(refuses_direct) { "n/a*" } else { "n/a" };
            format!("        {label:<30}{none:>21}\n")
        }
    }
}

fn of_family(findings: &ProbeFindings, family: Family) -> impl Iterator<Item = &RowFinding> {
    findings.rows.iter().filter(move |row| row.spec.family == family)
}

/// Size of a write in the first section.
fn block(findings: &ProbeFindings) -> u32 {
    of_family(findings, Family::OneWrite).next().map_or(BLOCK_BYTES, |row| row.spec.write_bytes)
}

/// Mean duration of the rows that pg_test_fsync also has, whole seconds, at least 1.
fn seconds_per_test(findings: &ProbeFindings) -> u64 {
    let theirs = findings.rows.iter().filter(|row| !matches!(row.spec.family, Family::Wal | Family::Newer));
    let rows: Vec<u64> = theirs.filter(|row| row.operations > 0).map(|row| row.measured_us).collect();
    let mean = rows.iter().map(|us| *us as f64).sum::<f64>() / rows.len().max(1) as f64;
    (mean / 1e6).round().max(1.0) as u64
}
