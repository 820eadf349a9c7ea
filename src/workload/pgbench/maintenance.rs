//! Administrative work, each task once and timed: an index, VACUUM, a base backup and its restore.
//!
//! Not here: figures, and concurrent clients.

use super::capacity::of_pgbench;
use super::{Pgbench, drive, options};
use crate::cluster::client::Client;
use crate::cluster::copy;
use crate::cluster::server::Server;
use crate::error::{Context, Result};
use crate::host::time::{micros, now, wall_us};
use crate::host::{files, folders, paths};
use crate::record::counts::{Counts, Measure};
use crate::record::operation::{Operation, Writes};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::stage::{StageCounts, StageKind};
use crate::record::window::Extent;
use crate::units::Bytes;
use crate::workload::{LoadEvent, Measuring, Place, Window, Workload, WorkloadInfo, stage};
use std::path::Path;
use std::time::Duration;

/// Name of the measure: one pass through all tasks.
const PASSES: &str = "passes";

/// Indexing a large table on a slow stack takes hours; beyond this it hangs.
const STATEMENT_LIMIT: Duration = Duration::from_secs(86_400);

/// Throughput of a pass, conservatively. Only for the estimate.
const BYTES_PER_S: u64 = 20 << 20;

const INDEX: &str = "CREATE INDEX pgstrata_index ON pgbench_accounts (bid, aid)";

/// Makes a dead row of every fifth row of the accounts.
const DEAD_ROWS: &str = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 5 = 0";

const VACUUM: &str = "VACUUM pgbench_accounts";

const INFO: WorkloadInfo = WorkloadInfo {
    name: "maintenance",
    doc: "CREATE INDEX, VACUUM, pg_basebackup and its restore on pgbench's tables, each once and timed; needs room \
          for three times the data",
    needs_server: true,
    options: &[
        of_pgbench("scale"),
        of_pgbench("data"),
        OptionSpec::with_default("cache", OptionKind::OneOf(&["warm", "cold"]), "cold").doc(
            "state of the OS page cache before each stage: cold (the files of the data are dropped, as far as the \
         filesystem does that) or warm (as the stage before left it)",
        ),
        of_pgbench("tablespace"),
        of_pgbench("index_tablespace"),
    ],
    quick: &[],
};

#[derive(Debug)]
pub struct Maintenance;

impl Workload for Maintenance {
    fn info(&self) -> &WorkloadInfo {
        &INFO
    }

    fn as_pgbench(&self, options: &Options) -> Option<Options> {
        let mut plain = options.clone();
        plain.set_where_absent(&[("cache", "cold")]);
        Some(plain)
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        Pgbench.check(&self.as_pgbench(options).unwrap_or_default())
    }

    fn connections(&self, _options: &Options) -> u64 {
        // The statement, a connection to cancel it, and two of pg_basebackup.
        4
    }

    fn operation(&self, options: &Options) -> Result<Operation> {
        let pgbench = Pgbench.operation(&self.as_pgbench(options).unwrap_or_default())?;
        Ok(Operation {
            noun: "pass".to_owned(),
            unit: "1/s".to_owned(),
            writes: Writes::Always,
            clients: 1,
            scripts: Vec::new(),
            query_mode: None,
            log_sample: None,
            settings: options.given(&["cache", "tablespace", "index_tablespace"]).collect(),
            ..pgbench
        })
    }

    fn window(&self, options: &Options) -> Window {
        // Shares of memory are unknown here; the progress display of a run corrects the estimate.
        let units = options.integer("scale").and_then(|units| u64::try_from(units).ok()).unwrap_or(100);
        let data = options.size("data").unwrap_or(Bytes(units.saturating_mul(options::BYTES_PER_SCALE)));
        let bytes = data.0.saturating_mul(5);
        Window { warm_up: None, extent: Extent::Span { span_us: (bytes / BYTES_PER_S).max(1) * 1_000_000 } }
    }

    fn measure(&self, run: Measuring<'_>) -> Result<Counts> {
        let Measuring { place, options, listener, .. } = run;
        listener(LoadEvent::Began(wall_us()));
        let begun = now();
        let server = drive::server_of(place)?;
        let client = server.connect_with_limit(STATEMENT_LIMIT)?;
        let is_cold = options.text("cache") != Some("warm");
        let mut pass = MaintenancePass { place, server, client, is_cold, stages: Vec::new() };
        pass.index()?;
        pass.vacuum()?;
        pass.backup_and_restore()?;
        let elapsed_us = micros(begun.elapsed());
        let passes = Measure { name: PASSES.to_owned(), done: Some(1), elapsed_us, ..Measure::default() };
        Ok(Counts { elapsed_us, measures: vec![passes], stages: pass.stages, ..Counts::default() })
    }
}

/// A pass in progress.
struct MaintenancePass<'a> {
    place: &'a Place<'a>,
    server: &'a Server,
    client: Client,
    is_cold: bool,
    stages: Vec<StageCounts>,
}

