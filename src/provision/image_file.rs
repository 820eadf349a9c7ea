//! Image files that are written in full, so that no write to the device above makes the filesystem below allocate.
//!
//! An image stays open from creation to removal: nobody who can rename things in its folder can redirect the writes.
//! The bytes written can be neither compressed nor deduplicated ([`Noise`]). Each write is a [`CHUNK`]: an interrupt
//! waits for one at most.

use super::ledger::{Ledger, Thing};
use super::sysfs::{self, DeviceNumber};
use super::{Site, folder, mount, mount_table};
use crate::error::{Context, Error, Result};
use crate::host::extents::{self, FileRange};
use crate::host::files::{self, File};
use crate::host::noise::{CHUNK, Noise, STAMPED};
use crate::host::signals::Interrupt;
use crate::host::time::{now, sleep};
use crate::host::{Host, folders, handles, loops, paths};
use crate::units::Bytes;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Without direct writes, dirty pages are written back after this many bytes: an interrupt waits for that at most.
const WRITE_BACK_EVERY: u64 = 32 << 20;
/// Interval between progress reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);
/// Limits of a speed test, in bytes and in time.
const TRY_BYTES: u64 = 256 << 20;
const TRY_TIME: Duration = Duration::from_millis(700);
/// ext4 block groups and btrfs superblock copies (64 MiB, 256 GiB) start at multiples of it.
const BLANK_EVERY: u64 = 64 << 20;

/// An existing image: the file held open since this process made it, else the regular file of that name (a recorded
/// disk, or an image that a guest had before it was killed).
///
/// # Errors
/// With the path.
pub(super) fn opened(ledger: &Ledger, path: &Path) -> Result<Arc<File>> {
    ledger.held(path).map_or_else(|| files::open_regular(path).map(Arc::new), Ok)
}

/// Maximum number of attempts to open an image under its current name.
const LOOKS: u32 = 10;

/// The file behind a loop device, and its current path.
///
/// # Errors
/// When it no longer has a name, or another file has it.
pub(super) fn behind(host: &Host, node: DeviceNumber) -> Result<(File, PathBuf)> {
    let device = Path::new("/dev").join(node.name(host).unwrap_or_default());
    let identity = loops::file_of(&device).or_host(|| format!("query the file behind {}", device.display()))?;
    for attempt in 0.. {
        let path = PathBuf::from(node.backing_file(host).unwrap_or_default());
        match files::open_regular(&path).and_then(|file| Ok((paths::look_at_open(&file, &path)?, file))) {
            Ok((found, file)) if (found.filesystem, found.inode) == identity => return Ok((file, path)),
            // It may have been renamed between the two lookups.
            _ if attempt < LOOKS => sleep(mount_table::BUSY_PAUSE),
            Err(e) => return Err(e),
            Ok(_) => {
                let message = format!("{} is not the image behind {}", path.display(), device.display());
                return Err(Error::host(message));
            }
        }
    }
    Err(Error::bug("an endless loop has ended"))
}

/// Pieces of at most a [`CHUNK`] between two offsets: where each begins, and its length.
fn chunks(start: u64, end: u64) -> impl Iterator<Item = (u64, usize)> {
    (start..end).step_by(CHUNK).map(move |at| (at, usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK)))
}

/// Reports how many bytes of an image are written.
pub(super) type Report<'a> = &'a dyn Fn(Bytes) -> Result<()>;

