//! Loading the data, driving the load, keeping the raw output, counting operations.
//!
//! A workload is one file (or folder) and one line in [`ALL`]. Absent on purpose: layers, how results are stored.
//!
//! # Add a workload
//!
//! Its file, its `mod` and `ALL` lines here, no other source file. `measure` keeps raw output, tells seconds and
//! latencies while it runs and returns counts (`record::counts`); `Until::progress` says how many checkpoint cycles
//! have passed; `operation` says what one operation is: noun, unit, whether it writes, clients. Rates and percentiles
//! are computed from these in `analyse`, which never looks at a workload's options
//! (`docs/adr/0014-counts-are-stored-figures-are-computed.md`). Options that the first warm-up decides for all cases
//! come from `decide`. What is done once returns `StageCounts`: a part of a ranked stage is of the kind `part`, and
//! what is left of it is a part with a name.
//!
//! Uses `probe` for synced writes, and `stats` for the next rate of a search, which analysis asks of the same
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
use crate::record::window::Extent;
use crate::units::{Bytes, Micros};
use hdrhistogram::Histogram;
use pgbench::Pgbench;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every workload, in the order in which the manual lists them.
pub const ALL: &[&dyn Workload] = &[
    &Pgbench,
    &pgbench::capacity::Capacity,
    &pgbench::recovery::Recovery,
    &pgbench::maintenance::Maintenance,
    &pgbench::snapshots::Snapshots,
    &scan::Scan,
    &files::Files,
    &sync::Sync,
];

/// What the client did in one second of the measurement.
#[derive(Debug, Clone)]
pub struct ClientSecond {
    /// Second of the measurement, from 1: 1 covers the first second.
    pub second: u64,
    pub done: u64,
    pub failed: u64,
    /// Skipped, being already late.
    pub skipped: u64,
    /// Slower than the limit.
    pub late: u64,
    /// Longest time without a completed operation that ended in the second or was going on at its end, microseconds, to 1 ms; `None`
    /// where not every operation was looked at.
    pub idle_us: Option<u64>,
    /// Share of the operations that was looked at one by one, 1 for all; with less the counts are estimates.
    pub log_sample: f64,
    /// Latencies of those done and looked at, microseconds.
    pub latencies: Histogram<u64>,
}

/// Data set that a workload needs in the server before it can run; made once per run for each key and PostgreSQL
/// build, then copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    /// What tells data sets apart: `pgbench-scale-100`.
    pub key: String,
    /// Size that it will have, estimated.
    pub expected: Bytes,
}

/// What sizes of data refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Memory of the machine.
    pub total: Bytes,
    /// The server's `shared_buffers`; 0 without a server.
    pub shared_buffers: Bytes,
}

/// How long a workload is to run, as its options say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How long it runs unmeasured before; `None` leaves that to the checkpoint cycles.
    pub warm_up: Option<Micros>,
    pub extent: Extent,
}

/// How far a window has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Checkpoint cycles that have ended in it; 0 where none are counted.
    pub cycles: u64,
    /// Whether it is over before its longest time.
    pub is_over: bool,
}

/// When a workload that runs ends.
pub struct Until<'a> {
    /// At the latest; whole seconds.
    pub longest: Micros,
    /// Asked many times a second.
    pub progress: &'a mut dyn FnMut() -> Result<Progress>,
}

/// How the machine below a server crashes.
pub enum Crash<'a> {
    /// Its filesystems are stopped and opened again.
    Filesystems(MachineCrash<'a>),
    /// The guest that it is will be killed, and we with it: whoever measures returns what it has counted
    /// ([`Counts::before_crash`]), and is then told to wait for the end ([`Workload::await_end`]).
    Guest,
    /// The guest was killed and booted, and the stack is open again.
    GuestIsBack(GuestIsBack<'a>),
}

/// What is known after the crash of a guest.
pub struct GuestIsBack<'a> {
    pub before: &'a BeforeCrash,
    /// From the last answer to the client beside the server to the opening of the stack, microseconds.
    pub away_us: u64,
    /// Longest time between two answers to that client, microseconds.
    pub answers_apart_us: u64,
    /// When the opening of the stack began.
    pub begun: Instant,
    /// When the stack was open.
    pub opened: Instant,
    /// How long the mounts took of that, microseconds.
    pub mounts_us: u64,
}

/// Takes the filesystems of a stack away as a machine that stops does, and opens them again.
pub struct MachineCrash<'a> {
    /// Stops each filesystem at once: nothing is written back from here on.
    pub stop: Box<dyn Fn() -> Result<()> + 'a>,
    /// Mounts each again, which replays its journal. How long the mounts took together, microseconds.
    pub open: Box<dyn Fn() -> Result<u64> + 'a>,
}

