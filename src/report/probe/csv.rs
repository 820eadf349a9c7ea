//! A probe's rows as CSV: one line a row, the unit in the column's name, empty where there is nothing.

use super::super::table::csv_line;
use super::rows::shown_device;
use crate::analyse::probe::findings::{ProbeFindings, RowFinding};

const FIELDS: [&str; 33] = [
    "row",
    "family",
    "label",
    "way",
    "write_bytes",
    "writes",
    "direct",
    "writers",
    "segment",
    "unavailable",
    "failed_call",
    "failed_errno",
    "failed_message",
    "operations",
    "measured_us",
    "slices",
    "rate_per_s",
    "rate_per_s_low",
    "rate_per_s_high",
    "precise",
    "latency_ns_p50",
    "latency_ns_p99",
    "latency_ns_p999",
    "latency_ns_max",
    "stalls",
    "commits_per_sync",
    "segment_us_mean",
    "device",
    "device_writes_per_op",
    "device_bytes_per_op",
    "device_flushes_per_op",
    "device_idle_share",
    "device_fua_presumed",
];

/// The rows, RFC 4180.
#[must_use]
pub fn csv(findings: &ProbeFindings) -> String {
    let rows = findings.rows.iter().map(|row| csv_line(&fields(row)));
    std::iter::once(csv_line(&FIELDS.map(str::to_owned))).chain(rows).collect()
}

fn fields(row: &RowFinding) -> Vec<String> {
    let spec = &row.spec;
    let failure = row.failure.as_ref();
    let rate = row.rate.as_ref();
    let latency = row.latency.as_ref();
    let work = shown_device(row);
    vec![
        spec.id.clone(),
        name(&spec.family),
        spec.label.trim().to_owned(),
        name(&spec.way),
        spec.write_bytes.to_string(),
        spec.writes.to_string(),
        spec.direct.to_string(),
        spec.writers.to_string(),
        spec.segment.as_ref().map_or_else(String::new, name),
        row.unavailable.clone().unwrap_or_default(),
        failure.map_or_else(String::new, |failure| failure.call.clone()),
        text(failure.and_then(|failure| failure.errno)),
        failure.map_or_else(String::new, |failure| failure.message.clone()),
        row.operations.to_string(),
        row.measured_us.to_string(),
        row.slices.to_string(),
        text(rate.map(|rate| rate.per_s)),
        text(rate.and_then(|rate| rate.low_per_s)),
        text(rate.and_then(|rate| rate.high_per_s)),
        text(rate.map(|rate| rate.precise)),
        text(latency.map(|latency| latency.p50_ns)),
        text(latency.and_then(|latency| latency.p99_ns)),
        text(latency.and_then(|latency| latency.p999_ns)),
        text(latency.map(|latency| latency.max_ns)),
        row.stalls_in_all.to_string(),
        text(row.commits_per_sync),
        text(row.segment_us_mean),
        work.map_or_else(String::new, |work| work.device.clone()),
        text(work.map(|work| work.writes_per_op)),
        text(work.map(|work| work.bytes_per_op)),
        text(work.and_then(|work| work.flushes_per_op)),
        text(work.and_then(|work| work.idle_share)),
        text(work.map(|work| work.fua_presumed)),
    ]
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A variant as JSON has it.
fn name<T: serde::Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
