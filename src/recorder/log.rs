//! The log: an append-only file with an index in memory.
//!
//! A header, then for each request a head of fixed size and the content of a write. Everything in the index is in the
//! file. A log that ran out of space is rejected as a whole, never taken for a shorter one.

use super::entry::{Entry, Hash, Op, Seq, hash};
use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crate::host::paths::look_at_open;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Start of the file; the format number follows.
const MAGIC: &[u8; 16] = b"pgstrata cut log";
const FORMAT: u32 = 1;
/// Magic, format, number of disks; then the size of each disk in 8 bytes.
const HEADER: usize = 24;
/// Bytes of an entry's head.
const HEAD: usize = 72;

/// The log of a recording.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: Arc<File>,
    bytes: u64,
    most_bytes: u64,
    disks: Vec<u64>,
    /// In order of completion.
    entries: Vec<Entry>,
    /// True if contents are hashed: a log that is dropped with the disks on top of it, and never read back from its
    /// file, needs no hashes.
    pub(super) hashed: bool,
}

impl Log {
    /// Creates a log for disks of these sizes, in a new file.
    ///
    /// # Errors
    /// With the path.
    pub fn create(path: &Path, disks: &[u64], most_bytes: u64) -> Result<Log> {
        let mut header = MAGIC.to_vec();
        header.extend(FORMAT.to_le_bytes());
        header.extend(u32::try_from(disks.len()).unwrap_or(u32::MAX).to_le_bytes());
        header.extend(disks.iter().flat_map(|size| size.to_le_bytes()));
        let created =
            files::create_to_change(path, 0o600).and_then(|file| files::write_all_at(&file, &header, 0).map(|()| file));
        let file = created.or_store(|| format!("create the log {}", path.display()))?;
        let bytes = header.len() as u64;
        let (path, disks) = (path.to_owned(), disks.to_vec());
        Ok(Log { path, file: Arc::new(file), bytes, most_bytes, disks, entries: Vec::new(), hashed: true })
    }

    /// Reads a log. Every number of its sequence must occur once, and every content must match its hash.
    ///
    /// # Errors
    /// When it is not a log, is damaged or truncated, or lacks a request that was acknowledged.
    pub fn open(path: &Path) -> Result<Log> {
        let reading = || format!("read the log {}", path.display());
        let wrong = |what: String| Error::store(format!("{}: {what}", path.display()));
        let file = files::open(path)?;
        let end = look_at_open(&file, path)?.bytes;
        let mut header = [0; HEADER];
        files::read_exact_at(&file, &mut header, 0).map_err(|_| wrong("not the log of a recording".to_owned()))?;
        if header[..16] != *MAGIC || number::<4>(&header, 16) != u64::from(FORMAT) {
            return Err(wrong(format!("not the log of a recording in format {FORMAT}")));
        }
        let mut sizes = vec![0; usize::try_from(number::<4>(&header, 20)).unwrap_or(0).min(1 << 16) * 8];
        files::read_exact_at(&file, &mut sizes, HEADER as u64).or_store(reading)?;
        let disks = sizes.chunks_exact(8).map(|size| number::<8>(size, 0)).collect();
        let mut log = Log {
            path: path.to_owned(),
            file: Arc::new(file),
            bytes: (HEADER + sizes.len()) as u64,
            most_bytes: 0,
            disks,
            entries: Vec::new(),
            hashed: true,
        };
        while log.bytes < end {
            let entry = log.read_entry(end).or_store(reading)?.ok_or_else(|| wrong("its end is missing".to_owned()))?;
            log.entries.push(entry);
        }
        log.check_sequence().map_err(wrong)?;
        Ok(log)
    }

    /// The entry at the read position; `None` if it is truncated or damaged.
    fn read_entry(&mut self, end: u64) -> std::io::Result<Option<Entry>> {
        if end - self.bytes < HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        files::read_exact_at(&self.file, &mut head, self.bytes)?;
        let stored = self.bytes + HEAD as u64;
        let Some(entry) = decoded(&head, stored) else { return Ok(None) };
        let content = if entry.op == Op::Write { entry.length } else { 0 };
        if content > end - stored || usize::from(entry.disk) >= self.disks.len() {
            return Ok(None);
        }
        if entry.op == Op::Write && hash(&self.content(&entry)?) != entry.hash {
            return Ok(None);
        }
        self.bytes = stored + content;
        Ok(Some(entry))
    }