/// Something that is done to a snapshot, by its number.
pub type SnapshotAction<'a, T> = Box<dyn Fn(u64) -> Result<T> + Sync + 'a>;

/// Makes and deletes snapshots of the stack, by number.
pub struct SnapshotActions<'a> {
    pub make: SnapshotAction<'a, ()>,
    pub delete: SnapshotAction<'a, ()>,
    /// The folder of a snapshot that is made empty and then to be filled with reflinks of the data; `None` where a snapshot
    /// has all files as they were at one moment.
    pub filled: Box<dyn Fn(u64) -> Option<PathBuf> + Sync + 'a>,
    /// Makes a copy of a snapshot that can be written: the folder of the origin, and of the copy, where the stack has such.
    pub copy: SnapshotAction<'a, Option<(PathBuf, PathBuf)>>,
    /// Whether a snapshot has become useless because its own room was full.
    pub is_lost: SnapshotAction<'a, bool>,
    /// Bytes in use, those that snapshots hold included.
    pub used: Box<dyn Fn() -> Result<u64> + Sync + 'a>,
}

/// Where a workload runs.
pub struct Place<'a> {
    pub host: &'a Host,
    /// Folder on the stack that it may use; owned by `user`.
    pub folder: &'a Path,
    /// The server, where the workload has one.
    pub server: Option<&'a Server>,
    /// How the machine below the server crashes; there while the workload is measured.
    pub crash: Option<Crash<'a>>,
    /// For a workload that makes snapshots; there while it is measured, on stacks that have them.
    pub snapshots: Option<SnapshotActions<'a>>,
    /// As whom clients run.
    pub user: &'a User,
    /// Whether somebody asked to stop.
    pub interrupt: &'a Interrupt,
    /// Folder for the tools' raw output (on another filesystem than the stack); owned by us, readable by `user`.
    pub raw: &'a Path,
}

/// What a measurement tells while it goes on.
#[derive(Debug)]
pub enum Told {
    /// The first operation began at this wall clock moment (microseconds since 1970). Told once, maybe a good while after it:
    /// seconds are counted from that moment.
    Began(u64),
    /// A second is complete: no further operation of it will come. In order; seconds in which nothing was done come with
    /// zero operations, those without any load do not come.
    Second(ClientSecond),
    /// Latencies of one measure in a part of the measurement, seldom more than a second; of all measures in the order of
    /// time. What ended after the last whole second is reported too.
    Latencies(LatencyInterval),
}

/// Hears what a measurement tells, from the workload's own threads.
pub type Listener<'a> = dyn Fn(Told) + Sync + 'a;

impl ClientSecond {
    /// A second in which nothing was done yet, and every operation is looked at.
    ///
    /// # Errors
    /// As [`empty_histogram`].
    pub(crate) fn empty(second: u64) -> Result<ClientSecond> {
        let (done, failed, skipped, late, idle_us) = (0, 0, 0, 0, None);
        Ok(ClientSecond {
            second,
            done,
            failed,
            skipped,
            late,
            idle_us,
            log_sample: 1.0,
            latencies: empty_histogram()?,
        })
    }
}

/// An empty histogram of latencies in microseconds: three significant digits, as wide as what it is given.
///
/// # Errors
/// Never in practice: the number of digits is a constant that hdrhistogram takes.
pub(crate) fn empty_histogram() -> Result<Histogram<u64>> {
    const SIGNIFICANT_DIGITS: u8 = 3;
    Histogram::new(SIGNIFICANT_DIGITS).map_err(|e| Error::bug(format!("cannot create a histogram: {e}")))
}

/// What a workload says of itself, for the plan and the manual.
pub struct WorkloadInfo {
    /// Its name in plans: `pgbench`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    pub needs_server: bool,
    pub options: &'static [OptionSpec],
    /// Values of options that a quick run takes where the plan gives none.
    pub quick: &'static [(&'static str, &'static str)],
}

/// A measurement of a workload.
pub struct Measuring<'a> {
    pub place: &'a Place<'a>,
    pub options: &'a Options,
    pub memory: Memory,
    pub until: Until<'a>,
    pub listener: &'a Listener<'a>,
}

