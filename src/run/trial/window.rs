//! The window of a trial with a server: WAL prefill, a warm-up of whole checkpoint cycles, a measurement from the start
//! of one checkpoint to the start of a later one. Checkpoints are detected in the server's log.

use crate::cluster::client::Client;
use crate::cluster::log::ServerLog;
use crate::cluster::server::{self, CHECKPOINT_LIMIT, Server};
use crate::error::{Error, Result};
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now};
use crate::record::window::{CycleRecord, Extent, PrefillRecord, WindowEnd, WindowRecord};
use crate::run::window::{MOST_WARM_UP_CYCLES, limit_us};
use crate::telemetry::APPLICATION_NAME;
use crate::workload::{Window, WindowProgress};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the log is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Two cycles of a warm-up agree if their rates, and their WAL per commit, differ by no more than this share.
const AGREES_WITHIN: f64 = 0.1;

/// Pages read per commit may also differ by this many: a tenth of next to nothing is noise.
const PAGES_WITHIN: f64 = 0.1;

/// The name of a segment consists of timeline, log, segment.
const SEGMENTS: &str = "SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'";

/// The counters of a cycle, over all databases.
const COUNTERS: &str = "SELECT sum(xact_commit)::bigint, sum(blks_read)::bigint, \
     pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint FROM pg_stat_database";

/// State of a trial's window so far.
pub(super) struct WindowWatch {
    pub window: Window,
    pub record: WindowRecord,
    log: ServerLog,
    client: Client,
    looked: Instant,
    /// Interval of timed checkpoints in force, microseconds.
    timeout_us: u64,
    /// Checkpoints that had begun when the warm-up ended.
    starts: usize,
    /// True if nothing in the workload triggers a checkpoint.
    idle: bool,
    /// True if the warm-up ended with the start of the last of these.
    at_start: bool,
}

impl WindowWatch {
    /// For a server just started with these settings of ours.
    pub(super) fn begin(server: &Server, window: Window, settings: BTreeMap<String, String>) -> Result<WindowWatch> {
        let mut client = server.connect_with_limit(CHECKPOINT_LIMIT)?;
        // Keeps this connection from being counted as one of the workload's clients.
        client.query(&format!("SET application_name = '{APPLICATION_NAME}'"))?;
        let sql = "SELECT setting::bigint FROM pg_settings WHERE name = 'checkpoint_timeout'";
        let timeout_us = numbers::<1>(&mut client, sql)?[0] * 1_000_000;
        Ok(WindowWatch {
            window,
            record: WindowRecord {
                extent: window.extent,
                limit_us: limit_us(window.extent, timeout_us),
                settings,
                prefill: None,
                warm_up: Vec::new(),
                settled: None,
                began_us: 0,
                first_operation_us: 0,
                from_checkpoint: None,
                ended_us: 0,
                end: WindowEnd::Time,
                wal_segments_before: None,
                wal_segments_after: None,
                checkpoints: Vec::new(),
                vacuums: Vec::new(),
            },
            log: ServerLog::of(server),
            client,
            looked: now(),
            timeout_us,
            starts: 0,
            idle: false,
            at_start: false,
        })
    }

    /// Writes this many bytes of WAL, in whole segments, then has them recycled.
    pub(super) fn prefill(&mut self, bytes: u64, interrupt: &Interrupt) -> Result<()> {
        let begun = now();
        let sql = "SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'";
        let [segment] = numbers::<1>(&mut self.client, sql)?;
        let wanted = (bytes / segment.max(1)).max(1);
        // WAL triggers checkpoints on the way, as usual: they recycle segments, which are then overwritten.
        for _ in 0..wanted {
            interrupt.check()?;
            self.client.query("SELECT pg_logical_emit_message(false, 'pgstrata', ''); SELECT pg_switch_wal()")?;
        }
        self.client.query("CHECKPOINT")?;
        self.client.query("CHECKPOINT")?;
        self.record.prefill = Some(PrefillRecord { bytes: wanted * segment, wall_us: micros(begun.elapsed()) });
        Ok(())
    }

