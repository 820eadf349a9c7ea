//! Unwritten ranges and extents of a file as reported by its filesystem (FIEMAP, Documentation/filesystems/fiemap.rst).

pub(crate) use super::answers::{FileRange, Pieces};
use super::files::File;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};
use std::io;

/// `FS_IOC_FIEMAP`.
const FIEMAP: Opcode = 0xC020_660B;
/// The filesystem writes back the file's dirty data before it answers.
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 1;
/// No location on the device yet, or none reported: unknown, delayed, inside the inode.
const EXTENT_UNPLACED: u32 = 0x2 | 0x4 | 0x200;
/// Compressed or encrypted: `length` is that of the data, not of the stored bytes.
const EXTENT_ENCODED: u32 = 0x8;
const EXTENT_SHARED: u32 = 0x2000;
/// Reserved; reads as zeros.
const EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents requested per call.
const EXTENTS: usize = 256;

impl Pieces {
    fn add(&mut self, before: Option<&FiemapExtent>, extent: &FiemapExtent) {
        if extent.flags & EXTENT_UNPLACED != 0 {
            return;
        }
        self.pieces += u64::from(before.is_none_or(|before| !follows(before, extent)));
        self.placed_bytes += extent.length;
        for (flag, bytes) in [
            (EXTENT_SHARED, &mut self.shared_bytes),
            (EXTENT_ENCODED, &mut self.encoded_bytes),
            (EXTENT_UNWRITTEN, &mut self.unwritten_bytes),
        ] {
            if extent.flags & flag != 0 {
                *bytes += extent.length;
            }
        }
    }
}

/// True if an extent directly follows the one before it, in the file and on the device. A compressed extent takes no
/// more room on the device than its data would, but how much is not reported: an extent that begins within that room
/// counts as following.
fn follows(before: &FiemapExtent, extent: &FiemapExtent) -> bool {
    if before.flags & EXTENT_UNPLACED != 0 || before.logical + before.length != extent.logical {
        return false;
    }
    let end = before.physical + before.length;
    if before.flags & EXTENT_ENCODED != 0 {
        return extent.physical > before.physical && extent.physical <= end;
    }
    extent.physical == end
}

/// Extents of a file, after writing back its dirty data. `None` if the filesystem does not report them.
///
/// # Errors
/// The kernel's error.
pub(crate) fn pieces(file: &File) -> io::Result<Option<Pieces>> {
    let mut found = Pieces::default();
    let mut before: Option<FiemapExtent> = None;
    let reported = each_extent(file, u64::MAX, |extent| {
        found.add(before.as_ref(), extent);
        before = Some(*extent);
    })?;
    Ok(reported.then_some(found))
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS],
}

/// Ranges of the first `bytes` of a file that are holes, or reserved and never written: a write there makes the
/// filesystem allocate or convert blocks. `None` if the filesystem does not report them.
///
/// # Errors
/// The kernel's error.
pub(crate) fn unwritten(file: &File, bytes: u64) -> io::Result<Option<Vec<FileRange>>> {
    let mut missing: Vec<FileRange> = Vec::new();
    let mut add = |start: u64, end: u64| {
        if end <= start {
            return;
        }
        match missing.last_mut() {
            Some(last) if last.start + last.bytes == start => last.bytes += end - start,
            _ => missing.push(FileRange { start, bytes: end - start }),
        }
    };
    let mut at = 0;
    let reported = each_extent(file, bytes, |extent| {
        let (start, end) = (extent.logical.clamp(at, bytes), (extent.logical + extent.length).min(bytes));
        add(at, start);
        if extent.flags & EXTENT_UNWRITTEN != 0 {
            add(start, end);
        }
        at = end.max(at);
    })?;
    add(at, bytes);
    Ok(reported.then_some(missing))
}

/// Shows each extent of the first `bytes` of a file, in order. False if the filesystem does not report them.
fn each_extent(file: &File, bytes: u64, mut see: impl FnMut(&FiemapExtent)) -> io::Result<bool> {
    let mut at = 0;
    while at < bytes {
        let extents = match extents_from(file, at, bytes - at) {
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => return Ok(false),
            extents => extents?,
        };
        extents.iter().for_each(&mut see);
        match extents.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => at = last.logical + last.length,
            _ => break,
        }
    }
    Ok(true)
}

