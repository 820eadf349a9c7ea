//! Backend time and CPU use, as tables.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::{estimate_text, fields, fits_title, optional, percent, percent_ends};
use crate::analyse::findings::{BackendTime, CaseFinding};
use crate::units::Bytes;

impl Labelled<'_> {
    /// Storage's share of backend time per case, and CPU use.
    pub fn backend_time(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::number("Storage, 95 % interval", "of backend time").csv(&[
                "storage (0 to 1 of backend time)",
                "storage low (0 to 1)",
                "storage high (0 to 1)",
                "trials",
            ]),
            TableColumn::number("Measured in memory", "").csv(&["stack in memory", "gain", "gain low", "gain high"]),
            TableColumn::number("CPUs in use", "share").csv(&["CPU in use (0 to 1 of all CPUs)"]),
            TableColumn::number("Busiest CPU", "share").csv(&["busiest CPU of each second (0 to 1)"]),
            TableColumn::number("Tasks waiting for a CPU", "of the time").csv(&["CPU pressure, some (0 to 1)"]),
            TableColumn::text("Busiest process").csv(&["busiest process", "its CPU (CPUs)"]),
            TableColumn::text("Data").csv(&["data fit", "database (B)"]),
        ];
        let mut table = Table::new("backend-time", "Storage share of backend time, and CPU use", columns).note(
            "Storage: share of backends waiting for reads, writes and flushes, or for a lock whose holder waited for them \
             (sampled once a second); at a fixed rate, of the time without client pauses. A stack in memory can gain more \
             than this share, because storage also costs CPU time, or less.",
        );
        for case in &self.findings.cases {
            let Some(found) = &case.backend_time else { continue };
            let busiest = match &found.busiest_process {
                Some((name, share)) => Cell::text(name.clone())
                    .aside(format!("{} of a CPU", percent(*share)))
                    .csv(vec![name.clone(), share.to_string()]),
                None => Cell::none(2).style("absent"),
            };
            table.push(vec![
                self.name(&case.id),
                storage_cell(found),
                in_memory_cell(found),
                Cell::number(found.cpu_busy, percent),
                Cell::number(found.fullest_cpu, percent),
                Cell::number(found.cpu_pressure, percent),
                busiest,
                data_cell(case),
            ]);
        }
        table
    }

    /// Every wait of every case: the figures of the chart of waits.
    pub fn waits(&self) -> Table {
        let columns = vec![
            TableColumn::text("Case").csv(&["case"]),
            TableColumn::text("Class").csv(&["wait class"]),
            TableColumn::text("Event").csv(&["wait event"]),
            TableColumn::number("Share of samples", "share").csv(&["share of backend samples (0 to 1)"]),
        ];
        let rows = self.findings.cases.iter().flat_map(|case| {
            let waits = case.backend_time.iter().flat_map(|found| &found.waits);
            waits.map(|wait| {
                let (class, event) = (Cell::text(&wait.class), Cell::text(&wait.event));
                vec![self.name(&case.id), class, event, Cell::number(Some(wait.share), percent)]
            })
        });
        Table::new("waits", "Wait events of the backends", columns).rows(rows)
    }
}

/// "39 %" and "36–42 %".
pub(super) fn storage_words(found: &BackendTime) -> Option<(String, String)> {
    let storage = found.storage?;
    Some((percent(storage.value), percent_ends(&storage).unwrap_or_else(|| "no interval".to_owned())))
}

fn storage_cell(found: &BackendTime) -> Cell {
    let Some(((text, ends), storage)) = storage_words(found).zip(found.storage) else {
        return Cell::none(4).aside("no waits were sampled").style("absent");
    };
    let behind = Some(found.storage_behind_locks).filter(|share| *share >= 0.01);
    let fields = [fields(Some(&storage)), vec![storage.trials.to_string()]].concat();
    Cell::text(text).aside(ends).remark(behind.map(|share| format!("{} behind locks", percent(share)))).csv(fields)
}

fn in_memory_cell(found: &BackendTime) -> Cell {
    let Some(memory) = &found.in_memory else { return Cell::none(4).style("absent") };
    let (text, ends) = estimate_text(&memory.ratio);
    let csv = [vec![memory.stack.clone()], fields(Some(&memory.ratio))].concat();
    Cell::text(format!("{text}×")).aside(ends).remark(Some(format!("on {}", memory.stack))).csv(csv)
}

fn data_cell(case: &CaseFinding) -> Cell {
    let (fits, bytes) = (case.fits.map(fits_title), case.database_bytes);
    let text = bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string());
    let fields = vec![fits.unwrap_or_default().to_owned(), optional(bytes)];
    Cell::text(text).aside(fits.unwrap_or_default()).style("tight").csv(fields)
}
