//! A probe's rows as CSV: one line per row, the unit in the column's name, empty fields for missing values.

use super::super::table::csv_line;
use super::rows::shown_device;
use crate::analyse::findings::LatencyFinding;
use crate::analyse::probe::findings::{DeviceWork, Failure, ProbeFindings, RateFinding, RowFinding};

/// Name, and text of a row.
type Column = (&'static str, fn(&RowFinding) -> String);

const COLUMNS: [Column; 33] = [
    ("row", |row| row.spec.id.clone()),
    ("family", |row| name(&row.spec.family)),
    ("label", |row| row.spec.label.trim().to_owned()),
    ("way", |row| name(&row.spec.way)),
    ("write_bytes", |row| row.spec.write_bytes.to_string()),
    ("writes", |row| row.spec.writes.to_string()),
    ("direct", |row| row.spec.direct.to_string()),
    ("writers", |row| row.spec.writers.to_string()),
    ("segment", |row| row.spec.segment.as_ref().map_or_else(String::new, name)),
    ("unavailable", |row| row.unavailable.clone().unwrap_or_default()),
    ("failed_call", |row| failure(row, |it| it.call.clone())),
    ("failed_errno", |row| failure(row, |it| text(it.errno))),
    ("failed_message", |row| failure(row, |it| it.message.clone())),
    ("operations", |row| row.operations.to_string()),
    ("measured_us", |row| row.measured_us.to_string()),
    ("slices", |row| row.slices.to_string()),
    ("rate_per_s", |row| rate(row, |it| it.per_s.to_string())),
    ("rate_per_s_low", |row| rate(row, |it| text(it.low_per_s))),
    ("rate_per_s_high", |row| rate(row, |it| text(it.high_per_s))),
    ("precise", |row| rate(row, |it| it.precise.to_string())),
    ("latency_ns_p50", |row| latency(row, |it| it.p50_ns.to_string())),
    ("latency_ns_p99", |row| latency(row, |it| text(it.p99_ns))),
    ("latency_ns_p999", |row| latency(row, |it| text(it.p999_ns))),
    ("latency_ns_max", |row| latency(row, |it| it.max_ns.to_string())),
    ("stalls", |row| row.stalls_in_all.to_string()),
    ("commits_per_sync", |row| text(row.commits_per_sync)),
    ("segment_us_mean", |row| text(row.segment_us_mean)),
    ("device", |row| work(row, |it| it.device.clone())),
    ("device_writes_per_op", |row| work(row, |it| it.writes_per_op.to_string())),
    ("device_bytes_per_op", |row| work(row, |it| it.bytes_per_op.to_string())),
    ("device_flushes_per_op", |row| work(row, |it| text(it.flushes_per_op))),
    ("device_idle_share", |row| work(row, |it| text(it.idle_share))),
    ("device_fua_presumed", |row| work(row, |it| it.fua_presumed.to_string())),
];

/// Renders the rows (RFC 4180).
#[must_use]
pub fn csv(findings: &ProbeFindings) -> String {
    let head = csv_line(&COLUMNS.map(|(name, _)| name.to_owned()));
    let rows = findings.rows.iter().map(|row| csv_line(&COLUMNS.map(|(_, of)| of(row))));
    std::iter::once(head).chain(rows).collect()
}

fn failure(row: &RowFinding, of: fn(&Failure) -> String) -> String {
    row.failure.as_ref().map_or_else(String::new, of)
}

fn rate(row: &RowFinding, of: fn(&RateFinding) -> String) -> String {
    row.rate.as_ref().map_or_else(String::new, of)
}

fn latency(row: &RowFinding, of: fn(&LatencyFinding) -> String) -> String {
    row.latency.as_ref().map_or_else(String::new, of)
}

fn work(row: &RowFinding, of: fn(&DeviceWork) -> String) -> String {
    shown_device(row).map_or_else(String::new, of)
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A variant's name in JSON.
fn name<T: serde::Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
