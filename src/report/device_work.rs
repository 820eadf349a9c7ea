//! Device work of one operation on each stack, by durability class: shown first in a report without a ranking.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::class_key;
use crate::analyse::findings::groups::by_key;
use crate::analyse::findings::{CaseFinding, DurabilityClass, Family, SyncedRow};
use std::collections::BTreeSet;

/// A row per case; empty if a ranking shows more, or no device was counted.
pub(super) fn device_work(labelled: &Labelled<'_>) -> Table {
    let columns = vec![
        TableColumn::text("Case").csv(&["class", "case"]),
        TableColumn::units("Writes", "", "per operation"),
        TableColumn::units("Bytes", "", "B per operation"),
        TableColumn::units("Flushes", "", "per operation"),
        TableColumn::units("WAL", "", "B per operation"),
        TableColumn::units("WAL syncs", "", "per operation"),
        TableColumn::units("Full-page images", "", "per operation"),
    ];
    let caption = "One operation at the devices of each stack";
    let note = "Per operation (a commit, where the workload writes). Writes, bytes and flushes are those of the devices that the \
                stack was built on, added up. What lies below the file of an image is not among them.";
    let mut table = Table::new("device-work", caption, columns).note(note);
    if !labelled.findings.rankings.is_empty() {
        return table;
    }
    let classes: BTreeSet<DurabilityClass> = labelled.findings.cases.iter().map(|case| case.durability.class).collect();
    for class in classes {
        let found = labelled.findings.cases.iter().filter(|case| case.durability.class == class);
        let found: Vec<&CaseFinding> = found.collect();
        let synced: Vec<String> = found.iter().filter_map(|case| synced_words(case, labelled)).collect();
        if synced.is_empty() && found.iter().all(|case| case.strata.is_none()) {
            continue;
        }
        table.open_class(class, Vec::new());
        for case in &found {
            let Some(strata) = &case.strata else { continue };
            let name = labelled.name(&case.id).csv(vec![class_key(class).to_owned(), case.id.clone()]);
            let device = strata.at_stack_devices.as_ref();
            table.push(vec![
                name,
                Cell::figure(device.and_then(|device| device.writes)),
                Cell::bytes(device.and_then(|device| device.write_bytes)),
                Cell::figure(device.and_then(|device| device.flushes)),
                Cell::bytes(strata.wal_bytes),
                Cell::figure(strata.wal_syncs),
                Cell::figure(strata.full_page_images),
            ]);
        }
        table.below(synced);
        if class != DurabilityClass::Flushed {
            table.below(reasons(&found, labelled));
        }
    }
    table
}

/// Device work of one synced write, for a case that measures synced writes: by its main method.
fn synced_words(case: &CaseFinding, labelled: &Labelled<'_>) -> Option<String> {
    let method = &case.measures.first()?.name;
    let row = one_write(case, method)?;
    let label = labelled.label(&case.id);
    Some(format!("{label}: one write of 8 KiB by {method} = {}", row.device_work.as_ref()?))
}

/// The probe's row of one write by this method, of a case that measures synced writes.
pub(super) fn one_write<'c>(case: &'c CaseFinding, method: &str) -> Option<&'c SyncedRow> {
    let mut rows = case.synced.iter().flat_map(|synced| &synced.rows);
    rows.find(|row| row.family == Family::OneWrite && row.label == method)
}

/// Reasons for the class of the cases, each once with its cases.
fn reasons(found: &[&CaseFinding], labelled: &Labelled<'_>) -> Vec<String> {
    let by_reason = by_key(found.iter().map(|case| (&case.durability.reason, labelled.label(&case.id))));
    by_reason.into_iter().map(|(reason, cases)| format!("{}: {reason}", cases.join(", "))).collect()
}
