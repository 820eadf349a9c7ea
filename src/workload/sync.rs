//! What a durable write costs without PostgreSQL: one 8 kB write and its sync, by each of the methods that
//! `wal_sync_method` knows, as pg_test_fsync does, but every operation timed, every return value checked, and the
//! methods in turn in short slices, so that a drift of the device does not look like a difference between methods.
//!
//! A failed sync ends its method and is told as such: it is never a fast success. Each method has a file of its own, so
//! that direct writes do not pay for throwing out the pages that a buffered method left in the cache.

use super::{ClientSecond, DataSet, Listener, Place, Raw, Workload, empty_histogram};
use crate::error::{Context, Error, Result};
use crate::host::files;
use crate::host::signals::Interrupt;
use crate::host::time::{Instant, micros, now, wall_us};
use crate::record::options::{OptionKind, OptionProblem, OptionSpec, Options};
use crate::record::trial::{Figures, Measure};
use crate::units::{Bytes, Micros};
use hdrhistogram::Histogram;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One write: a page of WAL (`XLOG_BLCKSZ`).
const WRITE_BYTES: usize = 8192;

/// Size of a file: a segment of WAL, as in pg_test_fsync.
const FILE_BYTES: usize = 16 << 20;

/// Direct writes want memory aligned to the device's logical block, which is at most a page.
const ALIGNMENT: usize = 4096;

/// How long one method runs before the next one's turn.
const SLICE: Duration = Duration::from_millis(200);

const DEFAULT_DURATION: Micros = Micros(10_000_000);

const OPERATION: &str = "8 kB write + sync";

const SPECS: &[OptionSpec] = &[
    OptionSpec {
        key: "duration",
        kind: OptionKind::Span,
        axis: false,
        required: false,
        default: Some("10s"),
        doc: "how long it is measured; the methods share it in slices of 0.2 s",
    },
    OptionSpec {
        key: "warmup",
        kind: OptionKind::Span,
        axis: false,
        required: false,
        default: Some("0s"),
        doc: "how long the same runs unmeasured before",
    },
];

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durable {
    Fdatasync,
    Fsync,
    /// By the flags that the file was opened with.
    Opened,
}

/// One method.
struct Method {
    name: &'static str,
    flags: OFlags,
    sync: Durable,
    /// Why Linux does not have it.
    unavailable: Option<&'static str>,
}

/// In the order of pg_test_fsync. Like it, the methods that sync by open flags write past the page cache.
const METHODS: [Method; 5] = [
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

/// The workload `sync`.
#[derive(Debug)]
pub struct Sync;

impl Workload for Sync {
    fn name(&self) -> &'static str {
        "sync"
    }

    fn doc(&self) -> &'static str {
        "one 8 kB write and its sync, by each of the five methods of wal_sync_method; no server"
    }

    fn options(&self) -> &'static [OptionSpec] {
        SPECS
    }

    fn check(&self, options: &Options) -> Result<(), OptionProblem> {
        match span(options, "duration")? {
            Some(Micros(0)) => Err(OptionProblem::at("duration", "must be above 0")),
            _ => span(options, "warmup").map(drop),
        }
    }

    fn needs_server(&self) -> bool {
        false
    }

    fn data_set(&self, _options: &Options, _memory: Bytes) -> Option<DataSet> {
        None
    }

    fn spans(&self, options: &Options) -> (Micros, Micros) {
        let of = |key| span(options, key).ok().flatten();
        (of("warmup").unwrap_or_default(), of("duration").unwrap_or(DEFAULT_DURATION))
    }

    fn load(&self, _place: &Place<'_>, _options: &Options, _memory: Bytes) -> Result<()> {
        Ok(())
    }

    fn warm_up(&self, place: &Place<'_>, options: &Options, _memory: Bytes) -> Result<()> {
        match self.spans(options).0 {
            Micros(0) => Ok(()),
            warmup => run(place.folder, warmup, place.interrupt, &Nobody).map(drop),
        }
    }

    fn measure(&self, place: &Place<'_>, options: &Options, _memory: Bytes, listener: &dyn Listener) -> Result<Raw> {
        run(place.folder, self.spans(options).1, place.interrupt, listener)
    }

    fn read(&self, _options: &Options, raw: &Raw) -> Result<Figures> {
        let counts: Counts =
            serde_json::from_value(raw.counts.clone()).or_store(|| "read what sync counted".to_owned())?;
        Ok(Figures { elapsed_us: counts.elapsed_us, measures: counts.measures, ..Figures::default() })
    }
}

