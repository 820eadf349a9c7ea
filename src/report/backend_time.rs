//! Backend time and CPU use, as tables.

use super::cases::Cases;
use super::table::{Cell, Table, TableColumn};
use super::words::{estimate_text, fits_title, percent};
use crate::analyse::findings::{BackendTime, CaseFinding, Estimate};
use crate::units::Bytes;

impl Cases<'_> {
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
        for case in self.cases {
            let Some(found) = &case.backend_time else { continue };
            let busiest = match &found.busiest_process {
                Some((name, share)) => Cell::text(name.clone())
                    .aside(format!("{} of a CPU", percent(*share)))
                    .csv(vec![name.clone(), share.to_string()]),
                None => Cell::text("–").style("absent").csv(vec![String::new(); 2]),
            };
            table.push(vec![
                self.name(case),
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
        let mut table = Table::new("waits", "Wait events of the backends", columns);
        for case in self.cases {
            for wait in case.backend_time.iter().flat_map(|found| &found.waits) {
                let (class, event) = (Cell::text(wait.class.clone()), Cell::text(wait.event.clone()));
                table.push(vec![self.name(case), class, event, Cell::number(Some(wait.share), percent)]);
            }
        }
        table
    }
}

/// "39 %" and "36–42 %".
pub(super) fn storage_words(found: &BackendTime) -> Option<(String, String)> {
    let storage = found.storage?;
    let bare = |share: f64| percent(share).trim_end_matches(" %").to_owned();
    let ends = storage.low.zip(storage.high).map(|(low, high)| format!("{}–{}", bare(low), percent(high)));
    Some((percent(storage.value), ends.unwrap_or_else(|| "no interval".to_owned())))
}

fn storage_cell(found: &BackendTime) -> Cell {
    let Some(((text, ends), storage)) = storage_words(found).zip(found.storage) else {
        return Cell::text("–").aside("no waits were sampled").style("absent").csv(vec![String::new(); 4]);
    };
    let behind = Some(found.storage_behind_locks).filter(|share| *share >= 0.01);
    let mut fields = fields(&storage);
    fields.push(storage.trials.to_string());
    Cell::text(text).aside(ends).remark(behind.map(|share| format!("{} behind locks", percent(share)))).csv(fields)
}

fn in_memory_cell(found: &BackendTime) -> Cell {
    let Some(memory) = &found.in_memory else { return absent(4) };
    let (text, ends) = estimate_text(&memory.ratio);
    let mut csv = vec![memory.stack.clone()];
    csv.extend(fields(&memory.ratio));
    Cell::text(format!("{text}×")).aside(ends).remark(Some(format!("on {}", memory.stack))).csv(csv)
}

fn fields(estimate: &Estimate) -> Vec<String> {
    let optional = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
    vec![estimate.value.to_string(), optional(estimate.low), optional(estimate.high)]
}

fn absent(fields: usize) -> Cell {
    Cell::text("–").style("absent").csv(vec![String::new(); fields])
}

fn data_cell(case: &CaseFinding) -> Cell {
    let (fits, bytes) = (case.fits.map(fits_title), case.database_bytes);
    Cell::text(bytes.map_or_else(|| "–".to_owned(), |bytes| Bytes(bytes).to_string()))
        .aside(fits.unwrap_or_default())
        .style("tight")
        .csv(vec![fits.unwrap_or_default().to_owned(), bytes.map(|bytes| bytes.to_string()).unwrap_or_default()])
}
