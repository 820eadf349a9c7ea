//! The folder ranked among devices with published figures.

use super::findings::{Credibility, Family, FolderStanding, RowFinding, StandingEntry, Way};
use crate::analyse::findings::CredibilityKind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The published figures, from the shelf, which has more about each device than is used here.
const DEVICES: &str = include_str!("../../../shelf/sync-devices/devices.toml");

#[derive(Debug, Deserialize)]
struct ShelfDevice {
    class: String,
    device: String,
    fdatasync_per_s: Option<f64>,
    fsync_per_s: Option<f64>,
    source: String,
    note: String,
    #[serde(default)]
    unverified: bool,
    in_standing: Option<bool>,
}

/// The published devices and the folder, fastest first.
pub(super) fn standing(rows: &[RowFinding], credibility: &Credibility) -> FolderStanding {
    let mut entries = published().unwrap_or_default();
    let row = rows.iter().find(|row| row.spec.family == Family::OneWrite && row.spec.way == Way::Fdatasync);
    let here = row.and_then(|row| Some((row, row.rate.as_ref().filter(|rate| rate.per_s > 0.0)?)));
    if let Some((row, rate)) = here {
        entries.push(StandingEntry {
            here: true,
            class: "here".to_owned(),
            device: "this folder".to_owned(),
            fdatasync_per_s: rate.per_s,
            source: format!("this probe, row \"{}\"", row.spec.label.trim()),
            note: note(credibility.kind).to_owned(),
            unverified: false,
        });
    }
    entries.sort_by(|a, b| b.fdatasync_per_s.total_cmp(&a.fdatasync_per_s));
    FolderStanding { row_id: here.map(|(row, _)| row.spec.id.clone()), entries }
}

fn note(kind: CredibilityKind) -> &'static str {
    match kind {
        CredibilityKind::Memory => "nothing is made durable",
        CredibilityKind::NoFlushSeen => "no flush was seen",
        CredibilityKind::Implausible => "implausible for what is visible",
        CredibilityKind::Unexplained => "unexplained by what is visible",
        CredibilityKind::Flushed | CredibilityKind::DeclaredStable | CredibilityKind::Unknown => "",
    }
}

/// The embedded figures; a test ensures that they parse.
fn published() -> Option<Vec<StandingEntry>> {
    let mut published: BTreeMap<String, Vec<ShelfDevice>> = toml::from_str(DEVICES).ok()?;
    let shown = published.remove("device")?.into_iter().filter(|device| device.in_standing != Some(false));
    let entries = shown.filter_map(
        |ShelfDevice { class, device, fdatasync_per_s, fsync_per_s, source, note, unverified, .. }| {
            let fdatasync_per_s = fdatasync_per_s.or(fsync_per_s)?;
            Some(StandingEntry { here: false, class, device, fdatasync_per_s, source, note, unverified })
        },
    );
    Some(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_has_a_source_and_can_be_read() {
        let entries = published().expect("devices.toml is what the program expects");
        assert_eq!(entries.len(), 10);
        for entry in entries {
            assert!(entry.fdatasync_per_s > 0.0 && !entry.source.is_empty() && !entry.class.is_empty(), "{entry:?}");
        }
    }
}
