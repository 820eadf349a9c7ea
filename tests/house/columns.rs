//! Whoever writes a column of `seconds.parquet` and whoever reads it mean the same one: every column that is written is
//! read by analysis or kept for people, and every one that analysis reads is written.
//!
//! Works on the definitions (`record::columns`), not on the sources' text.

use pgstrata::analyse::trial::reads;
use pgstrata::record::column::Column;
use pgstrata::record::columns::{self, ColumnDef, DeviceColumn};
use pgstrata::record::facts::DeviceFacts;
use pgstrata::record::seconds::{client_columns, device_prefixes, key_columns};
use pgstrata::record::stack::BaseName;
use pgstrata::telemetry::{ALL, SampledObjects};

/// Columns that analysis does not read, and what people who query the file want them for.
const KEPT_FOR_READERS: [(ColumnDef, &str); 42] = [
    (columns::RUN, "key: files of several runs make one table"),
    (columns::CASE, "key: files of several cases make one table"),
    (columns::TRIAL, "key: files of several trials make one table"),
    (columns::SECOND, "key: rows are asked for in its order"),
    (columns::CLIENT_FAILED, "in which seconds operations failed"),
    (columns::CLIENT_SKIPPED, "in which seconds a fixed rate could not be kept"),
    (columns::CLIENT_LATE, "in which seconds the latency limit was missed"),
    (columns::CLIENT_LATENCY_US_SUM, "mean latency of any stretch of seconds"),
    (columns::CLIENT_LATENCY_US_P95, "latency beside the counters of its second"),
    (columns::CPU_COUNT, "CPUs that went on or off line meanwhile"),
    (columns::MEM_FREE_BYTES, "memory that nobody used, beside what was available"),
    (columns::MEM_SWAP_USED_BYTES, "whether swap explains a slow second"),
    (columns::VM_PAGE_IN_BYTES, "reads of devices outside the stack, as the difference to its own"),
    (columns::VM_PAGE_OUT_BYTES, "writes of devices outside the stack, as the difference to its own"),
    (columns::VM_SWAP_IN_PAGES, "whether swapping explains a slow second"),
    (columns::VM_SWAP_OUT_PAGES, "whether swapping explains a slow second"),
    (columns::PSI_CPU_FULL_US, "the other half of the pressure that is shown"),
    (columns::PSI_MEMORY_FULL_US, "the other half of the pressure that is shown"),
    (columns::PG_WAL_LSN_BYTES, "the WAL with its headers, exact at the time of the reading"),
    (columns::PG_WAL_BUFFERS_FULL, "whether wal_buffers is too small"),
    (columns::PG_WAL_WRITES, "writes of the WAL in each sync"),
    (columns::PG_WAL_WRITE_US, "what a write of the WAL takes, where the server times it"),
    (columns::PG_WAL_SYNC_US, "what a sync of the WAL takes, where the server times it"),
    (columns::PG_BACKEND_SYNCS, "whether backends had to sync data files"),
    (columns::PG_CHECKPOINT_WRITE_US, "when checkpoints wrote"),
    (columns::PG_CHECKPOINT_SYNC_US, "when checkpoints synced"),
    (columns::PG_BLKS_HIT, "hit rate of shared_buffers, with pg_blks_read"),
    (columns::PG_COMMITS, "the server's own count of transactions"),
    (columns::PG_ROLLBACKS, "the server's own count of transactions"),
    (columns::PG_TEMP_BYTES, "temporary files of a script of one's own"),
    (columns::ZFS_ARC_BYTES, "how full the ARC was, beside shared_buffers"),
    (columns::ZFS_ARC_HITS, "hit rate of the ARC, with the misses"),
    (columns::ZFS_ARC_MISSES, "hit rate of the ARC, with the hits"),
    (columns::ZFS_L2_HITS, "hit rate of a cache device, with the misses"),
    (columns::ZFS_L2_MISSES, "hit rate of a cache device, with the hits"),
    (columns::ZFS_ZIL_COMMITS, "commits of the intent log beside those of the server"),
    (columns::ZFS_ZIL_RECORDS, "records of the intent log in each of its commits"),
    (columns::ZFS_ZIL_POOL_BYTES, "where the intent log was written: beside the data"),
    (columns::ZFS_ZIL_LOG_BYTES, "where the intent log was written: on its own devices"),
    (columns::ZFS_TXGS, "in which seconds transaction groups were written"),
    (columns::ZFS_TXG_SYNC_NS, "how long a transaction group took"),
    (columns::ZFS_TXG_WRITE_BYTES, "what a transaction group wrote"),
];

