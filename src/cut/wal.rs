//! Reads WAL as PostgreSQL's recovery does: record after record, until one is not valid.
//!
//! Formats are those of PostgreSQL's `xlog_internal.h`, `xlogrecord.h` and `pg_control.h`. Reads only what determines
//! the end of valid WAL and the committed transactions, not the changes to pages.

use super::pages::{WAL_MAGIC, number};
use crate::error::{Context, Error, Result};
use crate::host::files::{self, File};
use crc::{CRC_32_ISCSI, Crc, Table};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// CRC-32C (Castagnoli), with which PostgreSQL protects each record.
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The checksum of these parts in sequence.
fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut digest = CRC32C.digest();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// A position in WAL, bytes.
pub type Lsn = u64;

/// Sizes chosen by initdb and the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalShape {
    pub segment_bytes: u64,
    pub page_bytes: u64,
}

/// Header bytes of a page, and of the first page of a segment.
const PAGE_HEADER: usize = 24;
const LONG_PAGE_HEADER: usize = 40;
const RECORD_HEADER: usize = 24;
/// Header bytes covered by the checksum: all before it.
const BEFORE_CRC: usize = 20;
/// PostgreSQL writes no larger records (`XLogRecordMaxSize`).
const MOST_RECORD: u32 = 1020 << 20;

/// The page begins with the rest of a record (`XLP_FIRST_IS_CONTRECORD`).
const CONTINUES: u16 = 1;
/// The page has the long header.
const IS_LONG: u16 = 2;

/// Resource managers, and the operations of their records (the high four bits of the info byte).
const XLOG: u8 = 0;
const XLOG_SWITCH: u8 = 0x40;
const TRANSACTION: u8 = 1;
/// Bits of a transaction record that hold its kind; 0 is a commit (`xact.h`).
const KIND: u8 = 0x70;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalRecord {
    pub start: Lsn,
    /// Where the next one may begin.
    pub end: Lsn,
    /// The transaction that it commits.
    pub commits: Option<u32>,
}

/// Reads records in order.
pub struct WalReader {
    segments: WalSegments,
    /// Where the next record begins.
    at: Lsn,
    /// Start of the previous record, if one was read.
    before: Option<Lsn>,
    /// The page read last, and its address.
    page: Vec<u8>,
    page_at: Option<Lsn>,
}

impl WalReader {
    /// Reads from `at`, which must be the start of a record, in a folder of segments.
    pub fn new(folder: &Path, shape: WalShape, timeline: u32, at: Lsn) -> WalReader {
        let segments = WalSegments { folder: folder.to_owned(), shape, timeline, open: None };
        WalReader { segments, at, before: None, page: vec![0; shape.page_bytes as usize], page_at: None }
    }

    /// End of valid WAL, as far as it was read.
    pub fn end(&self) -> Lsn {
        self.at
    }

