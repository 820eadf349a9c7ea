//! Turns a file of typical devices into cases: one row per device and way to make a write durable. The probe reads the
//! same file.

use crate::error::{Error, Result};
use crate::foreign::manifest::line_of;
use crate::foreign::read::table;
use crate::record::imported::{ImportedCase, ImportedFile, ImportedOutput, ImportedRow, ImportedTrial};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

/// Tool name of these outputs.
const TOOL: &str = "published figures";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Devices {
    device: Vec<Spanned<PublishedDevice>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedDevice {
    class: String,
    device: String,
    open_datasync_per_s: Option<Spanned<f64>>,
    fdatasync_per_s: Option<Spanned<f64>>,
    fsync_per_s: Option<Spanned<f64>>,
    open_sync_per_s: Option<Spanned<f64>>,
    source: String,
    note: String,
    #[serde(default)]
    unverified: bool,
    /// Used by the probe.
    #[serde(default, rename = "in_standing")]
    _in_standing: Option<bool>,
}

pub(super) fn cases(file: &str, text: &str) -> Result<Vec<ImportedCase>> {
    let devices: Devices = toml::from_str(text).map_err(|e| Error::bug(format!("{file}: {e}")))?;
    let stored = ImportedFile {
        name: file.to_owned(),
        sha256: Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect(),
        bytes: text.len() as u64,
        ..ImportedFile::default()
    };
    Ok(devices.device.into_iter().map(|device| case(&stored, text, device)).collect())
}

fn case(file: &ImportedFile, text: &str, device: Spanned<PublishedDevice>) -> ImportedCase {
    let begins = line_of(text, device.span().start);
    let ends = line_of(text, device.span().end.saturating_sub(1)).max(begins);
    let device = device.into_inner();
    let ways = [
        ("open_datasync", &device.open_datasync_per_s),
        ("fdatasync", &device.fdatasync_per_s),
        ("fsync", &device.fsync_per_s),
        ("open_sync", &device.open_sync_per_s),
    ];
    let rows: Vec<ImportedRow> =
        ways.into_iter().filter_map(|(way, per_s)| Some(row(text, way, per_s.as_ref()?))).collect();
    let last = rows.iter().map(|row| row.line).max().unwrap_or(ends);
    let output =
        ImportedOutput { tool: TOOL.to_owned(), lines: (begins, ends.max(last)), rows, ..ImportedOutput::default() };
    let facts = [("device.class", &device.class), ("device.source", &device.source)];
    let mut caveats: Vec<String> = Some(device.note).filter(|note| !note.is_empty()).into_iter().collect();
    caveats.extend(device.unverified.then(|| "not checked against a second source".to_owned()));
    ImportedCase {
        name: device.device,
        facts: facts.into_iter().map(|(key, value)| (key.to_owned(), value.clone())).collect(),
        trials: vec![ImportedTrial { files: vec![file.clone()], outputs: vec![output], ..ImportedTrial::default() }],
        caveats,
    }
}

fn row(text: &str, way: &str, per_s: &Spanned<f64>) -> ImportedRow {
    let at = line_of(text, per_s.span().start);
    let labels = [("test", "one write"), ("write_bytes", "8192"), ("method", way)];
    let labels = labels.map(|(name, value)| (name, value.to_owned())).to_vec();
    let figure = table::figure("rate", "ops/s", *per_s.get_ref(), text.get(per_s.span()).unwrap_or_default(), at);
    ImportedRow { figures: vec![figure], ..table::row(labels, at) }
}
