//! Turns: the measured parts of a trial that stood beside others, each next to theirs in time.

use super::disk_probe::DiskProbe;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Turns of one trial. Rows, latencies and waits of the trial are those of its counted turns, put together as if they had
/// followed one another without a break; counters of devices leave out what grew in between.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnsRecord {
    /// In order of time.
    pub turns: Vec<TurnRecord>,
    /// Most operations of a turn: the same for all cases of the workload whose warm-ups lie within a factor of four.
    /// `None`: turns of equal time.
    pub operations: Option<u64>,
    /// Time between its turns, while others had theirs, microseconds.
    pub between_us: u64,
    /// Growth of the counters of its devices in that time, by column: what an idle stack does all the same. Empty in an
    /// existing folder, whose devices have the turns of others, too.
    pub between: BTreeMap<String, u64>,
}

/// One turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Number of its round in the block, from 1. A round is what is compared.
    pub round: u32,
    /// Id of the case whose turn came before it; `None` for the first turn of a block.
    pub after: Option<String>,
    /// Probe of the disk below the images, or of the folder, just before it; `None` without either.
    pub probe: Option<DiskProbe>,
    /// Another just after it, where it was the last of its round and ended at its limit of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_after: Option<DiskProbe>,
    /// Start of its first operation, microseconds since 1970.
    pub began_us: u64,
    /// Operations that its rate counts: with equal work, those from when each client had done one until the first
    /// ended.
    pub operations: u64,
    /// Time of these, microseconds.
    pub elapsed_us: u64,
    /// From its first operation to the end of its last one, microseconds.
    pub whole_us: u64,
    /// Flushing WAL that the clients did not wait for, afterwards, microseconds.
    pub wal_flush_us: u64,
    /// Writing back everything else, then, microseconds.
    pub sync_us: u64,
    /// Its rows in `seconds.parquet`, baseline excluded; 0 if it does not count.
    pub seconds: u64,
    /// False if the disk was disturbed in its round, which was made again.
    pub counts: bool,
    /// True if the disk was disturbed in its round. One that counts all the same came after as many were made again as
    /// may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_off: Option<bool>,
}

impl TurnRecord {
    /// Its probes of the disk, in order of time.
    pub fn probes(&self) -> impl Iterator<Item = &DiskProbe> {
        self.probe.iter().chain(&self.probe_after)
    }

    /// Time of its operations, and of flushing their WAL if no client waited for that; microseconds.
    pub fn rated_us(&self, is_async: bool) -> u64 {
        self.elapsed_us + if is_async { self.wal_flush_us } else { 0 }
    }
}

impl TurnsRecord {
    /// Turns that count.
    pub fn counted(&self) -> impl Iterator<Item = &TurnRecord> {
        self.turns.iter().filter(|turn| turn.counts)
    }

    /// Operations per second over the turns that count; `None` without any. With asynchronous commits they pay for their
    /// WAL.
    pub fn rate(&self, is_async: bool) -> Option<f64> {
        let (operations, us) =
            self.counted().fold((0, 0), |(done, us), turn| (done + turn.operations, us + turn.rated_us(is_async)));
        (operations > 0 && us > 0).then(|| operations as f64 * 1e6 / us as f64)
    }
}
