//! Meanings of iostat columns: one name per quantity, whatever the system calls it.
//!
//! Sources: iostat(1) of sysstat 9 to 12, iostat(8) of FreeBSD 8 to 14, iostat(8) of illumos.

use super::super::table::KIB;

/// Name, unit and factor of a column.
pub(super) type Known = (&'static str, &'static str, f64);

/// A sector in Linux counts is 512 bytes on every device.
const SECTOR: f64 = 512.0;
const MIB: f64 = 1024.0 * 1024.0;
const MS: f64 = 1000.0;

/// Device columns with the same meaning, then name, unit and factor. Names of different systems do not conflict.
const COLUMNS: &[(&[&str], &str, &str, f64)] = &[
    (&["r/s"], "read_ops_per_s", "ops/s", 1.0),
    (&["w/s"], "write_ops_per_s", "ops/s", 1.0),
    (&["d/s"], "discard_ops_per_s", "ops/s", 1.0),
    (&["f/s"], "flush_ops_per_s", "ops/s", 1.0),
    (&["tps"], "ops_per_s", "ops/s", 1.0),
    (&["rsec/s", "Blk_read/s"], "read_bytes_per_s", "B/s", SECTOR),
    (&["wsec/s", "Blk_wrtn/s"], "write_bytes_per_s", "B/s", SECTOR),
    (&["dsec/s", "Blk_dscd/s"], "discard_bytes_per_s", "B/s", SECTOR),
    (&["rkB/s", "kr/s", "Kr/s", "kB_read/s"], "read_bytes_per_s", "B/s", KIB),
    (&["wkB/s", "kw/s", "Kw/s", "kB_wrtn/s"], "write_bytes_per_s", "B/s", KIB),
    (&["dkB/s", "kB_dscd/s"], "discard_bytes_per_s", "B/s", KIB),
    (&["rMB/s", "Mr/s", "MB_read/s"], "read_bytes_per_s", "B/s", MIB),
    (&["wMB/s", "Mw/s", "MB_wrtn/s"], "write_bytes_per_s", "B/s", MIB),
    (&["dMB/s", "MB_dscd/s"], "discard_bytes_per_s", "B/s", MIB),
    (&["kB_read"], "read_bytes", "B", KIB),
    (&["kB_wrtn"], "write_bytes", "B", KIB),
    (&["MB_read"], "read_bytes", "B", MIB),
    (&["MB_wrtn"], "write_bytes", "B", MIB),
    (&["Blk_read"], "read_bytes", "B", SECTOR),
    (&["Blk_wrtn"], "write_bytes", "B", SECTOR),
    (&["Blk_dscd"], "discard_bytes", "B", SECTOR),
    (&["kB_dscd"], "discard_bytes", "B", KIB),
    (&["MB_dscd"], "discard_bytes", "B", MIB),
    (&["kB/s"], "bytes_per_s", "B/s", KIB),
    (&["MB/s"], "bytes_per_s", "B/s", MIB),
    (&["sec/s"], "bytes_per_s", "B/s", SECTOR),
    (&["rrqm/s"], "read_merges_per_s", "requests/s", 1.0),
    (&["wrqm/s"], "write_merges_per_s", "requests/s", 1.0),
    (&["drqm/s"], "discard_merges_per_s", "requests/s", 1.0),
    (&["rqm/s"], "merges_per_s", "requests/s", 1.0),
    (&["%rrqm", "rrqm"], "read_merged_percent", "%", 1.0),
    (&["%wrqm", "wrqm"], "write_merged_percent", "%", 1.0),
    (&["%drqm", "drqm"], "discard_merged_percent", "%", 1.0),
    (&["avgrq-sz"], "request_bytes", "B", SECTOR),
    (&["areq-sz"], "request_bytes", "B", KIB),
    (&["rareq-sz"], "read_request_bytes", "B", KIB),
    (&["wareq-sz"], "write_request_bytes", "B", KIB),
    (&["dareq-sz"], "discard_request_bytes", "B", KIB),
    (&["avgqu-sz", "aqu-sz"], "queue_depth", "requests", 1.0),
    (&["qlen"], "queue_length", "requests", 1.0),
    (&["wait"], "wait_queue_depth", "requests", 1.0),
    (&["actv"], "active_queue_depth", "requests", 1.0),
    (&["await", "ms/t", "svc_t", "serv"], "latency_us", "us", MS),
    (&["r_await", "ms/r"], "read_latency_us", "us", MS),
    (&["w_await", "ms/w"], "write_latency_us", "us", MS),
    (&["d_await"], "discard_latency_us", "us", MS),
    (&["f_await"], "flush_latency_us", "us", MS),
    (&["ms/o"], "other_latency_us", "us", MS),
    (&["wsvc_t"], "wait_latency_us", "us", MS),
    (&["asvc_t"], "active_latency_us", "us", MS),
    (&["svctm"], "service_time_us", "us", MS),
    (&["%util", "util", "%b"], "util_percent", "%", 1.0),
    (&["%w"], "wait_util_percent", "%", 1.0),
    (&["s/w"], "soft_errors", "count", 1.0),
    (&["h/w"], "hard_errors", "count", 1.0),
    (&["trn"], "transport_errors", "count", 1.0),
    (&["tot"], "errors", "count", 1.0),
];

/// Columns of the processors and of the terminal, and which of the two they belong to.
const MACHINE: &[(&str, &[&str], &str, &str)] = &[
    ("cpu", &["us", "%user"], "user_percent", "%"),
    ("cpu", &["ni", "%nice"], "nice_percent", "%"),
    ("cpu", &["sy", "%system", "%sys"], "system_percent", "%"),
    ("cpu", &["in"], "interrupt_percent", "%"),
    ("cpu", &["wt", "%iowait"], "iowait_percent", "%"),
    ("cpu", &["id", "%idle"], "idle_percent", "%"),
    ("cpu", &["%steal"], "steal_percent", "%"),
    ("tty", &["tin"], "terminal_in_chars_per_s", "chars/s"),
    ("tty", &["tout"], "terminal_out_chars_per_s", "chars/s"),
];

/// Meaning of a device column.
pub(super) fn of_device(column: &str) -> Option<Known> {
    let (_, name, unit, factor) = COLUMNS.iter().find(|(columns, ..)| columns.contains(&column))?;
    Some((name, unit, *factor))
}

/// Meaning of a column of the whole machine, and its owner: `cpu` or `tty`.
pub(super) fn of_machine(column: &str) -> Option<(&'static str, Known)> {
    let (owner, _, name, unit) = MACHINE.iter().find(|(_, columns, ..)| columns.contains(&column))?;
    Some((owner, (name, unit, 1.0)))
}

/// Meaning of a column of any owner.
pub(super) fn of_any(column: &str) -> Option<(&'static str, Known)> {
    of_device(column).map(|known| ("device", known)).or_else(|| of_machine(column))
}