/// What is kept with the raw output.
#[derive(Debug, Serialize, Deserialize)]
struct Counts {
    elapsed_us: u64,
    measures: Vec<Measure>,
}

/// Hears a warm-up.
struct Nobody;

impl Listener for Nobody {
    fn began(&self, _wall_us: u64) {}
    fn second(&self, _second: ClientSecond) {}
}

fn span(options: &Options, key: &'static str) -> Result<Option<Micros>, OptionProblem> {
    match options.text(key) {
        Some(text) => Micros::parse(text).map(Some).map_err(|message| OptionProblem::at(key, message)),
        None => Ok(None),
    }
}

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
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
    bytes
}

/// One method while it is measured.
struct Turn {
    method: &'static Method,
    file: Option<File>,
    // Removed after the file is closed: fields are dropped in order.
    _probe: Option<ProbeFile>,
    latencies: Histogram<u64>,
    latency_ns_sum: u128,
    elapsed: Duration,
    failed: u64,
    unavailable: Option<String>,
    slice_rates: Vec<f64>,
}

impl Turn {
    fn new(folder: &Path, method: &'static Method) -> Result<Turn> {
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
    fn slice(&mut self, page: &[u8], until: Instant, seconds: &mut Seconds<'_>, interrupt: &Interrupt) -> Result<()> {
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

    fn measure(&self) -> Measure {
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

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// One write at the file's beginning, and its sync. The only timed code: nothing but the system calls.
#[inline]
fn operation(file: &File, page: &[u8], sync: Durable) -> io::Result<()> {
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

/// The seconds of all methods together.
struct Seconds<'a> {
    listener: &'a dyn Listener,
    begun: Instant,
    /// The second that is open, from 1.
    open: ClientSecond,
}

impl Seconds<'_> {
    fn done(&mut self, at: Instant, latency_us: u64) -> Result<()> {
        self.pass(at)?;
        self.open.done += 1;
        record(&mut self.open.latencies, latency_us)
    }

    fn failed(&mut self, at: Instant) -> Result<()> {
        self.pass(at)?;
        self.open.failed += 1;
        Ok(())
    }

    /// Tells every second that lies wholly before `at`.
    fn pass(&mut self, at: Instant) -> Result<()> {
        let second = at.duration_since(self.begun).as_secs() + 1;
        while self.open.second < second {
            let next = new_second(self.open.second + 1)?;
            self.listener.second(std::mem::replace(&mut self.open, next));
        }
        Ok(())
    }
}

fn new_second(second: u64) -> Result<ClientSecond> {
    let latencies = empty_histogram()?;
    Ok(ClientSecond { second, done: 0, failed: 0, skipped: 0, late: 0, retries: 0, latencies })
}

fn record(latencies: &mut Histogram<u64>, latency_us: u64) -> Result<()> {
    latencies.record(latency_us).map_err(|e| Error::bug(format!("recording a latency of {latency_us} us: {e}")))
}

fn run(folder: &Path, span: Micros, interrupt: &Interrupt, listener: &dyn Listener) -> Result<Raw> {
    let memory = noise(WRITE_BYTES + ALIGNMENT);
    let aligned = memory.as_ptr().align_offset(ALIGNMENT);
    let page = &memory[aligned..aligned + WRITE_BYTES];
    let mut turns = METHODS.iter().map(|method| Turn::new(folder, method)).collect::<Result<Vec<_>>>()?;
    let begun = now();
    let end = begun + Duration::from_micros(span.0);
    listener.began(wall_us());
    let mut seconds = Seconds { listener, begun, open: new_second(1)? };
    while now() < end && turns.iter().any(|turn| turn.file.is_some()) {
        for turn in &mut turns {
            if now() < end {
                turn.slice(page, (now() + SLICE).min(end), &mut seconds, interrupt)?;
            }
        }
    }
    let elapsed = begun.elapsed();
    seconds.pass(begun + elapsed)?;
    let counts = Counts { elapsed_us: micros(elapsed), measures: turns.iter().map(Turn::measure).collect() };
    let measured = turns.into_iter().filter(|turn| turn.unavailable.is_none());
    Ok(Raw {
        latencies: measured.map(|turn| (turn.method.name.to_owned(), turn.latencies)).collect(),
        counts: serde_json::to_value(counts).or_store(|| "keep what sync counted".to_owned())?,
        ..Raw::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Ears {
        seconds: Mutex<Vec<ClientSecond>>,
        began: Mutex<Vec<u64>>,
    }

    impl Listener for Ears {
        fn began(&self, wall_us: u64) {
            self.began.lock().unwrap().push(wall_us);
        }
        fn second(&self, second: ClientSecond) {
            self.seconds.lock().unwrap().push(second);
        }
    }

    fn figures(raw: &Raw) -> Figures {
        Sync.read(&Options::default(), raw).unwrap()
    }

    #[test]
    fn every_method_of_linux_is_measured_in_turn_and_no_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let ears = Ears::default();
        let raw = run(folder.path(), Micros(2_100_000), &Interrupt::never(), &ears).unwrap();
        let figures = figures(&raw);
        let names: Vec<&str> = figures.measures.iter().map(|measure| measure.name.as_str()).collect();
        assert_eq!(names, METHODS.map(|method| method.name));
        for measure in &figures.measures {
            assert_eq!(measure.done.is_some(), measure.unavailable.is_none(), "{measure:?}");
            assert_eq!(measure.unavailable.is_none(), !measure.slice_rates.is_empty(), "{measure:?}");
        }
        assert!(figures.measures[1].done > Some(0) && figures.measures[2].done > Some(0));
        assert!(figures.measures[3].unavailable.as_deref().unwrap().contains("macOS"));
        assert_eq!(ears.began.into_inner().unwrap().len(), 1);
        let seconds = ears.seconds.into_inner().unwrap();
        assert_eq!(seconds.iter().map(|second| second.second).collect::<Vec<_>>(), [1, 2]);
        let told: u64 = seconds.iter().map(|second| second.done).sum();
        assert!(told > 0 && told <= figures.measures.iter().filter_map(|measure| measure.done).sum());
        for (name, latencies) in &raw.latencies {
            let measure = figures.measures.iter().find(|measure| &measure.name == name).unwrap();
            assert_eq!(measure.done, Some(latencies.len()));
            assert!(measure.latency_us_sum <= measure.elapsed_us);
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn an_interrupt_ends_it_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = Interrupt::never();
        interrupt.raise();
        let error = run(folder.path(), Micros(60_000_000), &interrupt, &Nobody).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Interrupted);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_device_that_fails_ends_its_method_with_the_errno_and_counts_nothing() {
        let mut turn = Turn::new(tempfile::tempdir().unwrap().path(), &METHODS[3]).unwrap();
        // Every write to /dev/full fails with ENOSPC.
        turn.method = &METHODS[1];
        turn.unavailable = None;
        turn.file = Some(open(Path::new("/dev/full"), OFlags::empty()).unwrap());
        record(&mut turn.latencies, 7).unwrap();
        let begun = now();
        let mut seconds = Seconds { listener: &Nobody, begun, open: new_second(1).unwrap() };
        turn.slice(&[0; WRITE_BYTES], begun + SLICE, &mut seconds, &Interrupt::never()).unwrap();
        let measure = turn.measure();
        assert_eq!((measure.done, measure.failed, measure.latency_us_sum), (None, 1, 0));
        let why = measure.unavailable.unwrap();
        assert!(why.contains("after 1 operations") && why.contains("No space left"), "{why}");
        assert_eq!(seconds.open.failed, 1);
    }

    #[test]
    fn a_sync_that_fails_is_not_a_fast_success() {
        // A pipe takes the write but cannot be synced: EINVAL.
        let (_reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        assert!(rustix::fs::fdatasync(&file).is_err());
        assert!(operation(&file, &[0; 16], Durable::Fdatasync).is_err());
        let null = open(Path::new("/dev/null"), OFlags::empty()).unwrap();
        assert!(operation(&null, &[0; 16], Durable::Fsync).is_err());
    }

    #[test]
    fn spans_without_sense_are_refused() {
        let mut options = Options::default();
        options.set("duration", crate::record::options::OptionValue::Text("0s".to_owned()));
        assert_eq!(Sync.check(&options).unwrap_err().key.as_deref(), Some("duration"));
        assert_eq!(Sync.spans(&Options::default()), (Micros(0), Micros(10_000_000)));
    }
}
