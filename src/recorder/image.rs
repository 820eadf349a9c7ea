//! The content of a disk: an origin file, overlaid by extents that point into log files. Nothing is copied.
//!
//! An image takes memory only for its extents. The image of a state can be the origin of another recording, whose extents
//! point into a second file.

use super::entry::{Entry, Op};
use crate::host::files::{self, File};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Image {
    size: u64,
    /// Below all extents, read at the same offset; zeros beyond its end.
    origin: Arc<File>,
    stores: Vec<Arc<File>>,
    /// By offset, without overlap.
    extents: BTreeMap<u64, ImageExtent>,
}

#[derive(Debug, Clone, Copy)]
struct ImageExtent {
    length: u64,
    source: ExtentData,
}

/// The data behind an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExtentData {
    Zeros,
    /// Bytes of a store, starting at `at`.
    Stored {
        store: u8,
        at: u64,
    },
}

impl ExtentData {
    /// The same source, `bytes` further on.
    fn after(self, bytes: u64) -> ExtentData {
        match self {
            ExtentData::Zeros => ExtentData::Zeros,
            ExtentData::Stored { store, at } => ExtentData::Stored { store, at: at + bytes },
        }
    }
}

impl Image {
    /// The content of an origin file.
    pub fn of(origin: Arc<File>, size: u64) -> Image {
        Image { size, origin, stores: Vec::new(), extents: BTreeMap::new() }
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn origin(&self) -> &File {
        &self.origin
    }

    /// Adds the log of a recording on top of this image, for the content of later requests.
    pub(super) fn add_store(&mut self, store: Arc<File>) {
        self.stores.push(store);
    }

    /// Maps `length` bytes at `offset` to a source, over existing extents.
    pub(super) fn put(&mut self, offset: u64, length: u64, source: ExtentData) {
        if length == 0 {
            return;
        }
        let end = offset + length;
        let before = self.extents.range(..offset).next_back().map(|(start, extent)| (*start, *extent));
        if let Some((start, extent)) = before.filter(|(start, extent)| start + extent.length > offset) {
            self.extents.insert(start, ImageExtent { length: offset - start, ..extent });
            self.keep_tail(start, extent, end);
        }
        let covered: Vec<(u64, ImageExtent)> =
            self.extents.range(offset..end).map(|(start, extent)| (*start, *extent)).collect();
        for (start, extent) in covered {
            self.extents.remove(&start);
            self.keep_tail(start, extent, end);
        }
        self.extents.insert(offset, ImageExtent { length, source });
    }

    /// Keeps the part after `end` of an extent that started at `start`.
    fn keep_tail(&mut self, start: u64, extent: ImageExtent, end: u64) {
        let extent_end = start + extent.length;
        if extent_end > end {
            let tail = ImageExtent { length: extent_end - end, source: extent.source.after(end - start) };
            self.extents.insert(end, tail);
        }
    }

    /// Applies the given part of a request in the last store.
    pub(super) fn apply(&mut self, entry: &Entry, part: std::ops::Range<u64>) {
        let source = match entry.op {
            // There is nothing deeper than a recording on a state of a recording.
            Op::Write => ExtentData::Stored { store: (self.stores.len() - 1) as u8, at: entry.stored },
            Op::Discard | Op::WriteZeroes => ExtentData::Zeros,
            Op::Flush => return,
        };
        self.put(entry.offset + part.start, part.end - part.start, source.after(part.start));
    }

    /// Reads from `offset`. Bytes beyond the end are zeros.
    ///
    /// # Errors
    /// The kernel's error for the origin or a log file.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        let before = self.extents.range(..offset).next_back().filter(|(start, extent)| *start + extent.length > offset);
        let mut at = offset;
        for (start, extent) in before.into_iter().chain(self.extents.range(offset..end)) {
            if *start > at {
                read_origin(&self.origin, slice(bytes, offset, at, *start), at)?;
                at = *start;
            }
            let until = (start + extent.length).min(end);
            let part = slice(bytes, offset, at, until);
            match extent.source.after(at - start) {
                ExtentData::Zeros => part.fill(0),
                ExtentData::Stored { store, at, .. } => files::read_exact_at(&self.stores[store as usize], part, at)?,
            }
            at = until;
        }
        if at < end {
            read_origin(&self.origin, slice(bytes, offset, at, end), at)?;
        }
        Ok(())
    }
}

/// The part from `from` to `to` of `bytes`, which begins at `offset`.
fn slice(bytes: &mut [u8], offset: u64, from: u64, to: u64) -> &mut [u8] {
    &mut bytes[(from - offset) as usize..(to - offset) as usize]
}

fn read_origin(origin: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let read = files::read_up_to_at(origin, bytes, at)?;
    bytes[read..].fill(0);
    Ok(())
}