    /// Reads all available records until `each` breaks off. Call it again to read records added later.
    ///
    /// # Errors
    /// If an existing segment cannot be read.
    pub fn read_on(&mut self, mut each: impl FnMut(WalRecord) -> ControlFlow<()>) -> Result<()> {
        // The last page may have been filled further since.
        self.page_at = None;
        while let Some(record) = self.record()? {
            (self.before, self.at) = (Some(record.start), record.end);
            if each(record).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<Option<WalRecord>> {
        let page_bytes = self.segments.shape.page_bytes;
        let mut start = self.at;
        if start.is_multiple_of(page_bytes) {
            start += self.header_bytes(start) as u64;
        }
        if !self.load(start - start % page_bytes, None)? {
            return Ok(None);
        }
        let mut offset = (start % page_bytes) as usize;
        let Some(total) = number::<4>(&self.page, offset).map(|total| total as u32) else { return Ok(None) };
        if (total as usize) < RECORD_HEADER || total > MOST_RECORD {
            return Ok(None);
        }
        let mut record = Vec::with_capacity((total as usize).min(1 << 20));
        let mut page_at = start - start % page_bytes;
        loop {
            let left = total as usize - record.len();
            let end = (offset + left).min(self.page.len());
            record.extend_from_slice(&self.page[offset..end]);
            if record.len() == total as usize {
                let end = (page_at + end as u64).next_multiple_of(8);
                return Ok(self.checked(&record, start, end));
            }
            // Garbage must not make us read a gigabyte.
            if record.len() >= RECORD_HEADER && !self.follows(&record) {
                return Ok(None);
            }
            page_at += page_bytes;
            if !self.load(page_at, Some(total as usize - record.len()))? {
                return Ok(None);
            }
            offset = self.header_bytes(page_at);
        }
    }

    /// True if the header's link to the previous record is right.
    fn follows(&self, record: &[u8]) -> bool {
        number::<8>(record, 8).is_some_and(|before| self.before.is_none_or(|known| known == before))
    }

    fn checked(&self, record: &[u8], start: Lsn, end: Lsn) -> Option<WalRecord> {
        let (header, data) = record.split_at(RECORD_HEADER);
        let crc = number::<4>(header, BEFORE_CRC)? as u32;
        if !self.follows(record) || crc32c(&[data, &header[..BEFORE_CRC]]) != crc {
            return None;
        }
        let (xid, info, manager) = (number::<4>(header, 4)? as u32, header[16], header[17]);
        let switches = manager == XLOG && info & 0xF0 == XLOG_SWITCH;
        // The rest of the segment is empty.
        let end = if switches { end.next_multiple_of(self.segments.shape.segment_bytes) } else { end };
        let commits = (manager == TRANSACTION && info & KIND == 0 && xid != 0).then_some(xid);
        Some(WalRecord { start, end, commits })
    }

    fn header_bytes(&self, page_at: Lsn) -> usize {
        if page_at.is_multiple_of(self.segments.shape.segment_bytes) { LONG_PAGE_HEADER } else { PAGE_HEADER }
    }

    /// Reads a page, unless it is loaded, and checks its header. `rest`: bytes of the record that it must continue.
    fn load(&mut self, page_at: Lsn, rest: Option<usize>) -> Result<bool> {
        if self.page_at != Some(page_at) {
            self.page_at = None;
            if !self.segments.read(page_at, &mut self.page)? {
                return Ok(false);
            }
            self.page_at = Some(page_at);
        }
        let page = &self.page;
        let info = number::<2>(page, 2).unwrap_or_default() as u16;
        let is_long = page_at.is_multiple_of(self.segments.shape.segment_bytes);
        let is_right = page[1] == WAL_MAGIC
            && number::<4>(page, 4) == Some(u64::from(self.segments.timeline))
            && number::<8>(page, 8) == Some(page_at)
            && (info & IS_LONG != 0) == is_long;
        let continues = match rest {
            None => true,
            Some(rest) => info & CONTINUES != 0 && number::<4>(page, 16) == Some(rest as u64),
        };
        Ok(is_right && continues)
    }
}

/// Segments in a folder.
struct WalSegments {
    folder: PathBuf,
    shape: WalShape,
    timeline: u32,
    /// The one read last, by number.
    open: Option<(u64, File)>,
}

impl WalSegments {
    /// Reads the page at an address; `false` if its segment is missing or shorter.
    fn read(&mut self, page_at: Lsn, page: &mut [u8]) -> Result<bool> {
        let (number, offset) = (page_at / self.shape.segment_bytes, page_at % self.shape.segment_bytes);
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let path = self.folder.join(segment_name(self.timeline, number, self.shape.segment_bytes));
            if !crate::host::paths::exists(&path) {
                return Ok(false);
            }
            self.open = Some((number, files::open(&path)?));
        }
        let Some((_, file)) = &self.open else { return Ok(false) };
        let read = files::read_up_to_at(file, page, offset);
        read.map(|read| read == page.len()).or_host(|| format!("read WAL in {}", self.folder.display()))
    }
}

/// File name of a segment: timeline, then its number in two parts.
fn segment_name(timeline: u32, number: u64, segment_bytes: u64) -> String {
    let each = (1_u64 << 32) / segment_bytes;
    format!("{timeline:08X}{:08X}{:08X}", number / each, number % each)
}

/// The last checkpoint according to `pg_control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// Where recovery begins.
    pub redo: Lsn,
    pub timeline: u32,
}

/// Versions of `pg_control` whose layout is known: PostgreSQL 11 and later.
const CONTROL_VERSIONS: std::ops::Range<u64> = 1100..3000;

