//! What the columns of every iostat mean: one name for one thing, whatever the system calls it.
//!
//! Sources: iostat(1) of sysstat 9 to 12, iostat(8) of FreeBSD 8 to 14, iostat(8) of macOS, iostat(8) of illumos.

use super::super::table::{KIB, Known, known};

/// Sectors, as Linux counts them, have 512 bytes whatever the device.
const SECTOR: f64 = 512.0;
const MIB: f64 = 1024.0 * 1024.0;
const MS: f64 = 1000.0;

/// Every column that is known. Names of Linux, FreeBSD, illumos and macOS do not contradict each other but for those in
/// `meaning`.
const COLUMNS: &[Known] = &[
    known("r/s", "read_ops_per_s", "ops/s", 1.0),
    known("w/s", "write_ops_per_s", "ops/s", 1.0),
    known("d/s", "discard_ops_per_s", "ops/s", 1.0),
    known("f/s", "flush_ops_per_s", "ops/s", 1.0),
    known("rps", "read_ops_per_s", "ops/s", 1.0),
    known("wps", "write_ops_per_s", "ops/s", 1.0),
    known("tps", "ops_per_s", "ops/s", 1.0),
    known("r/i", "read_ops", "count", 1.0),
    known("w/i", "write_ops", "count", 1.0),
    known("xfrs", "ops", "count", 1.0),
    known("rsec/s", "read_bytes_per_s", "B/s", SECTOR),
    known("wsec/s", "write_bytes_per_s", "B/s", SECTOR),
    known("dsec/s", "discard_bytes_per_s", "B/s", SECTOR),
    known("rkB/s", "read_bytes_per_s", "B/s", KIB),
    known("wkB/s", "write_bytes_per_s", "B/s", KIB),
    known("dkB/s", "discard_bytes_per_s", "B/s", KIB),
    known("rMB/s", "read_bytes_per_s", "B/s", MIB),
    known("wMB/s", "write_bytes_per_s", "B/s", MIB),
    known("dMB/s", "discard_bytes_per_s", "B/s", MIB),
    known("kr/s", "read_bytes_per_s", "B/s", KIB),
    known("kw/s", "write_bytes_per_s", "B/s", KIB),
    known("Kr/s", "read_bytes_per_s", "B/s", KIB),
    known("Kw/s", "write_bytes_per_s", "B/s", KIB),
    known("Mr/s", "read_bytes_per_s", "B/s", MIB),
    known("Mw/s", "write_bytes_per_s", "B/s", MIB),
    known("kr/i", "read_bytes", "B", KIB),
    known("kw/i", "write_bytes", "B", KIB),
    known("Mr/i", "read_bytes", "B", MIB),
    known("Mw/i", "write_bytes", "B", MIB),
    known("Blk_read/s", "read_bytes_per_s", "B/s", SECTOR),
    known("Blk_wrtn/s", "write_bytes_per_s", "B/s", SECTOR),
    known("Blk_dscd/s", "discard_bytes_per_s", "B/s", SECTOR),
    known("kB_read/s", "read_bytes_per_s", "B/s", KIB),
    known("kB_wrtn/s", "write_bytes_per_s", "B/s", KIB),
    known("kB_dscd/s", "discard_bytes_per_s", "B/s", KIB),
    known("MB_read/s", "read_bytes_per_s", "B/s", MIB),
    known("MB_wrtn/s", "write_bytes_per_s", "B/s", MIB),
    known("MB_dscd/s", "discard_bytes_per_s", "B/s", MIB),
    known("Blk_read", "read_bytes", "B", SECTOR),
    known("Blk_wrtn", "write_bytes", "B", SECTOR),
    known("Blk_dscd", "discard_bytes", "B", SECTOR),
    known("kB_read", "read_bytes", "B", KIB),
    known("kB_wrtn", "write_bytes", "B", KIB),
    known("kB_dscd", "discard_bytes", "B", KIB),
    known("MB_read", "read_bytes", "B", MIB),
    known("MB_wrtn", "write_bytes", "B", MIB),
    known("MB_dscd", "discard_bytes", "B", MIB),
    known("kB/s", "bytes_per_s", "B/s", KIB),
    known("MB/s", "bytes_per_s", "B/s", MIB),
    known("sec/s", "bytes_per_s", "B/s", SECTOR),
    known("kps", "bytes_per_s", "B/s", KIB),
    known("Mps", "bytes_per_s", "B/s", MIB),
    known("MB", "bytes", "B", MIB),
    known("rrqm/s", "read_merges_per_s", "requests/s", 1.0),
    known("wrqm/s", "write_merges_per_s", "requests/s", 1.0),
    known("drqm/s", "discard_merges_per_s", "requests/s", 1.0),
    known("rqm/s", "merges_per_s", "requests/s", 1.0),
    known("%rrqm", "read_merged_percent", "%", 1.0),
    known("%wrqm", "write_merged_percent", "%", 1.0),
    known("%drqm", "discard_merged_percent", "%", 1.0),
    known("rrqm", "read_merged_percent", "%", 1.0),
    known("wrqm", "write_merged_percent", "%", 1.0),
    known("drqm", "discard_merged_percent", "%", 1.0),
    known("avgrq-sz", "request_bytes", "B", SECTOR),
    known("areq-sz", "request_bytes", "B", KIB),
    known("rareq-sz", "read_request_bytes", "B", KIB),
    known("wareq-sz", "write_request_bytes", "B", KIB),
    known("dareq-sz", "discard_request_bytes", "B", KIB),
    known("KB/t", "request_bytes", "B", KIB),
    known("avgqu-sz", "queue_depth", "requests", 1.0),
    known("aqu-sz", "queue_depth", "requests", 1.0),
    known("qlen", "queue_length", "requests", 1.0),
    known("wait", "wait_queue_depth", "requests", 1.0),
    known("actv", "active_queue_depth", "requests", 1.0),
    known("await", "latency_us", "us", MS),
    known("r_await", "read_latency_us", "us", MS),
    known("w_await", "write_latency_us", "us", MS),
    known("d_await", "discard_latency_us", "us", MS),
    known("f_await", "flush_latency_us", "us", MS),
    known("ms/r", "read_latency_us", "us", MS),
    known("ms/w", "write_latency_us", "us", MS),
    known("ms/o", "other_latency_us", "us", MS),
    known("ms/t", "latency_us", "us", MS),
    known("svc_t", "latency_us", "us", MS),
    known("serv", "latency_us", "us", MS),
    known("wsvc_t", "wait_latency_us", "us", MS),
    known("asvc_t", "active_latency_us", "us", MS),
    known("svctm", "service_time_us", "us", MS),
    known("tsvc_t/i", "latency_total_us", "us", 1e6),
    known("sb/i", "busy_us", "us", 1e6),
    known("%util", "util_percent", "%", 1.0),
    known("util", "util_percent", "%", 1.0),
    known("%b", "util_percent", "%", 1.0),
    known("%w", "wait_util_percent", "%", 1.0),
    known("s/w", "soft_errors", "count", 1.0),
    known("h/w", "hard_errors", "count", 1.0),
    known("trn", "transport_errors", "count", 1.0),
    known("tot", "errors", "count", 1.0),
];

