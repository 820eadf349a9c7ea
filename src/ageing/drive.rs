//! Brings a drive to its steady state with the rounds of SNIA's Solid State Storage Performance Test Specification
//! 2.0.2.
//!
//! Purges the drive, writes twice its size sequentially in 128 KiB blocks, then runs rounds of random 4 KiB writes
//! until the caller says that it is steady or the rounds run out. All writes bypass the page cache and are
//! incompressible. Each writer is a thread with one write in flight: that needs no io_uring, which many machines
//! forbid. The device is opened once, exclusively, and held until the end, so nobody can mount it meanwhile. Absent on
//! purpose: whether the device may be written, and when it is steady.

use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crate::host::noise::Noise;
use crate::host::signals::Interrupt;
use crate::host::threads;
use crate::host::time::{micros, now, sleep, wall_us};
use crate::record::drive::{DriveRound, Fill, Purge};
use crate::units::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Sequential passes over the device.
pub const FILLS: u32 = 2;
const FILL_BLOCK: u64 = 128 << 10;
/// Sequential writes in flight: enough for a disk behind a network.
const FILL_DEPTH: u32 = 4;
/// Size of a random write, bytes.
pub const BLOCK: u64 = 4 << 10;
/// Random writes in flight.
pub const DEPTH: u32 = 32;
/// Interval at which an interrupt is checked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// Bytes at each end of the device that are zeroed at the end: random bytes could be mistaken for a signature.
const BLANK: u64 = 1 << 20;
/// Bytes per discard; an interrupt is checked for between two.
const DISCARD: u64 = 1 << 30;

/// A drive to precondition.
pub struct Drive<'a> {
    pub path: &'a Path,
    pub bytes: u64,
    /// Checks again that the device may be written, now that nobody else can take it.
    pub held: &'a dyn Fn(&File) -> Result<()>,
    /// True if the drive is an image, which has nothing to purge: a discard would punch holes into it.
    pub is_image: bool,
    pub round: Duration,
    pub most_rounds: u32,
    pub seed: u64,
    pub interrupt: &'a Interrupt,
    pub report: &'a dyn Fn(DriveProgress) -> Result<()>,
    /// True if the rounds so far are enough.
    pub is_steady: &'a dyn Fn(&[DriveRound]) -> bool,
}

/// Progress of the preconditioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriveProgress {
    /// Bytes written sequentially so far, and their target.
    Filling { done: u64, of: u64 },
    /// A round has ended.
    Round { number: u32, round: DriveRound },
}

/// Result of the preconditioning.
#[derive(Debug, Clone, PartialEq)]
pub struct Preconditioned {
    pub purge: Purge,
    pub fill: Fill,
    pub rounds: Vec<DriveRound>,
}

/// Preconditions a drive: everything on it is lost.
///
/// # Errors
/// Interrupted, at once; a write that the device refuses, with its offset.
pub fn precondition(drive: &Drive<'_>) -> Result<Preconditioned> {
    let doing = || format!("precondition {}", drive.path.display());
    if drive.bytes < 2 * BLANK {
        return Err(Error::user(format!("{} is too small to be preconditioned", drive.path.display())));
    }
    let file = hold(drive.path)?;
    (drive.held)(&file)?;
    let purge = purge(drive, &file).map_err(|e| e.while_doing(doing()))?;
    drive.interrupt.check()?;
    let written = fill(drive, &file).and_then(|fill| Ok((fill, rounds(drive, &file)?)));
    let blanked = blank(drive, &file);
    let (fill, rounds) = written.map_err(|e| e.while_doing(doing()))?;
    blanked.map_err(|e| e.while_doing(doing()))?;
    Ok(Preconditioned { purge, fill, rounds })
}