/// Reads `pg_control`; `None` if it is missing, or older than PostgreSQL 11.
///
/// # Errors
/// If it cannot be read.
pub fn checkpoint(data: &Path) -> Result<Option<Checkpoint>> {
    let path = data.join("global/pg_control");
    if !crate::host::paths::exists(&path) {
        return Ok(None);
    }
    let control = files::read(&path)?;
    let known = number::<4>(&control, 8).is_some_and(|version| CONTROL_VERSIONS.contains(&version));
    // A copy of the checkpoint follows the identifier, two versions, state, time and position of the checkpoint.
    let (redo, timeline) = (number::<8>(&control, 40), number::<4>(&control, 48));
    Ok(redo
        .zip(timeline)
        .filter(|(redo, _)| known && *redo > 0)
        .map(|(redo, timeline)| Checkpoint { redo, timeline: timeline as u32 }))
}

/// Parses a position as printed by the server: `0/1A2B3C4D`.
///
/// # Errors
/// If it is not one.
pub fn parse_lsn(text: &str) -> Result<Lsn> {
    let parts = text.split_once('/').and_then(|(high, low)| {
        Some((u64::from_str_radix(high, 16).ok()?, u64::from(u32::from_str_radix(low, 16).ok()?)))
    });
    let place = parts.map(|(high, low)| high << 32 | low);
    place.ok_or_else(|| Error::tool(format!("expected a place in WAL, found `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SHAPE: WalShape = WalShape { segment_bytes: 1 << 20, page_bytes: 8192 };
    const START: Lsn = 5 << 20;

    /// WAL as a server writes it, in memory.
    struct Writer {
        bytes: Vec<u8>,
        before: Lsn,
    }

    impl Writer {
        fn new() -> Writer {
            Writer { bytes: Vec::new(), before: 0 }
        }

        fn at(&self) -> Lsn {
            START + self.bytes.len() as u64
        }

        /// Appends bytes, with page headers between them.
        fn put(&mut self, record: &[u8]) {
            let mut left = record;
            while !left.is_empty() {
                if self.at().is_multiple_of(SHAPE.page_bytes) {
                    let is_long = self.at().is_multiple_of(SHAPE.segment_bytes);
                    let is_rest = left.len() < record.len();
                    let mut header = vec![0; if is_long { LONG_PAGE_HEADER } else { PAGE_HEADER }];
                    header[..2].copy_from_slice(&[0x18, WAL_MAGIC]);
                    header[2] = if is_long { IS_LONG as u8 } else { 0 } | if is_rest { CONTINUES as u8 } else { 0 };
                    header[4] = 1;
                    header[8..16].copy_from_slice(&self.at().to_le_bytes());
                    let rest = if is_rest { left.len() as u32 } else { 0 };
                    header[16..20].copy_from_slice(&rest.to_le_bytes());
                    self.bytes.extend(header);
                }
                let room = (SHAPE.page_bytes - self.at() % SHAPE.page_bytes) as usize;
                let (now, later) = left.split_at(room.min(left.len()));
                self.bytes.extend(now);
                left = later;
            }
        }

        /// Appends a record with `data` bytes of data, and returns where it ends.
        fn record(&mut self, manager: u8, info: u8, xid: u32, data: usize) -> Lsn {
            let mut start = self.at();
            start += match start {
                at if at.is_multiple_of(SHAPE.segment_bytes) => LONG_PAGE_HEADER as u64,
                at if at.is_multiple_of(SHAPE.page_bytes) => PAGE_HEADER as u64,
                _ => 0,
            };
            let mut record = vec![xid as u8; RECORD_HEADER + data];
            record[..4].copy_from_slice(&((RECORD_HEADER + data) as u32).to_le_bytes());
            record[4..8].copy_from_slice(&xid.to_le_bytes());
            record[8..16].copy_from_slice(&self.before.to_le_bytes());
            record[16..20].copy_from_slice(&[info, manager, 0, 0]);
            let crc = crc32c(&[&record[RECORD_HEADER..], &record[..BEFORE_CRC]]);
            record[BEFORE_CRC..RECORD_HEADER].copy_from_slice(&crc.to_le_bytes());
            self.put(&record);
            self.before = start;
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            self.at()
        }

        /// Continues in the next segment.
        fn next_segment(&mut self) {
            self.bytes.resize((self.at().next_multiple_of(SHAPE.segment_bytes) - START) as usize, 0);
        }
    }

    #[test]
    fn the_checksum_matches_published_examples_in_one_or_several_parts() {
        assert_eq!(crc32c(&[b"123456789"]), 0xE306_9283);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xE306_9283);
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[&[0; 32]]), 0x8A91_36AA);
    }

    /// Reads WAL from a folder whose segments hold these bytes.
    fn read(bytes: &[u8]) -> (Vec<WalRecord>, Lsn) {
        let folder = tempfile::tempdir().unwrap();
        for (segment, number) in bytes.chunks(SHAPE.segment_bytes as usize).zip(START / SHAPE.segment_bytes..) {
            let mut segment = segment.to_vec();
            segment.resize(SHAPE.segment_bytes as usize, 0);
            std::fs::write(folder.path().join(segment_name(1, number, SHAPE.segment_bytes)), segment).unwrap();
        }
        let mut reader = WalReader::new(folder.path(), SHAPE, 1, START);
        let mut found = Vec::new();
        reader
            .read_on(|record| {
                found.push(record);
                ControlFlow::Continue(())
            })
            .unwrap();
        (found, reader.end())
    }

    fn some_wal() -> (Writer, BTreeMap<u32, Lsn>) {
        let mut writer = Writer::new();
        let mut ends = BTreeMap::new();
        for xid in 1..400 {
            writer.record(10, 0x20, xid, 3000 + xid as usize);
            ends.insert(xid, writer.record(TRANSACTION, 0x80, xid, 30));
        }
        (writer, ends)
    }

    #[test]
    fn records_are_read_across_pages_and_segments_to_the_end() {
        let (mut writer, mut ends) = some_wal();
        writer.record(TRANSACTION, 0x20, 900, 30);
        writer.record(XLOG, XLOG_SWITCH, 0, 0);
        writer.next_segment();
        ends.insert(901, writer.record(TRANSACTION, 0, 901, 30));
        let (found, end) = read(&writer.bytes);
        let commits: BTreeMap<u32, Lsn> =
            found.iter().filter_map(|record| Some((record.commits?, record.end))).collect();
        assert_eq!(commits, ends, "an abort is no commit");
        assert_eq!(end, writer.at());
        assert!(found.len() > 700 && found.windows(2).all(|two| two[0].end <= two[1].start));
    }

    #[test]
    fn valid_wal_ends_before_whatever_is_lost_old_or_changed() {
        let (writer, ends) = some_wal();
        let commit = |xid: u32| (ends[&xid] - START) as usize;
        let last = |bytes: &[u8]| read(bytes).0.iter().filter_map(|record| record.commits).max().unwrap();
        let mut lost = writer.bytes.clone();
        lost[commit(200)..].fill(0);
        assert_eq!((last(&lost), read(&lost).1), (200, ends[&200]));
        let mut changed = writer.bytes.clone();
        changed[commit(250) - 40] ^= 1;
        assert_eq!(last(&changed), 249);
        // A page of a recycled segment has the address that it had before.
        let page = commit(300) / 8192 * 8192;
        let mut old = writer.bytes.clone();
        old[page + 8..page + 16].copy_from_slice(&(START - (1 << 20)).to_le_bytes());
        assert!((290..300).contains(&last(&old)));
        let mut without_rest = writer.bytes.clone();
        without_rest[page + 16] ^= 1;
        assert!((290..300).contains(&last(&without_rest)));
    }

    #[test]
    fn what_is_no_control_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(checkpoint(folder.path()).unwrap(), None);
        std::fs::create_dir(folder.path().join("global")).unwrap();
        let mut control = vec![0; 8192];
        let path = folder.path().join("global/pg_control");
        std::fs::write(&path, &control).unwrap();
        assert_eq!(checkpoint(folder.path()).unwrap(), None);
        control[8..12].copy_from_slice(&1800_u32.to_le_bytes());
        control[40..48].copy_from_slice(&0x0123_4568_u64.to_le_bytes());
        control[48] = 2;
        std::fs::write(&path, &control).unwrap();
        assert_eq!(checkpoint(folder.path()).unwrap(), Some(Checkpoint { redo: 0x0123_4568, timeline: 2 }));
        assert_eq!(parse_lsn("1/A0").unwrap(), (1 << 32) + 0xA0);
        assert!(parse_lsn("1A0").is_err());
    }
}
