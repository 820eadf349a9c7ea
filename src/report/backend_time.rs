//! Backend time and CPU use, as tables.

use super::labelled::Labelled;
use super::table::{Cell, Table, TableColumn};
use super::words::{estimate_text, fields, fits_title, optional, percent, percent_ends};
use crate::analyse::findings::{BackendTime, CaseFinding};
use crate::units::Bytes;

impl Labelled<'_> {
    /// Storage's share of backend time per case, and CPU use.
    pub fn backend_time(&self) -> Table {
        let storage = ["storage (0 to 1 of backend time)", "storage low (0 to 1)", "storage high (0 to 1)", "trials"];
        let memory = ["stack in memory", "gain", "gain low", "gain high"];
        let [cpus, fullest] = ["CPUs busy (0 to 1 of what the hypervisor left)", "busiest CPU of each second (0 to 1)"];
        let [waiting, process] = [&["CPU pressure, some (0 to 1)"][..], &["busiest process", "its CPU (CPUs)"]];
        let rows = self.over_cases("backend-time", "Storage share of backend time, and CPU use", |case| {
            case.backend_time.iter().map(move |it| (case, it))
        });
        let table = rows.columns(&[
            (TableColumn::number("Storage, 95 % interval", "of backend time").csv(&storage), &|it| storage_cell(it.1)),
            (TableColumn::number("Measured in memory", "").csv(&memory), &|it| in_memory_cell(it.1)),
            (TableColumn::number("CPUs busy", "share").csv(&[cpus]), &|it| Cell::share(it.1.cpu_busy)),
            (TableColumn::number("Busiest CPU", "share").csv(&[fullest]), &|it| Cell::share(it.1.fullest_cpu)),
            (TableColumn::number("Tasks waiting for a CPU", "of the time").csv(waiting), &|it| {
                Cell::share(it.1.cpu_pressure)
            }),
            (TableColumn::text("Busiest process").csv(process), &|it| busiest_cell(it.1)),
            (TableColumn::text("Data").csv(&["data fit", "database (B)"]), &|(case, _)| data_cell(case)),
        ]);
        table.note(
            "Storage: share of backends waiting for reads, writes and flushes, or for a lock whose holder waited for them \
             (sampled ten times a second); at a fixed rate, of the time without client pauses. A stack in memory can gain more \
             than this share, because storage also costs CPU time, or less.",
        )
    }

    /// Every wait of every case: the figures of the chart of waits.
    pub fn waits(&self) -> Table {
        let share = ["share of backend samples (0 to 1)"];
        let rows = self.over_cases("waits", "Wait events of the backends", |case| {
            case.backend_time.iter().flat_map(|it| &it.waits)
        });
        rows.columns(&[
            (TableColumn::text("Class").csv(&["wait class"]), &|it| Cell::text(&it.class)),
            (TableColumn::text("Event").csv(&["wait event"]), &|it| {
                Cell::text(if it.class == "CPU" { "CPU or not reported" } else { &it.event })
                    .csv(vec![it.event.clone()])
            }),
            (TableColumn::number("Share of samples", "").csv(&share), &|it| Cell::share(it.share)),
        ])
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

fn busiest_cell(found: &BackendTime) -> Cell {
    let Some((name, share)) = &found.busiest_process else { return Cell::none(2).style("absent") };
    Cell::text(name).aside(format!("{} of a CPU", percent(*share))).csv(vec![name.clone(), share.to_string()])
}

fn data_cell(case: &CaseFinding) -> Cell {
    let (fits, bytes) = (case.fits.map(fits_title), case.database_bytes);
    let text = bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string());
    let fields = vec![fits.unwrap_or_default().to_owned(), optional(bytes)];
    Cell::text(text).aside(fits.unwrap_or_default()).style("tight").csv(fields)
}
