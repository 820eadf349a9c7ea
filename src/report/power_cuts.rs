//! Costs of a power cut, as tables: the verdict of each stack with its commits' work on the disk, and verdicts of the
//! same recording for other devices.

use super::table::{Cell, Table, TableColumn};
use super::words::{optional, percent};
use crate::analyse::findings::groups::distinct;
use crate::analyse::findings::{DeviceVerdict, PageWrites, PowerCut, Verdict, VerdictRecord};
use crate::units::Bytes;

/// Scope of a verdict, below the table.
const OWN: &str = "Writes, flushes and bytes per commit, of pgstrata's own commits on recorded disks; the plan's workload is \
    not used.";
const BESIDE: &str = "Writes, flushes and bytes per commit, of pgstrata's own commits on recorded disks and those of the plan's \
    workload beside them; an acknowledgement is known of the former alone.";
const NOTE: &str = "Holds (arithmetic alone): every acknowledged commit was covered by a flush or FUA write that had completed; pgstrata cut \
    also tries recovery on what a power cut can leave. A convicted stack is ranked as volatile. What lies below the recorded disks is \
    not judged.";

/// Explanation of the device models.
const DEVICES_NOTE: &str = "From the same recording, had the device below the stack been one that behaves so; by arithmetic where no states were tried.";

pub(super) fn verdicts(found: &[PowerCut]) -> Table {
    let verdict = ["verdict", "why", "failing share at most (95 %)"];
    let table = Table::over("power-cuts", "What a power cut would cost", found).columns(&[
        (TableColumn::text("Stack").csv(&["stack", "cases"]), &|cut| {
            Cell::case(&cut.label, &cut.label).csv(vec![cut.label.clone(), cut.record.cases.join(" ")])
        }),
        (TableColumn::text("Verdict").csv(&verdict), &|cut| {
            let verdict = &cut.record.verdict;
            let csv = vec![verdict.short(), verdict.why().to_owned(), optional(cut.failing_share_max)];
            Cell::text(verdict.short()).aside(aside(cut)).style(style(verdict)).csv(csv)
        }),
        (TableColumn::number("Commits", ""), &|cut| {
            Cell::number((cut.record.commits > 0).then_some(cut.record.commits), crate::units::grouped)
        }),
        (per_commit("Writes"), &|cut| Cell::figure(cut.writes_per_commit)),
        (per_commit("Flushes"), &|cut| Cell::figure(cut.flushes_per_commit)),
        (per_commit("Bytes"), &|cut| {
            Cell::number(cut.bytes_per_commit.map(|bytes| bytes.round() as u64), |bytes| Bytes(bytes).to_string())
        }),
    ]);
    let is_beside = found.iter().any(|cut| cut.record.beside.is_some());
    table.note(format!("{} {NOTE}", if is_beside { BESIDE } else { OWN }))
}

fn per_commit(title: &str) -> TableColumn {
    TableColumn::number(title, "per commit").csv(&[&format!("{} per commit", title.to_lowercase())])
}

/// Reason of a verdict, and the states behind it.
fn aside(cut: &PowerCut) -> String {
    let mut parts = Vec::new();
    parts.extend(Some(cut.record.verdict.why().to_owned()).filter(|why| !why.is_empty()));
    parts.extend(cut.record.state.as_ref().map(|state| format!("the state: {state}")));
    let beside = cut.record.beside.as_ref();
    parts.extend(beside.map(|it| format!("beside the clients: {}, {} more commits in WAL", it.workload, it.commits)));
    let tried = cut.record.states.iter().filter(|class| class.of > 0);
    let tried: Vec<String> = tried.map(|it| format!("{} {} of {}", it.class, it.tried, it.of)).collect();
    parts.extend((!tried.is_empty()).then(|| format!("states tried: {}", tried.join(", "))));
    let VerdictRecord { wal_ends_read, recovered, torn_pages, torn_sectors, .. } = cut.record;
    let checked = format!("{wal_ends_read} by the end of WAL, {recovered} by recovery and all checks");
    parts.extend((recovered > 0).then_some(checked));
    parts.extend(cut.record.page_writes.map(split));
    let unseen = "a smaller share of skipped syncs may go unseen";
    let most = cut.failing_share_max.map(|share| format!("{:.1} %", share * 100.0));
    parts.extend(most.map(|most| format!("of states chosen like these, at most {most} fail (95 % sure); {unseen}")));
    for (states, how) in
        [(torn_pages, "4 KiB fail"), (torn_sectors, "512 B fail: the disk must write 4 KiB atomically")]
    {
        parts.extend((states > 0).then(|| format!("{states} states with a write torn at {how}")));
    }
    let left_out = &cut.record.left_out;
    parts.extend((!left_out.is_empty()).then(|| format!("not measured: {}", left_out.join("; "))));
    parts.extend(cut.record.evidence.as_ref().map(|folder| format!("evidence: {folder}")));
    parts.join("; ")
}