/// Opens a device exclusively.
fn hold(path: &Path) -> Result<File> {
    let shown = path.display();
    match files::hold_direct(path) {
        Ok(file) => file.ok_or_else(|| Error::host(format!("{shown} no longer exists"))),
        Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => {
            Err(Error::host(format!("{shown} is in use: it cannot be opened exclusively"))
                .hint(format!("`lsblk {shown}` and `fuser --verbose {shown}` show by what; nothing was written")))
        }
        Err(e) => Err(Error::host(format!("open {shown} exclusively for direct writes: {e}"))),
    }
}

/// Closest equivalent of SNIA's PURGE that the kernel offers for any device.
fn purge(drive: &Drive<'_>, file: &File) -> Result<Purge> {
    if drive.is_image {
        return Ok(Purge::None { why: "an image has nothing to purge".to_owned() });
    }
    if discarded(drive, file, true)?.is_ok() {
        return Ok(Purge::SecureDiscard);
    }
    Ok(discarded(drive, file, false)?.map_or_else(|why| Purge::None { why }, |()| Purge::Discard))
}

/// Discards the whole device; returns the reason if the device does not support such discards.
fn discarded(drive: &Drive<'_>, file: &File, securely: bool) -> Result<Result<(), String>> {
    let mut offset = 0;
    while offset < drive.bytes {
        drive.interrupt.check()?;
        let bytes = DISCARD.min(drive.bytes - offset);
        match files::discard(file, offset, bytes, securely) {
            Ok(()) => offset += bytes,
            Err(e) if Errno::from_io_error(&e) == Some(Errno::OPNOTSUPP) => {
                return Ok(Err("the device takes no discards".to_owned()));
            }
            Err(e) => {
                let shown = drive.path.display();
                return Err(Error::host(format!("discard {} at offset {offset} of {shown}: {e}", Bytes(bytes))));
            }
        }
    }
    Ok(Ok(()))
}

fn fill(drive: &Drive<'_>, file: &File) -> Result<Fill> {
    let begun = now();
    let chunks = drive.bytes.div_ceil(FILL_BLOCK);
    let of = drive.bytes * u64::from(FILLS);
    let writers = Writers { drive, file, block: FILL_BLOCK, depth: FILL_DEPTH, salt: 0 };
    let places = in_sequence(chunks);
    let mut reported = now();
    let written_bytes = writers.write(&|_| places(), |counts| {
        if reported.elapsed() >= REPORT_EVERY {
            reported = now();
            (drive.report)(DriveProgress::Filling { done: counts.bytes.load(Ordering::Relaxed), of })?;
        }
        Ok(Some(LOOK_EVERY))
    })?;
    drive.interrupt.check()?;
    file.sync_all().or_host(|| format!("flush {}", drive.path.display()))?;
    (drive.report)(DriveProgress::Filling { done: of, of })?;
    Ok(Fill { times: FILLS, block_bytes: FILL_BLOCK, written_bytes, elapsed_us: micros(begun.elapsed()) })
}

/// Offsets of the chunks in order, repeated [`FILLS`] times.
fn in_sequence(chunks: u64) -> impl Fn() -> Option<u64> + Sync {
    let next = AtomicU64::new(0);
    move || {
        let chunk = next.fetch_add(1, Ordering::Relaxed);
        (chunk < chunks * u64::from(FILLS)).then_some(chunk % chunks * FILL_BLOCK)
    }
}

fn rounds(drive: &Drive<'_>, file: &File) -> Result<Vec<DriveRound>> {
    let blocks = drive.bytes / BLOCK;
    let writers = Writers { drive, file, block: BLOCK, depth: DEPTH, salt: 1 };
    let mut rounds: Vec<DriveRound> = Vec::new();
    let (mut begun, mut began_us, mut before) = (now(), wall_us(), 0);
    writers.write(&|random| Some(random.next_u64() % blocks * BLOCK), |counts| {
        let left = drive.round.saturating_sub(begun.elapsed());
        if !left.is_zero() {
            return Ok(Some(left.min(LOOK_EVERY)));
        }
        let (bytes, elapsed) = (counts.bytes.load(Ordering::Relaxed), begun.elapsed());
        let written_bytes = bytes - before;
        let operations = written_bytes / BLOCK;
        let round = DriveRound { began_us, elapsed_us: micros(elapsed), operations, written_bytes };
        (begun, began_us, before) = (begun + elapsed, wall_us(), bytes);
        rounds.push(round);
        let number = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
        (drive.report)(DriveProgress::Round { number, round })?;
        let is_last = number >= drive.most_rounds || (drive.is_steady)(&rounds);
        Ok((!is_last).then_some(Duration::ZERO))
    })?;
    Ok(rounds)
}