    /// Longest time of the warm-up: every cycle takes up to its limit.
    pub(super) fn longest_warm_up_us(&self) -> u64 {
        let cycles = self.timeout_us.saturating_mul(2);
        match (self.window.extent, self.window.warm_up) {
            (Extent::Span { .. }, least) => least.unwrap_or_default().0,
            (Extent::Cycles { .. }, Some(least)) => least.0.saturating_add(cycles),
            (Extent::Cycles { .. }, None) => cycles.saturating_mul(MOST_WARM_UP_CYCLES as u64 + 1),
        }
    }

    pub(super) fn longest_us(&self) -> u64 {
        match self.window.extent {
            Extent::Cycles { cycles, .. } if self.idle => {
                cycles.saturating_mul(self.timeout_us).min(self.record.limit_us)
            }
            _ => self.record.limit_us,
        }
    }

    /// Checkpoints that have begun since the server was started.
    fn starts(&mut self) -> Result<usize> {
        if self.looked.elapsed() >= POLL_INTERVAL {
            self.looked = now();
            self.log.read()?;
        }
        Ok(self.log.checkpoints.len())
    }

    /// The server's counters so far, as a cycle that began with it.
    fn counters(&mut self) -> Result<CycleRecord> {
        let [commits, blks_read, wal_bytes] = numbers::<3>(&mut self.client, COUNTERS)?;
        Ok(CycleRecord { wall_us: 0, commits, blks_read, wal_bytes })
    }

    /// Has the server write everything back.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.client.query("CHECKPOINT").map(drop)
    }

    /// Flushes all WAL, that of commits that did not wait for it, too.
    pub(super) fn flush_wal(&mut self) -> Result<()> {
        let sql = "SET synchronous_commit = local; SELECT pg_logical_emit_message(true, 'pgstrata', '')";
        self.client.query(sql).map(drop)
    }

    /// Records where the measurement begins.
    pub(super) fn measure_begins(&mut self, wall_us: u64) -> Result<()> {
        self.record.began_us = wall_us;
        self.record.from_checkpoint = self.at_start.then(|| self.starts.saturating_sub(1));
        self.record.wal_segments_before = Some(numbers::<1>(&mut self.client, SEGMENTS)?[0]);
        Ok(())
    }

    /// Completed cycles of the measurement; it is over when the checkpoint that ends the last one starts.
    pub(super) fn progress(&mut self) -> Result<WindowProgress> {
        let Extent::Cycles { cycles: asked, .. } = self.window.extent else { return Ok(WindowProgress::default()) };
        let cycles = (self.starts()? - self.starts) as u64;
        let is_over = cycles >= asked;
        if is_over {
            self.record.end = WindowEnd::Cycles;
        }
        Ok(WindowProgress { cycles, is_over })
    }

    /// The record of the window. The server may have been restarted during it; if it may be unable to answer, only its
    /// log is used.
    pub(super) fn finish(mut self, on: Option<&Server>, first_operation_us: u64, wall_us: u64) -> Result<WindowRecord> {
        (self.record.first_operation_us, self.record.ended_us) = (first_operation_us, wall_us);
        if let Some(server) = on {
            self.client = server.connect(server::DATABASE)?;
            self.record.wal_segments_after = Some(numbers::<1>(&mut self.client, SEGMENTS)?[0]);
        }
        self.log.read()?;
        self.record.checkpoints = self.log.checkpoints;
        self.record.vacuums = self.log.vacuums;
        Ok(self.record)
    }
}

/// A running warm-up, polled for its end.
pub(super) struct WarmUp<'w> {
    watch: &'w mut WindowWatch,
    begun: Instant,
    /// Start of the current cycle, with the counters at that moment.
    open: Option<(Instant, CycleRecord)>,
}