/// The same for the columns of each device.
const KEPT_OF_DEVICES: [(DeviceColumn, &str); 3] = [
    (columns::DEVICE_NAME, "which device of the machine a node is"),
    (columns::DEVICE_DISCARDS, "whether discards explain a slow second"),
    (columns::DEVICE_IN_FLIGHT, "requests in flight at the moment of the row"),
];

/// The columns of a trial, those of one device among them.
struct Columns {
    written: Vec<Column>,
    read: Vec<Column>,
    kept: Vec<(Column, &'static str)>,
}

impl Columns {
    fn of_this_program() -> Columns {
        let node = BaseName("disk".to_owned());
        let prefix = &device_prefixes([&node])[0];
        let target = SampledObjects {
            devices: vec![(node, DeviceFacts::default())],
            pools: vec!["tank".to_owned()],
            server: None,
        };
        let sampled = ALL.iter().flat_map(|sampler| sampler.columns(&target));
        let read = reads::COLUMNS.into_iter().flatten().map(ColumnDef::column);
        let read_of_device = reads::DEVICE_COLUMNS.iter().map(|column| column.column(prefix));
        let kept = KEPT_FOR_READERS.iter().map(|(column, reason)| (column.column(), *reason));
        let kept_of_device = KEPT_OF_DEVICES.iter().map(|(column, reason)| (column.column(prefix), *reason));
        Columns {
            written: key_columns().into_iter().chain(client_columns()).chain(sampled).collect(),
            read: read.chain(read_of_device).collect(),
            kept: kept.chain(kept_of_device).collect(),
        }
    }

    /// What is wrong with them, a sentence each.
    fn faults(&self) -> Vec<String> {
        let is_kept = |column: &Column| self.kept.iter().any(|(kept, _)| kept == column);
        let of = |fault: &'static str| move |column: &Column| format!("{}: {fault}", column.name);
        let unread = self.written.iter().filter(|column| !self.read.contains(column) && !is_kept(column));
        let unwritten = self.read.iter().filter(|column| !self.written.contains(column));
        let kept = || self.kept.iter().map(|(column, _)| column);
        let kept_and_read = kept().filter(|column| self.read.contains(column));
        let kept_unwritten = kept().filter(|column| !self.written.contains(column));
        let unexplained = self.kept.iter().filter(|(_, reason)| reason.is_empty()).map(|(column, _)| column);
        unread
            .map(of("written, but analysis does not read it and KEPT_FOR_READERS does not name it"))
            .chain(unwritten.map(of("analysis reads it, but nothing writes it")))
            .chain(kept_and_read.map(of("KEPT_FOR_READERS names it, but analysis reads it")))
            .chain(kept_unwritten.map(of("KEPT_FOR_READERS names it, but nothing writes it")))
            .chain(unexplained.map(of("KEPT_FOR_READERS names it without a reason")))
            .collect()
    }
}

#[test]
fn written_columns_and_read_columns_are_the_same() {
    let faults = Columns::of_this_program().faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_column_without_its_other_half_is_found() {
    let whole = Columns::of_this_program;
    let without = |columns: Vec<Column>, name: &str| columns.into_iter().filter(|column| column.name != name).collect();
    let unwritten = Columns { written: without(whole().written, "dev_disk_flushes"), ..whole() };
    assert_eq!(unwritten.faults(), ["dev_disk_flushes: analysis reads it, but nothing writes it"]);
    let unread = Columns { read: without(whole().read, "pg_wal_syncs"), ..whole() };
    let wanted = "pg_wal_syncs: written, but analysis does not read it and KEPT_FOR_READERS does not name it";
    assert_eq!(unread.faults(), [wanted]);
    let mut kept_and_read = whole();
    kept_and_read.kept.push((columns::TIME_US.column(), "the clock"));
    assert_eq!(kept_and_read.faults(), ["time_us: KEPT_FOR_READERS names it, but analysis reads it"]);
    let mut other_unit = whole();
    other_unit.written.iter_mut().filter(|column| column.name == "cpu_user_ns").for_each(|column| column.unit.clear());
    assert_eq!(other_unit.faults().len(), 2, "the same name with another meaning is another column");
}