/// One kind of workload.
pub trait Workload: Sync {
    fn info(&self) -> &WorkloadInfo;
    /// Its name in plans.
    fn name(&self) -> &'static str {
        self.info().name
    }
    /// The options of the pgbench on whose tables it works; `None` where it works on none.
    fn as_pgbench(&self, _options: &Options) -> Option<Options> {
        None
    }
    /// Makes relative paths among the options absolute: in a plan they start at the plan's own folder. Called before
    /// `check`; what is wrong stays as it is, for `check` to say so.
    fn resolve(&self, options: &mut Options, folder: &Path) {
        if self.as_pgbench(options).is_some() {
            Pgbench.resolve(options, folder);
        }
    }
    /// Checks what the specs cannot say. Pure, but for custom script files, which must exist.
    ///
    /// # Errors
    /// The key and what is wrong with it.
    fn check(&self, options: &Options) -> Result<(), OptionProblem>;
    /// What a person should know before the run ("more clients than scale: row locks").
    fn warnings(&self, options: &Options, memory: Memory) -> Vec<String> {
        self.as_pgbench(options).map(|plain| Pgbench.warnings(&plain, memory)).unwrap_or_default()
    }
    /// Connections that its clients hold at the same time.
    fn connections(&self, options: &Options) -> u64 {
        self.as_pgbench(options).map_or(0, |plain| Pgbench.connections(&plain))
    }
    /// Whether it makes snapshots of the stack while it is measured.
    fn makes_snapshots(&self) -> bool {
        false
    }
    /// Whether the machine below the server crashes while it is measured.
    fn crashes_machine(&self, _options: &Options) -> bool {
        false
    }
    /// The data that it needs; `memory` turns "50% of RAM" into a number.
    fn data_set(&self, options: &Options, memory: Memory) -> Option<DataSet> {
        Pgbench.data_set(&self.as_pgbench(options)?, memory)
    }
    /// What one operation is. Pure, but for custom script files, which are read.
    ///
    /// # Errors
    /// Options that a plan would refuse.
    fn operation(&self, options: &Options) -> Result<Operation>;
    /// Warm-up and measurement as planned.
    fn window(&self, options: &Options) -> Window;
    /// Makes the window a short one, whatever it then lacks; what the plan gives stays.
    fn make_quick(&self, options: &mut Options) {
        options.set_where_absent(self.info().quick);
    }
    /// Fills an empty database of a running server with the data set.
    ///
    /// # Errors
    /// With the tool's own words.
    fn load(&self, place: &Place<'_>, options: &Options, memory: Memory) -> Result<()> {
        self.as_pgbench(options).map_or(Ok(()), |plain| Pgbench.load(place, &plain, memory))
    }
    /// The tablespaces that the options name.
    fn tablespaces(&self, options: &Options) -> Vec<String> {
        self.as_pgbench(options).map(|plain| Pgbench.tablespaces(&plain)).unwrap_or_default()
    }
    /// Settings that the options ask of the server; a plan may not set these by itself as well.
    fn server_settings(&self, _options: &Options) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Moves its data into the tablespaces that the options name, once these are there and the server runs.
    ///
    /// # Errors
    /// With the server's own words.
    fn place_data(&self, place: &Place<'_>, options: &Options) -> Result<()> {
        self.as_pgbench(options).map_or(Ok(()), |plain| Pgbench.place_data(place, &plain))
    }
    /// Runs unmeasured.
    ///
    /// # Errors
    /// With the tool's own words; interrupted.
    fn warm_up(&self, _place: &Place<'_>, _options: &Options, _memory: Memory, _until: Until<'_>) -> Result<()> {
        Ok(())
    }
    /// Options that the plan leaves open and that must be the same for all cases with this workload. Asked after the
    /// warm-up of the first of them, which has left its output in `place.raw`.
    ///
    /// # Errors
    /// Where that output cannot be read.
    fn decide(&self, _place: &Place<'_>, _options: &Options) -> Result<Options> {
        Ok(Options::default())
    }
    /// Runs, measured. Rates and percentiles are not its business: `analyse` has them from the counts.
    ///
    /// # Errors
    /// With the tool's own words, or where those cannot be read; interrupted.
    fn measure(&self, run: Measuring<'_>) -> Result<Counts>;
    /// Has a client see the server answer until `ask` is told that the guest may be killed now: microseconds since the last
    /// answer, and the longest time between two. Returns when that fails only. For a workload whose counts have
    /// `before_crash`.
    ///
    /// # Errors
    /// What `ask` says; no answer.
    fn await_end(&self, _place: &Place<'_>, _ask: &dyn Fn(u64, u64) -> Result<()>) -> Result<()> {
        Err(Error::bug(format!("the workload {} does not crash", self.name())))
    }
}