/// Writes a new, empty image in full. The data are on the device when this returns.
///
/// # Errors
/// With the path; interrupted, at once.
pub(super) fn fill(file: &File, path: &Path, size: Bytes, interrupt: &Interrupt, report: Report<'_>) -> Result<()> {
    let full = |e: io::Error| {
        let doing = format!("fully write the image {} of {size}", path.display());
        files::write_refused(&e, doing, "use a smaller image or another folder, or free some space")
    };
    interrupt.check()?;
    // Allocate whole extents first, if the filesystem can: a file that grows piece by piece is scattered.
    match files::reserve(file, size.0) {
        Err(e) if e.kind() == ErrorKind::StorageFull => return Err(full(e)),
        _ => file.set_len(size.0).map_err(full)?,
    }
    let mut noise = Noise::new(paths::look_at_open(file, path)?.inode);
    let direct = files::direct(file).ok();
    // Some filesystems accept the flag and refuse the write.
    let direct = direct.filter(|direct| files::write_all_at(direct, noise.at(0, CHUNK), 0).is_ok());
    let (mut reported, mut dirty) = (now(), 0);
    for (at, length) in chunks(0, size.0) {
        interrupt.check()?;
        let bytes = noise.at(at, length);
        match &direct {
            Some(direct) => files::write_all_at(direct, bytes, at).map_err(full)?,
            None => {
                files::write_all_at(file, bytes, at).map_err(full)?;
                dirty += length as u64;
                if dirty >= WRITE_BACK_EVERY {
                    file.sync_data().and_then(|()| files::drop_cache(file)).map_err(full)?;
                    dirty = 0;
                }
            }
        }
        if reported.elapsed() >= REPORT_EVERY {
            report(Bytes(at + length as u64))?;
            reported = now();
        }
    }
    zero_first_block(file).and_then(|()| file.sync_all()).and_then(|()| files::drop_cache(file)).map_err(full)?;
    report(size)
}

/// Overwrites, in place, the superblocks of a filesystem from an earlier trial, so that it is no longer recognized.
///
/// # Errors
/// With the path.
pub(super) fn blank(file: &File, path: &Path) -> Result<()> {
    let blanking = || format!("overwrite the data of the previous trial in {}", path.display());
    let found = paths::look_at_open(file, path)?;
    let mut noise = Noise::new(found.inode);
    let inner = (BLANK_EVERY..found.bytes).step_by(BLANK_EVERY as usize).map(|from| (from, 2 * STAMPED));
    let last = (found.bytes.saturating_sub(CHUNK as u64), CHUNK);
    for (from, bytes) in std::iter::once((0, CHUNK)).chain(inner).chain([last]) {
        let length = usize::try_from(found.bytes.saturating_sub(from)).unwrap_or(bytes).min(bytes);
        files::write_all_at(file, noise.at(from, length), from).or_host(blanking)?;
    }
    zero_first_block(file).and_then(|()| file.sync_data()).and_then(|()| files::drop_cache(file)).or_host(blanking)
}

/// Two random bytes are now and then the magic number of a filesystem (HFS+ at 1024), and mkfs overwrites none.
fn zero_first_block(file: &File) -> io::Result<()> {
    files::write_all_at(file, &[0; STAMPED], 0)
}

/// Maximum number of passes that find and write unwritten ranges.
const ROUNDS: u32 = 3;

/// Ranges and bytes of an image that were rewritten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Refilled {
    pub ranges: usize,
    pub bytes: u64,
}

/// Rewrites the ranges of an image that have no written block, with the bytes that they read as. Nobody may write to
/// the image meanwhile.
///
/// # Errors
/// With the path; interrupted.
pub(super) fn refill(file: &File, path: &Path, interrupt: &Interrupt) -> Result<Refilled> {
    let refilling = || format!("rewrite the holes of {}", path.display());
    let mut refilled = Refilled::default();
    let mut chunk = vec![0; CHUNK];
    for _ in 0..ROUNDS {
        let ranges = unwritten(file, path)?.unwrap_or_default();
        if ranges.is_empty() {
            break;
        }
        for range in &ranges {
            for (at, length) in chunks(range.start, range.start + range.bytes) {
                interrupt.check()?;
                let bytes = &mut chunk[..length];
                let copied = files::read_exact_at(file, bytes, at).and_then(|()| files::write_all_at(file, bytes, at));
                copied.or_host(refilling)?;
            }
        }
        file.sync_all().and_then(|()| files::drop_cache(file)).or_host(refilling)?;
        refilled.ranges += ranges.len();
        refilled.bytes += ranges.iter().map(|range| range.bytes).sum::<u64>();
    }
    Ok(refilled)
}

/// The ranges of an image without a written block; `None` if its filesystem does not report them.
///
/// # Errors
/// With the path.
pub(super) fn unwritten(file: &File, path: &Path) -> Result<Option<Vec<FileRange>>> {
    let bytes = paths::look_at_open(file, path)?.bytes;
    extents::unwritten(file, bytes).or_host(|| format!("query the extents of {}", path.display()))
}

