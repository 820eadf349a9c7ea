//! Operations of the rows with one writer: each makes exactly the system calls it is named after.

use crate::host::linux;
use crate::host::mapped::Mapped;
use crate::host::ring::Ring;
use crate::host::signals::Interrupt;
use crate::host::ticks::Ticker;
use crate::probe::group::WriterGroup;
use crate::probe::rows;
use crate::probe::site::ProbeSite;
use crate::probe::synced::{flags, sync, whole, write_at};
use crate::probe::tape::{FailedCall, Tape};
use crate::probe::walk::Walk;
use crate::record::probe::{Family, RowSpec, Way};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::time::Duration;

/// Name of the file that all rows but those of the WAL write; pg_test_fsync also uses one file for all.
pub(super) const FILE: &str = "file";

/// One row, ready to run.
pub(super) enum RowOperation<'a> {
    /// Walks through WAL segments.
    Walk(Walk<'a>),
    /// Several writers that share syncs.
    Group(WriterGroup<'a>),
    /// Overwrites the beginning of the file. By itself, so that no call stands between clock and system call.
    Overwrite(Overwrite<'a>),
    /// The calls of any other row.
    Calls(Box<dyn FnMut() -> Result<(), FailedCall> + 'a>),
}

/// One or more writes and their sync.
pub struct Overwrite<'a> {
    file: File,
    bytes: &'a [u8],
    writes: u32,
    way: Way,
}

impl<'a> RowOperation<'a> {
    /// Opens the files of the row. `bytes` is aligned memory of at least one write's size; `mapped_bytes` the part of
    /// the file that a mapping must cover.
    ///
    /// # Errors
    /// The call that failed.
    pub(super) fn open(
        spec: &RowSpec,
        site: &'a ProbeSite,
        bytes: &'a [u8],
        mapped_bytes: usize,
        ticker: &Ticker,
    ) -> Result<RowOperation<'a>, FailedCall> {
        let noise = bytes;
        let bytes = &noise[..spec.write_bytes as usize];
        let open = || site.open(FILE, flags(spec));
        if spec.writers > 1 {
            return WriterGroup::open(spec, site, noise, ticker).map(RowOperation::Group);
        }
        if spec.segment.is_some() {
            return Walk::open(spec, site, noise).map(RowOperation::Walk);
        }
        Ok(RowOperation::Calls(match (spec.family, spec.way) {
            // These open and close the file each time.
            (Family::Descriptor, _) if spec.label == rows::WRITE_FSYNC_CLOSE => {
                Box::new(move || write_fsync_close(site, bytes))
            }
            (Family::Descriptor, _) => Box::new(move || write_close_fsync(site, bytes)),
            (_, Way::RwfDsync) => {
                let file = open()?;
                Box::new(move || {
                    let written = linux::write_synced(&file, bytes).map_err(FailedCall::of("pwritev2"));
                    whole("pwritev2", written?, bytes.len())
                })
            }
            (_, Way::IoUring) => {
                let mut ring = Ring::new().map_err(FailedCall::of("io_uring_setup"))?;
                let file = open()?;
                Box::new(move || write_and_sync_by_ring(&mut ring, &file, bytes))
            }
            (_, Way::Msync) => {
                let mut mapped = Mapped::file(&open()?, mapped_bytes).map_err(FailedCall::of("mmap"))?;
                // madvise(MADV_POPULATE_WRITE) replaces the page fault.
                Box::new(move || {
                    mapped.write(bytes).map_err(FailedCall::of("madvise(MADV_POPULATE_WRITE)"))?;
                    mapped.sync(bytes.len()).map_err(FailedCall::of("msync"))
                })
            }
            (_, way) => return Ok(RowOperation::Overwrite(Overwrite::new(open()?, bytes, spec.writes, way))),
        }))
    }

    /// Prepares a run, outside the timed and counted part: a new segment if the last one is used up.
    ///
    /// # Errors
    /// The call that failed.
    pub(crate) fn prepare(&mut self) -> Result<(), FailedCall> {
        match self {
            RowOperation::Walk(walk) => walk.prepare(),
            _ => Ok(()),
        }
    }

    /// Runs for `span`, at least once; the operations are on `tape`. Call [`RowOperation::prepare`] first.
    ///
    /// # Errors
    /// The call that failed.
    pub fn run(
        &mut self,
        tape: &mut Tape,
        span: Duration,
        most: usize,
        interrupt: &Interrupt,
    ) -> Result<Option<u64>, FailedCall> {
        match self {
            RowOperation::Group(group) => return group.run(span, most, interrupt).map(Some),
            RowOperation::Walk(walk) => {
                let most = most.min(walk.left());
                tape.run(span, (1, most), interrupt, || walk.once())?;
            }
            RowOperation::Overwrite(overwrite) => tape.run(span, (1, most), interrupt, || overwrite.once())?,
            RowOperation::Calls(calls) => tape.run(span, (1, most), interrupt, calls)?,
        }
        Ok(None)
    }

    /// The warm-up operation. A group needs none: its own beginning does not count anyway.
    pub(super) fn first(&mut self, tape: &mut Tape, interrupt: &Interrupt) -> Result<(), FailedCall> {
        match self {
            RowOperation::Group(_) => Ok(()),
            _ => self.run(tape, Duration::ZERO, 1, interrupt).map(drop),
        }
    }

    /// Operations of the whole run, if only part of them counts.
    pub(super) fn all_operations(&self) -> Option<u64> {
        let RowOperation::Group(group) = self else { return None };
        Some(group.tapes().iter().map(|tape| tape.operations().count() as u64).sum())
    }
}

impl<'a> Overwrite<'a> {
    /// `writes` consecutive writes of `bytes` from the beginning of `file`, synced this way.
    pub fn new(file: File, bytes: &'a [u8], writes: u32, way: Way) -> Overwrite<'a> {
        Overwrite { file, bytes, writes, way }
    }

    /// One operation.
    ///
    /// # Errors
    /// The call that failed.
    #[inline]
    pub fn once(&self) -> Result<(), FailedCall> {
        for write in 0..self.writes {
            write_at(&self.file, self.bytes, u64::from(write) * self.bytes.len() as u64)?;
        }
        sync(&self.file, self.way)
    }
}

fn reopened(site: &ProbeSite) -> Result<File, FailedCall> {
    site.open(FILE, OFlags::empty())
}

/// As in pg_test_fsync: the second open and close make it as much work as the other order.
fn write_fsync_close(site: &ProbeSite, bytes: &[u8]) -> Result<(), FailedCall> {
    let file = reopened(site)?;
    write_at(&file, bytes, 0)?;
    sync(&file, Way::Fsync)?;
    drop(file);
    reopened(site).map(drop)
}

fn write_close_fsync(site: &ProbeSite, bytes: &[u8]) -> Result<(), FailedCall> {
    let file = reopened(site)?;
    write_at(&file, bytes, 0)?;
    drop(file);
    sync(&reopened(site)?, Way::Fsync)
}

fn write_and_sync_by_ring(ring: &mut Ring, file: &File, bytes: &[u8]) -> Result<(), FailedCall> {
    let outcome = ring.write_then_sync(file, bytes, 0).map_err(FailedCall::of("io_uring_enter"))?;
    whole("io_uring write", done("io_uring write", outcome.written)?, bytes.len())?;
    done("io_uring fdatasync", outcome.synced).map(drop)
}

/// What a completed call returned: an amount, or an error as its negative number.
fn done(call: &'static str, code: i32) -> Result<usize, FailedCall> {
    usize::try_from(code).map_err(|_| FailedCall { call, error: Errno::from_raw_os_error(-code).into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::probe::rows::{RowChoice, rows};
    use crate::probe::site::FileFill;

    #[test]
    fn every_row_writes_its_bytes_where_it_says() {
        let place = tempfile::tempdir().unwrap();
        let site = ProbeSite::make(place.path()).unwrap();
        let memory = crate::host::noise::Noise::new(crate::probe::NOISE_SEED);
        let (bytes, ticker) = (memory.bytes(), Ticker::of(&Host::this()));
        for spec in rows(&RowChoice::All, 8192, 1).iter().filter(|spec| spec.way != Way::FsyncWritethrough) {
            if spec.segment.is_some() {
                continue;
            }
            site.fill(FILE, 1 << 20, FileFill::Zeroes).unwrap();
            let ran = RowOperation::open(spec, &site, bytes, 8192, &ticker)
                .and_then(|mut op| op.run(&mut Tape::new(ticker.clone()), Duration::ZERO, 1, &Interrupt::never()));
            match ran {
                Ok(_) => {
                    let length = (spec.write_bytes * spec.writes) as usize;
                    let read = std::fs::read(site.folder().join(FILE)).unwrap();
                    let wanted: Vec<u8> =
                        (0..spec.writes).flat_map(|_| &bytes[..spec.write_bytes as usize]).copied().collect();
                    assert_eq!(read[..length], wanted, "{}", spec.id);
                    assert!(read[length..].iter().all(|byte| *byte == 0), "{}", spec.id);
                }
                Err(failed) => println!("skipped: {} is not available here: {} {}", spec.id, failed.call, failed.error),
            }
            site.remove(FILE).unwrap();
        }
    }
}