    /// Checks that every number of the sequence occurs once: a gap is a request answered without being logged.
    pub(super) fn check_sequence(&self) -> Result<(), String> {
        let mut taken: Vec<Seq> = self.entries.iter().flat_map(|entry| [entry.submitted, entry.completed]).collect();
        taken.sort_unstable();
        let gap = taken.iter().zip(0..).find(|(found, expected)| **found != *expected);
        let backwards = self.entries.iter().find(|entry| entry.submitted >= entry.completed);
        let unordered = self.entries.windows(2).find(|two| two[0].completed >= two[1].completed);
        match (gap, backwards, unordered) {
            (Some((_, missing)), ..) => Err(format!("the request with sequence number {missing} is missing")),
            (_, Some(entry), _) => Err(format!("request {} completed before it was submitted", entry.submitted)),
            (.., Some(two)) => Err(format!("requests {} and {} are out of order", two[0].submitted, two[1].submitted)),
            (None, None, None) => Ok(()),
        }
    }

    /// Appends a request with its content. Fills in the entry's `stored` and `hash`.
    ///
    /// # Errors
    /// When the file cannot grow: the recording is void.
    pub(super) fn append(&mut self, entry: Entry, content: &[u8]) -> Result<Entry> {
        let hash = if entry.op == Op::Write && self.hashed { hash(content) } else { Hash::default() };
        let entry = Entry { hash, stored: self.bytes + HEAD as u64, ..entry };
        let mut record = encoded(&entry).to_vec();
        record.extend_from_slice(content);
        let full = |why: &str| {
            let hint = "free some space or record less";
            Error::host(format!("the log {} is full at {} bytes: {why}", self.path.display(), self.bytes)).hint(hint)
        };
        if self.bytes + record.len() as u64 > self.most_bytes {
            return Err(full("this is its limit"));
        }
        files::write_all_at(&self.file, &record, self.bytes).map_err(|e| match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::FileTooLarge => full(&e.to_string()),
            _ => Error::host(format!("write to the log {}: {e}", self.path.display())),
        })?;
        self.bytes += record.len() as u64;
        self.entries.push(entry);
        Ok(entry)
    }

    /// The content of a write.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn content(&self, entry: &Entry) -> std::io::Result<Vec<u8>> {
        let mut content = vec![0; if entry.op == Op::Write { entry.length as usize } else { 0 }];
        files::read_exact_at(&self.file, &mut content, entry.stored)?;
        Ok(content)
    }

    /// All entries, in order of completion.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn disks(&self) -> &[u64] {
        &self.disks
    }

    /// The next number in the sequence: later than every completed request.
    pub fn end(&self) -> Seq {
        self.entries.last().map_or(0, |entry| entry.completed + 1)
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

fn encoded(entry: &Entry) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let numbers = [entry.submitted, entry.completed, entry.at_us, entry.offset, entry.length];
    head[..4].copy_from_slice(b"entr");
    head[4..6].copy_from_slice(&entry.disk.to_le_bytes());
    head[6..8].copy_from_slice(&[entry.op as u8, u8::from(entry.fua)]);
    head[8..48].copy_from_slice(&numbers.map(u64::to_le_bytes).concat());
    head[48..64].copy_from_slice(&entry.hash);
    let check = u64::from_le_bytes(hash(&head[..64]).first_chunk().copied().unwrap_or_default());
    head[64..].copy_from_slice(&check.to_le_bytes());
    head
}

fn decoded(head: &[u8; HEAD], stored: u64) -> Option<Entry> {
    let check = u64::from_le_bytes(hash(&head[..64]).first_chunk().copied()?);
    if head[..4] != *b"entr" || number::<8>(head, 64) != check {
        return None;
    }
    Some(Entry {
        disk: u16::try_from(number::<2>(head, 4)).ok()?,
        op: [Op::Write, Op::Flush, Op::Discard, Op::WriteZeroes].into_iter().find(|op| *op as u8 == head[6])?,
        fua: head[7] != 0,
        submitted: number::<8>(head, 8),
        completed: number::<8>(head, 16),
        at_us: number::<8>(head, 24),
        offset: number::<8>(head, 32),
        length: number::<8>(head, 40),
        hash: head[48..].first_chunk().copied()?,
        stored,
    })
}

/// The little-endian number of `N` bytes at `at`.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + N].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