/// Write speed of a folder for an image, in bytes per second, measured with an unnamed file; `None` if that cannot be
/// measured without leaving a trace: another user's folder, or a filesystem without unnamed files or direct writes.
pub(super) fn try_speed(folder: &Path) -> Option<f64> {
    let free = files::free_bytes(folder).ok()?;
    let file = files::nameless(folder).ok()?;
    let mut noise = Noise::new(1);
    let (begun, mut at) = (now(), 0);
    while at < TRY_BYTES.min(free / 20) && begun.elapsed() < TRY_TIME {
        files::write_all_at(&file, noise.at(at, CHUNK), at).ok()?;
        at += CHUNK as u64;
    }
    file.sync_data().ok()?;
    (at > 0).then(|| at as f64 / begun.elapsed().as_secs_f64())
}

/// Ledger marks of the image, which also identify its loop device.
const FILESYSTEM: &str = "filesystem";

pub(crate) const INODE: &str = "inode";

/// Adds the marks that identify the image to a thing.
pub(crate) fn known_by(thing: Thing, found: &paths::PathFacts) -> Thing {
    thing.with(FILESYSTEM, found.filesystem.to_string()).with(INODE, found.inode.to_string())
}

/// Filesystem and inode of a thing's image.
pub(crate) fn known(thing: &Thing) -> Option<(u64, u64)> {
    let [filesystem, inode] = [FILESYSTEM, INODE].map(|mark| thing.marks.get(mark)?.parse().ok());
    Some((filesystem?, inode?))
}

/// Ledger mark of an image that is written in full.
pub(crate) const WRITTEN: &str = "written";

/// Makes an empty image file, to be written in full or not. It is entered into the ledger first, and again once its
/// inode is known. The inode identifies it for removal, and a handle finds its folder even after a rename.
pub(crate) fn make_file(site: &Site<'_>, place: &Path, name: &str, written: bool) -> Result<PathBuf> {
    if place == Path::new(DEFAULT_FOLDER) {
        folders::make_passable(place)?;
    }
    let (folder, real) = folders::open_trusted(place)?;
    let image = real.join(name);
    if paths::exists(&image) {
        return Err(Error::host(format!("the image {} already exists", image.display())));
    }
    let mut thing = Thing::new("loop", "image").with_path("path", &image)?;
    if written {
        thing = thing.with(WRITTEN, "in full");
    }
    // Some filesystems have no handles: then it is found by its path.
    if let Ok(handle) = handles::of(&folder) {
        thing = thing.with(MOUNT, mount::mount_of(site.host, &real)?.target).with(FOLDER, handle);
    }
    let first = site.ledger.enter(thing.clone())?;
    let file = folders::create_in(&folder, name).or_host(|| format!("create the image {}", image.display()))?;
    if let Ok(handle) = handles::of(&file) {
        thing = thing.with(HANDLE, handle);
    }
    let entry = site.ledger.enter(known_by(thing, &paths::look_at_open(&file, &image)?))?;
    site.ledger.hold(entry, file);
    site.ledger.undone(first)?;
    Ok(image)
}

const MOUNT: &str = "mount";

const FOLDER: &str = "folder";

const HANDLE: &str = "handle";

