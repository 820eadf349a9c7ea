//! Cold sequential scans of one table, and an index build on it: these depend most directly on page placement.
//!
//! Uses pgbench's data. A scan is one query: its seconds are shares of it.

use super::pgbench::Pgbench;
use super::timed::{PieceSeconds, TimedWork};
use super::wal_segments::NewSegments;
use super::{LoadEvent, Measuring, Window, Workload, WorkloadInfo};
use crate::cluster::client::Client;
use crate::error::{Error, Result};
use crate::host::time::{micros, now, wall_us};
use crate::host::users::User;
use crate::host::{files, paths};
use crate::record::counts::Counts;
use crate::record::operation::{CacheState, Operation, Writes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, OptionValue, Options};
use crate::record::window::Extent;
use crate::units::Micros;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_DURATION: Micros = Micros(20_000_000);
const QUICK_DURATION: &str = "3s";

/// Minimum number of scans: two show how they differ.
const LEAST_SCANS: usize = 2;

/// Total size of the WAL segments made at the end, at least one segment.
const SEGMENT_BYTES: u64 = 64 << 20;

/// Limit for a scan or an index build on a slow stack; beyond this it hangs.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

const TABLE: &str = "pgbench_accounts";
const MIB: u64 = 1 << 20;

/// One process reads the table from beginning to end.
const PLAIN: &str = "set max_parallel_workers_per_gather = 0; set max_parallel_maintenance_workers = 0; \
                     set synchronize_seqscans = off; set enable_indexscan = off; set enable_indexonlyscan = off; \
                     set enable_bitmapscan = off";

const INFO: WorkloadInfo = WorkloadInfo {
    name: "scan",
    doc: "sequential scans of pgbench_accounts with cold caches (ZFS keeps its own: set zfs_arc_max below the table), \
          then an index built on it: MiB of the table a second; then new WAL segments in pg_wal",
    needs_server: true,
    options: &[
    OptionSpec::optional("scale", OptionKind::IntegerOrShare).doc(
        "size of the data, as for `pgbench`, or `data`; the table must be larger than a quarter of shared_buffers, or \
              its pages stay there",
    ),
    OptionSpec::optional("data", OptionKind::Text).doc("size of the data in bytes, as for `pgbench`"),
    OptionSpec::with_default("duration", OptionKind::Span, "20s")
        .doc("scans are repeated for this time; at least two are made"),
],
    quick: &[("duration", QUICK_DURATION)],
};

#[derive(Debug)]
pub struct Scan;

impl Workload for Scan {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn as_pgbench(&self, options: &Options) -> Option<Options> {
        Some(of_pgbench(options))
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        options.positive_span("duration")?;
        Pgbench.check(&of_pgbench(options))
    }

    fn connections(&self, _options: &Options) -> u64 {
        1
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        Ok(Operation {
            cache: Some(CacheState::Cold),
            scale: options.get("scale").or(options.get("data")).map(OptionValue::plain),
            settings: options.given(&["duration"]).collect(),
            ..Operation::new("MiB", "MiB/s", Writes::Never)
        })
    }

