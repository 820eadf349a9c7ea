//! Loads the data, drives the load, keeps the raw output and counts operations.
//!
//! A workload is one file (or folder) and one line in [`ALL`]. Not here: layers, and how results are stored.
//!
//! # Add a workload
//!
//! Add its file and its `mod` and `ALL` lines here; no other source file changes. `check` and `window` have no default:
//! one that uses pgbench's tables asks pgbench for the rest of its check. `measure` keeps raw output, reports seconds
//! and latencies while it runs and returns counts (`record::counts`). `Until::progress` returns the checkpoint cycles
//! so far. `operation` describes one operation: noun, unit, whether it writes, clients. `analyse` computes rates and
//! percentiles from these and never looks at a workload's options
//! (`docs/adr/0014-counts-are-stored-figures-are-computed.md`). `decide` returns options that the first warm-up fixes
//! for all cases. One-time work returns `StageCounts`: a part of a ranked stage has the kind `part`, and the remainder
//! is a part with a name.
//!
//! Uses `probe` for synced writes, and `stats` for the next rate of a search, which analysis computes with the same
//! functions.

mod files;
pub mod pgbench;
mod scan;
pub(crate) mod sync;
mod timed;
mod wal_segments;

use crate::cluster::server::Server;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::signals::Interrupt;
use crate::host::time::Instant;
use crate::host::users::User;
use crate::record::counts::Counts;
use crate::record::latency::LatencyInterval;
use crate::record::operation::Operation;
use crate::record::options::{OptionProblem, OptionSpec, Options};
use crate::record::recovery::BeforeCrash;
use crate::record::stage::{StageCounts, StageKind};
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use hdrhistogram::Histogram;
use pgbench::Pgbench;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All workloads, in the order of the manual.
pub const ALL: &[&dyn Workload] = &[
    &Pgbench,
    &pgbench::capacity::CapacitySearch,
    &pgbench::recovery::Recovery,
    &pgbench::maintenance::Maintenance,
    &pgbench::snapshots::SnapshotLoad,
    &scan::Scan,
    &files::Files,
    &sync::Sync,
];

/// Client-side counts for one second of the measurement.
#[derive(Debug, Clone)]
pub struct ClientSecond {
    /// Second of the measurement, starting at 1.
    pub second: u64,
    pub done: u64,
    pub failed: u64,
    /// Operations skipped because they were already late.
    pub skipped: u64,
    /// Operations slower than the latency limit.
    pub late: u64,
    /// Longest time without a completed operation that ended in this second or was still going on at its end, in
    /// microseconds, to 1 ms; at most that if only a sample of the operations is logged.
    pub idle_us: Option<u64>,
    /// Latencies of the completed, logged operations, microseconds.
    pub latencies: Histogram<u64>,
}

/// Data that a workload needs in the server before it can run; made once per run for each key and PostgreSQL build,
/// then copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    /// Distinguishes data sets: `pgbench-scale-100`.
    pub key: String,
    /// Estimated size.
    pub expected: Bytes,
}

/// Memory sizes that data sizes can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySizes {
    pub total: Bytes,
    /// The server's `shared_buffers`; 0 without a server.
    pub shared_buffers: Bytes,
}

/// Warm-up and measurement that a workload's options ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Unmeasured warm-up; `None` if checkpoint cycles decide.
    pub warm_up: Option<Micros>,
    pub extent: Extent,
}

/// Progress of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowProgress {
    /// Checkpoint cycles completed so far; 0 if none are counted.
    pub cycles: u64,
    /// True if the window ends before its longest time.
    pub is_over: bool,
}

/// When a running workload ends.
pub struct Until<'a> {
    /// Upper limit; whole seconds.
    pub longest: Micros,
    /// Operations of all clients, after which it ends instead; `None`: by time.
    pub operations: Option<u64>,
    /// Called many times a second.
    pub progress: &'a mut AskProgress<'a>,
}

/// Asks how far a window is.
pub type AskProgress<'a> = dyn FnMut() -> Result<WindowProgress> + 'a;

/// How the machine below a server crashes.
pub enum Crash<'a> {
    /// Its filesystems are shut down and mounted again.
    Filesystems(CrashActions<'a>),
    /// The whole guest will be killed, pgstrata included: `measure` returns what it has counted
    /// ([`Counts::before_crash`]), then [`Workload::await_end`] waits for the end.
    Guest,
    /// The guest was killed and booted, and the stack is open again.
    GuestIsBack(GuestIsBack<'a>),
}

/// Known after the crash of a guest.
pub struct GuestIsBack<'a> {
    pub before: &'a BeforeCrash,
    /// From the last answer to the client running alongside until the stack starts to open, microseconds.
    pub away_us: u64,
    /// Longest time between two answers to that client, microseconds.
    pub answers_apart_us: u64,
    /// When the stack began to open.
    pub begun: Instant,
    /// When the stack was open.
    pub opened: Instant,
    /// Part of the opening spent on mounts, microseconds.
    pub mounts_us: u64,
}