/// Removes an image of the ledger, even if it or its folder was renamed. Does nothing if it is gone.
///
/// # Errors
/// When something else has its name, or it was moved and cannot be found.
pub(crate) fn remove(host: &Host, thing: &Thing) -> Result<()> {
    let image = Path::new(thing.mark("path")?);
    let (above, name) = (image.parent().unwrap_or(Path::new("/")), image.file_name().and_then(|name| name.to_str()));
    let name = name.filter(|name| image.is_absolute() && name.starts_with(folder::PREFIX) && name.ends_with(".img"));
    let name = name.ok_or_else(|| Error::bug(format!("{} is not the name of a pgstrata image", image.display())))?;
    if sysfs::loops(host).iter().any(|(_, file)| Path::new(file) == image) {
        return Err(Error::host(format!("the image {} still has a loop device", image.display())));
    }
    let by_handle = |mark: &str| Some(handles::open(Path::new(thing.marks.get(MOUNT)?), thing.marks.get(mark)?));
    // After a reboot the handle is still its own, but its filesystem may have another number.
    let found = by_handle(HANDLE).and_then(Result::ok).and_then(|file| paths::look_at_open(&file, image).ok());
    let known = found.map_or_else(|| known(thing), |found| Some((found.filesystem, found.inode)));
    let folders = [folders::open(above).ok(), by_handle(FOLDER).and_then(Result::ok)];
    for folder in folders.into_iter().flatten() {
        if folders::remove_known(folder, name, known).or_host(|| format!("remove {}", image.display()))? {
            return Ok(());
        }
    }
    match by_handle(HANDLE) {
        Some(Ok(moved)) if paths::look_at_open(&moved, image)?.names > 0 => {
            let (mount, inode) = (thing.mark(MOUNT)?, thing.mark(INODE)?);
            Err(Error::host(format!("the image {} was moved to another folder", image.display())).hint(format!(
                "`find {mount} -xdev -inum {inode}` shows where it is: remove it, then run `pgstrata clean`"
            )))
        }
        _ if paths::look_for(image)?.is_some() => {
            Err(Error::host(format!("{} is not the file that pgstrata created", image.display())))
        }
        _ => Ok(()),
    }
}

/// Default folder of images.
pub(crate) const DEFAULT_FOLDER: &str = "/var/lib/pgstrata";

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;

    /// An empty file on a disk, since /tmp may be memory.
    fn empty() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("pgstrata-x.img");
        fs::write(&path, "").unwrap();
        (folder, path)
    }

    fn open(path: &Path) -> File {
        files::open_regular(path).unwrap()
    }

    #[test]
    fn an_image_is_fully_written_with_distinct_incompressible_blocks() {
        let (_folder, path) = empty();
        let size = Bytes((5 << 20) + 8192);
        let reported = RefCell::new(Vec::new());
        fill(&open(&path), &path, size, &Interrupt::never(), &|done| {
            reported.borrow_mut().push(done);
            Ok(())
        })
        .unwrap();
        assert_eq!(reported.borrow().last(), Some(&size));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, size.0);
        let mut blocks: Vec<&[u8]> = bytes.chunks(STAMPED).collect();
        let count = blocks.len();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), count);
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut packed, &bytes[..CHUNK]).unwrap();
        assert!(packed.finish().unwrap().len() > CHUNK * 99 / 100);
        assert_eq!(unwritten(&open(&path), &path).unwrap().unwrap_or_default(), []);
        assert!(bytes[..STAMPED].iter().all(|byte| *byte == 0), "no magic number by chance");
    }

    #[test]
    fn an_interrupt_ends_the_writing_at_once() {
        let (_folder, path) = empty();
        let interrupt = Interrupt::never();
        interrupt.raise();
        let error = fill(&open(&path), &path, Bytes(64 << 20), &interrupt, &|_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), crate::error::Kind::Interrupted);
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "nothing was reserved");
    }

    #[test]
    fn holes_are_written_again_with_what_they_read_as() {
        let (_folder, path) = empty();
        fill(&open(&path), &path, Bytes(8 << 20), &Interrupt::never(), &|_| Ok(())).unwrap();
        let file = open(&path);
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 1 << 20, 1 << 20).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::ZERO_RANGE, 4 << 20, 65536).unwrap();
        let before = fs::read(&path).unwrap();
        let Some(holes) = unwritten(&open(&path), &path).unwrap() else {
            println!("skipped: the filesystem of /var/tmp tells no extents");
            return;
        };
        assert_eq!(holes.len(), 2);
        let refilled = refill(&open(&path), &path, &Interrupt::never()).unwrap();
        assert_eq!(refilled, Refilled { ranges: 2, bytes: (1 << 20) + 65536 });
        assert_eq!(unwritten(&open(&path), &path).unwrap().unwrap(), []);
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn the_speed_test_of_a_folder_leaves_no_trace() {
        let (folder, path) = empty();
        fs::remove_file(path).unwrap();
        if let Some(speed) = try_speed(folder.path()) {
            assert!(speed > 1e5, "{speed}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(try_speed(Path::new("/proc")), None);
    }
}
