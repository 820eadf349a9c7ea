//! Group commit: several writers whose commits share a flush.
//!
//! As in the server (XLogFlush, src/backend/access/transam/xlog.c): a writer adds its block to the log, then waits for
//! the right to flush; the leader that gets it writes everything added so far and syncs once, and the others find their
//! block flushed.
//!
//! Only the time with all writers active counts: from the end of the first sync, which serves the first arrivals, until
//! the first writer leaves.

use super::site::ProbeSite;
use super::tape::{FailedCall, Tape};
use super::walk::RECYCLED;
use crate::host::files::File;
use crate::host::signals::Interrupt;
use crate::host::threads::{self, locked};
use crate::host::ticks::Ticker;
use crate::host::time::{Instant, now};
use crate::probe::synced::{flags, sync, write_at};
use crate::record::probe::{RowSpec, Way};
use std::io;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

pub struct WriterGroup<'a> {
    file: File,
    bytes: &'a [u8],
    block: u64,
    segment_bytes: u64,
    way: Way,
    log: Mutex<WriterLog>,
    flushed: Condvar,
    tapes: Vec<Tape>,
}

#[derive(Debug, Default)]
struct WriterLog {
    added: u64,
    flushed: u64,
    /// True while a leader is flushing.
    leader: bool,
    /// End of each sync of this run.
    syncs: Vec<Instant>,
    /// The failed call and its error; all writers then stop.
    failed: Option<FailedCall>,
}

/// Minimum commits per writer in a run: enough that the first and last syncs are not most of it.
const LEAST: usize = 4;

