//! The recorder: virtual disks that answer immediately and log every request before its reply.
//!
//! Writes before the recording begins go into the origin and count as durable. From then on the origin does not change, and
//! contents go to the log. Once the log is full, every request fails, and so does the run.

use super::durable::Durable;
use super::entry::{Entry, Hash, Op, Seq};
use super::image::Image;
use super::log::Log;
use super::states::State;
use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crate::host::threads::locked;
use crate::host::time::{self, micros, now};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Disks that share one sequence.
#[derive(Debug)]
pub struct Recorder {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    disks: Vec<RecordedDisk>,
    /// Destination of requests; while it is `None`, writes go into the origin.
    log: Option<Log>,
    /// The next number in the sequence.
    next: Seq,
    began: time::Instant,
    /// Why requests are no longer answered.
    failed: Option<Error>,
}

#[derive(Debug)]
struct RecordedDisk {
    /// Current content.
    image: Image,
    /// Content at the start of the recording.
    start: Image,
}

/// A recording: enough to build every state that a power cut could have left.
#[derive(Debug, Clone)]
pub struct Recording {
    log: Arc<Log>,
    /// Each disk as it was at the start of the recording.
    origins: Vec<Image>,
}

/// A request that changes a disk, or flushes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub disk: u16,
    pub op: Op,
    pub offset: u64,
    /// Bytes; 0 for a flush.
    pub length: u64,
    pub fua: bool,
}

/// The sequence number at which a request was submitted; none before the recording begins.
#[derive(Debug)]
pub(super) struct Submitted(Option<Seq>);

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only FUSE hands over whole requests"))]
impl Recorder {
    /// Disks of these sizes on these origin files, which are written to until the recording begins.
    pub fn filling(origins: Vec<(Arc<File>, u64)>) -> Recorder {
        Recorder::of(origins.into_iter().map(|(origin, size)| Image::of(origin, size)))
    }

    /// Disks that start from these images, recorded from the first request on.
    ///
    /// # Errors
    /// When the log cannot be created.
    pub fn over(images: Vec<Image>, log: &Path, most_bytes: u64) -> Result<Recorder> {
        let recorder = Recorder::of(images.into_iter());
        recorder.begin(log, most_bytes)?;
        Ok(recorder)
    }

    /// The same, for a log that is dropped with the disks: contents are not hashed.
    ///
    /// # Errors
    /// As [`Recorder::over`].
    pub fn passing(images: Vec<Image>, log: &Path, most_bytes: u64) -> Result<Recorder> {
        let recorder = Recorder::over(images, log, most_bytes)?;
        locked(&recorder.inner).log.iter_mut().for_each(|log| log.hashed = false);
        Ok(recorder)
    }

    fn of(images: impl Iterator<Item = Image>) -> Recorder {
        let disks = images.map(|image| RecordedDisk { start: image.clone(), image }).collect();
        Recorder { inner: Mutex::new(Inner { disks, log: None, next: 0, began: now(), failed: None }) }
    }

    /// Begins the recording: the disks' current content is the origin. Requests that belong to the origin must have
    /// completed.
    ///
    /// # Errors
    /// When the log cannot be created, or the recording has already begun.
    pub fn begin(&self, path: &Path, most_bytes: u64) -> Result<()> {
        let mut inner = locked(&self.inner);
        if inner.log.is_some() {
            return Err(Error::bug("a recording was begun twice"));
        }
        let sizes: Vec<u64> = inner.disks.iter().map(|disk| disk.image.size()).collect();
        let log = Log::create(path, &sizes, most_bytes)?;
        for disk in &mut inner.disks {
            disk.image.add_store(Arc::clone(log.file()));
            disk.start = disk.image.clone();
        }
        (inner.log, inner.began) = (Some(log), now());
        Ok(())
    }

    /// The sequence number of the next request: later than every answered request.
    pub fn mark(&self) -> Seq {
        locked(&self.inner).next
    }

    /// Microseconds since the recording began.
    pub fn elapsed_us(&self) -> u64 {
        micros(locked(&self.inner).began.elapsed())
    }