/// Shuts the filesystems of a stack down as a machine crash does, and mounts them again.
pub struct CrashActions<'a> {
    /// Shuts each filesystem down at once: nothing is written back from here on.
    pub stop: Box<dyn Fn() -> Result<()> + 'a>,
    /// Mounts each again, which replays its journal. Returns the total time of the mounts, microseconds.
    pub open: Box<dyn Fn() -> Result<u64> + 'a>,
}

/// An action on the snapshot with this number.
pub type SnapshotAction<'a, T> = Box<dyn Fn(u64) -> Result<T> + Sync + 'a>;

/// Makes and deletes snapshots of the stack, by number.
pub struct SnapshotActions<'a> {
    pub make: SnapshotAction<'a, ()>,
    pub delete: SnapshotAction<'a, ()>,
    /// Folder of a new, empty snapshot that is to be filled with reflinks of the data; `None` if a snapshot captures
    /// all files at one moment.
    pub filled: Box<dyn Fn(u64) -> Option<PathBuf> + Sync + 'a>,
    /// Makes a writable copy of a snapshot: the folders of origin and copy, if the stack supports it.
    pub copy: SnapshotAction<'a, Option<(PathBuf, PathBuf)>>,
    /// True if a snapshot has become invalid because its own space ran out.
    pub is_lost: SnapshotAction<'a, bool>,
    /// Bytes in use, snapshots included.
    pub used: Box<dyn Fn() -> Result<u64> + Sync + 'a>,
}

/// Where a workload runs.
pub struct Place<'a> {
    pub host: &'a Host,
    /// Folder on the stack for the workload; owned by `user`.
    pub folder: &'a Path,
    /// The server, if the workload uses one.
    pub server: Option<&'a Server>,
    /// How the machine below the server crashes; set only during measurement.
    pub crash: Option<Crash<'a>>,
    /// For workloads that make snapshots; set only during measurement, on stacks that support them.
    pub snapshots: Option<SnapshotActions<'a>>,
    /// User that clients run as.
    pub user: &'a User,
    pub interrupt: &'a Interrupt,
    /// Folder for the tools' raw output (on another filesystem than the stack); owned by us, readable by `user`.
    pub raw: &'a Path,
}

/// Events that a measurement reports while it runs.
#[derive(Debug)]
pub enum LoadEvent {
    /// Wall clock of the first operation's start, microseconds since 1970. Reported once, possibly well after the fact;
    /// seconds count from this moment.
    Began(u64),
    /// A second is complete: no further operation of it will come. Reported in order. Seconds without operations are
    /// reported as zero, seconds without load are not reported.
    Second(ClientSecond),
    /// Latencies of one measure over an interval, rarely longer than a second; in order of time across all measures.
    /// Includes what ended after the last whole second.
    Latencies(LatencyInterval),
}

/// Receives the events of a measurement, on the workload's own threads.
pub type Listener<'a> = dyn Fn(LoadEvent) + Sync + 'a;

impl ClientSecond {
    /// A second without operations so far, with every operation logged.
    ///
    /// # Errors
    /// As [`empty_histogram`].
    pub(crate) fn empty(second: u64) -> Result<ClientSecond> {
        Ok(ClientSecond::of(second, empty_histogram()?))
    }

    /// The same, with these latencies.
    pub(crate) fn of(second: u64, latencies: Histogram<u64>) -> ClientSecond {
        ClientSecond { second, done: 0, failed: 0, skipped: 0, late: 0, idle_us: None, latencies }
    }
}

/// One-time work in the counts of a workload.
pub(crate) fn stage(name: &str, kind: StageKind, length_us: u64, bytes: Option<u64>) -> StageCounts {
    StageCounts { name: name.to_owned(), kind, length_us, bytes }
}

/// An empty histogram of latencies in microseconds: three significant digits, resizing automatically.
///
/// # Errors
/// Never in practice: the number of digits is a constant that hdrhistogram accepts.
pub(crate) fn empty_histogram() -> Result<Histogram<u64>> {
    const SIGNIFICANT_DIGITS: u8 = 3;
    Histogram::new(SIGNIFICANT_DIGITS).map_err(|e| Error::bug(format!("cannot create a histogram: {e}")))
}

/// Description of a workload for plans and the manual.
pub struct WorkloadInfo {
    /// Name in plans: `pgbench`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    pub needs_server: bool,
    pub options: &'static [OptionSpec],
    /// Option defaults for quick runs.
    pub quick: &'static [(&'static str, &'static str)],
}

pub struct Measuring<'a> {
    pub place: &'a Place<'a>,
    pub options: &'a Options,
    pub memory: MemorySizes,
    pub until: Until<'a>,
    pub listener: &'a Listener<'a>,
}

