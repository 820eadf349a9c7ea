//! Classifies the content of a write by the headers of PostgreSQL's pages: WAL, data, or anything else.

use crate::record::verdict::PageWrites;

/// Kinds of content, used as strata of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Metadata and journals of filesystems, empty blocks, small files.
    Other = 0,
    Wal = 1,
    Data = 2,
    /// Data pages overwritten in place, at least one of which changes in both halves: a tear between them leaves
    /// neither version.
    Overwritten = 3,
}

/// Pages of both kinds begin at multiples of this on every current filesystem.
pub(super) const STEP: usize = 4096;

/// The smallest XLOG_BLCKSZ and BLCKSZ that a server can be built with, and the largest BLCKSZ.
const LEAST_PAGE: u64 = 1 << 10;
const MOST_PAGE: u64 = 1 << 15;

/// The high byte of XLOG_PAGE_MAGIC since PostgreSQL 9.3 (`xlog_internal.h`).
pub(super) const WAL_MAGIC: u8 = 0xD1;

/// All flags of a WAL page's header (`XLP_ALL_FLAGS`).
const WAL_FLAGS: u64 = 0x000F;

/// The layout version in a data page's header (`bufpage.h`); the other byte of the same word is the page's size.
const DATA_LAYOUT: u64 = 4;

/// Content of a single write: WAL if any of its pages is, else data if any is.
pub fn content_of(bytes: &[u8]) -> Content {
    let mut pages = bytes.chunks(STEP);
    if pages.clone().any(is_wal) {
        Content::Wal
    } else if pages.any(is_data) {
        Content::Data
    } else {
        Content::Other
    }
}

impl PageWrites {
    /// Counts the pages of a write at an offset of a disk.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        for (page, at) in bytes.chunks(STEP).zip((0_u64..).step_by(STEP)) {
            if let Some(size) = data_page(page) {
                self.pages += 1;
                self.split += usize::from(at + size > bytes.len() as u64);
                self.misaligned += usize::from(!(offset + at).is_multiple_of(size));
            }
        }
    }
}

fn is_wal(page: &[u8]) -> bool {
    let (Some(info), Some(timeline), Some(address)) =
        (number::<2>(page, 2), number::<4>(page, 4), number::<8>(page, 8))
    else {
        return false;
    };
    page[1] == WAL_MAGIC
        && info & !WAL_FLAGS == 0
        && (1..1 << 20).contains(&timeline)
        && address % LEAST_PAGE == 0
        && address > 0
}

pub(super) fn is_data(page: &[u8]) -> bool {
    data_page(page).is_some()
}

/// Size of the data page that begins here; `None` if none does.
fn data_page(page: &[u8]) -> Option<u64> {
    let words = [12, 14, 16, 18].map(|at| number::<2>(page, at));
    let [Some(lower), Some(upper), Some(special), Some(version)] = words else { return None };
    let size = version & 0xFF00;
    let is_size = size.is_power_of_two() && (LEAST_PAGE..=MOST_PAGE).contains(&size);
    let is_page = is_size && version & 0xFF == DATA_LAYOUT;
    (is_page && (24..=upper).contains(&lower) && upper <= special && special <= size).then_some(size)
}

/// A little-endian number of `N` bytes.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + N).map(|bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_known_by_their_headers() {
        let mut wal = vec![0; 8192];
        wal[..16].copy_from_slice(&[0x18, 0xD1, 7, 0, 1, 0, 0, 0, 0, 0x20, 0, 1, 0, 0, 0, 0]);
        let mut data = vec![0; 8192];
        data[12..20].copy_from_slice(&[0x1C, 0, 0x00, 0x1F, 0x00, 0x20, 0x04, 0x20]);
        assert_eq!(content_of(&wal), Content::Wal);
        assert_eq!(content_of(&data), Content::Data);
        assert_eq!(content_of(&[data.clone(), wal.clone()].concat()), Content::Wal);
        assert_eq!(content_of(&[0; 8192]), Content::Other);
        wal[8] = 1;
        assert_eq!(content_of(&wal), Content::Other);
        assert_eq!(content_of(&data[..100]), Content::Data);
        assert_eq!(content_of(&[]), Content::Other);
    }

    #[test]
    fn pages_that_are_split_or_misaligned_are_counted() {
        let mut page = vec![0; 8192];
        page[12..20].copy_from_slice(&[0x1C, 0, 0x00, 0x1F, 0x00, 0x20, 0x04, 0x20]);
        let mut counted = PageWrites::default();
        counted.add(16384, &[page.clone(), page.clone()].concat());
        assert_eq!(counted, PageWrites { pages: 2, split: 0, misaligned: 0 });
        counted.add(4096, &[page.clone(), page[..4096].to_vec()].concat());
        assert_eq!(counted, PageWrites { pages: 4, split: 1, misaligned: 2 });
        counted.add(0, &page[4096..]);
        assert_eq!(counted.pages, 4);
    }

    #[test]
    fn only_pages_of_sizes_that_postgresql_supports_are_recognised() {
        let page = |version: u16| {
            let mut page = vec![0; 4096];
            page[12..18].copy_from_slice(&[0x1C, 0, 0x80, 0, 0, 4]);
            page[18..20].copy_from_slice(&version.to_le_bytes());
            page
        };
        for size in [1024, 2048, 4096, 8192, 16384, 32768] {
            assert_eq!(data_page(&page(size | 4)), Some(u64::from(size)));
        }
        for wrong in [4, 512 | 4, 3072 | 4, 8192 | 5, 8192] {
            assert_eq!(data_page(&page(wrong)), None, "{wrong}");
        }
        let mut counted = PageWrites::default();
        counted.add(8192, &[page(16384 | 4), vec![0; 12288]].concat());
        assert_eq!(counted, PageWrites { pages: 1, split: 0, misaligned: 1 });
        counted.add(4096, &page(4096 | 4));
        assert_eq!(counted, PageWrites { pages: 2, split: 0, misaligned: 1 });
        // A WAL page of 1 to 4 KiB begins at odd multiples of its size.
        let mut wal = vec![0; 4096];
        wal[..16].copy_from_slice(&[0x18, 0xD1, 7, 0, 1, 0, 0, 0, 0, 0x30, 0, 1, 0, 0, 0, 0]);
        assert_eq!(content_of(&wal), Content::Wal);
    }
}