impl<'a> WriterGroup<'a> {
    /// Opens the recycled segment. `bytes` is aligned memory for the largest write: a leader writes everything gathered
    /// in one call, up to that length.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(spec: &RowSpec, site: &ProbeSite, bytes: &'a [u8], ticker: &Ticker) -> Result<Self, FailedCall> {
        let file = site.open(RECYCLED, flags(spec))?;
        Ok(WriterGroup {
            file,
            bytes,
            block: u64::from(spec.write_bytes),
            segment_bytes: site.segment_bytes,
            way: spec.way,
            log: Mutex::default(),
            flushed: Condvar::new(),
            tapes: (0..spec.writers).map(|_| Tape::new(ticker.clone())).collect(),
        })
    }

    /// Runs all writers for `span`, each at least [`LEAST`] times. Returns the number of syncs within
    /// [`WriterGroup::steady`]; the operations are on the tapes.
    ///
    /// # Errors
    /// The call that failed.
    pub fn run(&mut self, span: Duration, most: usize, interrupt: &Interrupt) -> Result<u64, FailedCall> {
        let mut tapes = std::mem::take(&mut self.tapes);
        locked(&self.log).syncs.clear();
        let this = &*self;
        // Holds the writers until all have arrived; then true if they may write.
        let gate = OnceLock::new();
        let spawned = std::thread::scope(|scope| {
            for tape in &mut tapes {
                let gate = &gate;
                let begun = threads::begin(scope, move || match *gate.wait() {
                    // The log holds the failure, for all writers.
                    true => tape.run(span, (LEAST.min(most), most), interrupt, || this.commit()).ok(),
                    false => None,
                });
                if let Err(error) = begun {
                    gate.set(false).ok();
                    return Err(FailedCall { call: "clone", error: io::Error::other(error) });
                }
            }
            gate.set(true).ok();
            Ok(())
        });
        self.tapes = tapes;
        spawned?;
        let steady = self.steady();
        let mut log = locked(&self.log);
        match log.failed.take() {
            Some(failed) => Err(failed),
            None => Ok(log.syncs.iter().filter(|at| **at > steady.0 && **at <= steady.1).count() as u64),
        }
    }

    /// The time in which all writers were active.
    pub fn steady(&self) -> (Instant, Instant) {
        let firsts = self.tapes.iter().filter_map(|tape| tape.operations().next().map(|(ended, _)| ended));
        let begun = firsts.min().unwrap_or_else(now);
        let left = self.tapes.iter().map(|tape| tape.begun() + tape.elapsed()).min().unwrap_or(begun);
        (begun, left.max(begun))
    }

    pub fn tapes(&self) -> &[Tape] {
        &self.tapes
    }

    /// One writer's commit: adds a block and returns once it is flushed.
    fn commit(&self) -> Result<(), FailedCall> {
        let mut log = locked(&self.log);
        log.added += 1;
        let mine = log.added;
        loop {
            if let Some(failed) = &log.failed {
                return Err(failed.clone());
            }
            if log.flushed >= mine {
                return Ok(());
            }
            if log.leader {
                log = self.flushed.wait(log).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            log.leader = true;
            let (from, to) = (log.flushed, log.added);
            drop(log);
            let outcome = self.write_and_sync(from, to);
            log = locked(&self.log);
            log.leader = false;
            match outcome {
                Ok(()) => {
                    log.flushed = to;
                    log.syncs.push(now());
                }
                Err(failed) => log.failed = Some(failed),
            }
            self.flushed.notify_all();
        }
    }

    /// Writes blocks `from` to `to` of the log, in as few calls as memory and the segment's end allow, and syncs.
    fn write_and_sync(&self, from: u64, to: u64) -> Result<(), FailedCall> {
        let per_segment = (self.segment_bytes / self.block).max(1);
        let most = (self.bytes.len() as u64 / self.block).max(1);
        let mut at = from;
        while at < to {
            let place = at % per_segment;
            let blocks = (to - at).min(per_segment - place).min(most);
            let length = usize::try_from(blocks * self.block).unwrap_or(0);
            write_at(&self.file, &self.bytes[..length], place * self.block)?;
            at += blocks;
        }
        sync(&self.file, self.way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::probe::rows::{RowChoice, rows};
    use crate::probe::site::FileFill;

    #[test]
    fn commits_share_syncs_and_each_is_flushed() {
        let place = tempfile::tempdir().unwrap();
        let mut site = ProbeSite::make(place.path()).unwrap();
        site.segment_bytes = 1 << 20;
        site.fill(RECYCLED, 1 << 20, FileFill::Noise).unwrap();
        let spec = rows(&RowChoice::All, 8192, 8).into_iter().find(|row| row.writers == 8).unwrap();
        let memory = crate::host::noise::Noise::new(crate::probe::NOISE_SEED);
        let mut group = WriterGroup::open(&spec, &site, memory.bytes(), &Ticker::of(&Host::this())).unwrap();
        let syncs = group.run(Duration::from_secs(20), 50, &Interrupt::never()).unwrap();
        let commits: usize = group.tapes().iter().map(|tape| tape.operations().count()).sum();
        assert_eq!(commits, 400);
        assert!((40..=400).contains(&syncs), "{syncs}");
        let log = locked(&group.log);
        assert_eq!((log.added, log.flushed), (400, 400));
        assert!(log.syncs.len() as u64 >= syncs && log.syncs.len() >= 50);
    }

    #[test]
    fn a_failed_sync_ends_all_writers_and_counts_no_commits() {
        let place = tempfile::tempdir().unwrap();
        let site = ProbeSite::make(place.path()).unwrap();
        let spec = rows(&RowChoice::All, 8192, 4).into_iter().find(|row| row.writers == 4).unwrap();
        site.fill(RECYCLED, 1 << 20, FileFill::Noise).unwrap();
        let memory = crate::host::noise::Noise::new(crate::probe::NOISE_SEED);
        let mut group = WriterGroup::open(&spec, &site, memory.bytes(), &Ticker::of(&Host::this())).unwrap();
        // A read-only descriptor.
        group.file = File::open(site.folder().join(RECYCLED)).unwrap();
        let failed = group.run(Duration::from_secs(20), 50, &Interrupt::never()).unwrap_err();
        assert_eq!((failed.call, failed.error.raw_os_error()), ("write", Some(9)));
        assert_eq!(group.tapes().iter().map(|tape| tape.operations().count()).sum::<usize>(), 0);
    }
}