fn split(PageWrites { pages, split, misaligned }: PageWrites) -> String {
    let [split, misaligned] = [split, misaligned].map(|count| percent(count as f64 / pages as f64));
    format!(
        "{pages} pages of data written, {split} split over requests, {misaligned} not aligned to their size on the disk"
    )
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

/// What a power cut must leave: which verdicts deny it, and the states in which it was tested.
struct Guarantee(&'static str, fn(&Verdict) -> bool, fn(&VerdictRecord) -> u64);

const GUARANTEES: [Guarantee; 4] = [
    Guarantee(
        "Every commit that had to survive is there",
        |verdict| matches!(verdict, Verdict::Loses { .. } | Verdict::LosesAll { .. }),
        |record| record.wal_ends_read.max(record.recovered),
    ),
    Guarantee(
        "PostgreSQL recovers, and its tables and indexes are consistent",
        |verdict| matches!(verdict, Verdict::Torn { unit: None, .. }),
        |record| record.recovered,
    ),
    Guarantee(
        "The filesystem mounts without a repair",
        |verdict| matches!(verdict, Verdict::Unmountable { .. }),
        |record| record.recovered,
    ),
    Guarantee(
        "Writes torn at 4 KiB do no harm",
        |verdict| matches!(verdict, Verdict::Torn { unit: Some(_), .. }),
        |record| record.states.iter().filter(|class| class.class == "torn at 4 KiB").map(|class| class.tried).sum(),
    ),
];

/// Verdict on each guarantee of each stack, with the states behind it. Of several that fail a cut keeps the gravest.
pub(super) fn guarantees(found: &[PowerCut]) -> Table {
    let columns =
        vec![TableColumn::text("Guarantee"), TableColumn::text("Verdict"), TableColumn::number("States", "tested")];
    let mut table = Table::new("guarantees", "Guarantees", columns).lead(&["stack"]);
    for PowerCut { label, record, .. } in found {
        table.open_group(Some(label.clone()), None, vec![label.clone()]);
        for of @ Guarantee(what, _, tested) in &GUARANTEES {
            let tested = Cell::number(Some(tested(record)), crate::units::grouped);
            table.push(vec![Cell::text(*what).style("reason"), on_guarantee(record, of), tested]);
        }
    }
    table
}

fn on_guarantee(record: &VerdictRecord, Guarantee(what, is_denied_by, tested): &Guarantee) -> Cell {
    let verdict = &record.verdict;
    let quiet = match () {
        () if is_denied_by(verdict) => {
            let evidence = record.state.clone().unwrap_or_else(|| verdict.why().to_owned());
            return Cell::text(verdict.short()).style("convicted").aside(evidence);
        }
        () if verdict.convicts() => "not stated: the gravest failure counts",
        () if !verdict.is_known() => "not measured",
        () if *what == GUARANTEES[0].0 => return Cell::text(verdict.short()),
        () if tested(record) == 0 => "not tested",
        () => return Cell::text("holds"),
    };
    Cell::text(quiet).style("quiet")
}

/// Class in the style sheet.
fn style(verdict: &Verdict) -> &'static str {
    match verdict {
        verdict if verdict.convicts() => "convicted",
        verdict if !verdict.is_known() => "quiet",
        _ => "",
    }
}
