//! Number of pieces of a file on ZFS. The filesystem does not report it (no FIEMAP); `zdb` reads it from the pool's
//! devices.

use super::zfs_tools::{self, call};
use crate::error::Result;
use crate::host::extents::Pieces;
use crate::host::{Host, paths};
use crate::parse::zdb::{self, FileBlock};
use std::path::Path;
use std::time::Duration;

/// zdb reads one block of pointers per 1024 records, from possibly slow devices.
const LIMIT: Duration = Duration::from_secs(900);

/// Pieces of a file on a dataset, after dirty data has been written to the pool.
///
/// # Errors
/// With the tool's own message.
pub(super) fn pieces(host: &Host, dataset: &str, file: &Path) -> Result<Pieces> {
    let pool = dataset.split('/').next().unwrap_or(dataset);
    host.run(&call("zpool", &["sync", pool]))?;
    // Our pools are not in the cache file of imported pools: they are found by their devices.
    let search = zfs_tools::devices_of_pool(host, dataset)?.into_iter().flat_map(|(path, _)| ["-p".to_owned(), path]);
    let zdb = call("zdb", &["-e"]).limit(LIMIT).args(search);
    let inode = paths::look_at(file)?.inode.to_string();
    let shown = host.run(&zdb.arg("-ddddd").arg(dataset).arg(&inode))?.stdout;
    Ok(count(&zdb::file_blocks(&shown)?))
}

/// Records that are adjacent in the file and on a vdev are one piece. A record embedded in its pointer has no location.
fn count(blocks: &[FileBlock]) -> Pieces {
    let mut found = Pieces::default();
    let mut before: Option<&FileBlock> = None;
    for block in blocks {
        if let Some(place) = block.place {
            let follows = before.and_then(|before| Some((before, before.place?))).is_some_and(|(before, last)| {
                let in_file = before.offset + before.bytes == block.offset;
                // The end of a record in several parts is unknown.
                let whole = !last.is_gang && !place.is_gang;
                in_file && whole && last.vdev == place.vdev && last.offset + last.bytes == place.offset
            });
            found.pieces += u64::from(!follows);
            found.placed_bytes += block.bytes;
            found.encoded_bytes += if block.stored_bytes < block.bytes { block.bytes } else { 0 };
        }
        before = Some(block);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::zdb::BlockPlace;

    fn block(record: u64, place: Option<(u64, u64)>) -> FileBlock {
        let place = place.map(|(vdev, at)| BlockPlace { vdev, offset: at * 0x3000, bytes: 0x3000, is_gang: false });
        FileBlock { offset: record * 8192, bytes: 8192, stored_bytes: 8192, place }
    }

    #[test]
    fn a_zfs_piece_ends_at_a_gap_or_another_vdev() {
        let pieces = |blocks: &[FileBlock]| count(blocks).pieces;
        let run = [block(0, Some((0, 7))), block(1, Some((0, 8))), block(2, Some((0, 9)))];
        assert_eq!(pieces(&run), 1);
        assert_eq!(pieces(&[run[0], run[2]]), 2);
        assert_eq!(pieces(&[run[0], block(1, Some((1, 8)))]), 2);
        assert_eq!(pieces(&[run[0], block(1, Some((0, 6)))]), 2);
        let inside = count(&[run[0], block(1, None), block(2, Some((0, 8)))]);
        assert_eq!((inside.pieces, inside.placed_bytes), (2, 2 * 8192));
        let mut gang = run;
        gang[1].place.as_mut().unwrap().is_gang = true;
        assert_eq!(pieces(&gang), 3);
        let small = FileBlock { stored_bytes: 4096, ..run[0] };
        assert_eq!(count(&[small, run[1]]).encoded_bytes, 8192);
    }
}