    fn window(&self, options: &Options) -> Window {
        let span_us = options.span("duration").unwrap_or(DEFAULT_DURATION).0;
        Window { warm_up: Some(Micros(0)), extent: Extent::Span { span_us } }
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, until, listener, .. } = run;
        let server = place.server.ok_or_else(|| Error::bug("a scan was started without a server"))?;
        let mut client = server.connect_with_limit(LIMIT)?;
        client.query(PLAIN)?;
        let table = ScannedTable::of(&mut client, &server.spec.data)?;
        // The first scan after changes sets hint bits, and so writes pages that do not belong to a scan.
        scan(&mut client)?;
        client.query("checkpoint")?;
        let (mut scans, mut seconds) = (TimedWork::new("scan"), PieceSeconds::new(listener));
        let begun = seconds.begun;
        let mut elapsed_us = 0;
        listener(LoadEvent::Began(wall_us()));
        while scans.slices.len() < LEAST_SCANS
            || (micros(begun.elapsed()) < until.longest.0 && !(until.progress)()?.is_over)
        {
            place.interrupt.check()?;
            table.forget()?;
            seconds.time(table.bytes, &mut scans, || scan(&mut client))?;
            elapsed_us = micros(begun.elapsed());
        }
        let mut index = TimedWork::new("create index");
        place.interrupt.check()?;
        table.forget()?;
        let started = now();
        client.query(&format!("create index pgstrata_scan on {TABLE} (abalance, aid)"))?;
        index.add(table.bytes, micros(started.elapsed()));
        client.query("drop index pgstrata_scan")?;
        let made = segments(&mut client, place.user, &server.spec.data.join("pg_wal"))?.measure(place.interrupt)?;
        let measures = vec![scans.measure(), index.measure(), made];
        Ok(Counts { elapsed_us, measures, ..Counts::default() })
    }
}

/// WAL segments with this server's size, zeroing and syncing.
fn segments<'a>(client: &mut Client, user: &'a User, folder: &'a Path) -> Result<NewSegments<'a>> {
    const SQL: &str = "select pg_size_bytes(current_setting('wal_segment_size')), current_setting('wal_init_zero'), \
                       current_setting('fsync')";
    let rows = client.query(SQL)?;
    let cells: Vec<&str> = rows.iter().flatten().filter_map(Option::as_deref).collect();
    let [bytes, zeros, synced] = cells[..] else {
        return Err(Error::tool("the server did not tell how it makes WAL segments"));
    };
    let bytes: u64 = bytes.parse().map_err(|_| Error::tool(format!("wal_segment_size is `{bytes}`")))?;
    let count = (SEGMENT_BYTES / bytes.max(1)).max(1);
    // Keep as much again free for the running server.
    let spare = bytes * count;
    Ok(NewSegments { folder, user, bytes, count, zeros: zeros == "on", synced: synced == "on", spare })
}

fn of_pgbench(options: &Options) -> Options {
    let mut own = options.clone();
    own.0.retain(|key, _| ["scale", "data"].contains(&key.as_str()));
    own
}

fn scan(client: &mut Client) -> Result<()> {
    client.query(&format!("select sum(abalance) from {TABLE}")).map(drop)
}

fn unknown_place() -> Error {
    Error::tool(format!("the server did not tell where {TABLE} lies"))
}

struct ScannedTable {
    files: Vec<PathBuf>,
    bytes: u64,
}

impl ScannedTable {
    fn of(client: &mut Client, data: &Path) -> Result<ScannedTable> {
        let sql = format!(
            "select pg_relation_filepath('{TABLE}'), pg_relation_size('{TABLE}'), \
             pg_size_bytes(current_setting('shared_buffers')) / 4"
        );
        let rows = client.query(&sql)?;
        let cells: Vec<&str> = rows.iter().flatten().filter_map(Option::as_deref).collect();
        let [path, numbers @ ..] = &cells[..] else { return Err(unknown_place()) };
        let numbers: Vec<u64> = numbers.iter().filter_map(|text| text.parse().ok()).collect();
        let [bytes, kept] = numbers[..] else { return Err(unknown_place()) };
        if bytes <= kept {
            let message =
                format!("{TABLE} has {} MiB, at most a quarter of shared_buffers: it stays there", bytes / MIB);
            return Err(Error::user(message).hint("raise the scale, or lower shared_buffers"));
        }
        let first = data.join(path);
        let further = (1..).map(|number| PathBuf::from(format!("{}.{number}", first.display())));
        let files = std::iter::once(first.clone()).chain(further).take_while(|path| paths::is_file(path)).collect();
        Ok(ScannedTable { files, bytes })
    }

    /// Drops it from the page cache.
    fn forget(&self) -> Result<()> {
        for path in &self.files {
            files::forget(&files::open(path)?, path)?;
        }
        Ok(())
    }
}