/// Zeroes both ends of the device, even after a failure, so that nothing there can be mistaken for a signature.
fn blank(drive: &Drive<'_>, file: &File) -> Result<()> {
    let mut memory = Noise::of(drive.seed, BLANK as usize);
    for offset in [0, drive.bytes - BLANK] {
        files::write_all_at(file, memory.zeroed(), offset).map_err(|e| refused(drive, &e, BLANK, offset))?;
    }
    file.sync_all().or_host(|| format!("flush {}", drive.path.display()))
}

fn refused(drive: &Drive<'_>, e: &std::io::Error, bytes: u64, offset: u64) -> Error {
    Error::host(format!("write {} at offset {offset} of {}: {e}", Bytes(bytes), drive.path.display()))
}

/// Shared by the writers of one device.
#[derive(Default)]
struct WriteCounts {
    bytes: AtomicU64,
    stop: AtomicBool,
}

/// Threads that write to one device, each with one block in flight.
struct Writers<'a> {
    drive: &'a Drive<'a>,
    file: &'a File,
    block: u64,
    depth: u32,
    /// Makes these writers' bytes differ from those of earlier writers.
    salt: u64,
}

impl Writers<'_> {
    /// Writes at the offsets that `place` returns until it is exhausted or `look`, which returns when to look again, says
    /// that it is enough. Returns the bytes written.
    fn write(
        &self,
        place: &(dyn Fn(&mut ChaCha8Rng) -> Option<u64> + Sync),
        mut look: impl FnMut(&WriteCounts) -> Result<Option<Duration>>,
    ) -> Result<u64> {
        let (counts, target) = (&WriteCounts::default(), (self.file, self.block, self.drive.bytes));
        std::thread::scope(|scope| {
            let begun = (0..self.depth).map(|number| {
                let seed = self.drive.seed.wrapping_mul(1 << 16).wrapping_add(self.salt << 8 | u64::from(number));
                threads::begin(scope, move || one_writer(target, seed, place, counts))
            });
            let looked = begun.collect::<Result<Vec<_>>>().and_then(|writers| {
                while writers.iter().any(|writer| !writer.is_finished()) && !counts.stop.load(Ordering::SeqCst) {
                    self.drive.interrupt.check()?;
                    let Some(span) = look(counts)? else { break };
                    sleep(span);
                }
                Ok(writers)
            });
            counts.stop.store(true, Ordering::SeqCst);
            looked?.into_iter().try_for_each(|writer| {
                writer.join().unwrap_or_else(|_| Err(Error::bug("a thread that writes to a drive panicked")))
            })
        })?;
        Ok(counts.bytes.load(Ordering::SeqCst))
    }
}

/// Runs one writer with blocks of this many bytes, up to the file's size. A refused write stops all writers.
fn one_writer(
    (file, block, size): (&File, u64, u64),
    seed: u64,
    place: &(dyn Fn(&mut ChaCha8Rng) -> Option<u64> + Sync),
    counts: &WriteCounts,
) -> Result<()> {
    let mut noise = Noise::of(seed, block as usize);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for number in 0.. {
        if counts.stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(offset) = place(&mut random) else { break };
        let bytes = block.min(size - offset);
        let piece = noise.again(offset, bytes as usize, number);
        files::write_all_at(file, piece, offset).map_err(|e| {
            counts.stop.store(true, Ordering::SeqCst);
            Error::host(format!("write {} at offset {offset}: {e}", Bytes(bytes)))
        })?;
        counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