impl MaintenancePass<'_> {
    fn index(&mut self) -> Result<()> {
        self.prepare()?;
        let length_us = self.statement(INDEX)?;
        let bytes = self.client.number("SELECT pg_table_size('pgbench_accounts')")?;
        self.stages.push(stage("CREATE INDEX", StageKind::Ranked, length_us, Some(bytes)));
        self.checkpoint("checkpoint after CREATE INDEX")?;
        self.statement("DROP INDEX pgstrata_index").map(drop)
    }

    fn vacuum(&mut self) -> Result<()> {
        // Autovacuum would otherwise start at an arbitrary time.
        self.statement("ALTER TABLE pgbench_accounts SET (autovacuum_enabled = off)")?;
        self.statement(DEAD_ROWS)?;
        self.prepare()?;
        let length_us = self.statement(VACUUM)?;
        let bytes = self.client.number("SELECT pg_total_relation_size('pgbench_accounts')")?;
        self.stages.push(stage("VACUUM", StageKind::Ranked, length_us, Some(bytes)));
        self.checkpoint("checkpoint after VACUUM")
    }

    fn backup_and_restore(&mut self) -> Result<()> {
        self.prepare()?;
        let (backup, restored) = (self.place.folder.join("backup"), self.place.folder.join("restored"));
        let begun = now();
        let target = backup.display().to_string();
        let args = ["-D", target.as_str(), "-X", "stream", "-c", "fast"].map(str::to_owned);
        drive::run_program(self.place, "pg_basebackup", &args)?;
        let length_us = micros(begun.elapsed());
        let bytes = bytes_below(&backup)?;
        self.stages.push(stage("pg_basebackup", StageKind::Ranked, length_us, Some(bytes)));
        // pg_basebackup has synced its output.
        self.forget(&backup)?;
        let begun = now();
        let mut spec = self.server.spec.clone();
        (spec.data, spec.wal) = (restored.clone(), None);
        spec.socket_folder = spec.socket_folder.join("r");
        spec.log = self.place.raw.join("restored.log");
        copy::copy(&backup, &spec, self.place.interrupt)?;
        let socket_folder = spec.socket_folder.clone();
        let again = Server::start(self.place.host, spec, self.place.interrupt)?;
        let length_us = micros(begun.elapsed());
        self.stages.push(stage("restore", StageKind::Ranked, length_us, Some(bytes)));
        again.stop(self.place.host)?;
        [backup, restored, socket_folder].iter().try_for_each(|folder| folders::remove_all(folder))
    }

    /// Writes everything back and, for cold passes, drops it from the page cache.
    fn prepare(&mut self) -> Result<()> {
        self.statement("CHECKPOINT")?;
        let data = self.server.spec.data.clone();
        folders::sync_filesystem(&data).or_host(|| format!("write back {}", data.display()))?;
        self.forget(&data)
    }

    fn forget(&self, folder: &Path) -> Result<()> {
        if !self.is_cold {
            return Ok(());
        }
        folders::each_file(folder, &mut |path| {
            // A running server may remove files meanwhile.
            files::open(path).map_or(Ok(()), |file| files::forget(&file, path))
        })
    }

    fn checkpoint(&mut self, name: &str) -> Result<()> {
        let length_us = self.statement("CHECKPOINT")?;
        self.stages.push(stage(name, StageKind::Beside, length_us, None));
        Ok(())
    }

    /// Runs a statement and returns how long it took, microseconds.
    fn statement(&mut self, sql: &str) -> Result<u64> {
        let begun = now();
        self.client.query(sql).map(|_| micros(begun.elapsed()))
    }
}

/// Total size of all files below a folder.
fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = Bytes(0);
    folders::each_file(folder, &mut |path| {
        bytes.0 += paths::look_at(path)?.bytes;
        Ok(())
    })?;
    Ok(bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::options::OptionValue;
    use crate::workload::MemorySizes;

    #[test]
    fn files_of_all_folders_below_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("base")).unwrap();
        std::fs::write(folder.path().join("base/1"), [0; 300]).unwrap();
        std::fs::write(folder.path().join("x"), [0; 5]).unwrap();
        assert_eq!(bytes_below(folder.path()).unwrap(), 305);
    }

    #[test]
    fn a_maintenance_pass_is_one_operation_sized_by_its_data() {
        let mut options = Options::default();
        options.set("scale", OptionValue::Integer(10));
        assert_eq!(Maintenance.check(&options), Ok(()));
        let operation = Maintenance.operation(&options).unwrap();
        assert_eq!((operation.noun.as_str(), operation.scale.as_deref()), ("pass", Some("10")));
        assert_eq!(
            Maintenance.data_set(&options, MemorySizes { total: Bytes(0), shared_buffers: Bytes(0) }).unwrap().key,
            "pgbench-scale-10"
        );
        assert!(operation.cache.is_some());
    }
}