impl<'w> WarmUp<'w> {
    pub(super) fn of(watch: &'w mut WindowWatch) -> Result<WarmUp<'w>> {
        watch.log.read()?;
        watch.starts = watch.log.checkpoints.len();
        Ok(WarmUp { watch, begun: now(), open: None })
    }

    /// Ends with the start of a checkpoint: once two cycles agree, or the maximum number is reached.
    pub(super) fn is_over(&mut self) -> Result<bool> {
        let Extent::Cycles { .. } = self.watch.window.extent else { return Ok(false) };
        let starts = self.watch.starts()?;
        if starts == self.watch.starts {
            // Timed checkpoints are skipped while nothing writes WAL. Work before the warm-up may trigger one more.
            let since = self.open.as_ref().map_or(self.begun, |(began, _)| *began);
            self.watch.idle = self.watch.window.warm_up.is_none()
                && micros(since.elapsed()) > self.watch.timeout_us.saturating_mul(2);
            return Ok(self.watch.idle);
        }
        self.watch.starts = starts;
        if let Some(least) = self.watch.window.warm_up {
            self.watch.at_start = micros(self.begun.elapsed()) >= least.0;
            return Ok(self.watch.at_start);
        }
        let (at, counters) = (now(), self.watch.counters()?);
        if let Some((began, before)) = self.open.replace((at, counters.clone())) {
            let cycle = CycleRecord {
                wall_us: micros(at.duration_since(began)),
                commits: counters.commits.saturating_sub(before.commits),
                blks_read: counters.blks_read.saturating_sub(before.blks_read),
                wal_bytes: counters.wal_bytes.saturating_sub(before.wal_bytes),
            };
            self.watch.record.warm_up.push(cycle);
        }
        let cycles = &self.watch.record.warm_up;
        let settled = matches!(cycles.as_slice(), [.., one, other] if agree(one, other));
        self.watch.record.settled = Some(settled);
        self.watch.at_start = settled || cycles.len() >= MOST_WARM_UP_CYCLES;
        Ok(self.watch.at_start)
    }
}

/// True if two cycles did about the same work at about the same rate.
fn agree(one: &CycleRecord, other: &CycleRecord) -> bool {
    let [rates, wal, read] = [
        [one, other].map(|cycle| cycle.commits as f64 / cycle.wall_us.max(1) as f64),
        [one, other].map(|cycle| cycle.wal_bytes as f64 / cycle.commits.max(1) as f64),
        [one, other].map(|cycle| cycle.blks_read as f64 / cycle.commits.max(1) as f64),
    ];
    is_close(rates) && is_close(wal) && (is_close(read) || (read[0] - read[1]).abs() <= PAGES_WITHIN)
}

fn is_close([a, b]: [f64; 2]) -> bool {
    (a - b).abs() <= AGREES_WITHIN * a.max(b)
}

/// The whole numbers in the single row of a query's result.
fn numbers<const N: usize>(client: &mut Client, sql: &str) -> Result<[u64; N]> {
    let rows = client.query(sql)?;
    let found: Vec<u64> = rows.first().into_iter().flatten().filter_map(|text| text.as_deref()?.parse().ok()).collect();
    found.try_into().map_err(|_| Error::tool(format!("`{sql}` did not give {N} whole numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(wall_s: u64, commits: u64, blks_read: u64, wal_bytes: u64) -> CycleRecord {
        CycleRecord { wall_us: wall_s * 1_000_000, commits, blks_read, wal_bytes }
    }

    #[test]
    fn cycles_agree_only_if_rate_wal_and_reads_agree() {
        let one = cycle(30, 60_000, 30_000, 60_000_000);
        assert!(agree(&one, &cycle(30, 57_000, 27_000, 59_000_000)));
        assert!(agree(&one, &cycle(15, 30_000, 15_000, 30_000_000)), "a cycle on request may be shorter");
        assert!(!agree(&one, &cycle(30, 50_000, 25_000, 50_000_000)), "rate");
        assert!(!agree(&one, &cycle(30, 60_000, 30_000, 70_000_000)), "WAL for a commit");
        assert!(!agree(&one, &cycle(30, 60_000, 15_000, 60_000_000)), "pages read for a commit");
        let cached = cycle(30, 60_000, 600, 60_000_000);
        assert!(agree(&cached, &cycle(30, 60_000, 0, 60_000_000)), "next to nothing is read");
    }
}