    /// Ends the recording. Later requests fail.
    ///
    /// # Errors
    /// When it failed earlier: the log was full.
    pub fn finish(&self) -> Result<Recording> {
        let mut inner = locked(&self.inner);
        if let Some(failed) = inner.failed.take() {
            inner.failed = Some(Error::host("the recording has failed"));
            return Err(failed);
        }
        let log = inner.log.take().ok_or_else(|| Error::bug("a recording ended before it began"))?;
        inner.failed = Some(Error::host("the recording has ended"));
        // Answering without logging would leave a gap in the sequence.
        log.check_sequence().map_err(|what| Error::bug(format!("the recording cannot be trusted: {what}")))?;
        let log = Arc::new(log);
        let origins = inner.disks.iter().map(|disk| disk.start.clone()).collect();
        Ok(Recording { log, origins })
    }

    /// Answers one request without logging it: a fault that must be caught.
    #[cfg(test)]
    pub(crate) fn forget_one(&self) {
        locked(&self.inner).next += 2;
    }

    /// Why the recording accepts no more requests, if so.
    pub fn failure(&self) -> Option<String> {
        locked(&self.inner).failed.as_ref().map(Error::to_string)
    }

    /// Current content of a disk.
    #[cfg(test)]
    pub(super) fn image(&self, disk: u16) -> Option<Image> {
        locked(&self.inner).disks.get(usize::from(disk)).map(|disk| disk.image.clone())
    }

    pub(super) fn size(&self, disk: u16) -> Option<u64> {
        locked(&self.inner).disks.get(usize::from(disk)).map(|disk| disk.image.size())
    }

    pub(super) fn read(&self, disk: u16, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        locked(&self.inner).image(disk)?.read(offset, bytes)
    }

    pub(super) fn write(&self, disk: u16, offset: u64, content: &[u8], fua: bool) -> io::Result<()> {
        self.at_once(&Change { disk, op: Op::Write, offset, length: content.len() as u64, fua }, content)
    }

    pub(super) fn flush(&self, disk: u16) -> io::Result<()> {
        self.at_once(&Change { disk, op: Op::Flush, offset: 0, length: 0, fua: false }, &[])
    }

    /// Discards a range, or writes zeroes to it.
    pub(super) fn clear(&self, disk: u16, op: Op, offset: u64, length: u64) -> io::Result<()> {
        self.at_once(&Change { disk, op, offset, length, fua: false }, &[])
    }

    /// Submits a request and completes it before any other.
    fn at_once(&self, change: &Change, content: &[u8]) -> io::Result<()> {
        let mut inner = locked(&self.inner);
        let submitted = inner.submit(change)?;
        inner.complete(change, submitted, content)
    }

    /// Assigns a request its submission number. Whoever submits a request completes it.
    ///
    /// # Errors
    /// When it extends beyond the end of the disk, there is no such disk, or the recording has failed or ended.
    pub(super) fn submit(&self, change: &Change) -> io::Result<Submitted> {
        locked(&self.inner).submit(change)
    }

    /// Logs a submitted request and carries it out, in that order. For a write, `content` has the same length.
    ///
    /// # Errors
    /// When the recording has failed or ended, or fails now.
    pub(super) fn complete(&self, change: &Change, submitted: Submitted, content: &[u8]) -> io::Result<()> {
        locked(&self.inner).complete(change, submitted, content)
    }
}

impl Inner {
    fn image(&self, disk: u16) -> io::Result<&Image> {
        self.disks.get(usize::from(disk)).map(|disk| &disk.image).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn submit(&mut self, change: &Change) -> io::Result<Submitted> {
        if let Some(failed) = &self.failed {
            return Err(io::Error::other(failed.to_string()));
        }
        let size = self.image(change.disk)?.size();
        if change.offset.checked_add(change.length).is_none_or(|end| end > size) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Submitted(self.log.is_some().then(|| self.place())))
    }

    fn place(&mut self) -> Seq {
        self.next += 1;
        self.next - 1
    }