#[expect(unsafe_code, reason = "no safe binding of FIEMAP")]
fn extents_from(file: &File, start: u64, length: u64) -> rustix::io::Result<Vec<FiemapExtent>> {
    let extents = [FiemapExtent::default(); EXTENTS];
    let mut map =
        Box::new(Map { start, length, flags: FLAG_SYNC, mapped: 0, room: EXTENTS as u32, reserved: 0, extents });
    // SAFETY: FIEMAP reads and writes a `struct fiemap` followed by `room` times `struct fiemap_extent`, which `Map` is
    // (include/uapi/linux/fiemap.h).
    unsafe { ioctl(file, Updater::<FIEMAP, Map>::new(&mut map)) }?;
    Ok(map.extents[..(map.mapped as usize).min(EXTENTS)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn only_holes_and_unwritten_extents_are_reported() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = File::create_new(folder.path().join("file")).unwrap();
        file.set_len(16 << 20).unwrap();
        let Some(all) = unwritten(&file, 16 << 20).unwrap() else {
            println!("skipped: the filesystem of /var/tmp tells no extents");
            return;
        };
        assert_eq!(all, [FileRange { start: 0, bytes: 16 << 20 }]);
        file.write_all_at(&[7; 1 << 20], 4 << 20).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 8 << 20, 1 << 20).unwrap();
        file.write_all_at(&[7; 1 << 20], 15 << 20).unwrap();
        let expected = [FileRange { start: 0, bytes: 4 << 20 }, FileRange { start: 5 << 20, bytes: 10 << 20 }];
        assert_eq!(unwritten(&file, 16 << 20).unwrap().unwrap(), expected);
        for mib in 0..16 {
            file.write_all_at(&[7; 1 << 20], mib << 20).unwrap();
        }
        assert_eq!(unwritten(&file, 16 << 20).unwrap().unwrap(), []);
    }

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> FiemapExtent {
        FiemapExtent { logical, physical, length, flags, ..FiemapExtent::default() }
    }

    fn counted(extents: &[FiemapExtent]) -> Pieces {
        let mut found = Pieces::default();
        let before = std::iter::once(None).chain(extents.iter().map(Some));
        before.zip(extents).for_each(|(before, extent)| found.add(before, extent));
        found
    }

    #[test]
    fn extents_that_follow_each_other_are_one_piece() {
        let k = 1024;
        assert_eq!(counted(&[extent(0, 64 * k, 8 * k, 0), extent(8 * k, 72 * k, 8 * k, EXTENT_UNWRITTEN)]).pieces, 1);
        assert_eq!(counted(&[extent(0, 64 * k, 8 * k, 0), extent(8 * k, 56 * k, 8 * k, 0)]).pieces, 2, "backwards");
        assert_eq!(counted(&[extent(0, 64 * k, 8 * k, 0), extent(16 * k, 72 * k, 8 * k, 0)]).pieces, 2, "over a hole");
        let inline = counted(&[extent(0, 0, 4 * k, 0x200)]);
        assert_eq!((inline.pieces, inline.placed_bytes), (0, 0));
    }

    #[test]
    fn adjacent_compressed_extents_count_as_one_piece() {
        let (k, c) = (1024, EXTENT_ENCODED);
        // btrfs: 128 KiB of data stored in 40 KiB each.
        let near = [extent(0, 640 * k, 128 * k, c), extent(128 * k, 680 * k, 128 * k, c)];
        assert_eq!(
            counted(&near),
            Pieces { pieces: 1, placed_bytes: 256 * k, encoded_bytes: 256 * k, ..Pieces::default() }
        );
        let far = [extent(0, 640 * k, 128 * k, c), extent(128 * k, 1680 * k, 128 * k, c)];
        assert_eq!(counted(&far).pieces, 2);
    }

    #[test]
    fn many_extents_are_read_to_the_end() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let file = File::create_new(folder.path().join("file")).unwrap();
        let pieces = 3 * EXTENTS as u64;
        file.set_len(pieces * 16384).unwrap();
        for piece in 0..pieces {
            file.write_all_at(&[7; 4096], piece * 16384).unwrap();
        }
        if let Some(missing) = unwritten(&file, pieces * 16384).unwrap() {
            assert_eq!(missing.len() as u64, pieces);
            assert!(missing.iter().all(|range| range.bytes == 12288), "{:?}", &missing[..3]);
            let found = super::pieces(&file).unwrap().unwrap();
            assert_eq!((found.pieces, found.placed_bytes), (pieces, pieces * 4096));
        }
    }
}
