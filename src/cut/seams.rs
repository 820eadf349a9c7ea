//! Finds where a torn write leaves neither the page before nor the page after it: in the middle of an existing page,
//! both halves of which change. Anywhere else a tear leaves one of the two pages whole, or one that nothing refers to
//! yet.

use super::pages::{STEP, is_data};
use crate::recorder::{Entry, Image};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

/// Content of the disks while a log is replayed, in blocks of 4 KiB.
pub struct DiskBlocks {
    /// The disks at the start.
    origins: Vec<Image>,
    /// Blocks written since, by disk and offset.
    written: HashMap<(u16, u64), DiskBlock>,
}

/// A block: its content's identity, and whether a page of data begins there.
#[derive(Clone, Copy)]
struct DiskBlock {
    digest: u64,
    begins_page: bool,
}

impl DiskBlock {
    fn of(bytes: &[u8]) -> DiskBlock {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        DiskBlock { digest: hasher.finish(), begins_page: is_data(bytes) }
    }
}

impl DiskBlocks {
    pub fn over(origins: Vec<Image>) -> DiskBlocks {
        DiskBlocks { origins, written: HashMap::new() }
    }

    /// Applies a request to its disk, and returns its seams: bytes from its start.
    ///
    /// # Errors
    /// If the origin cannot be read.
    pub fn write(&mut self, entry: &Entry, bytes: &[u8]) -> io::Result<Vec<u64>> {
        let blocks = (entry.offset..).step_by(STEP).zip(bytes.chunks(STEP).map(DiskBlock::of));
        let blocks: Vec<(u64, DiskBlock)> = blocks.collect();
        let mut seams = Vec::new();
        for halves in blocks.windows(2).filter(|halves| halves[0].1.begins_page) {
            let before = [self.block(entry.disk, halves[0].0)?, self.block(entry.disk, halves[1].0)?];
            let changed = halves.iter().zip(&before).all(|((_, new), old)| new.digest != old.digest);
            if changed && before[0].begins_page {
                seams.push(halves[1].0 - entry.offset);
            }
        }
        self.written.extend(blocks.into_iter().map(|(offset, block)| ((entry.disk, offset), block)));
        Ok(seams)
    }

    fn block(&self, disk: u16, offset: u64) -> io::Result<DiskBlock> {
        if let Some(block) = self.written.get(&(disk, offset)) {
            return Ok(*block);
        }
        let mut bytes = vec![0; STEP];
        let origin = self.origins.get(usize::from(disk)).filter(|origin| offset + STEP as u64 <= origin.size());
        origin.map_or(Ok(()), |origin| origin.read(offset, &mut bytes))?;
        Ok(DiskBlock::of(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Op, create_origin};
    use std::io::{Seek, SeekFrom, Write};

    const SIZE: u64 = 1 << 20;

    /// A page of data with one fill byte for each half.
    fn page(first: u8, last: u8) -> Vec<u8> {
        let mut page = [vec![first; STEP], vec![last; STEP]].concat();
        page[12..20].copy_from_slice(&[0x1C, 0, 0x00, 0x1F, 0x00, 0x20, 0x04, 0x20]);
        page
    }

    #[test]
    fn only_existing_pages_that_change_on_both_sides_have_seams() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("origin");
        let origin = create_origin(&path, SIZE).unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(8192)).unwrap();
        file.write_all(&page(1, 1)).unwrap();
        let mut blocks = DiskBlocks::over(vec![Image::of(origin, SIZE)]);
        let mut seams = |offset: u64, bytes: &[u8]| {
            let length = bytes.len() as u64;
            let (hash, op) = (Default::default(), Op::Write);
            let entry = Entry {
                disk: 0,
                op,
                fua: false,
                submitted: 1,
                completed: 2,
                at_us: 0,
                offset,
                length,
                hash,
                stored: 0,
            };
            blocks.write(&entry, bytes).unwrap()
        };
        // The first page existed before the recording, the second is new.
        assert_eq!(seams(8192, &[page(2, 2), page(3, 3)].concat()), [4096]);
        // The first changes only in its first half.
        assert_eq!(seams(8192, &[page(4, 2), page(5, 5)].concat()), [12288]);
        assert_eq!(seams(16384, &page(5, 6)), [0; 0]);
        // No page began here.
        assert_eq!(seams(12288, &page(7, 7)), [0; 0]);
        // Half of this page lies beyond the end of the disk, where nothing was.
        assert_eq!(seams(SIZE - 4096, &page(1, 2)), [0; 0]);
    }
}
