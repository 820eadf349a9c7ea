//! `zdb -ddddd DATASET OBJECT`: locations of a file's blocks (zdb(8); the lines of `print_indirect` in its source).
//!
//! A line below `Indirect blocks:` has the offset in the file, the level, the copies as `VDEV:OFFSET:SIZE`, and the
//! block's logical and stored size as `2000L/1000P`; all but the vdev are hexadecimal. Level 0 is data.

use crate::error::{Error, Result};

/// A data block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileBlock {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Logical size, bytes.
    pub bytes: u64,
    /// Size after compression, bytes.
    pub stored_bytes: u64,
    /// Its first copy; `None` if the block is embedded in its pointer.
    pub place: Option<BlockPlace>,
}

/// Location of a copy of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// Number of the top-level vdev.
    pub vdev: u64,
    /// Offset on it, bytes.
    pub offset: u64,
    /// Allocated size, including parity and padding of raidz, bytes.
    pub bytes: u64,
    /// True if it is split over several places, for lack of contiguous free space. Not printed before OpenZFS 2.3.4.
    pub is_gang: bool,
}

/// Reads the blocks of one file in file order; holes have none.
///
/// # Errors
/// Names a malformed line; also if no block pointers were printed.
pub fn file_blocks(text: &str) -> Result<Vec<FileBlock>> {
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| *line != "Indirect blocks:");
    if lines.next().is_none() {
        return Err(Error::tool("zdb printed no line `Indirect blocks:`"));
    }
    let mut blocks = Vec::new();
    for (number, line) in lines {
        let mut words = line.split_whitespace();
        let (Some(offset), Some("L0")) = (words.next(), words.next()) else { continue };
        let wrong = |what| Error::tool(format!("zdb line {}: {what} in `{}`", number + 1, line.trim()));
        blocks.extend(block(offset, words).map_err(wrong)?);
    }
    Ok(blocks)
}

/// `None` for a hole.
fn block<'a>(offset: &str, words: impl Iterator<Item = &'a str>) -> Result<Option<FileBlock>, &'static str> {
    let offset = hex(offset).ok_or("no offset")?;
    let (mut place, mut embedded) = (None, false);
    for word in words {
        if word == "HOLE" {
            return Ok(None);
        }
        embedded |= word == "EMBEDDED";
        if place.is_none() && word.matches(':').count() == 2 && !word.contains('=') {
            place = Some(block_place(word).ok_or("a place that is not VDEV:OFFSET:SIZE")?);
        }
        if let Some((logical, stored)) = word.split_once('/').filter(|(logical, _)| logical.ends_with('L')) {
            let logical = logical.strip_suffix('L').and_then(hex).ok_or("no logical size")?;
            let stored = stored.strip_suffix('P').and_then(hex).ok_or("no stored size")?;
            if place.is_none() && !embedded {
                return Err("no place");
            }
            return Ok(Some(FileBlock { offset, bytes: logical, stored_bytes: stored, place }));
        }
    }
    // An unnamed hole has only a logical size.
    if place.is_none() && !embedded { Ok(None) } else { Err("no sizes") }
}

fn block_place(word: &str) -> Option<BlockPlace> {
    let mut parts = word.split(':');
    let (vdev, offset, size) = (parts.next()?.parse().ok()?, hex(parts.next()?)?, parts.next()?);
    let (size, is_gang) = size.strip_suffix('G').map_or((size, false), |size| (size, true));
    Some(BlockPlace { vdev, offset, bytes: hex(size)?, is_gang })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file of 17 records of 8 KiB, made by `scripts/make-zfs-fixtures`: twelve written in order, the fourth of them
    /// again, two holes, two of zeros, which are holes, and one that fits into its pointer.
    const TEXT: &str = include_str!("../../tests/fixtures/zfs/2.3.9-zdb-file.txt");

    #[test]
    fn the_blocks_of_a_file_are_read_in_its_order() {
        let blocks = file_blocks(TEXT).unwrap();
        assert_eq!(
            blocks.iter().map(|block| block.offset / 8192).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16]
        );
        assert!(blocks[..12].iter().all(|block| block.bytes == 8192 && block.stored_bytes == 8192));
        let places: Vec<BlockPlace> = blocks.iter().filter_map(|block| block.place).collect();
        assert!(places.len() == 12 && places.iter().all(|place| place.bytes == 8192), "{places:?}");
        let follows: Vec<bool> = places.windows(2).map(|two| two[0].offset + two[0].bytes == two[1].offset).collect();
        assert_eq!(
            follows.iter().enumerate().filter(|(_, follows)| !*follows).map(|(at, _)| at).collect::<Vec<_>>(),
            [2, 3]
        );
        let last = blocks[12];
        assert!(last.place.is_none() && last.bytes == 8192 && last.stored_bytes < 113, "{last:?}");
    }

    #[test]
    fn of_several_copies_the_first_counts_and_holes_are_none() {
        let text = "Indirect blocks:\n  0 L1  0:1:2 3:4:5 20000L/1000P F=1 B=1/1 cksum=0:0:0:0\n  \
                    a000  L0 12:ff000:3000 1:4:3000 2000L/1200P F=1 B=8/8 cksum=1:2:3:4\n  c000  L0 HOLE [L0 ZPL]\n  \
                    e000  L0 2000L B=17\n\n\t\tsegment [0, 1) size 1\n";
        let place = Some(BlockPlace { vdev: 12, offset: 0xff000, bytes: 0x3000, is_gang: false });
        assert_eq!(
            file_blocks(text).unwrap(),
            [FileBlock { offset: 0xa000, bytes: 8192, stored_bytes: 0x1200, place }]
        );
    }

    #[test]
    fn a_block_in_several_parts_is_known_by_its_mark() {
        let blocks =
            file_blocks("Indirect blocks:\n 0 L0 0:3000:6000G 20000L/5000P F=1 B=8/8 cksum=1:2:3:4\n").unwrap();
        assert_eq!(blocks[0].place, Some(BlockPlace { vdev: 0, offset: 0x3000, bytes: 0x6000, is_gang: true }));
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        assert!(file_blocks("").unwrap_err().to_string().contains("no line `Indirect blocks:`"));
        let wrong = |line: &str| file_blocks(&format!("x\nIndirect blocks:\n{line}\n")).unwrap_err().to_string();
        assert_eq!(
            wrong("0 L0 0:zz:2000 2000L/2000P"),
            "zdb line 3: a place that is not VDEV:OFFSET:SIZE in `0 L0 0:zz:2000 2000L/2000P`"
        );
        assert!(wrong("0 L0 0:1:2000 2000L/2000").contains("no stored size"));
        assert!(wrong("0 L0 2000L/2000P").contains("no place"));
        assert!(wrong("0 L0 0:1:2000").contains("no sizes"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,300}") {
            drop(file_blocks(&format!("Indirect blocks:\n{text}")));
        }
    }
}