/// Columns of the processors, of the terminal and of the load, which stand beside those of the devices.
const MACHINE: &[(&str, Known)] = &[
    ("cpu", known("us", "user_percent", "%", 1.0)),
    ("cpu", known("ni", "nice_percent", "%", 1.0)),
    ("cpu", known("sy", "system_percent", "%", 1.0)),
    ("cpu", known("in", "interrupt_percent", "%", 1.0)),
    ("cpu", known("wt", "iowait_percent", "%", 1.0)),
    ("cpu", known("id", "idle_percent", "%", 1.0)),
    ("cpu", known("%user", "user_percent", "%", 1.0)),
    ("cpu", known("%nice", "nice_percent", "%", 1.0)),
    ("cpu", known("%system", "system_percent", "%", 1.0)),
    ("cpu", known("%sys", "system_percent", "%", 1.0)),
    ("cpu", known("%iowait", "iowait_percent", "%", 1.0)),
    ("cpu", known("%steal", "steal_percent", "%", 1.0)),
    ("cpu", known("%idle", "idle_percent", "%", 1.0)),
    ("tty", known("tin", "terminal_in_chars_per_s", "chars/s", 1.0)),
    ("tty", known("tout", "terminal_out_chars_per_s", "chars/s", 1.0)),
    ("load", known("1m", "load_1_min", "tasks", 1.0)),
    ("load", known("5m", "load_5_min", "tasks", 1.0)),
    ("load", known("15m", "load_15_min", "tasks", 1.0)),
];

/// What a column of a device means.
pub(super) fn of_device(column: &str) -> Option<Known> {
    COLUMNS.iter().find(|known| known.column == column).copied()
}

/// What a column of the whole machine means, and whose it is: `cpu`, `tty` or `load`.
pub(super) fn of_machine(column: &str) -> Option<(&'static str, Known)> {
    MACHINE.iter().find(|(_, known)| known.column == column).copied()
}