pub trait Workload: Sync {
    fn info(&self) -> &WorkloadInfo;
    fn name(&self) -> &'static str {
        self.info().name
    }
    /// Options of the pgbench whose tables it uses; `None` if it uses none.
    fn as_pgbench(&self, _options: &Options) -> Option<Options> {
        None
    }
    /// Makes relative paths among the options absolute, starting at the plan's folder. Called before `check`; leaves
    /// invalid values for `check` to report.
    fn resolve(&self, options: &mut Options, folder: &Path) {
        if self.as_pgbench(options).is_some() {
            Pgbench.resolve(options, folder);
        }
    }
    /// Checks what the option specs cannot express. Pure, except that custom script files must exist.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    fn check(&self, options: &Options) -> Result<(), OptionProblem>;
    /// Advice to show before the run ("more clients than scale: row locks").
    fn warnings(&self, options: &Options, memory: MemorySizes) -> Vec<String> {
        self.as_pgbench(options).map(|plain| Pgbench.warnings(&plain, memory)).unwrap_or_default()
    }
    /// Connections that its clients hold simultaneously.
    fn connections(&self, options: &Options) -> u64 {
        self.as_pgbench(options).map_or(0, |plain| Pgbench.connections(&plain))
    }
    /// True if it makes snapshots of the stack during measurement.
    fn makes_snapshots(&self) -> bool {
        false
    }
    /// True if the machine below the server crashes during measurement.
    fn crashes_machine(&self, _options: &Options) -> bool {
        false
    }
    /// The data set it needs; `memory` resolves "50% of RAM".
    fn data_set(&self, options: &Options, memory: MemorySizes) -> Option<DataSet> {
        Pgbench.data_set(&self.as_pgbench(options)?, memory)
    }
    /// Describes one operation. Pure, except that it reads custom script files.
    ///
    /// # Errors
    /// Options that the plan would reject.
    fn operation(&self, options: &Options) -> Result<Operation>;
    /// Planned warm-up and measurement.
    fn window(&self, options: &Options) -> Window {
        Pgbench.window(&self.as_pgbench(options).unwrap_or_default())
    }
    /// Shortens the window for a quick run, at the cost of what a full one shows; keeps values from the plan.
    fn make_quick(&self, options: &mut Options) {
        options.set_where_absent(self.info().quick);
    }
    /// Fills an empty database of a running server with the data set.
    ///
    /// # Errors
    /// With the tool's own message.
    fn load(&self, place: &Place<'_>, options: &Options, memory: MemorySizes) -> Result<()> {
        self.as_pgbench(options).map_or(Ok(()), |plain| Pgbench.load(place, &plain, memory))
    }
    /// Tablespaces named in the options.
    fn tablespaces(&self, options: &Options) -> Vec<String> {
        self.as_pgbench(options).map(|plain| Pgbench.tablespaces(&plain)).unwrap_or_default()
    }
    /// Server settings that the options require; a plan may not set these as well.
    fn server_settings(&self, _options: &Options) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Moves its data into the tablespaces named in the options, which exist by now; the server is running.
    ///
    /// # Errors
    /// With the server's own message.
    fn place_data(&self, place: &Place<'_>, options: &Options) -> Result<()> {
        self.as_pgbench(options).map_or(Ok(()), |plain| Pgbench.place_data(place, &plain))
    }
    /// Runs the load unmeasured.
    ///
    /// # Errors
    /// With the tool's own message; interrupted.
    fn warm_up(&self, place: &Place<'_>, options: &Options, memory: MemorySizes, until: Until<'_>) -> Result<()> {
        self.as_pgbench(options).map_or(Ok(()), |plain| Pgbench.warm_up(place, &plain, memory, until))
    }
    /// Decides options that the plan leaves open, for all trials of a case. Called after the warm-up of the first of
    /// them, whose output is in `place.raw`.
    ///
    /// # Errors
    /// When that output cannot be read.
    fn decide(&self, _place: &Place<'_>, _options: &Options) -> Result<Options> {
        Ok(Options::default())
    }
    /// Operations per second of the warm-up, whose output is in `place.raw`; `None` if unknown.
    fn warm_up_rate(&self, _place: &Place<'_>) -> Option<f64> {
        None
    }
    /// Runs the load and counts. `analyse` computes rates and percentiles from the counts.
    ///
    /// # Errors
    /// With the tool's own message, or when its output cannot be read; interrupted.
    fn measure(&self, run: Measuring<'_>) -> Result<Counts>;
    /// Commits from a client for a while, then calls `ask`, which gets the guest killed, with the microseconds since
    /// the last answer and the longest time between two. Returns only if the guest survives. For workloads whose counts
    /// have `before_crash`.
    ///
    /// # Errors
    /// Errors of `ask`; no answer from the server.
    fn await_end(&self, _place: &Place<'_>, _ask: &dyn Fn(u64, u64) -> Result<()>) -> Result<()> {
        Err(Error::bug(format!("the workload {} does not crash", self.name())))
    }
}
