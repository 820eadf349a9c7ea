//! A probe's rows as CSV: one line per row, the unit in the column's name, empty fields for missing values.

use super::super::table::csv_line;
use super::super::words::optional;
use super::rows::shown_device;
use crate::analyse::findings::names::stored;
use crate::analyse::probe::findings::{ProbeFindings, RowFinding};

/// Name, and text of a row.
type Column = (&'static str, fn(&RowFinding) -> String);

const COLUMNS: [Column; 33] = [
    ("row", |row| row.spec.id.clone()),
    ("family", |row| stored(&row.spec.family)),
    ("label", |row| row.spec.label.trim().to_owned()),
    ("way", |row| stored(&row.spec.way)),
    ("write_bytes", |row| row.spec.write_bytes.to_string()),
    ("writes", |row| row.spec.writes.to_string()),
    ("direct", |row| row.spec.direct.to_string()),
    ("writers", |row| row.spec.writers.to_string()),
    ("segment", |row| row.spec.segment.as_ref().map_or_else(String::new, stored)),
    ("unavailable", |row| row.unavailable.clone().unwrap_or_default()),
    ("failed_call", |row| optional(row.failure.as_ref().map(|it| it.call.clone()))),
    ("failed_errno", |row| optional(row.failure.as_ref().and_then(|it| it.errno))),
    ("failed_message", |row| optional(row.failure.as_ref().map(|it| it.message.clone()))),
    ("operations", |row| row.operations.to_string()),
    ("measured_us", |row| row.measured_us.to_string()),
    ("slices", |row| row.slices.to_string()),
    ("rate_per_s", |row| optional(row.rate.as_ref().map(|it| it.per_s))),
    ("rate_per_s_low", |row| optional(row.rate.as_ref().and_then(|it| it.low_per_s))),
    ("rate_per_s_high", |row| optional(row.rate.as_ref().and_then(|it| it.high_per_s))),
    ("precise", |row| optional(row.rate.as_ref().map(|it| it.precise))),
    ("latency_ns_p50", |row| optional(row.latency.as_ref().map(|it| it.p50_ns))),
    ("latency_ns_p99", |row| optional(row.latency.as_ref().and_then(|it| it.p99_ns))),
    ("latency_ns_p999", |row| optional(row.latency.as_ref().and_then(|it| it.p999_ns))),
    ("latency_ns_max", |row| optional(row.latency.as_ref().map(|it| it.max_ns))),
    ("stalls", |row| row.stalls_in_all.to_string()),
    ("commits_per_sync", |row| optional(row.commits_per_sync)),
    ("segment_us_mean", |row| optional(row.segment_us_mean)),
    ("device", |row| optional(shown_device(row).map(|it| it.device.clone()))),
    ("device_writes_per_op", |row| optional(shown_device(row).map(|it| it.writes_per_op))),
    ("device_bytes_per_op", |row| optional(shown_device(row).map(|it| it.bytes_per_op))),
    ("device_flushes_per_op", |row| optional(shown_device(row).and_then(|it| it.flushes_per_op))),
    ("device_idle_share", |row| optional(shown_device(row).and_then(|it| it.idle_share))),
    ("device_fua_presumed", |row| optional(shown_device(row).map(|it| it.fua_presumed))),
];

/// Renders the rows (RFC 4180).
pub fn csv(findings: &ProbeFindings) -> String {
    let head = csv_line(&COLUMNS.map(|(name, _)| name.to_owned()));
    let rows = findings.rows.iter().map(|row| csv_line(&COLUMNS.map(|(_, of)| of(row))));
    std::iter::once(head).chain(rows).collect()
}
