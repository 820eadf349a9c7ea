//! Costs of a power cut, as tables: the verdict of each stack with its commits' work on the disk, and verdicts of the
//! same recording for other devices.

use super::table::{Cell, Column, Table, TableColumn};
use super::words::optional;
use crate::analyse::findings::groups::distinct;
use crate::analyse::findings::{DeviceVerdict, PowerCut, Verdict};
use crate::units::Bytes;

/// Scope of a verdict, below the table.
const NOTE: &str = "Writes, flushes and bytes per commit, of pgstrata's own commits on recorded disks; the plan's workload is \
    not used. Holds (arithmetic alone): every acknowledged commit was covered by a flush or FUA write that had completed; pgstrata cut \
    also tries recovery on what a power cut can leave. A convicted stack is ranked as volatile. What lies below the recorded disks is \
    not judged.";

/// Explanation of the device models.
const DEVICES_NOTE: &str = "From the same recording, had the device below the stack been one that behaves so; by arithmetic where no states were tried.";

pub(super) fn verdicts(found: &[PowerCut]) -> Table {
    let verdict = ["verdict", "why", "failing share at most (95 %)"];
    let table = Table::over("power-cuts", "What a power cut would cost", found).columns(&[
        Column(TableColumn::text("Stack").csv(&["stack", "cases"]), &|cut| {
            Cell::case(&cut.label, &cut.label).csv(vec![cut.label.clone(), cut.record.cases.join(" ")])
        }),
        Column(TableColumn::text("Verdict").csv(&verdict), &|cut| {
            let verdict = &cut.record.verdict;
            let csv = vec![verdict.short(), verdict.why().to_owned(), optional(cut.failing_share_max)];
            Cell::text(verdict.short()).aside(aside(cut)).style(style(verdict)).csv(csv)
        }),
        Column(TableColumn::number("Commits", ""), &|cut| {
            Cell::number((cut.record.commits > 0).then_some(cut.record.commits), crate::units::grouped)
        }),
        Column(per_commit("Writes"), &|cut| Cell::figure(cut.writes_per_commit)),
        Column(per_commit("Flushes"), &|cut| Cell::figure(cut.flushes_per_commit)),
        Column(per_commit("Bytes"), &|cut| {
            Cell::number(cut.bytes_per_commit.map(|bytes| bytes.round() as u64), |bytes| Bytes(bytes).to_string())
        }),
    ]);
    table.note(NOTE)
}

fn per_commit(title: &str) -> TableColumn {
    TableColumn::number(title, "per commit").csv(&[&format!("{} per commit", title.to_lowercase())])
}

/// Upper bound behind a *holds*.
pub fn bound(share: f64) -> String {
    format!(
        "of states chosen like these, at most {:.1} % fail (95 % CI); a smaller share of skipped syncs may go unseen",
        share * 100.0
    )
}

/// Reason of a verdict, and the states behind it.
fn aside(cut: &PowerCut) -> String {
    let mut parts = Vec::new();
    parts.extend(Some(cut.record.verdict.why().to_owned()).filter(|why| !why.is_empty()));
    let tried = cut.record.states.iter().filter(|class| class.of > 0);
    let tried: Vec<String> = tried.map(|it| format!("{} {} of {}", it.class, it.tried, it.of)).collect();
    parts.extend((!tried.is_empty()).then(|| format!("states tried: {}", tried.join(", "))));
    parts.extend(cut.failing_share_max.map(bound));
    let states = cut.record.torn_sectors;
    let torn = format!("{states} states with a write torn at 512 B fail: the disk must write 4 KiB atomically");
    parts.extend((states > 0).then_some(torn));
    parts.extend(cut.record.evidence.as_ref().map(|folder| format!("evidence: {folder}")));
    parts.join("; ")
}

/// Verdicts for other devices: a row per recording, a column per model.
pub(super) fn devices(found: &[PowerCut]) -> Table {
    let models = distinct(found.iter().flat_map(|cut| &cut.record.devices).map(|on| on.device.as_str()));
    let columns = std::iter::once("Stack").chain(models.iter().copied()).map(TableColumn::text).collect();
    let mut table = Table::new("power-cut-devices", "On other devices", columns).note(DEVICES_NOTE);
    for cut in found.iter().filter(|cut| !cut.record.devices.is_empty()) {
        let cells = models.iter().map(|model| match cut.record.devices.iter().find(|on| on.device == *model) {
            Some(DeviceVerdict { verdict: Verdict::Holds { .. }, .. }) => Cell::text("holds"),
            Some(on) => Cell::text(on.verdict.short()).style(style(&on.verdict)),
            None => Cell::none(1).style("absent"),
        });
        table.push(std::iter::once(Cell::case(&cut.label, &cut.label)).chain(cells).collect());
    }
    table
}

/// Class in the style sheet.
fn style(verdict: &Verdict) -> &'static str {
    match verdict {
        verdict if verdict.convicts() => "convicted",
        verdict if !verdict.is_known() => "quiet",
        _ => "",
    }
}