    fn complete(&mut self, change: &Change, Submitted(submitted): Submitted, content: &[u8]) -> io::Result<()> {
        if let Some(failed) = &self.failed {
            return Err(io::Error::other(failed.to_string()));
        }
        let Change { disk, op, offset, length, fua } = *change;
        if self.log.is_none() {
            return fill(self.disks[usize::from(disk)].image.origin(), op, offset, length, content);
        }
        // Requests submitted before the recording began are part of it if they complete later.
        let submitted = submitted.unwrap_or_else(|| self.place());
        let completed = self.place();
        let Inner { disks, log, began, failed, .. } = self;
        let (of, Some(log)) = (&mut disks[usize::from(disk)], log) else { return Ok(()) };
        let at_us = micros(began.elapsed());
        let hash = Hash::default();
        let entry = Entry { disk, op, fua, submitted, completed, at_us, offset, length, hash, stored: 0 };
        match log.append(entry, content) {
            Ok(entry) => {
                of.image.apply(&entry, 0..length);
                Ok(())
            }
            Err(e) => {
                let error = io::Error::other(e.to_string());
                *failed = Some(e);
                Err(error)
            }
        }
    }
}

/// Carries out a request on the origin.
fn fill(origin: &File, op: Op, offset: u64, length: u64, content: &[u8]) -> io::Result<()> {
    match op {
        Op::Write => files::write_all_at(origin, content, offset),
        Op::Discard | Op::WriteZeroes => files::punch_hole(origin, offset, length),
        // The origin counts as durable when the recording begins.
        Op::Flush => Ok(()),
    }
}

impl Recording {
    /// A recording by an earlier process, from its log and origin files.
    ///
    /// # Errors
    /// When the log cannot be read, or an origin is missing.
    pub fn open(log: &Path, origins: &[impl AsRef<Path>]) -> Result<Recording> {
        let log = Log::open(log)?;
        // An origin too many is refused with the images.
        let sizes = log.disks().iter().copied().chain(std::iter::repeat(0));
        let images = origins.iter().zip(sizes);
        let images = images.map(|(origin, size)| Ok(Image::of(Arc::new(files::open(origin.as_ref())?), size)));
        let images = images.collect::<Result<Vec<Image>>>()?;
        Recording::of(log, images)
    }

    /// The same, for a recording that started from these images.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn open_over(log: &Path, images: Vec<Image>) -> Result<Recording> {
        Recording::of(Log::open(log)?, images)
    }

    fn of(log: Log, mut images: Vec<Image>) -> Result<Recording> {
        if log.disks().len() != images.len() {
            let expected = log.disks().len();
            return Err(Error::store(format!("the log has {expected} disks, but there are {} origins", images.len())));
        }
        images.iter_mut().for_each(|image| image.add_store(Arc::clone(log.file())));
        Ok(Recording { origins: images, log: Arc::new(log) })
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Each disk in the state left by a power cut: with only the present entries applied, in order of completion, plus
    /// torn parts of others.
    pub fn images(&self, durable: &Durable, state: &State) -> Vec<Image> {
        let mut images = self.origins.clone();
        let entries = self.log.entries();
        let mut parts: Vec<(usize, std::ops::Range<u64>)> =
            state.present(durable).into_iter().map(|number| (number, 0..entries[number].length)).collect();
        parts.extend(state.torn.iter().flat_map(|tear| {
            let parts = tear.parts(&entries[tear.entry]);
            parts.map(|part| (tear.entry, part))
        }));
        parts.sort_by_key(|(number, _)| *number);
        for (number, part) in parts {
            let entry = &entries[number];
            images[usize::from(entry.disk)].apply(entry, part);
        }
        images
    }
}

/// File name for the disk of a node: `data.img`.
pub fn name_of(node: &str) -> String {
    format!("{node}.img")
}

/// Creates a new origin file of this size.
///
/// # Errors
/// With the path.
pub(crate) fn create_origin(path: &Path, size: u64) -> Result<Arc<File>> {
    let file = files::create_to_change(path, 0o600).or_host(|| format!("create {}", path.display()))?;
    file.set_len(size).or_host(|| format!("create {} of {size} bytes", path.display()))?;
    Ok(Arc::new(file))
}
