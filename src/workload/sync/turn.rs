//! One method of sync: its file, its operation, and what is kept of it.

use super::{Seconds, record};
use crate::error::{Context, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now};
use crate::record::trial::Measure;
use crate::workload::empty_histogram;
use hdrhistogram::Histogram;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of a file: a segment of WAL, as in pg_test_fsync.
const FILE_BYTES: usize = 16 << 20;

const OPERATION: &str = "8 kB write + sync";

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Fdatasync,
    Fsync,
    /// By the flags that the file was opened with.
    Opened,
}

/// One method.
pub(super) struct Method {
    pub(super) name: &'static str,
    flags: OFlags,
    sync: Durable,
    /// Why Linux does not have it.
    unavailable: Option<&'static str>,
}

/// In the order of pg_test_fsync. Like it, the methods that sync by open flags write past the page cache.
pub(super) const METHODS: [Method; 5] = [
    Method {
        name: "open_datasync",
        flags: OFlags::DSYNC.union(OFlags::DIRECT),
        sync: Durable::Opened,
        unavailable: None,
    },
    Method { name: "fdatasync", flags: OFlags::empty(), sync: Durable::Fdatasync, unavailable: None },
    Method { name: "fsync", flags: OFlags::empty(), sync: Durable::Fsync, unavailable: None },
    Method {
        name: "fsync_writethrough",
        flags: OFlags::empty(),
        sync: Durable::Fsync,
        unavailable: Some("only macOS and Windows have it"),
    },
    Method { name: "open_sync", flags: OFlags::SYNC.union(OFlags::DIRECT), sync: Durable::Opened, unavailable: None },
];

/// A file of one method, removed when dropped.
struct ProbeFile {
    path: PathBuf,
}

impl ProbeFile {
    /// Makes it under a name that nobody has, writes it full of noise and syncs it, so that the operations measured
    /// overwrite what is there.
    fn make(folder: &Path, method: &str) -> Result<ProbeFile> {
        let path = folder.join(format!("pgstrata-sync-{}-{method}", files::random_id()?));
        let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = created.or_host(|| format!("make {}", path.display()))?;
        let probe = ProbeFile { path };
        let filled = (|| {
            for _ in 0..FILE_BYTES / NOISE_BYTES {
                file.write_all(&noise(NOISE_BYTES))?;
            }
            file.sync_all()
        })();
        filled.or_host(|| format!("fill {}", probe.path.display()))?;
        Ok(probe)
    }
}

impl Drop for ProbeFile {
    fn drop(&mut self) {
        // The folder belongs to a stack that is undone as a whole.
        drop(std::fs::remove_file(&self.path));
    }
}

const NOISE_BYTES: usize = 1 << 20;

/// Bytes that no filesystem compresses or leaves out; the same in every run.
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
    bytes
}

/// One method while it is measured.
pub(super) struct Turn {
    pub(super) method: &'static Method,
    pub(super) file: Option<File>,
    // Removed after the file is closed: fields are dropped in order.
    _probe: Option<ProbeFile>,
    pub(super) latencies: Histogram<u64>,
    latency_ns_sum: u128,
    elapsed: Duration,
    failed: u64,
    pub(super) unavailable: Option<String>,
    slice_rates: Vec<f64>,
}

impl Turn {
    pub(super) fn new(folder: &Path, method: &'static Method) -> Result<Turn> {
        let mut turn = Turn {
            method,
            file: None,
            _probe: None,
            latencies: empty_histogram()?,
            latency_ns_sum: 0,
            elapsed: Duration::ZERO,
            failed: 0,
            unavailable: method.unavailable.map(str::to_owned),
            slice_rates: Vec::new(),
        };
        if turn.unavailable.is_none() {
            let probe = ProbeFile::make(folder, method.name)?;
            match open(&probe.path, method.flags) {
                Ok(file) => turn.file = Some(file),
                Err(e) => turn.unavailable = Some(format!("the filesystem refuses to open a file for it: {e}")),
            }
            turn._probe = Some(probe);
        }
        Ok(turn)
    }

    /// Operations until `until`, at least one; those done are in `seconds` too.
    pub(super) fn slice(
        &mut self,
        page: &[u8],
        until: Instant,
        seconds: &mut Seconds<'_>,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let begun = now();
        let (mut done, mut ended) = (0u64, begun);
        while ended < until || done == 0 {
            interrupt.check()?;
            let started = now();
            let outcome = operation(file, page, self.method.sync);
            ended = now();
            if let Err(e) = outcome {
                self.give_up(&e);
                seconds.failed(ended)?;
                return Ok(());
            }
            let took = ended.duration_since(started);
            done += 1;
            self.latency_ns_sum += took.as_nanos();
            record(&mut self.latencies, micros(took))?;
            seconds.done(ended, micros(took))?;
        }
        let elapsed = ended.duration_since(begun);
        self.elapsed += elapsed;
        self.slice_rates.push(done as f64 / elapsed.as_secs_f64());
        Ok(())
    }

    /// A failure ends the method: what it measured before is no measure of a stack that loses writes.
    fn give_up(&mut self, e: &io::Error) {
        let after = self.latencies.len();
        let refused = after == 0 && e.kind() == io::ErrorKind::InvalidInput;
        self.failed = u64::from(!refused);
        self.unavailable = Some(match refused {
            true => format!("the filesystem refuses such a write: {e}"),
            false => format!("failed after {after} operations: {e}"),
        });
        self.file = None;
        self.latencies.reset();
        self.slice_rates.clear();
    }

    pub(super) fn measure(&self) -> Measure {
        let available = self.unavailable.is_none();
        Measure {
            name: self.method.name.to_owned(),
            operation: OPERATION.to_owned(),
            done: available.then(|| self.latencies.len()),
            failed: self.failed,
            skipped: 0,
            late: 0,
            elapsed_us: if available { micros(self.elapsed) } else { 0 },
            latency_us_sum: if available { (self.latency_ns_sum / 1000) as u64 } else { 0 },
            unavailable: self.unavailable.clone(),
            slice_rates: self.slice_rates.clone(),
        }
    }
}

pub(super) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// One write at the file's beginning, and its sync. The only timed code: nothing but the system calls.
#[inline]
pub(super) fn operation(file: &File, page: &[u8], sync: Durable) -> io::Result<()> {
    let written = file.write_at(page, 0)?;
    if written != page.len() {
        return Err(io::Error::new(io::ErrorKind::WriteZero, format!("only {written} of {} bytes", page.len())));
    }
    match sync {
        Durable::Fdatasync => rustix::fs::fdatasync(file)?,
        Durable::Fsync => rustix::fs::fsync(file)?,
        Durable::Opened => {}
    }
    Ok(())
}
